"""The planner's version: it stands in every comparison, for figures of two may differ."""

PLANNER_VERSION = "0.1.0"
