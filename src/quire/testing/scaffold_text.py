"""Write drafts of cases as the text of a test file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from quire.patterns import late_pattern
from quire.plan.ways import JOINT

if TYPE_CHECKING:
    from quire.testing.drafts import Draft, DraftReply
    from quire.values import Value

_HEAD = """\
# The replies, answers and inputs are placeholders: put in what a model and a person would really say.
# {next} Keys: docs/test-files.md, or quire test --schema.
document: {document}
"""
_WRITE = "Then write the expectations in place of each `todo`."
_ADD = "Then expect what the document should do: its output, its prompts, its calls."
_PLAIN = late_pattern(r"[A-Za-z_][A-Za-z0-9_/-]*")
_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))


def file_text(document: str, drafts: Sequence[Draft]) -> str:
    """Return the text of a test file. Inputs that all cases share become defaults."""
    further = _WRITE if any(draft.expect is None for draft in drafts) else _ADD
    lines = [_HEAD.format(document=_scalar(document), next=further).rstrip("\n")]
    shared = _shared([draft.inputs for draft in drafts])
    if shared:
        lines += ["defaults:", f"  inputs: {flow(shared)}"]
    lines.append("cases:")
    for draft in drafts:
        lines += _case(draft, shared)
    return "\n".join(lines) + "\n"


def case_text(draft: Draft) -> str:
    """Return the text of one case, to be added to the cases of a file."""
    return "\n".join(_case(draft, {})) + "\n"


def _shared(inputs: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    first = inputs[0] if inputs else {}
    return {name: value for name, value in first.items() if all(one.get(name) == value for one in inputs)}


def _case(draft: Draft, shared: Mapping[str, Value]) -> list[str]:
    lines = [f"  - name: {_scalar(draft.name)}"]
    own = {name: value for name, value in draft.inputs.items() if name not in shared}
    if own:
        lines.append(f"    inputs: {flow(own)}")
    if draft.files:
        lines.append(f"    files: {flow(draft.files)}")
    if draft.allow:
        lines.append(f"    allow: {flow(draft.allow)}")
    if draft.unattended:
        lines.append("    unattended: true")
    if draft.answers:
        answers: dict[str, Value] = {_typed(way): answer for way, answer in draft.answers.items()}
        lines.append(f"    answers: {flow(answers)}")
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
            lines += [f"        - {_reply(one)}" for one in several]
    return lines


def _reply(reply: DraftReply) -> str:
    if reply.item is None and isinstance(reply.value, str) and not reply.calls and not reply.any_times:
        return _scalar(reply.value)
    parts: list[str] = []
    if reply.item is not None:
        parts.append(f"item: {reply.item}")
    if reply.calls:
        calls = ", ".join(f"{{name: {_scalar(name)}, input: {flow(given)}}}" for name, given in reply.calls)
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
            return "{" + ", ".join(f"{_key(name)}: {flow(one)}" for name, one in value.items()) + "}"
    return "[" + ", ".join(flow(one) for one in value) + "]"


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _WORDS else _scalar(name)


def _scalar(text: str) -> str:
    """Return a text in double quotes; characters that cannot be seen are escaped."""
    return '"' + "".join(_sign(one) for one in text) + '"'


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def _sign(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    code = ord(sign)
    if sign.isprintable() and not 0xD800 <= code <= 0xDFFF:
        return sign
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
