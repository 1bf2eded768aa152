"""Walks the URLconf: every address that the site answers to, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.http import HttpResponseBase
from django.urls import URLPattern, URLResolver, get_resolver

# Namespaces and addresses whose views, templates and tests live in installed packages.
THIRD_PARTY_NAMESPACES = {"admin"}
THIRD_PARTY_PREFIXES = ("account_",)
THIRD_PARTY_NAMES = {"set_language"}


@dataclass(frozen=True, slots=True)
class Address:
    """One named pattern: its full name, the arguments it takes and what answers."""

    name: str
    arguments: frozenset[str]
    view: Callable[..., HttpResponseBase]

    @property
    def slice_name(self) -> str:
        """The slice whose word this is; empty for the site's own."""
        return self.name.rpartition(":")[0]

    @property
    def word(self) -> str:
        """The word that view, template and test share."""
        return self.name.rpartition(":")[2]


def _walk(resolver: URLResolver, namespaces: tuple[str, ...]) -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            if entry.namespace in THIRD_PARTY_NAMESPACES:
                continue
            yield from _walk(entry, (*namespaces, *filter(None, [entry.namespace])))
        else:
            yield ":".join((*namespaces, entry.name or f"(nameless: {entry.pattern})")), entry


def own_addresses() -> list[Address]:
    """Every address of ours; those of installed packages are left out."""
    return sorted(
        (
            Address(name, frozenset(pattern.pattern.regex.groupindex), pattern.callback)
            for name, pattern in _walk(get_resolver(), ())
            if name not in THIRD_PARTY_NAMES and not name.startswith(THIRD_PARTY_PREFIXES)
        ),
        key=lambda address: address.name,
    )
