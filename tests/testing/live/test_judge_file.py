"""Files of judges: their parts, every finding with its place, and the models that a file may not choose."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.errors import Unreadable
from quire.source import Source
from quire.testing.live.judges import BadJudge, Example, Judge, load_judge, may_be_named, read_judge

WHOLE = """\
about: The tone of a reply.
rubric: |
  Pass if the reply is friendly.
model: anthropic:claude-haiku-5-5
reads: [inputs.doc, output]
examples:
  - {text: Bread., verdict: fail, reason: it is curt}
  - {text: "Hello, dear.", verdict: pass}
"""


def _read(text: str) -> Judge:
    reading = read_judge(Source.of(text, "judges/tone.judge.yaml"))
    assert reading.diagnostics == ()
    assert reading.judge is not None
    return reading.judge


def test_a_whole_judge() -> None:
    judge = _read(WHOLE)
    assert judge == Judge(
        "tone",
        "Pass if the reply is friendly.\n",
        "anthropic:claude-haiku-5-5",
        ("inputs.doc", "output"),
        (Example("Bread.", "fail", "it is curt"), Example("Hello, dear.", "pass")),
        Path("judges/tone.judge.yaml"),
    )


def test_a_rubric_is_enough() -> None:
    judge = _read("rubric: Pass if it rhymes.")
    assert (judge.model, judge.reads, judge.examples) == ("", ("output",), ())


@pytest.mark.parametrize(
    ("text", "line", "code", "message"),
    [
        ("model: a:b", 1, "TS001", "rubric is missing"),
        ("rubric: [a]", 1, "TS001", "rubric is a text, not a list"),
        ("rubric: ''", 1, "TS001", "rubric is a text, not empty"),
        ("rubric: x\nmodle: a:b", 2, "TS002", "a judge does not have a key 'modle'"),
        ("rubric: x\nmodel: https://evil.example/v1#m", 2, "TS001", "a judge cannot choose https://evil.example/v1#m"),
        ("rubric: x\nmodel: local:/etc/weights.gguf", 2, "TS001", "a judge cannot choose local:/etc/weights.gguf"),
        ("rubric: x\nmodel: 5", 2, "TS001", "model is the name of a model, not the number 5"),
        ("rubric: x\nreads: secrets.key", 2, "TS001", "this is not a part of a run that a judge can read"),
        ("rubric: x\nreads: [output, output]", 2, "TS001", "output is here twice"),
        ("rubric: x\nreads: []", 2, "TS001", "a judge reads 1 to 8 parts of a run"),
        ("rubric: x\nexamples: none", 2, "TS001", "examples are a list, not text"),
        ("rubric: x\nexamples: [a]", 2, "TS001", "an example is a mapping, not text"),
        ("rubric: x\nexamples: [{text: a, verdict: maybe}]", 2, "TS001", "verdict is pass or fail"),
        ("rubric: x\nexamples: [{text: a}]", 2, "TS001", "verdict is pass or fail"),
        ("rubric: x\nexamples: [{text: a, verdict: pass, why: b}]", 2, "TS002", "an example does not have a key 'why'"),
        ("- a", 1, "TS001", "a judge is one mapping with a rubric"),
        ("rubric: x\nrubric: y", 2, "YM004", "the key"),
    ],
)
def test_findings(text: str, line: int, code: str, message: str) -> None:
    source = Source.of(text, "x.judge.yaml")
    reading = read_judge(source)
    assert reading.judge is None
    (found,) = reading.diagnostics
    assert (source.position(found.span.start).line, found.code.id) == (line, code) or code.startswith("YM")
    assert found.message.startswith(message)


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ("fast", True),
        ("openai:gpt-6.1-sol", True),
        ("groq:openai/gpt-oss-20b", True),
        ("ollama:qwen3", True),
        ("local:smollm2", True),
        ("local:weights/x", False),
        ("local:x.gguf", False),
        ("LOCAL:~x", False),
        ("script:replies.json", False),
        ("http://127.0.0.1:9/v1#m", False),
        ("HTTPS://host/v1#m", False),
        ("openai:gpt\x1b[2J", False),
    ],
)
def test_models_that_a_file_may_name(spec: str, allowed: bool) -> None:
    assert may_be_named(spec) is allowed


def test_the_hash_depends_on_everything_that_the_model_is_told() -> None:
    whole = _read(WHOLE)
    changes = [
        ("friendly", "polite"),
        ("inputs.doc, output", "output"),
        ("curt", "short"),
        ("verdict: pass", "verdict: fail"),
    ]
    assert len({whole.hash, *(_read(WHOLE.replace(*change)).hash for change in changes)}) == 5
    assert _read(WHOLE.replace("haiku", "opus").replace("The tone", "Tone")).hash == whole.hash


def test_loading(tmp_path: Path) -> None:
    path = tmp_path / "tone.judge.yaml"
    path.write_text("rubric: Pass.\nexamples: 3\n")
    with pytest.raises(BadJudge, match=r"tone\.judge\.yaml, line 2: examples are a list, not the number 3"):
        load_judge(path)
    path.write_text(WHOLE)
    assert load_judge(path).path == path
    with pytest.raises(Unreadable):
        load_judge(tmp_path / "none.judge.yaml")


@given(st.text(max_size=80))
def test_any_text_is_a_judge_or_has_findings(text: str) -> None:
    reading = read_judge(Source.of(text, "x.judge.yaml"))
    assert (reading.judge is None) == bool(reading.diagnostics)
