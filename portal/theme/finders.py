"""Serves the Plotly script that the installed Plotly package ships: no copy in git, no CDN."""

from collections.abc import Iterator
from pathlib import Path

import plotly
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

SCRIPTS = Path(plotly.__file__).parent / "package_data"


class PlotlyFinder(BaseFinder):
    """Finds `plotly/plotly.min.js` in the installed wheel."""

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        self.storage = FileSystemStorage(location=str(SCRIPTS))
        self.storage.prefix = "plotly"  # type: ignore[attr-defined]

    def find(self, path: str, find_all: bool = False, **_kwargs: object) -> str | list[str]:  # type: ignore[override]  # noqa: FBT001, FBT002
        """The file's place on disk, or an empty list."""
        if path == "plotly/plotly.min.js":
            found = str(SCRIPTS / "plotly.min.js")
            return [found] if find_all else found
        return []

    def list(self, ignore_patterns: object) -> Iterator[tuple[str, FileSystemStorage]]:
        """The one file, for collectstatic."""
        yield "plotly.min.js", self.storage
