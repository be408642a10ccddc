"""What a run did is compared with what was proven of it, over all of its drives."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO

import pytest
from tests.engine.house import House, failing

from quire.display.run_views import QuietView
from quire.engine.conversation import Message
from quire.engine.driver.drive import Drive
from quire.engine.driver.journal import Journal
from quire.engine.driver.walker import DriveLimits
from quire.engine.proven_bounds import BrokenBound, ProvenBounds, broken_bounds, seen_in
from quire.engine.records import Batch, EffectRecord, RunUpdate, Status, Usage
from quire.engine.requests import Failure, HumanRequest, ModelRequest, ToolRequest, Walk


def record(path: str, kind: str, **fields: object) -> EffectRecord:
    state = "failed" if "failure" in fields else "ok"
    return EffectRecord(path, kind, state, "", 0.0, **fields)  # type: ignore[arg-type]


RECORDS = [
    record("1/model", "model", usage=Usage(10, 5, 0.5)),
    record("2/model", "model", usage=Usage(10, 5, 0.25), failure=Failure("empty", "nothing")),
    record("3/model", "model", failure=Failure("too_many_calls", "refused")),
    record("4/model", "model", failure=Failure("spend_exceeded", "refused")),
    record("5/model", "model", by="run-0", usage=Usage()),
    record("6/tool", "tool"),
    record("6/tool/uncertain", "ask", value="yes"),
    record("7/ask", "ask", value="yes"),
    record("thread/turn[1]/tool[0]/load", "load"),
    record("thread/turn[1]/tool[0]/thread/turn[1]/tool[0]/thread/turn[1]/tool[0]", "tool"),
    record("thread/turn[1]/tool[0]/thread/turn[2]/tool[0]", "tool"),
]


def test_each_path_counts_once_and_refusals_not_at_all() -> None:
    assert seen_in(RECORDS) == {
        "model_calls": 2,
        "tool_calls": 3,
        "questions": 1,
        "threads": 2,
        "input_tokens": 20,
        "output_tokens": 10,
        "cost": 0.75,
    }


@pytest.mark.parametrize("name", [one for one in ProvenBounds.__struct_fields__ if one != "reply_tokens"])
def test_every_bound_is_compared(name: str) -> None:
    seen = seen_in(RECORDS)[name]
    assert seen is not None
    assert broken_bounds(ProvenBounds.of({name: seen}), RECORDS) == ()
    below = seen - 0.01 if name == "cost" else int(seen) - 1
    (broken,) = broken_bounds(ProvenBounds.of({name: below}), RECORDS)
    assert (broken.name, broken.seen, broken.proven) == (name, seen, below)
    assert "please report it" in broken.message


def test_no_bound_and_an_unknown_price_are_not_broken() -> None:
    assert broken_bounds(ProvenBounds(), RECORDS) == ()
    assert broken_bounds(ProvenBounds(cost=0.1), [record("1", "model", usage=Usage(1, 1, None))]) == ()


def test_a_reply_that_is_longer_than_its_call_allows_is_not_a_bug_of_ours() -> None:
    records = [record("1", "model", usage=Usage(10, 9_000, 0.5)), record("2", "model", usage=Usage(10, 5, 0.25))]
    proven = ProvenBounds(input_tokens=5, output_tokens=8_192, cost=0.1, reply_tokens=4_096)
    messages = {one.name: one.message for one in broken_bounds(proven, records)}
    assert [name for name, text in messages.items() if "bug of ours" in text] == ["input_tokens"]
    assert messages["output_tokens"].endswith(
        "A reply has 9,000 tokens, and no call allows more than 4,096: the model service does not keep to max_tokens"
    )


def test_money_that_was_only_set_aside_was_not_seen() -> None:
    lost = record("1", "model", usage=Usage(0, 0, 5.0), failure=Failure("timeout", "no reply"))
    assert broken_bounds(ProvenBounds(cost=0.1), [lost]) == ()


def test_bounds_are_pinned_as_far_as_they_are_known() -> None:
    proven = ProvenBounds(model_calls=3, cost=0.5)
    assert proven.as_value() == {"model_calls": 3, "cost": 0.5}
    assert ProvenBounds.of({**proven.as_value(), "later": 1}) == proven


def thinking(*texts: str) -> Walk:
    for number, text in enumerate(texts):
        yield ModelRequest(f"{number}/model", f"{number}", "", (Message("user", text),))
    return ""


async def driven(house: House, walk: Walk, proven: ProvenBounds, again: tuple[str, ...] = ()) -> Status:
    lease = await house.store.acquire(house.run)
    try:
        records = [one for one in await house.store.effects(house.run) if one.path not in again]
        drive = Drive(lease, Journal(records), house.ports(), DriveLimits(), house.events.append, proven=proven)
        opening = Batch(supersede=again, update=RunUpdate(status=Status.RUNNING))
        return (await drive.until_rest(walk, opening)).status
    finally:
        await house.store.release(lease)


def broken_in(house: House) -> list[Mapping[str, object]]:
    return [event.data for event in house.events if event.type == "bound_broken"]


async def test_a_run_that_keeps_its_bounds_says_nothing(house: House) -> None:
    assert await driven(house, thinking("a", "b"), ProvenBounds(model_calls=2, tool_calls=0)) is Status.COMPLETED
    assert broken_in(house) == []


async def test_a_run_beyond_its_bounds_says_so_and_goes_on(house: House) -> None:
    assert await driven(house, thinking("a", "b"), ProvenBounds(model_calls=1)) is Status.COMPLETED
    (data,) = broken_in(house)
    assert (data["name"], data["seen"], data["proven"]) == ("model_calls", 2, 1)
    kept = [event.type for event in await house.store.events(house.run)]
    assert kept[-2:] == ["bound_broken", "run_completed"]


async def test_a_failed_run_is_compared_too(house: House) -> None:
    house.model.replies["b"] = failing("no")
    assert await driven(house, thinking("a", "b"), ProvenBounds(model_calls=1)) is Status.FAILED
    assert len(broken_in(house)) == 1


async def test_a_resume_counts_the_whole_journal_and_repeated_work_once(house: House) -> None:
    house.model.replies["b"] = failing("no")
    proven = ProvenBounds(model_calls=3)
    assert await driven(house, thinking("a", "b", "c"), proven) is Status.FAILED
    house.model.replies.clear()
    assert await driven(house, thinking("a", "b", "c"), proven, again=("1/model",)) is Status.COMPLETED
    assert len(house.model.calls) == 4
    assert broken_in(house) == []


async def test_calls_of_earlier_drives_count(house: House) -> None:
    house.model.replies["b"] = failing("no")
    assert await driven(house, thinking("a", "b"), ProvenBounds()) is Status.FAILED
    house.model.replies.clear()
    await driven(house, thinking("a", "b"), ProvenBounds(model_calls=1), again=("1/model",))
    assert len(broken_in(house)) == 1


async def test_the_question_after_a_crash_does_not_count(house: House) -> None:
    def walk() -> Walk:
        yield ToolRequest("1/tool", "1", "x", "pay", {})
        yield HumanRequest("2/ask", "2", "T", "input", "well?")
        return ""

    house.people.given["2"] = ["yes"]
    assert await driven(house, walk(), ProvenBounds(tool_calls=1, questions=1)) is Status.COMPLETED
    assert broken_in(house) == []


async def test_also_a_quiet_terminal_is_told(house: House) -> None:
    await driven(house, thinking("a"), ProvenBounds(model_calls=0))
    err = StringIO()
    view = QuietView(err)
    for event in house.events:
        view.show(event)
    assert err.getvalue() == (
        "bound broken: 1 model calls were seen, and at most 0 were proven possible. This is a bug of ours, not of your "
        "document: please report it, with the document and the bound\n"
    )


def test_words_for_a_service_that_may_have_ignored_its_limit() -> None:
    assert "Unless the model service wrote more" in BrokenBound("output_tokens", 5000, 4096).message
