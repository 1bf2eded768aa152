"""The web server's entry point."""

import os

from django.core.wsgi import get_wsgi_application

from portal.checks import refuse_unusable_settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

application = get_wsgi_application()
# Without a key each process would draw its own, and no session would hold from one to the next.
refuse_unusable_settings()
