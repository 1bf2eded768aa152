"""`explain` in both languages, on the command line, as JSON, and on its page of the docs."""

import json
import re
import shlex
import string
import subprocess
import sys
from pathlib import Path

import pytest

from planner.__main__ import main
from planner.explain import LANGUAGES, explain
from planner.explanation.order_templates import SayOfTwo
from planner.explanation.templates import Say
from planner.explanation.wording import ABSENT, GROUNDS, UNITS
from planner.scenario import ScenarioError, dumps
from planner.vocabulary import SENTENCES, Ground, Reason
from tests.planner.building import job, scenario

ROOT = Path(__file__).parents[2]
DOC = ROOT / "docs" / "tasks" / "explain-a-wait.md"
EXAMPLE = ROOT / "planner" / "examples" / "explain-a-wait.toml"

# --- Words ---------------------------------------------------------------------------------------


def fields(template: str) -> set[tuple[str, str]]:
    return {
        (name, spec or "")
        for _, name, spec, _ in string.Formatter().parse(template)
        if name is not None
    }


@pytest.mark.parametrize("what", [*Say, *SayOfTwo], ids=lambda what: what.name)
def test_a_template_says_the_same_in_both_languages(what: Say | SayOfTwo) -> None:
    en, ja = what.value
    assert en
    assert ja
    assert fields(en) == fields(ja)
    known = {*UNITS, *ABSENT, "", "items", "reason", "ground"}
    assert {spec for _, spec in fields(en)} <= known
    assert not re.search(r"[ぁ-んァ-ヶ一-龠]", en)


def test_words_units_and_reasons_are_there_in_both_languages() -> None:
    assert set(SENTENCES) == set(Reason)
    assert set(GROUNDS) == set(Ground)
    words = [*SENTENCES.values(), *GROUNDS.values(), *ABSENT.values()]
    words += [sentence for pair in UNITS.values() for sentence in pair]
    assert all(word.en and word.ja for word in words)


def used() -> set[str]:
    """The names of the templates that the code names."""
    code = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "planner" / "explanation").glob("*sentences.py")
    )
    return set(re.findall(r"\b(?:Say|SayOfTwo)\.([A-Z_]+)", code))


def test_no_template_is_left_that_nobody_says() -> None:
    assert used() == {what.name for what in [*Say, *SayOfTwo]}


# --- The command ---------------------------------------------------------------------------------


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.toml"
    waits = scenario(
        job("a", gpus=8), job("b", gpus=5, project="vision"), job("c", submit=10, gpus=4),
        quota=[
            {"project": name, "pool": "h100", "nominal": 16} for name in ("speech", "vision")
        ],
    )  # fmt: skip
    path.write_text(dumps(waits), encoding="utf-8")
    return path


def test_the_command_says_it_and_writes_facts_and_sentences(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "why.json"
    arguments = ["explain", str(plan), "--job", "c", "--at", "20", "--language", "ja"]
    assert main([*arguments, "--json", str(out)]) == 0
    content = json.loads(out.read_text(encoding="utf-8"))
    assert set(content) == {"scenario", "question", "facts", "sentences"}
    assert (content["scenario"], content["question"]) == ("small", "moment")
    assert capsys.readouterr().out.splitlines() == content["sentences"]["ja"]
    assert set(content["sentences"]) == set(LANGUAGES)
    facts = content["facts"]
    assert (facts["reason"], facts["standing"], facts["ahead"]) == (
        "WaitingForCapacity", "waiting", None,
    )  # fmt: skip
    assert facts["job"] == {
        "id": "c", "project": "speech", "lane": "primary", "gpus": 4,
        "submit_seconds": 10, "row": 3,
    }  # fmt: skip
    pool = facts["pools"][0]
    assert (pool["pool"], pool["check"], pool["free_gpus"]) == ("h100", "WaitingForCapacity", 3)
    assert pool["quota"]["available"] == 32 - 13
    assert pool["quota"]["borrowing_limit"] is None


@pytest.mark.parametrize(
    ("arguments", "question"), [([], "life"), (["--before", "b"], "precedence")]
)
def test_each_question_is_answered_in_json(
    plan: Path, tmp_path: Path, arguments: list[str], question: str
) -> None:
    out = tmp_path / "why.json"
    assert main(["explain", str(plan), "--job", "c", *arguments, "--json", str(out)]) == 0
    content = json.loads(out.read_text(encoding="utf-8"))
    assert content["question"] == question
    assert all(content["sentences"][language] for language in LANGUAGES)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["--job", "speech1"],
            '--job = "speech1": expected the id of a job; near it are speech-1',
        ),
        (["--job", "nobody"], '--job = "nobody": expected the id of a job'),
        (
            ["--job", "speech-1", "--before", "visio-1"],
            (
                '--before = "visio-1": expected the id of a job; near it are vision-1, vision-3, '
                "vision-2"
            ),
        ),
        (
            ["--job", "speech-1", "--before", "speech-1"],
            '--before = "speech-1": expected another job than --job',
        ),
        (["--job", "speech-1", "--at", "-1"], "--at = -1: expected 0 or more"),
    ],
)
def test_a_question_about_what_is_not_there_ends_with_status_2(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", str(EXAMPLE), *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == f"Vision borrows from speech: {error}\n"


def test_a_second_beyond_the_horizon_is_refused() -> None:
    limited = scenario(job("a"), horizon_seconds=50)
    with pytest.raises(ScenarioError, match="--at = 51: expected 0 to 50, the horizon"):
        explain(limited, "a", at_seconds=51)
    assert explain(limited, "a", at_seconds=50).lines()


def examples() -> list[tuple[str, str]]:
    """The commands of the page, each with the output that the page shows."""
    blocks = re.findall(r"^    \$ (.+)\n((?:    .+\n)+)", DOC.read_text(encoding="utf-8"), re.M)
    return [(command, re.sub(r"^    ", "", output, flags=re.M)) for command, output in blocks]


@pytest.mark.parametrize(("command", "output"), examples(), ids=lambda text: text[-24:])
def test_the_page_shows_what_the_command_says(
    command: str, output: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    python, module, package, *arguments = shlex.split(command)
    assert (python, module, package) == ("python", "-m", "planner")
    monkeypatch.chdir(ROOT)
    assert main(arguments) == 0
    assert capsys.readouterr().out == output


def test_the_page_has_an_example_of_each_question() -> None:
    assert len(examples()) == 4


def test_the_module_runs_as_a_program() -> None:
    command, output = examples()[0]
    done = subprocess.run(
        [sys.executable, *shlex.split(command)[1:]],
        cwd=ROOT, capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip
    assert (done.returncode, done.stderr, done.stdout) == (0, "", output)
