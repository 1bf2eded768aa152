"""Charts that bring their table and their sources."""

from portal.exhibits.exhibit import Exhibit, Figure, Key, Source, local_times, points

__all__ = ["Exhibit", "Figure", "Key", "Source", "local_times", "points"]
