"""Figures as people read them: durations, GPU-hours, ratios, instants with their zone."""

from django import template

register = template.Library()
