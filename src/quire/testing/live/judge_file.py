"""Read `x.judge.yaml`: the rubric by which a model decides whether a text passes or fails.

    rubric: |
      Pass if the reply is friendly and names the product. Fail otherwise.
    model: anthropic:claude-haiku-5-5
    reads: output
    examples:
      - {text: "Bread. What else.", verdict: fail, reason: it is not friendly}

A judge may come from others, like the test beside it. So it names a tier or a model of a provider, never an address, a
file of weights or a script: only the user decides where texts are sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from quire.diagnostics import Diagnostic, Findings, Severity
from quire.errors import BadDocument
from quire.formats.test.codes import SYNTAX, UNKNOWN_KEY
from quire.formats.yaml import Entry, Node, Scalar, Sequence, describe, label_of, read_yaml, text_of
from quire.formats.yaml import Mapping as YamlMapping
from quire.patterns import late_pattern
from quire.source import NOWHERE, Source, Span, read_source
from quire.values import Value, fingerprint
from quire.wording import cut, did_you_mean, nearest

SUFFIX = ".judge.yaml"
FRAME = 1
"""The version of the frame around judged texts. It is part of the hash, so another frame is another judge."""
LONGEST_RUBRIC = 20_000
MOST_EXAMPLES = 30
MOST_PARTS = 8
_KEYS = ("rubric", "model", "reads", "examples", "about")
_EXAMPLE_KEYS = ("text", "verdict", "reason")
_PART = late_pattern(r"(?:output|artifact|(?:inputs|named|stores|outputs)\.[A-Za-z0-9_-]{1,100})")
_ADDRESSES = ("http:", "https:", "script:")

Verdict = Literal["pass", "fail"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class Example(Struct, frozen=True):
    """A text with the verdict that the author would give."""

    text: str
    verdict: Verdict
    reason: str = ""


class Judge(Struct, frozen=True):
    """A judge as its file describes it."""

    name: str
    """The file without its suffix."""
    rubric: str
    model: str
    """As written; empty if the user has to name it."""
    reads: tuple[str, ...] = ("output",)
    """The parts of an observation that it sees, in this order."""
    examples: tuple[Example, ...] = ()
    path: Path | None = None

    @property
    def hash(self) -> str:
        """Depends on everything that the model is told, apart from the judged text."""
        examples: list[Value] = [[one.text, one.verdict, one.reason] for one in self.examples]
        return fingerprint([FRAME, self.rubric, list(self.reads), examples])


class JudgeReading(Struct, frozen=True):
    """The result of reading a judge."""

    source: Source
    judge: Judge | None
    """None if the diagnostics contain an error."""
    diagnostics: tuple[Diagnostic, ...] = ()


class BadJudge(BadDocument):
    """A judge that cannot be used. `reading` has the findings."""

    def __init__(self, reading: JudgeReading) -> None:
        first = next(one for one in reading.diagnostics if one.severity is Severity.ERROR)
        line = reading.source.position(first.span.start).line
        super().__init__(
            f"{reading.source.name}, line {line}: {first.message}{f' ({first.help})' if first.help else ''}"
        )
        self.reading = reading


def load_judge(path: Path) -> Judge:
    """Read a judge from disk. Raises `Unreadable` or `BadJudge`."""
    reading = read_judge(read_source(path))
    if reading.judge is None:
        raise BadJudge(reading)
    return reading.judge


def read_judge(source: Source) -> JudgeReading:
    """Read the text of a judge."""
    read = read_yaml(source)
    reader = _Reader()
    judge = None
    if len(read.documents) == 1 and isinstance(read.documents[0], YamlMapping):
        judge = reader.judge(read.documents[0], Path(source.name))
    elif not read.diagnostics:
        reader.report(SYNTAX, "a judge is one mapping with a rubric", NOWHERE)
    diagnostics = read.with_findings(reader.diagnostics)
    wrong = any(one.severity is Severity.ERROR for one in diagnostics)
    return JudgeReading(source, None if wrong else judge, diagnostics)


class _Reader(Findings):
    """Reads one judge, and collects what is wrong."""

    def judge(self, node: YamlMapping, path: Path) -> Judge:
        entries = self._entries(node, _KEYS, "a judge")
        rubric = self._text(entries, "rubric", node.span, LONGEST_RUBRIC)
        model = self._model(entries.get("model"))
        reads = self._reads(entries.get("reads"))
        examples = self._examples(entries.get("examples"))
        return Judge(path.name.removesuffix(SUFFIX), rubric, model, reads, examples, path)

    def _entries(self, node: YamlMapping, known: tuple[str, ...], what: str) -> Mapping[str, Entry]:
        entries = {label_of(entry.key): entry for entry in node.entries}
        for name, entry in entries.items():
            if name not in known:
                help = did_you_mean(nearest(name, known), f"{what} has {', '.join(known)}")
                self.report(UNKNOWN_KEY, f"{what} does not have a key {cut(name, 60)!r}", entry.key.span, help)
        return entries

    def _text(self, entries: Mapping[str, Entry], name: str, whole: Span, most: int) -> str:
        entry = entries.get(name)
        if entry is None:
            self.report(SYNTAX, f"{name} is missing", Span(whole.start, whole.start))
            return ""
        text = text_of(entry.value)
        if text is None or not text.strip():
            said = "empty" if text is not None else describe(entry.value)
            self.report(SYNTAX, f"{name} is a text, not {said}", entry.value.span)
        elif len(text) > most:
            self.report(SYNTAX, f"{name} has more than {most:,} characters", entry.value.span)
        return text or ""

    def _model(self, entry: Entry | None) -> str:
        if entry is None:
            return ""
        spec = (text_of(entry.value) or "").strip()
        if not spec:
            self.report(SYNTAX, f"model is the name of a model, not {describe(entry.value)}", entry.value.span)
        elif not may_be_named(spec):
            help = "name a tier or PROVIDER:NAME here; `--judge-model` takes addresses and files"
            message = f"a judge cannot choose {cut(spec, 60)}: its texts would go where the file says"
            self.report(SYNTAX, message, entry.value.span, help)
        return spec

    def _reads(self, entry: Entry | None) -> tuple[str, ...]:
        if entry is None:
            return ("output",)
        nodes: tuple[Node, ...] = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
        parts = []
        for node in nodes:
            name = text_of(node)
            if name is None or not _PART.fullmatch(name):
                help = "write output, artifact, inputs.X, named.X, stores.X or outputs.X"
                self.report(SYNTAX, "this is not a part of a run that a judge can read", node.span, help)
            elif name in parts:
                self.report(SYNTAX, f"{name} is here twice", node.span)
            else:
                parts.append(name)
        if not 1 <= len(nodes) <= MOST_PARTS:
            self.report(SYNTAX, f"a judge reads 1 to {MOST_PARTS} parts of a run", entry.value.span)
        return tuple(parts)

    def _examples(self, entry: Entry | None) -> tuple[Example, ...]:
        if entry is None:
            return ()
        if not isinstance(entry.value, Sequence):
            self.report(SYNTAX, f"examples are a list, not {describe(entry.value)}", entry.value.span)
            return ()
        if len(entry.value.items) > MOST_EXAMPLES:
            self.report(SYNTAX, f"there are more than {MOST_EXAMPLES} examples", entry.value.span)
        return tuple(self._example(node) for node in entry.value.items[:MOST_EXAMPLES])

    def _example(self, node: Node) -> Example:
        if not isinstance(node, YamlMapping):
            help = "write {text: …, verdict: pass}"
            self.report(SYNTAX, f"an example is a mapping, not {describe(node)}", node.span, help)
            return Example("", "fail")
        entries = self._entries(node, _EXAMPLE_KEYS, "an example")
        text = self._text(entries, "text", node.span, LONGEST_RUBRIC)
        reason = self._text(entries, "reason", node.span, LONGEST_RUBRIC) if "reason" in entries else ""
        return Example(text, self._verdict(entries.get("verdict"), node), reason)

    def _verdict(self, entry: Entry | None, example: YamlMapping) -> Verdict:
        value = entry.value if entry is not None else None
        word = value.value if isinstance(value, Scalar) else None
        for verdict in VERDICTS:
            if word == verdict:
                return verdict
        span = value.span if value is not None else Span(example.span.start, example.span.start)
        self.report(SYNTAX, "verdict is pass or fail", span)
        return "fail"


def may_be_named(spec: str) -> bool:
    """Tell whether a file may name this model: not an address, not a script, and not a path of weights."""
    kind, _, name = spec.partition(":")
    if spec.lower().startswith(_ADDRESSES) or any(not character.isprintable() for character in spec):
        return False
    return kind.lower() != "local" or not ("/" in name or "\\" in name or "~" in name or name.endswith(".gguf"))
