"""Django's settings, all from the environment by way of env.py."""

from pathlib import Path

import dj_database_url
from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from portal import env

ROOT = env.ROOT
DEBUG = env.value(env.DEBUG)
DEMO = env.value(env.DEMO)
# Of the people that `seed_demo` makes; no secret: the sign-in page shows it when DEMO.
DEMO_PASSWORD = "demo-sekisho"  # noqa: S105
DATA_DIR: Path = env.value(env.DATA_DIR)
DATA_DIR.mkdir(parents=True, exist_ok=True)

SECRET_KEY_IS_OWN = bool(env.value(env.SECRET_KEY))
# Without a key of its own the process draws one: sessions end with it, nothing can be guessed.
SECRET_KEY = env.value(env.SECRET_KEY)
if not SECRET_KEY:
    from secrets import token_urlsafe

    SECRET_KEY = token_urlsafe(50)

ALLOWED_HOSTS = env.value(env.ALLOWED_HOSTS)
CSRF_TRUSTED_ORIGINS = env.value(env.TRUSTED_ORIGINS)
REPORT_TIMEZONE = env.value(env.REPORT_TIMEZONE)
METRICS_TOKEN = env.value(env.METRICS_TOKEN)

INSTALLED_APPS = [
    "portal.apps.PortalConfig",
    "portal.theme",
    "portal.accounts",
    "portal.fleet",
    "portal.tenants",
    "portal.policy",
    "portal.telemetry",
    "portal.plans",
    "portal.requests",
    "portal.dashboards",
    "portal.demo",
    "collectors",
    "allauth",
    "allauth.account",
    "auditlog",
    "csp",
    "django_filters",
    "django_htmx",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",  # before WhiteNoise: static files carry the policy too
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "auditlog.middleware.AuditlogMiddleware",
]

ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "portal.theme.context.page",
            ],
            "builtins": ["django.templatetags.i18n", "portal.theme.templatetags.units"],
        },
    }
]

DATABASES = {
    "default": dj_database_url.parse(
        env.value(env.DATABASE_URL) or f"sqlite:///{DATA_DIR / 'sekisho.sqlite3'}",
        conn_max_age=60,
        conn_health_checks=True,
    )
}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # Writers queue instead of failing: the lock is taken at BEGIN, and readers never block (WAL).
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.value(env.REDIS_URL)
CACHES = {
    "default": (
        {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}
        if REDIS_URL
        else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    )
}

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "dashboards:overview"
LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_ADAPTER = "portal.accounts.adapter.ClosedSignUp"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_UNIQUE_EMAIL = True
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_RATE_LIMITS = {
    "login": "30/m/ip",
    "login_failed": "10/m/ip,5/5m/key",
}
ACCOUNT_SESSION_REMEMBER = True
ALLAUTH_TRUSTED_PROXY_COUNT = env.value(env.TRUSTED_PROXIES)
# No mail goes out yet, and none into the log: whoever reads it could take an account over by the
# link of a password reset. The page of the reset says so.
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("ja", _("Japanese"))]
LOCALE_PATHS = [ROOT / "portal" / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "static/"
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "portal.theme.finders.PlotlyFinder",
]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
HTTPS = env.value(env.HTTPS)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = ["^healthz$", "^readyz$"]  # asked from inside, over plain HTTP
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
if env.value(env.TRUSTED_PROXIES):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
LANGUAGE_COOKIE_SECURE = HTTPS
LANGUAGE_COOKIE_SAMESITE = "Lax"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000
# No form takes a file: a large one is read past and never written to the disk.
FILE_UPLOAD_HANDLERS = ["django.core.files.uploadhandler.MemoryFileUploadHandler"]

# Who changed what, kept for good: everything that is intended, and who belongs where.
AUDITLOG_INCLUDE_TRACKING_MODELS = (
    "fleet",
    "tenants",
    "policy",
    "requests.QuotaRequest",
    {"model": "accounts.User", "exclude_fields": ["password", "last_login"]},
)

CELERY_BROKER_URL = REDIS_URL or "memory://"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # however long Redis is away
# Longer than the longest task, or Redis hands the same task out again.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 7200,
    "socket_connect_timeout": 5,
    "socket_keepalive": True,
}
CELERY_TASK_IGNORE_RESULT = True
# Only tasks that may be repeated; those that may not say so themselves.
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 1800
CELERY_TASK_SOFT_TIME_LIMIT = 1740
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A process that has grown is replaced when its task is done.
CELERY_WORKER_MAX_TASKS_PER_CHILD = 200
CELERY_WORKER_MAX_MEMORY_PER_CHILD = 1_000_000  # kB
CELERY_TIMEZONE = "UTC"
CELERY_ENABLE_UTC = True

# Without any, pages say that nothing on them is live.
HAS_PROMETHEUS = env.in_any_region(env.PROMETHEUS_URL)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.value(env.LOG_LEVEL)},
    # It warns of each try with the whole address, queries included; our own error says it once.
    "loggers": {"urllib3.connectionpool": {"level": "ERROR"}},
}
