"""How allauth behaves here."""

from allauth.account.adapter import DefaultAccountAdapter
from django.http import HttpRequest


class ClosedSignUp(DefaultAccountAdapter):  # type: ignore[misc]
    """People are invited by an administrator: nobody can sign up by themselves."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Always no."""
        return False
