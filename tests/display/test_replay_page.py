"""The summary and the page of replayed runs: counts, plurals, the most frequent fate first, nothing without a bound."""

from __future__ import annotations

import pytest

from quire.display.replay_page import change_lines, replay_page, summary
from quire.engine.conversation import Message
from quire.engine.requests import HumanRequest, ModelRequest, ToolRequest
from quire.runs.diff import Change
from quire.runs.shadow import NewRequest, Replayed, Verdict


def call(label: str, text: str = "Say it.") -> ModelRequest:
    return ModelRequest(f"{label}/model", label, "", (Message("user", text),))


def runs(count: int, verdict: Verdict = "same", label: str = "", what: str = "prompt changed") -> list[Replayed]:
    new = NewRequest(call(label), call(label, "Tell it."), what) if label else None
    problem = "it is broken" if verdict == "unreadable" else ""
    changes = [Change("output", "", "a", "b")] if verdict == "different" else []
    return [Replayed(f"run-{label}-{at}", "T", verdict, new, changes, problem=problem) for at in range(count)]


@pytest.mark.parametrize(
    ("replayed", "line"),
    [
        (runs(1), "1 of 1 stored run comes to the same end"),
        (runs(2), "2 of 2 stored runs come to the same end"),
        (
            [*runs(31), *runs(9, "new", "4")],
            "31 of 40 stored runs come to the same end; 9 ask something new at step 4 (prompt changed)",
        ),
        (
            [*runs(1, "new", "2"), *runs(2, "different")],
            "0 of 3 stored runs come to the same end; 2 come to a different end (output changed); "
            "1 asks something new at step 2 (prompt changed)",
        ),
        (
            [*runs(1, "unreadable"), *runs(1)],
            "1 of 2 stored runs comes to the same end; 1 cannot be replayed (it is broken)",
        ),
        (
            [one for number in range(1, 6) for one in runs(number, "new", str(number))],
            "0 of 15 stored runs come to the same end; 5 ask something new at step 5 (prompt changed); 4 ask something "
            "new at step 4 (prompt changed); 3 ask something new at step 3 (prompt changed); 3 differ in other ways",
        ),
    ],
)
def test_the_summary(replayed: list[Replayed], line: str) -> None:
    assert summary(replayed) == line
    assert list(replay_page(replayed))[-1] == line


def test_a_group_shows_the_first_of_its_runs() -> None:
    assert list(replay_page(runs(7, "new", "4")))[:-2] == [
        "\x1b[33m\x1b[1m7 runs ask something new at step 4 (prompt changed)\x1b[0m",
        "  run-4-0, run-4-1, run-4-2, run-4-3, run-4-4, and 2 more",
        "  --- user ---",
        "  [-Tell-]{+Say+} it.",
    ]


@pytest.mark.parametrize(
    ("request_", "lines"),
    [
        (call("4", "One\ntwo"), ["  a model call:", "    One", "    two"]),
        (
            ToolRequest("4/tool", "4", "web", "get", {"n": 1}),
            ["  a call of web/get:", "    web/get", "    {", '      "n": 1', "    }"],
        ),
        (
            HumanRequest("4/ask", "4", "", "select", "Which?", ("a", "b")),
            ["  a question:", "    Which?", "    - a", "    - b"],
        ),
        (
            call("4", "\n".join(map(str, range(20)))),
            ["  a model call:", *(f"    {n}" for n in range(8)), "    … 12 more lines"],
        ),
    ],
)
def test_a_new_request(request_: ModelRequest | ToolRequest | HumanRequest, lines: list[str]) -> None:
    found = Replayed("run", "T", "new", NewRequest(request_, None, "new"))
    assert list(replay_page([found]))[2:-2] == lines


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (Change("status", "", "awaiting_input", "failed"), ["status: awaiting input -> failed"]),
        (Change("step", "3b", "skipped", "reached"), ["step 3b: skipped -> reached"]),
        (Change("warning", "3", None, "no\x1bobject"), ["new warning at step 3: no\u241bobject"]),
        (Change("asks", "turn 5", None, "model"), ["turn 5: the model would be asked once more"]),
        (Change("named", "best", "Bread.", "Bun."), ["named best:", "  [-Bread-]{+Bun+}."]),
        (
            Change("calls", "turn 1", [["read", {"path": "a"}], ["list", {}]], [["read", {"path": "b"}]]),
            ["tool calls:", '  read {"path":"[-a-]{+b+}"}[-↵-]', "  [-list {}-]"],
        ),
    ],
)
def test_a_change(change: Change, lines: list[str]) -> None:
    assert list(change_lines(change, False)) == lines


def test_many_fates_are_cut() -> None:
    page = list(replay_page([one for number in range(12) for one in runs(1, "new", str(number))]))
    assert "… 4 more ways in which runs differ: --json has all of them" in page
