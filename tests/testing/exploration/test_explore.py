"""Exploring: promises hold for good documents, and a broken one is found, made small and written as a case."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.testing.bench import DOCUMENTS

from quire.analysis.amounts import number, size
from quire.analysis.costs import Cost
from quire.analysis.proof import Bound
from quire.formats.test.parse import parse
from quire.formats.test.syntax import TestFile
from quire.source import Source
from quire.testing.case_run import Bench
from quire.testing.discovery import open_document
from quire.testing.exploration.draw import Draw
from quire.testing.exploration.drawn_run import Given, Promises, broken_promise, walk
from quire.testing.exploration.explore import Counterexample, explore
from quire.trust.capabilities import Grants
from quire.values import Value

CASES = {
    "tagline": 'inputs: {product: a bakery, tone: dry}, answers: {"2": "yes"}, expect: {output: x}',
    "board": "inputs: {text: a page, readers: [a child, a lawyer]}, expect: {output: x}",
    "files": "inputs: {name: notes.txt}, tools: {file__read: {returns: b a}}, expect: {output: x}",
    "tidy": "inputs: {file: notes.txt}, expect: {output: x}",
}


def opened(folder: Path, name: str, head: str = "") -> tuple[Bench, TestFile]:
    path, text = DOCUMENTS[name]
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text.lstrip("\n"))
    (folder / "quire.toml").write_text("")
    source = Source.of(f"{head}\ncases: [{{name: it, {CASES[name]}}}]\n", str(folder / f"{name}.test.yaml"))
    file = parse(source).file
    assert file is not None
    return open_document(source, file), file


@pytest.mark.parametrize("name", CASES)
def test_good_documents_keep_their_promises(tmp_path: Path, name: str) -> None:
    bench, file = opened(tmp_path, name)
    found = explore(bench, file, 150, 7)
    assert (found.runs, found.counterexamples, found.skipped) == (150, (), "")
    assert found.ends["completed"] > 20
    assert found.ends == explore(bench, file, 150, 7).ends


def only(found: tuple[Counterexample, ...]) -> Counterexample:
    assert len(found) == 1
    return found[0]


def test_a_property_that_does_not_hold_becomes_a_small_case(tmp_path: Path) -> None:
    bench, file = opened(tmp_path, "tagline", "always: [!expr \"named.choice == 'yes'\"]")
    found = only(explore(bench, file, 200, 7).counterexamples)
    assert (found.broken.promise, found.broken.message) == ("always", "always: named.choice == 'yes' is false")
    pasted = parse(Source.of("cases:\n" + found.case, "tagline.test.yaml"))
    assert [one.message for one in pasted.diagnostics if one.code.id != "TS013"] == []
    assert pasted.file is not None and pasted.file.cases[0].draft
    setting = pasted.file.cases[0].setting
    assert setting.inputs["product"] == "x"
    assert [one.value for answers in setting.answers.values() for one in answers] == ["no"]


def test_more_than_the_bounds_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, file = opened(tmp_path, "tagline")
    monkeypatch.setattr("quire.analysis.proof.Proof.bound", lambda *_: Bound(0, number(1)))
    found = only(explore(bench, file, 30, 7).counterexamples)
    assert (found.broken.promise, "2 model calls" in found.broken.message) == ("bounds", True)


def test_less_than_the_bounds_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, file = opened(tmp_path, "tagline")
    monkeypatch.setattr("quire.analysis.proof.Proof.bound", lambda *_: Bound(3, number(9)))
    found = only(explore(bench, file, 30, 7).counterexamples)
    assert (found.broken.promise, "3 or more" in found.broken.message) == ("bounds", True)


def test_bounds_are_those_of_the_inputs(tmp_path: Path) -> None:
    """A list that is given makes a number of the formula for it."""
    bench, file = opened(tmp_path, "board")
    from quire.testing.exploration.explore import _Explorer

    explorer = _Explorer.of(bench, 7, file)
    assert explorer is not None
    assert str(explorer.proof.bound("model_calls").most) == "9·|readers|"
    low = Cost()
    low.spend("model_calls", size("|readers|"))
    explorer.proof = replace(explorer.proof, cost=low)
    broken = [explorer.try_once(seed)[2] for seed in range(60)]
    assert {one.promise for one in broken if one} == {"bounds"}


def test_a_call_outside_of_the_envelope_is_found(tmp_path: Path) -> None:
    bench, file = opened(tmp_path, "files")
    from quire.testing.exploration.explore import _Explorer

    explorer = _Explorer.of(bench, 7, file)
    assert explorer is not None
    explorer.envelope = Grants.of(["rye.execute.tool.rye.file-system.read"])
    broken = [explorer.try_once(seed)[2] for seed in range(40)]
    assert {one.promise for one in broken if one} == {"envelope"}
    assert any("file-system.write" in one.message for one in broken if one)


def test_an_exception_is_a_broken_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, file = opened(tmp_path, "tagline")

    def wrong(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by hand")

    monkeypatch.setattr("quire.testing.exploration.drawn_run.DrawnRun.explore", wrong)
    found = only(explore(bench, file, 3, 7).counterexamples)
    assert found.broken.promise == "traceback"
    assert found.broken.message.startswith("ZeroDivisionError: by hand (test_explore.py:")


def test_another_end_with_the_same_answers_is_found(tmp_path: Path) -> None:
    bench, file = opened(tmp_path, "tagline")
    from quire.testing.exploration.explore import _Explorer

    explorer = _Explorer.of(bench, 7, file)
    assert explorer is not None
    inputs = explorer.start.run.pins.inputs
    run, _ = walk(bench, explorer.start, inputs, Given(inputs), Draw(3))
    assert run is not None and run.replayed is not None
    promises = Promises(explorer.proof, None)
    assert broken_promise(run, promises) is None
    run.replayed.result = {"output": "another"}
    found = broken_promise(run, promises)
    assert found is not None and found.promise == "replay"


def test_drawn_values_fit_their_schemas() -> None:
    import jsonschema_rs

    schema: dict[str, Value] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 5},
            "count": {"type": "integer", "minimum": 3, "maximum": 4},
            "kind": {"enum": ["a", 1, None]},
            "items": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/item"}},
            "either": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        },
        "required": ["name", "count", "kind", "items"],
        "$defs": {"item": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
    }
    validator = jsonschema_rs.validator_for(schema)
    for seed in range(200):
        assert validator.is_valid(Draw(seed).fitting(schema))


def test_a_seed_without_exploring_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from quire.cli import main

    opened(tmp_path, "tagline")
    monkeypatch.chdir(tmp_path)
    assert main(["test", "--seed", "7"]) == 2
