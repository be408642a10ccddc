"""Cassettes: recorded replies answer the same prompts, and a changed prompt is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.testing.bench import only, run, told

from quire.engine.conversation import Message
from quire.engine.ports import ModelCall
from quire.errors import CannotStart
from quire.testing.cassettes.cassette import CassetteFile, RecordedCall, call_hash
from quire.testing.file_run import FileOptions

TEST = """
defaults: {inputs: {product: a bakery, tone: dry}, answers: {"2": "yes"}, cassette: true}
cases:
  - name: it
    expect: {output: Bread!}
"""


def record(folder: Path, calls: list[RecordedCall], case: str = "it") -> None:
    CassetteFile(folder / "tagline.cassette.yaml").write({case: calls})


def taped(path: str, reply: str, hash: str = "") -> RecordedCall:
    return RecordedCall(path, path.partition("/")[0], "the old prompt", hash, reply, "a:model", "2026-01-02")


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The hashes of the two calls that the case makes, by path."""
    found: dict[str, str] = {}

    def learn(call: ModelCall) -> str:
        found[call.path] = call_hash(call)
        return found[call.path]

    with monkeypatch.context() as patched:
        patched.setattr("quire.testing.cassettes.cassette.call_hash", learn)
        record(tmp_path, [taped("1/model", '{"best": "Bread."}'), taped("3/case[1]/1/model", "Bread!")])
        run(tmp_path, "tagline", TEST, options=FileOptions(keep_replies=True))
    return found


def test_recorded_replies_answer_the_same_prompts(tmp_path: Path, known: dict[str, str]) -> None:
    assert len(known) == 2
    first, second = known
    record(tmp_path, [taped(first, '{"best": "Bread."}', known[first]), taped(second, "Bread!", known[second])])
    assert told(only(run(tmp_path, "tagline", TEST))) == []


def test_a_changed_prompt_stops_with_both_texts(tmp_path: Path) -> None:
    record(tmp_path, [taped("1/model", '{"best": "Bread."}', "other")])
    found = only(run(tmp_path, "tagline", TEST))
    assert told(found) == ["TS130 the prompt of step 1 is not the recorded one"]
    assert found.problems[0].expected == "the old prompt"
    assert "taglines for a bakery" in (found.problems[0].actual or "")


def test_calls_that_are_not_made_are_reported(tmp_path: Path, known: dict[str, str]) -> None:
    first, second = known
    calls = [taped(first, '{"best": "Bread."}', known[first]), taped(second, "Bread!", known[second])]
    record(tmp_path, [*calls, taped("9/model", "never")])
    found = told(only(run(tmp_path, "tagline", TEST)))
    assert found == ["TS131 the case did not make 1 of its recorded calls (step 9)"]


def test_a_case_that_was_renamed_leaves_an_orphan(tmp_path: Path) -> None:
    record(tmp_path, [taped("1/model", "x")], case="its old name")
    found = run(tmp_path, "tagline", TEST)
    assert [one.finding.code.id for one in found.problems] == ["TS132"]
    assert [one.finding.code.id for one in found.cases[0].problems] == ["TS102"]


def test_an_old_recording_is_a_warning(tmp_path: Path, known: dict[str, str]) -> None:
    first, second = known
    calls = [taped(first, '{"best": "Bread."}', known[first]), taped(second, "Bread!", known[second])]
    CassetteFile(tmp_path / "tagline.cassette.yaml", max_age=86_400.0).write({"it": calls})
    found = run(tmp_path, "tagline", TEST)
    assert [one.finding.code.id for one in found.problems] == ["TS133"]
    assert not found.failed and "days ago" in found.problems[0].finding.message
    CassetteFile(tmp_path / "tagline.cassette.yaml", max_age=9_000 * 86_400.0).write({"it": calls})
    assert run(tmp_path, "tagline", TEST).problems == ()


def test_replies_of_the_case_itself_come_first(tmp_path: Path, known: dict[str, str]) -> None:
    first = next(iter(known))
    record(tmp_path, [taped(first, '{"best": "Bread."}', known[first])])
    text = TEST.replace("expect:", 'model: {"3a": Bread!}\n    expect:')
    assert told(only(run(tmp_path, "tagline", text))) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a list", "needs the key cases"),
        ("cases: {it: [{step: x}]}", "has no path"),
        ("cases: {it: [x]}", "is a mapping"),
        ("max_age: often\ncases: {it: []}", "max_age"),
        ("cases: [", "tagline.cassette.yaml:1"),
        ("cases: {it: [{path: x, tool_calls: [1]}]}", "a name and an input"),
    ],
)
def test_a_broken_cassette_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tagline.cassette.yaml").write_text(text)
    with pytest.raises(CannotStart, match="cassette") as caught:
        CassetteFile.beside(str(tmp_path / "tagline.test.yaml"))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_cassette_is_written_and_read_again(tmp_path: Path) -> None:
    calls = (
        RecordedCall(
            "1/model",
            "1",
            "system:\nBe short.\n\nuser:\n  an indented line \n\ttab: {x}\n",
            "abc",
            "Yes: \n- no\n",
            "a:b",
            "2026-01-02T03:04:05+00:00",
            (("search", {"q": ["a", 1, None, True]}),),
            "tool_call",
            12,
            3,
            None,
        ),
    )
    file = CassetteFile(tmp_path / "tagline.cassette.yaml", max_age=86_400.0)
    file.write({"it: [row 1]": calls})
    again = CassetteFile.beside(str(tmp_path / "tagline.test.yaml"))
    assert (again.cases, again.max_age) == ({"it: [row 1]": calls}, 86_400.0)


def test_a_cassette_elsewhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="beside the test"):
        CassetteFile.beside(str(tmp_path / "x.test.yaml"), "../other.cassette.yaml")


def test_the_hash_covers_what_decides_a_reply() -> None:
    call = ModelCall("system", (Message("user", "hello"),))
    changed = [
        ModelCall("other", (Message("user", "hello"),)),
        ModelCall("system", (Message("user", "hello!"),)),
        ModelCall("system", (Message("user", "hello"),), schema={"type": "object"}),
        ModelCall("system", (Message("user", "hello"),), temperature=0.5),
    ]
    assert len({call_hash(one) for one in (call, *changed)}) == 5
    assert call_hash(call) == call_hash(ModelCall("system", (Message("user", "hello"),), run="x", path="1/model"))
