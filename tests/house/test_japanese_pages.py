"""A Japanese reader finds no English sentence of ours on any page."""

import html
import re
from collections.abc import Callable

import polib
import pytest
from django.test import Client

from portal.accounts.models import User
from tests.conftest import ROOT

PAGES = (
    "/", "/regions/", "/regions/tokyo/", "/pools/tokyo-a-h100/", "/projects/", "/projects/speech/",
    "/collection/", "/requests/", "/plans/", "/weeks/2026-W48/", "/weeks/2026-W99/", "/nowhere/",
)  # fmt: skip
SENTENCES = {
    entry.msgid
    for entry in polib.pofile(str(ROOT / "portal/locale/ja/LC_MESSAGES/django.po"))
    if entry.msgid.count(" ") >= 2 and not re.search(r"[%{<]", entry.msgid)
}
JAPANESE = re.compile(r"[ぁ-んァ-ヶ一-龠]")


def shown(page: str) -> str:
    """The words of a page, those of its accessible names with them."""
    page = re.sub(r"<(script|style|pre|code)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(page))


@pytest.mark.parametrize("person", ["aiko", "ben"])
@pytest.mark.parametrize("page", PAGES)
def test_no_english_sentence_is_left(
    page: str, person: str, request: pytest.FixtureRequest, signed_in: Callable[[User], Client]
) -> None:
    client = signed_in(request.getfixturevalue(person))

    text = shown(client.get(page, headers={"accept-language": "ja"}).content.decode())

    assert '<html lang="ja"' in text
    title = re.search(r"<title>(.*?)</title>", text)
    assert title
    assert JAPANESE.search(title[1]) or page.split("/")[-2] in title[1]
    assert not {sentence for sentence in SENTENCES if sentence in text}


def test_the_door_speaks_japanese_too_also_when_it_refuses(client: Client, db: None) -> None:
    wrong = {"login": "nobody@example.org", "password": "guessed"}
    answer = client.post("/accounts/login/", wrong, headers={"accept-language": "ja"})

    text = shown(answer.content.decode())

    assert '<html lang="ja"' in text
    assert "サインイン" in text
    assert "正しくありません" in text
    assert not {sentence for sentence in SENTENCES if sentence in text}
