"""Drafts of cases: the placeholders and expectations of a scaffolded test, and its text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.errors import QuireError
from quire.formats.test.syntax import Case, Entry, FileContent, GivenAnswer, Script, ScriptedError, Setting, ToolScript
from quire.patterns import late_pattern
from quire.plan.parts import formulas
from quire.plan.pipeline_work import Select
from quire.plan.vocabulary import JOINT
from quire.source import NOWHERE
from quire.testing.plan_facts import names_in
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.plan.nodes import Plan, Step
    from quire.testing.coverage.decisions import Decision
    from quire.testing.observation import Observation


class DraftReply(Struct, frozen=True):
    """A placeholder for a reply."""

    step: str
    value: Value
    """A text, or a value that is sent as JSON."""
    item: int | None = None
    calls: tuple[tuple[str, Mapping[str, Value]], ...] = ()
    any_times: bool = False
    error: str = ""
    """The message of a call that fails in place of a reply."""

    @property
    def entry(self) -> Entry:
        sent = self.value if isinstance(self.value, str) else encode(self.value)
        times = None if self.any_times else 1
        if self.error:
            return Entry(step=self.step, item=self.item, error=ScriptedError("error", self.error), times=times)
        return Entry(step=self.step, item=self.item, reply=sent, calls=self.calls, times=times)


class Draft(Struct):
    """A case that is being made."""

    name: str = ""
    inputs: Mapping[str, Value] = field(default_factory=dict)
    replies: dict[tuple[str | int | None, ...], DraftReply] = field(default_factory=dict)
    """By step and item, in the order in which they are sent."""
    answers: dict[str, str] = field(default_factory=dict)
    tools: dict[str, Value] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    allow: list[str] = field(default_factory=list)
    unattended: bool = False
    takes: tuple[str, ...] = ()
    """The ids of the branches and answers that it covers."""
    expect: Mapping[str, Value] | None = None
    """Expectations that hold in a run of the draft; None if they are left to the author."""

    @property
    def size(self) -> tuple[int, ...]:
        """Grows with everything that is added."""
        again = sum(reply.any_times for reply in self.replies.values())
        return len(self.replies), again, len(self.answers), len(self.tools), len(self.files), len(self.allow)

    @property
    def case(self) -> Case:
        setting = Setting(
            inputs=self.inputs,
            model=Script(tuple(reply.entry for reply in self.replies.values()), by_step=True),
            tools={name: ToolScript(returns=value) for name, value in self.tools.items()},
            answers={way: (GivenAnswer(answer),) for way, answer in self.answers.items()},
            files={path: FileContent(text) for path, text in self.files.items()},
            allow=tuple(self.allow) or None,
            unattended=self.unattended or None,
        )
        return Case(self.name, NOWHERE, setting, None)


_SHOWN = ("completed", "skipped", "failed")
MOST_STEPS = 12
_PLAIN_KINDS = (str, int, float, bool)


def expectations(plan: Plan, observation: Observation, decisions: Sequence[Decision]) -> dict[str, Value]:
    """Return expectations that hold in a run, and that fail if it decides otherwise. Without a decision, or where no
    step shows it, they are about the result."""
    expected: dict[str, Value] = {}
    if observation.status != "completed":
        expected["status"] = observation.status
    labels = dict.fromkeys(label for decision in decisions for label in _labels(plan, decision))
    shown = {label: status for label in labels if (status := observation.steps.get(label)) in _SHOWN}
    steps: dict[str, Value] = {**shown}
    if steps:
        expected["steps"] = dict(list(steps.items())[:MOST_STEPS])
    else:
        expected |= _result(observation)
    if observation.warnings:
        expected["warnings"] = [message for _, message in observation.warnings]
    return expected


def _result(observation: Observation) -> dict[str, Value]:
    """Return expectations about the result of a run. A mapping may look like a matcher: then the calls are counted."""
    outputs = {name: value for name, value in observation.outputs.items() if isinstance(value, _PLAIN_KINDS)}
    if outputs:
        return {"outputs": outputs}
    if observation.status == "completed" and isinstance(observation.output, _PLAIN_KINDS):
        return {"output": observation.output}
    return {"used": {"model_calls": observation.used.model_calls, "tool_calls": observation.used.tool_calls}}


def _labels(plan: Plan, decision: Decision) -> Iterator[str]:
    """Yield the labels of the steps that tell which way was taken: the first ones of each arm."""
    step = dict(plan.steps()).get(decision.place)
    if step is None:
        return
    if decision.kind == "steps":
        yield step.label
        return
    for case in step.match.cases if step.match else ():
        yield from (inner.label for inner in case.body.steps[:1])
    if isinstance(step.work, Select):
        yield from (part.label for _, part in step.work.parts())


def names_before(plan: Plan, decision_id: str) -> frozenset[str]:
    """Return the words of the choices that may decide whether a decision is reached: the names that the conditions on
    the way to it read, those from which they are computed, and the labels of the steps that write them."""
    place = decision_id.split(":")[1].partition("=")[0] if decision_id.count(":") else ""
    steps = list(plan.steps())
    names: set[str] = set()
    for path, step in steps:
        if place == path or place.startswith(f"{path}/") or step.match is not None:
            names.update(_read(step))
    before = -1
    while before != len(names):
        before = len(names)
        for _, step in steps:
            if step.capture is not None and step.capture.name in names:
                names.update((step.label, *_read(step)))
            if names & {f"__elicit_step_{step.label}", f"__elicit_step_{step.number}"}:
                names.add(step.label)
    return frozenset(names)


def _read(step: Step) -> Iterator[str]:
    for case in step.match.cases if step.match else ():
        if case.test is not None:
            yield case.test.variable
    for _, formula in formulas(step):
        yield from names_in(formula.compiled.expression.root)


_CASES = late_pattern(r"^cases:[ \t]*+(?:#[^\n]*+)?\n", re.MULTILINE)
_NEXT_KEY = late_pattern(r"^(?![ \t#\n-])", re.MULTILINE)
_ITEM = late_pattern(r"^([ \t]*+)- ", re.MULTILINE)


def takes_cases(text: str) -> bool:
    """Tell whether a case can be added to the text of a test."""
    return _CASES.search(text) is not None


def added_text(text: str, draft: Draft) -> tuple[int, str]:
    """Return the lines that add a case to the text of a test, and where. Raises `QuireError` for a test that is written
    in another way. The names of cases differ."""
    cases = _CASES.search(text)
    if not cases:
        raise QuireError("it has no list of cases that a case can be added to")
    after = _NEXT_KEY.search(text, cases.end())
    end = after.start() if after and after.start() < len(text) else len(text)
    block = text[cases.end() : end]
    item = _ITEM.search(block)
    indent = item[1] if item else "  "
    new = "\n".join(indent + line.removeprefix("  ") for line in case_text(draft).splitlines())
    return cases.end() + len(block.rstrip()), ("\n" if block.strip() else "") + new


_HEAD = """\
# The replies, answers and inputs are placeholders: put in what a model and a person would really say.
# {next} Keys: quire docs test-files, or quire test --schema.
document: {document}
"""
_WRITE = "Then write the expectations in place of each `todo`."
_ADD = "Then expect what the document should do: its output, its prompts, its calls."
_PLAIN = late_pattern(r"[A-Za-z_][A-Za-z0-9_/-]*")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))


def file_text(document: str, drafts: Sequence[Draft], *, recorded: bool = False) -> str:
    """Return the text of a test file. Inputs that all cases share become defaults. Recorded drafts have no
    placeholders, which the first lines are about."""
    further = _WRITE if any(draft.expect is None for draft in drafts) else _ADD
    lines = [_HEAD.format(document=_scalar(document), next=further).rstrip("\n")]
    if recorded:
        lines = lines[0].splitlines()[-1:]
    first = drafts[0].inputs if drafts else {}
    shared = {name: value for name, value in first.items() if all(draft.inputs.get(name) == value for draft in drafts)}
    if shared:
        lines += ["defaults:", f"  inputs: {flow(shared)}"]
    lines.append("cases:")
    for draft in drafts:
        lines += _case(draft, shared)
    return "\n".join(lines) + "\n"


def case_text(draft: Draft) -> str:
    """Return the text of one case, to be added to the cases of a file."""
    return "\n".join(_case(draft, {})) + "\n"


def _case(draft: Draft, shared: Mapping[str, Value]) -> list[str]:
    lines = [f"  - name: {_scalar(draft.name)}"]
    own = {name: value for name, value in draft.inputs.items() if name not in shared}
    keys: dict[str, Value] = {
        "inputs": own,
        "files": {**draft.files},
        "allow": [*draft.allow],
        "unattended": draft.unattended,
        "answers": {_typed(way): answer for way, answer in draft.answers.items()},
    }
    lines += [f"    {key}: {flow(value)}" for key, value in keys.items() if value]
    if draft.tools:
        lines.append("    tools:")
        lines += [f"      {_key(name)}: {{returns: {flow(value)}}}" for name, value in draft.tools.items()]
    if draft.replies:
        lines.append("    model:")
        lines += _model(list(draft.replies.values()))
    return [*lines, f"    expect: {'todo' if draft.expect is None else flow(draft.expect)}"]


def _model(replies: Sequence[DraftReply]) -> list[str]:
    by_step: dict[str, list[DraftReply]] = {}
    for reply in replies:
        by_step.setdefault(reply.step, []).append(reply)
    lines = []
    for step, several in by_step.items():
        key = _key(_typed(step))
        if len(several) == 1:
            lines.append(f"      {key}: {_reply(several[0])}")
        else:
            lines.append(f"      {key}:")
            lines += [f"        - {_reply(reply)}" for reply in several]
    return lines


def _reply(reply: DraftReply) -> str:
    if reply.item is None and isinstance(reply.value, str) and not (reply.calls or reply.any_times or reply.error):
        return _scalar(reply.value)
    parts: list[str] = []
    if reply.item is not None:
        parts.append(f"item: {reply.item}")
    if reply.error:
        parts.append(f"error: {_scalar(reply.error)}")
    elif reply.calls:
        calls = ", ".join(f"{{name: {_scalar(name)}, input: {flow(arguments)}}}" for name, arguments in reply.calls)
        parts.append(f"tool_calls: [{calls}]")
    else:
        parts.append(f"reply: {flow(reply.value)}")
    if reply.any_times:
        parts.append("times: any")
    return "{" + ", ".join(parts) + "}"


def _typed(way: str) -> str:
    return way.replace(JOINT, ">")


def flow(value: Value) -> str:
    """Return a value as YAML on one line."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _scalar(value)
        case int() | float():
            return repr(value)
        case Mapping():
            return "{" + ", ".join(f"{_key(name)}: {flow(part)}" for name, part in value.items()) + "}"
    return "[" + ", ".join(flow(part) for part in value) + "]"


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else _scalar(name)


def _scalar(text: str) -> str:
    """Return a text in double quotes; characters that cannot be seen are escaped."""
    return '"' + "".join(_sign(character) for character in text) + '"'


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def _sign(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    code = ord(sign)
    if sign.isprintable() and not 0xD800 <= code <= 0xDFFF:
        return sign
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
