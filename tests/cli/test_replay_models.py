"""`quire runs replay --model`: the bound first, the budget kept, and a table of what another model changes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')

from tests.cli.conftest import MakeRun, Said, json_of
from tests.models.conftest import Stub
from tests.models.conftest import stub as stub

from quire.cli import main

TEXT = """# Sort

## STEP 1: Look

Say which kind it is.

@output(kind, extract:"kind")

## STEP 2: Write

```if kind == "bug"```

### STEP 2a: Fix

Fix it.

```else```

### STEP 2b: Thank

Say thank you.

```endif```
"""
REPLIES = [
    {"reply": 'Hm. {"kind": "bug"}', "usage": {"input_tokens": 40, "output_tokens": 4, "cost": 0.25}},
    {"reply": "Fixed.", "usage": {"input_tokens": 60, "output_tokens": 2, "cost": 0.5}},
]
HOUSE = (
    '[runs]\nreply_tokens = 4096\n[models.providers.house]\nbase_url = "{url}"\n'
    '[models.prices."house:small"]\ninput = 100\noutput = 1000\n'
)
"""A call that reads 1,000 tokens and writes 500 costs $0.60."""


@pytest.fixture
def run(make_run: MakeRun, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("quire.testing.live.recorded_prompts.PARALLEL", 1)  # the stub answers in order
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "quire.toml").write_text(HOUSE.format(url=stub.url))
    return make_run(TEXT, REPLIES)


def plain(text: str) -> list[str]:
    return [re.sub(r"\d+\.\ds", "TIME", line) for line in text.splitlines()]


def test_each_call_is_compared(run: str, stub: Stub, said: Said) -> None:
    stub.behaviours = [stub.say('Well. {"kind": "praise"}', tokens=(1000, 500)), stub.say("Fixed.", tokens=(1000, 50))]
    assert main(["replay", run, "--model", "house:small", "--budget", "20"]) == 1
    out, err = said()
    assert re.fullmatch(
        r"PAID: 2 calls of 1 run, on house:small, for at most \$8\.\d{4}; the runs paid \$0\.7500\n", err
    )
    lines = plain(out)
    assert lines[:5] == [
        f"step 1 in {run}:",
        "  named kind:",
        "    [-bug-]{+praise+}",
        "  step 2b: skipped -> reached",
        "",
    ]
    assert [line.split() for line in lines[5:9]] == [
        ["STEP", "CALLS", "SAME", "WORDS", "CHANGED", "FAILED", "TOKENS", "COST", "TIME"],
        ["step", "1", "1", "1", "40+4", "->", "1,000+500", "$0.2500", "->", "$0.6000", "TIME", "->", "TIME"],
        ["step", "2a", "1", "1", "60+2", "->", "1,000+50", "$0.5000", "->", "$0.1500", "TIME", "->", "TIME"],
        ["all", "2", "1", "1", "100+6", "->", "2,000+550", "$0.7500", "->", "$0.7500", "TIME", "->", "TIME"],
    ]
    assert lines[9:] == ["", "2 calls: 1 the same reply, 1 other captures, calls or branches"]
    asked = [json.dumps(one["messages"]) for one in stub.requests]
    assert ("which kind" in asked[0], "Fix it." in asked[1]) == (True, True)
    assert "Hm." in asked[1]  # the old reply, as it was recorded


def test_other_words_alone_are_no_change(run: str, stub: Stub, said: Said) -> None:
    stub.behaviours = [stub.say('So it is. {"kind": "bug"}')]
    data = json_of(said, "replay", run, "--model", "house:small", "--budget", "20")
    assert {name: data[name] for name in ("model", "same", "words", "changed", "failed", "unasked")} == {
        "model": "house:small",
        "same": 0,
        "words": 2,
        "changed": 0,
        "failed": 0,
        "unasked": 0,
    }
    assert [(one["step"], one["before"]["text"]) for one in data["calls"]] == [
        ("1", 'Hm. {"kind": "bug"}'),
        ("2a", "Fixed."),
    ]
    assert data["calls"][0]["after"]["input_tokens"] == 7


def test_following_takes_the_other_branch(run: str, stub: Stub, said: Said) -> None:
    stub.behaviours = [stub.say('Well. {"kind": "praise"}'), stub.say("Thank you.")]
    assert main(["replay", run, "--model", "house:small", "--budget", "20", "--follow"]) == 1
    out, err = said()
    assert "if it asks what the runs asked" in err
    lines = plain(out)
    assert lines[0].split() == ["RUN", "END", "CALLS", "TOKENS", "COST", "TIME"]
    assert lines[1].split()[:5] == [run, "different", "2", "->", "2"]
    assert lines[-1] == "0 of 1 stored run comes to the same end; 1 comes to a different end (output changed)"
    assert "    [-Fixed.-]{+Thank you.+}" in lines
    assert "  step 2b: skipped -> completed" in lines
    first, second = (json.dumps(one["messages"]) for one in stub.requests)
    assert ("which kind" in first, "Well." in second, "Say thank you." in second) == (True, True, True)


def test_nothing_is_stored(run: str, stub: Stub, said: Said) -> None:
    stub.behaviours = [stub.say('{"kind": "bug"}')]
    assert main(["replay", run, "--model", "house:small", "--budget", "20", "--follow"]) in (0, 1)
    said()
    assert [one["id"] for one in json_of(said, "runs")] == [run]


def test_a_failing_service_is_no_reply(run: str, stub: Stub, said: Said) -> None:
    stub.behaviours = [stub.refuse(400, '{"error": {"message": "no"}}')]
    assert main(["replay", run, "--model", "house:small", "--budget", "20"]) == 1
    out = said()[0]
    assert "  failed: " in out
    assert out.splitlines()[-1] == "2 calls: 2 no reply"


def test_replies_of_interrupted_work_are_shown(
    run: str, stub: Stub, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quire.testing.live.schedule import Metered

    asks = 0
    complete = Metered.complete

    async def interrupted(self: Metered, *given: object) -> object:
        nonlocal asks
        asks += 1
        if asks == 2:
            raise KeyboardInterrupt
        return await complete(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Metered, "complete", interrupted)
    stub.behaviours = [stub.say('So. {"kind": "bug"}')]
    assert main(["replay", run, "--model", "house:small", "--budget", "20"]) == 130
    assert said()[0].splitlines()[-1] == "2 calls: 1 only other words, 1 not asked"


def test_a_budget_is_kept(run: str, stub: Stub, said: Said) -> None:
    stub.behaviours = [stub.say("x", tokens=(1000, 500))]
    assert main(["replay", run, "--model", "house:small", "--budget", "4.5"]) == 5
    out = said()[0]
    assert len(stub.requests) == 1
    assert out.splitlines()[-1].endswith(", 1 not asked")
    assert main(["replay", run, "--model", "house:small", "--budget", "0"]) == 5
    assert len(stub.requests) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RUN", "--model", "house:small"], "say the most that may be spent: --budget USD, or --budget none"),
        (["RUN", "--model", "house:other", "--budget", "1"], "the price of house:other is not known"),
        (["--model", "house:small"], "name the runs to ask again"),
        (["RUN", "--model", "nothing:x", "--budget", "1"], "no provider is named 'nothing'"),
        (["RUN", "--model", "house:small", "--document", "page.playbook.md"], "say what is new"),
        (["RUN", "--document", "page.playbook.md", "--follow"], "--follow and --budget are for --model"),
        (["RUN", "--model", "house:small", "--last", "3"], "--last is for --document without RUN"),
    ],
)
def test_what_cannot_start(run: str, stub: Stub, said: Said, arguments: list[str], message: str) -> None:
    stub.behaviours = [stub.say("x")]
    given = [run if one == "RUN" else one for one in arguments]
    assert main(["replay", *given]) == 2
    out, err = said()
    assert (out, message in err, stub.requests) == ("", True, []), err


def test_runs_without_a_model(make_run: MakeRun, said: Said) -> None:
    from quire.runs.options import RunOptions

    run = make_run('# A\n\n## STEP 1: Ask\n\n@elicit(confirm, "Ok?")\n', [], None, RunOptions(answers={"1": "yes"}))
    assert main(["replay", run, "--script", "none.json"]) == 2
    said()


def test_a_script_costs_nothing_and_needs_no_budget(run: str, workspace: Path, said: Said) -> None:
    (workspace / "again.json").write_text(json.dumps(REPLIES))
    assert main(["replay", run, "--script", "again.json"]) == 0
    out, err = said()
    assert err.startswith("FREE: 2 calls of 1 run, on script:")
    assert out.splitlines()[-1] == "2 calls: 2 the same reply"
    assert main(["replay", run, "--script", "again.json", "--follow"]) == 0
    assert said()[0].splitlines()[-1] == "1 of 1 stored run comes to the same end"
