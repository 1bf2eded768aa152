"""Writes the two pages made from the settings registry: `python -m tests.house.settings_pages`.

`.env.example` and `docs/reference/settings.md` are generated; a test compares them with this.
"""

from __future__ import annotations

from textwrap import wrap

from portal import env

ENV_EXAMPLE = env.ROOT / ".env.example"
REFERENCE = env.ROOT / "docs" / "reference" / "settings.md"

ENV_HEAD = """\
# Every setting Sekisho reads, with its default. Made from portal/env.py by
# `python -m tests.house.settings_pages`; a test compares the two. Nothing needs to be set for
# `make demo` and `make test`. Never commit a file that holds real secrets.
"""
REFERENCE_HEAD = """\
# Settings

Sekisho reads its settings from the environment, through the one table in `portal/env.py`, from
which this page and `.env.example` are made (`python -m tests.house.settings_pages`). A value that
cannot be read stops the start with a sentence that names the setting; what is missing or cannot
work together is reported by `manage.py check`.

What begins with `PROMETHEUS_`, but for the two that end in `_SECONDS`, may be given for one region
by adding its name in capitals, with `_` for `-`: `PROMETHEUS_URL_TOKYO`. A secret that is set goes
before one in a file.

| Setting | Default | Expected | Meaning |
| --- | --- | --- | --- |
"""


def env_example() -> str:
    """The text of .env.example."""
    blocks = []
    for setting in env.REGISTRY:
        notes = [setting.meaning, f"Expected: {setting.expected}."]
        if setting.secret:
            notes.append("Secret.")
        comment = "\n".join(f"# {line}" for line in wrap(" ".join(notes), 96))
        blocks.append(f"{comment}\n{setting.name}={setting.default}\n")
    return "\n".join([ENV_HEAD, *blocks])


def reference() -> str:
    """The text of docs/reference/settings.md."""
    rows = [
        f"| `{setting.name}` | {f'`{setting.default}`' if setting.default else 'none'} "
        f"| {setting.expected}{', secret' if setting.secret else ''} | {setting.meaning} |"
        for setting in env.REGISTRY
    ]
    return REFERENCE_HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    ENV_EXAMPLE.write_text(env_example(), encoding="utf-8")
    REFERENCE.write_text(reference(), encoding="utf-8")
