"""Record cassettes: replies of a model are kept if the case passes, without secrets, and are played afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.given import given
from tests.testing.bench import DOCUMENTS, only, run, told

from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.errors import CannotStart
from quire.testing.cassettes.cassette import CassetteFile
from quire.testing.cassettes.record import Recording, RecordOptions, plan_recording, record
from quire.testing.discovery import find_tests
from quire.trust.secrets import Redactor

TEST = """
defaults: {inputs: {product: a bakery, tone: dry}, answers: {"2": "yes"}, cassette: true}
cases:
  - name: it
    expect: {steps: {"3a": completed}, prompts: {"1": {contains: a bakery}}}
"""


class Clerk:
    """A model that answers every first step with an object, and everything else with a secret."""

    name = "test:clerk"

    def __init__(self) -> None:
        self.calls = 0

    def estimate(self, call: ModelCall) -> float:
        return 0.25

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.calls += 1
        text = '{"best": "Bread."}' if call.path == "1/model" else "The key is hunter2, and Bread."
        return ModelReply(text, self.name, Usage(10, 5, 0.2))


def plan(folder: Path, monkeypatch: pytest.MonkeyPatch, test: str = TEST, **options: object) -> tuple[Recording, Clerk]:
    path, text = DOCUMENTS["tagline"]
    given({path: text.lstrip("\n"), "quire.toml": "", "tagline.test.yaml": test}, folder)
    clerk = Clerk()
    monkeypatch.setattr("quire.testing.cassettes.record.open_models", lambda models, names: {clerk.name: clerk})
    targets, problems = find_tests([str(folder)])
    assert problems == []
    made = plan_recording(RecordOptions(tuple(targets), **options), {"QUIRE_HOME": str(folder / "home")})  # type: ignore[arg-type]
    return Recording(made.cases, made.spec, made.model, Redactor({"PASSWORD": "hunter2"}), made.budget), clerk


def test_replies_are_kept_redacted_and_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, clerk = plan(tmp_path, monkeypatch)
    made = record(recording)
    assert [(one.case, one.calls, one.problems) for one in made] == [("it", 2, ())]
    text = (tmp_path / "tagline.cassette.yaml").read_text()
    assert "hunter2" not in text and "taglines for a bakery" in text and "test:clerk" in text
    case = only(run(tmp_path, "tagline", TEST))
    assert told(case) == []
    assert case.used is not None and (case.used.model_calls, case.used.cost) == (2, 0.4)
    assert clerk.calls == 2


def test_a_case_that_fails_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, _ = plan(tmp_path, monkeypatch, TEST.replace("completed", "skipped"))
    made = record(recording)
    assert made[0].problems == ('step 3a: it is "completed"',)
    assert not (tmp_path / "tagline.cassette.yaml").exists()


def test_only_missing_cases_unless_all_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(plan(tmp_path, monkeypatch)[0])
    with pytest.raises(CannotStart, match="nothing to record"):
        plan(tmp_path, monkeypatch)
    again, clerk = plan(tmp_path, monkeypatch, which="all")
    assert len(record(again)) == 1 and clerk.calls == 2


def test_replies_of_the_case_itself_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = TEST.replace("expect:", 'model: {"3a": written here}\n    expect:')
    recording, clerk = plan(tmp_path, monkeypatch, test)
    record(recording)
    kept = CassetteFile.beside(str(tmp_path / "tagline.test.yaml")).cases["it"]
    assert ([one.path for one in kept], clerk.calls) == (["1/model"], 1)
    assert told(only(run(tmp_path, "tagline", test))) == []


def test_the_budget_ends_a_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = TEST + TEST[TEST.index("  - name") :].replace("name: it", "name: two")
    recording, clerk = plan(tmp_path, monkeypatch, two, budget=0.3)
    made = record(recording)
    assert (len(made), clerk.calls) == (1, 1)
    assert "budget" in made[0].problems[0]
    assert not (tmp_path / "tagline.cassette.yaml").exists()
