"""Why one job went before another, in one language."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from planner.explanation.facts import Decision, Place, Precedence, ScoreFacts, ShareFacts
from planner.explanation.order_templates import SayOfTwo
from planner.explanation.sentences import INDENT, Teller
from planner.explanation.wording import Language

# The other was looked at first, or would have been.
_OTHER_AHEAD = (Decision.REFUSED, Decision.BEHIND_HEAD, Decision.TURN_OVER)


def precedence(facts: Precedence, language: Language, start: datetime) -> Iterator[str]:
    """Say why one job went before another."""
    return _Pair(facts, Teller(language, start)).lines()


class _Pair:
    def __init__(self, facts: Precedence, teller: Teller) -> None:
        self.facts = facts
        self.teller = teller
        self.job, self.other = facts.job.id, facts.other.id

    def lines(self) -> Iterator[str]:
        facts, teller = self.facts, self.teller
        if facts.attempt is None:
            yield from self._not_started()
            return
        yield teller.say(
            SayOfTwo.STARTED,
            job=self.job,
            at=facts.at_seconds,
            clock=teller.clock(facts.at_seconds),
            pool=facts.pool,
            number=facts.attempt,
        )
        others = [each.victim for each in facts.displaced if each.victim != self.other]
        if others:
            yield teller.say(SayOfTwo.DISPLACED_OTHERS, job=self.job, victims=others)
        yield from self._decision()

    def _not_started(self) -> Iterator[str]:
        facts, teller = self.facts, self.teller
        if facts.decision is Decision.REVERSE:
            yield teller.say(
                SayOfTwo.REVERSE_NOT_STARTED,
                job=self.job,
                other=self.other,
                at=facts.at_seconds,
                other_start=facts.other_start_seconds,
            )
        else:
            yield teller.say(
                SayOfTwo.NEITHER_STARTED,
                job=self.job,
                other=self.other,
                at=facts.at_seconds,
                clock=teller.clock(facts.at_seconds),
            )
        yield from teller.moment(facts.moment)

    def _decision(self) -> Iterator[str]:
        facts, teller, its = self.facts, self.teller, self.facts.other_moment
        other = {"other": self.other}
        match facts.decision:
            case Decision.REVERSE:
                yield teller.say(
                    SayOfTwo.REVERSE,
                    job=self.job,
                    **other,
                    at=facts.at_seconds,
                    other_start=facts.other_start_seconds,
                )
            case Decision.NOT_SUBMITTED:
                yield teller.say(
                    SayOfTwo.OTHER_NOT_SUBMITTED, **other, submit=facts.other.submit_seconds
                )
            case Decision.UNSCHEDULABLE:
                yield teller.standing(its)
                yield from teller.behind(its)
            case Decision.BACKING_OFF:
                yield teller.say(
                    SayOfTwo.OTHER_BACKS_OFF, **other, until=its.back_off_until_seconds
                )
            case Decision.JUST_EVICTED:
                yield teller.say(SayOfTwo.OTHER_EVICTED_IN_PASS, **other)
            case Decision.DISPLACED:
                victim = next(each for each in facts.displaced if each.victim == self.other)
                yield teller.say(
                    SayOfTwo.OTHER_DISPLACED,
                    job=self.job,
                    **other,
                    start=facts.other_start_seconds,
                    ground=victim.ground,
                    lost=victim.lost_gpu_seconds,
                )
            case _:
                yield from self._by_order()

    # --- Order -------------------------------------------------------------------------------

    def _by_order(self) -> Iterator[str]:
        """Both waited: say who was looked at first, and what became of the one who was not."""
        facts, teller, its = self.facts, self.teller, self.facts.other_moment
        if facts.decision is Decision.BEHIND_HEAD and its.ahead is not None:
            yield teller.say(SayOfTwo.OTHER_BEHIND_HEAD, other=self.other)
            yield from (INDENT + line for line in teller.head(its.ahead))
        elif facts.decision is Decision.TURN_OVER:
            yield teller.say(SayOfTwo.OTHER_TURN_OVER, other=self.other)
        elif facts.decision is Decision.REFUSED:
            yield teller.say(SayOfTwo.OTHER_REFUSED, other=self.other)
            yield from (INDENT + line for line in teller.behind(its))
            own = next(pool for pool in facts.moment.pools if pool.pool == facts.pool)
            yield teller.check(facts.moment, own)
        yield from self._told_apart()
        if facts.decision in _OTHER_AHEAD:
            return
        fitted = [pool.pool for pool in its.pools if pool.check is None]
        if fitted and its.ahead is None:
            yield teller.say(SayOfTwo.OTHER_FITTED, other=self.other, pools=fitted)
        else:
            yield teller.say(SayOfTwo.OTHER_FITTED_NOT, other=self.other)
            yield from (INDENT + line for line in teller.behind(its))

    def _told_apart(self) -> Iterator[str]:
        """Say by what the two are told apart, the one who is looked at first first."""
        facts, say = self.facts, self.teller.say
        one, two = facts.place, facts.other_place
        if one is None or two is None or facts.by_order is None:
            return
        jobs = (facts.job, facts.other)
        if facts.decision in _OTHER_AHEAD:
            jobs, one, two = jobs[::-1], two, one
        first, second = jobs
        pair: dict[str, object] = {"first": first.id, "second": second.id}
        heads: dict[str, object] = {
            "project": first.project,
            "other_project": second.project,
            "head": one.first.id,
            "other_head": two.first.id,
        }
        match facts.by_order:
            case Decision.LANE_RANK:
                yield say(
                    SayOfTwo.BY_LANE_RANK,
                    **pair,
                    lane=first.lane,
                    rank=one.rank,
                    other_lane=second.lane,
                    other_rank=two.rank,
                )
            case Decision.LANE_PLACE:
                yield say(
                    SayOfTwo.BY_LANE_PLACE,
                    **pair,
                    lane=first.lane,
                    other_lane=second.lane,
                    rank=one.rank,
                )
            case Decision.SUBMIT:
                submits = {"submit": first.submit_seconds, "other_submit": second.submit_seconds}
                yield say(SayOfTwo.BY_SUBMIT, **pair, **submits)
            case Decision.PROJECT_SUBMIT:
                submits = {
                    "submit": one.first.submit_seconds,
                    "other_submit": two.first.submit_seconds,
                }
                yield say(SayOfTwo.BY_PROJECT_SUBMIT, **pair, **heads, **submits)
            case Decision.FILE_PLACE:
                # Of two projects their first jobs were compared, of one project the two jobs.
                compared = (first, second) if one.first == two.first else (one.first, two.first)
                yield say(
                    SayOfTwo.BY_FILE_PLACE,
                    **pair,
                    head=compared[0].id,
                    row=compared[0].row,
                    other_head=compared[1].id,
                    other_row=compared[1].row,
                )
            case Decision.SHARE:
                yield say(
                    SayOfTwo.BY_SHARE,
                    **pair,
                    project=first.project,
                    other_project=second.project,
                    share=one.share and one.share.share,
                    other_share=two.share and two.share.share,
                )
            case Decision.SCORE:
                yield say(
                    SayOfTwo.BY_SCORE,
                    **pair,
                    score=one.score and one.score.score,
                    other_score=two.score and two.score.score,
                )
            case _:
                yield say(
                    SayOfTwo.BY_PROJECT_SCORE,
                    **pair,
                    **heads,
                    score=one.first_score and one.first_score.score,
                    other_score=two.first_score and two.first_score.score,
                )
        if facts.by_order not in (Decision.LANE_RANK, Decision.LANE_PLACE):
            yield from (INDENT + line for line in self._components(one, two))

    def _components(self, one: Place, two: Place) -> Iterator[str]:
        """Give the numbers that two shares, or two scores, are made of; each of them once."""
        shares = [place.share for place in (one, two) if place.share is not None]
        for share in dict.fromkeys(shares):
            yield self._share(share)
        scores = [one.score, one.first_score, two.score, two.first_score]
        for score in dict.fromkeys(score for score in scores if score is not None):
            yield self._score(score)

    def _share(self, facts: ShareFacts) -> str:
        if facts.pool is None:
            return self.teller.say(SayOfTwo.SHARE_NONE, project=facts.project, share=facts.share)
        return self.teller.say(
            SayOfTwo.SHARE,
            project=facts.project,
            borrowed=facts.borrowed,
            pool=facts.pool,
            capacity=facts.cohort_capacity,
            weight=facts.weight,
            share=facts.share,
        )

    def _score(self, facts: ScoreFacts) -> str:
        return self.teller.say(
            SayOfTwo.SCORE,
            job=facts.job,
            age=facts.age,
            fair_share=facts.fair_share,
            size=facts.size,
            lane=facts.lane,
            score=facts.score,
        )
