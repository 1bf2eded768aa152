"""Who may import whom, checked on every run, and the contracts themselves kept complete."""

import tomllib

from importlinter.cli import lint_imports

from tests.conftest import ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
COLLECTORS_MAY_KNOW = {"fleet", "telemetry", "env"}
# Not slices: the frame that Django needs. They know the slices; no slice knows them.
FRAME = {
    "settings", "urls", "wsgi", "celery", "checks", "apps", "version", "health", "metrics",
    "locale",
}  # fmt: skip


def portal_modules() -> set[str]:
    return {
        path.stem
        for path in (ROOT / "portal").iterdir()
        if not path.name.startswith("_") and (path.is_dir() or path.suffix == ".py")
    }


def test_every_import_contract_is_kept() -> None:
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml")) == 0


def test_the_contract_on_the_collectors_names_every_slice_they_may_not_know() -> None:
    [contract] = [c for c in CONTRACTS if c.get("source_modules") == ["collectors"]]
    named = {name.removeprefix("portal.") for name in contract["forbidden_modules"]}

    assert portal_modules() - COLLECTORS_MAY_KNOW - FRAME <= named
    assert not named & COLLECTORS_MAY_KNOW


def test_no_slice_knows_the_frame_except_its_celery_app() -> None:
    [slices] = [c for c in CONTRACTS if c.get("containers") == ["portal"]]

    assert set(slices["exhaustive_ignores"]) <= FRAME
