"""Claims on a region, taken over real connections of their own at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier, Event
from typing import TypeVar

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from collectors import claims
from collectors.claims import Claim, ClaimLostError
from portal.fleet.models import Region
from portal.telemetry import models

T = TypeVar("T")


@pytest.fixture
def tokyo(db: None) -> Region:
    return Region.objects.create(name="tokyo", label="Tokyo")


def _expire(region: Region) -> None:
    models.Claim.objects.filter(region=region).update(expires_at=Now() - timedelta(seconds=1))


def test_who_holds_the_claim_keeps_it_until_it_is_given_back(tokyo: Region) -> None:
    first, second = Claim(tokyo, owner="first"), Claim(tokyo, owner="second")
    assert first.take()
    assert not second.take()
    second.release()  # not its own: nothing happens
    assert not second.take()
    first.release()
    assert second.take()
    assert models.Claim.objects.get().busy == 2


def test_an_expired_claim_goes_to_the_next_and_is_lost_for_good(tokyo: Region) -> None:
    first, second = Claim(tokyo, owner="first"), Claim(tokyo, owner="second")
    assert first.take()
    _expire(tokyo)
    first.renew()  # nobody took it: still ours
    assert not second.take()
    _expire(tokyo)
    assert second.take()
    with pytest.raises(ClaimLostError, match="tokyo"):
        first.renew()
    with pytest.raises(ClaimLostError), transaction.atomic():
        first.check()
    first.release()
    assert models.Claim.objects.get().owner == "second"


def test_a_claim_is_held_to_its_last_second(tokyo: Region) -> None:
    first, second = Claim(tokyo, owner="first"), Claim(tokyo, owner="second")
    assert first.take()
    models.Claim.objects.filter(region=tokyo).update(expires_at=Now() + timedelta(seconds=20))
    assert not second.take()


def test_a_task_that_is_tried_again_takes_up_its_own_claim(tokyo: Region) -> None:
    assert Claim(tokyo, owner="task").take()
    assert Claim(tokyo, owner="task").take()
    assert models.Claim.objects.get().busy == 0


def test_regions_do_not_wait_for_each_other(tokyo: Region) -> None:
    osaka = Region.objects.create(name="osaka", label="Osaka")
    assert Claim(tokyo, owner="first").take()
    assert Claim(osaka, owner="second").take()


def test_what_came_too_late_is_counted(tokyo: Region) -> None:
    claims.count_overdue(tokyo)
    claims.count_overdue(tokyo)
    assert models.Claim.objects.get().overdue == 2
    assert Claim(tokyo, owner="first").take()


# --- at the same time ------------------------------------------------------------------------

needs_postgres = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one writer at a time"
)


@contextmanager
def _threads(number: int) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(number) as pool:
        yield pool


def _closing(work: Callable[[], T]) -> Callable[[], T]:
    """The work with a connection of this thread's own, closed at the end."""

    def run() -> T:
        try:
            return work()
        finally:
            connection.close()

    return run


@needs_postgres
@pytest.mark.django_db(transaction=True)
def test_of_many_that_ask_at_once_one_gets_it() -> None:
    tokyo, number = Region.objects.create(name="tokyo", label="Tokyo"), 6
    for _ in range(5):
        models.Claim.objects.all().delete()  # the row itself is made at the same time, too
        together = Barrier(number)

        def take(owner: int, together: Barrier = together) -> bool:
            together.wait(10)
            return Claim(tokyo, owner=str(owner)).take()

        with _threads(number) as pool:
            asked = [pool.submit(_closing(lambda n=n: take(n))) for n in range(number)]  # type: ignore[misc]
            assert sorted(one.result(20) for one in asked) == [False] * (number - 1) + [True]
        assert models.Claim.objects.get().busy == number - 1


@needs_postgres
@pytest.mark.django_db(transaction=True)
def test_nobody_takes_over_while_the_owner_writes() -> None:
    """The claim has expired, but its owner is in its write transaction: the taker waits for it."""
    tokyo = Region.objects.create(name="tokyo", label="Tokyo")
    first, second = Claim(tokyo, owner="first"), Claim(tokyo, owner="second")
    assert first.take()
    _expire(tokyo)
    writing, written = Event(), list[str]()

    def write() -> None:
        with transaction.atomic():
            first.check()
            writing.set()
            overtaken.wait(0.5)
            written.append("first")

    def take() -> bool:
        assert writing.wait(10)
        taken = second.take()
        overtaken.set()
        written.append("second")
        return taken

    overtaken = Event()
    with _threads(2) as pool:
        one, other = pool.submit(_closing(write)), pool.submit(_closing(take))
        one.result(20)
        assert other.result(20)
    assert written == ["first", "second"]
    with pytest.raises(ClaimLostError), transaction.atomic():
        first.check()
