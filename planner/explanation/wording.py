"""How names and numbers stand in a sentence, in each language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from string import Formatter
from types import MappingProxyType
from typing import Any, Literal, get_args

from planner.explanation.order_templates import SayOfTwo
from planner.explanation.templates import Say
from planner.vocabulary import SENTENCES, Ground, Reason, Sentence

Language = Literal["en", "ja"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

GROUNDS: Mapping[Ground, Sentence] = MappingProxyType(
    {
        Ground.PREEMPTION: Sentence("preemption", "プリエンプション"),
        Ground.RECLAIM: Sentence("reclaim", "クォータの回収"),
        Ground.OUTAGE: Sentence("an outage", "停止"),
    }
)


# What `{value:unit}` writes: for one, and for any other number.
UNITS: Mapping[str, tuple[Sentence, Sentence]] = MappingProxyType(
    {
        "n": (Sentence("{0:,}", "{0:,}"),) * 2,
        "gpus": (Sentence("{0:,} GPU", "GPU {0:,}基"), Sentence("{0:,} GPUs", "GPU {0:,}基")),
        "nodes": (Sentence("{0:,} node", "{0:,}ノード"), Sentence("{0:,} nodes", "{0:,}ノード")),
        "jobs": (Sentence("{0:,} job", "{0:,}件"), Sentence("{0:,} jobs", "{0:,}件")),
        "evictions": (
            Sentence("{0:,} eviction", "{0:,}回の退避"),
            Sentence("{0:,} evictions", "{0:,}回の退避"),
        ),
        "at": (Sentence("second {0:,}", "{0:,}秒"),) * 2,
        "seconds": (Sentence("{0:,} s", "{0:,}秒"),) * 2,
        "gpu_seconds": (Sentence("{0:,} GPU-seconds", "{0:,} GPU秒"),) * 2,
        "score": (Sentence("{0:.6g}", "{0:.6g}"),) * 2,
        "share": (Sentence("{0:.6g}", "{0:.6g}"),) * 2,
        "limit": (Sentence("{0:,}", "{0:,}"),) * 2,
    }
)
# What `{value:unit}` writes where there is no value.
ABSENT: Mapping[str, Sentence] = MappingProxyType(
    {
        "limit": Sentence("none", "なし"),
        "names": Sentence("any", "すべて"),
        "share": Sentence("infinite", "無限大"),
    }
)
NOTHING = Sentence("none", "なし")
NAMES = Sentence(", ", "、")  # between names
ITEMS = Sentence("; ", "、")  # between what has commas of its own


class _Writer(Formatter):
    """Writes numbers with their units in one language."""

    def __init__(self, language: Language) -> None:
        self._pick: Callable[[Sentence], str] = lambda sentence: getattr(sentence, language)

    def format_field(self, value: Any, format_spec: str) -> str:
        pick = self._pick
        if value is None and format_spec in ABSENT:
            return pick(ABSENT[format_spec])
        if format_spec in UNITS:
            one, many = UNITS[format_spec]
            return pick(one if value == 1 else many).format(value)
        if format_spec in ("names", "items"):
            joint = NAMES if format_spec == "names" else ITEMS
            return pick(joint).join(value) or pick(NOTHING)
        if format_spec == "reason":
            return pick(SENTENCES[Reason(value)])
        if format_spec == "ground":
            return pick(GROUNDS[Ground(value)])
        return str(super().format_field(value, format_spec))


_WRITERS = {language: _Writer(language) for language in LANGUAGES}


def say(what: Say | SayOfTwo, language: Language, **values: object) -> str:
    """Say one thing in one language."""
    template: str = getattr(what.value, language)
    return _WRITERS[language].vformat(template, (), values)
