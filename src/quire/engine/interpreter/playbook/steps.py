"""Run the three kinds of playbook steps (ask a model, ask a person, call a tool) in the scope of a walk.

A model step has its text, a preamble before it, and an object that the reply has to end with. An answer of a person is
checked against the kind of the question. The arguments of a tool are built as values, never as text.

The proof of a document measures what a model is told, so this module loads nothing that a proof does not need.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from quire.engine.conversation import CUT_OFF, Message, Offered, early_end
from quire.engine.earlier_results import Earlier, Entry, SystemText
from quire.engine.interpreter.callees import Profile, below
from quire.engine.premises import PureWork
from quire.engine.requests import Emit, HumanRequest, Load, ModelRequest, Offer, Request, ToolRequest
from quire.errors import StepFailed
from quire.plan.built_in_tools import ASK, WRITE
from quire.plan.nodes import (
    EXTENDED_PLAYBOOKS,
    SEMANTICS_VERSION,
    Arguments,
    Ask,
    Capture,
    Plan,
    PromptSource,
    Step,
    StepModel,
    Template,
    Think,
    UseTool,
    ValueSlot,
)
from quire.plan.templates import template
from quire.plan.uses import OWN, tool_call_problem
from quire.trust.capabilities import canonical
from quire.values import InvalidValue, Value, decode, encode, text_or_json
from quire.wording import first_of, pluralize

if TYPE_CHECKING:
    from quire.engine.interpreter.callees import Environment


def think(step: Step, work: Think, path: str, scope: PlaybookScope, own: int) -> Generator[Request, Any, str | None]:
    """Ask the model; None if there is nothing to ask. The entries of the step itself begin at `own`: its answer to a
    question is always sent."""
    scope.cut = False
    text = scope.render(work.prompt)
    if work.preamble:
        preamble = yield from _preamble(step, work.preamble, path, scope)
        text = "\n\n".join(part for part in (preamble, text) if part)
    if not text.strip():
        return None
    closing, schema = _closing(work, scope.rules)
    if closing and scope.rules > 1:
        text, closing = f"{text}\n\n{closing}", ""
    last = f"{path}/model"
    chosen = scope.chosen(work.context, own)
    budget = scope.context_budget if work.cast is None or work.cast.budget is None else work.cast.budget
    system = scope.system_message(closing, chosen, budget)
    reply: Mapping[str, Value]
    if work.cast is None:
        reply = yield ModelRequest(
            path=last, label=step.label, instructions=system, messages=(Message("user", text),), closing=schema
        )
    else:
        call = _Call(step, work, path, scope, work.cast, system)
        reply = yield from call.made(text)
        last = call.last
    # Replies that 0.1.0 recorded are not marked as cut.
    warning = early_end(reply) or (CUT_OFF if reply.get("finish_reason") == "length" else "")
    for message in (scope.left_out(system, chosen, budget), warning):
        if message:
            yield Emit("warning", last, step.label, {"message": message})
    scope.cut = reply.get("cut") is True
    return str(reply["text"])


def _closing(work: Think, rules: int) -> tuple[str, dict[str, Value] | None]:
    """Return the sentences that ask for the object at the end of a reply, and its JSON Schema; nothing for most
    steps."""
    if not work.closing:
        return "", None

    return closing_instruction(work.closing, rules), closing_schema(work.closing)


class _Call:
    """The model call of a step that the settings chose for, with the turns in which its model uses tools."""

    def __init__(
        self, step: Step, work: Think, path: str, scope: PlaybookScope, cast: StepModel, instructions: str | SystemText
    ) -> None:
        self._label = step.label
        self._path = path
        self._cast = cast
        profiles = scope.setting.profiles if scope.setting is not None else {}
        self._agent = profiles.get(self._cast.agent, Profile())
        self._profile = profiles.get(self._cast.profile, Profile())
        self._instructions = instructions
        self._closing = _closing(work, scope.rules)[1]
        self._offered: tuple[Offered, ...] = ()
        self.last = f"{path}/model"

    def made(self, text: str) -> Generator[Request, Any, Mapping[str, Value]]:
        """Make the call and return the reply."""
        messages = [Message("user", text)]
        if not self._cast.tools:
            reply: Mapping[str, Value] = yield self._request(self.last, messages)
            return reply
        offers: list[list[Any]] = yield Offer(f"{self._path}/offer", self._label, self._cast.tools, reads_only=True)
        self._offered = tuple(Offered(*offer) for offer in offers if canonical(offer[0]) != ASK)
        from quire.engine.interpreter.tool_turns import ToolTurns

        turns = ToolTurns(self._path, self._label, self._agent, self._offered, self._request, reads_only=True)
        reply = yield from turns.run(messages)
        self.last = turns.last
        return reply

    def _request(self, path: str, messages: list[Message]) -> ModelRequest:
        return ModelRequest(
            path=path,
            label=self._label,
            instructions=self._instructions,
            messages=tuple(messages),
            closing=self._closing,
            tools=self._offered,
            model=self._cast.model,
            temperature=self._profile.temperature,
            max_tokens=self._profile.max_tokens,
            reasoning=self._profile.reasoning,
            timeout=self._profile.timeout,
            identity=self._cast.agent,
        )


def _preamble(step: Step, source: PromptSource, path: str, scope: PlaybookScope) -> Generator[Request, Any, str]:
    if source.scheme == "variable":
        value = scope.lookup(source.where)
        if value is None:
            raise StepFailed(
                f"@prompt({{{{{source.where}}}}}): nothing has set {source.where}", kind="undefined", path=path
            )
        return value
    where = _where(source, path, scope)
    text: Value = yield Load(f"{path}/prompt", step.label, source.scheme, where)
    if text is None:
        message = f"no prompt {source.scheme}:{where}: the step runs on its own text"
        yield Emit("warning", f"{path}/prompt", step.label, {"message": message})
        return ""
    return scope.render(template(str(text)))


def _where(source: PromptSource, path: str, scope: PlaybookScope) -> str:
    """Return the path of a prompt file with its values filled in. The loader checks the resulting path."""
    if source.scheme != "file" or scope.rules == 1:
        return source.where
    file = template(source.where)
    for reference in file.references():
        if reference.default is None and scope.lookup(reference.name) is None:
            message = f"@prompt(file:{source.where}): nothing has set {reference.name}"
            raise StepFailed(message, kind="undefined", path=path)
    where = scope.render(file)
    if scope.rules >= EXTENDED_PLAYBOOKS and (hidden := _hidden(where) - _hidden(source.where)):
        # A value may come from a model: it chooses among the prompts, not among settings and keys.
        message = f"prompt file:{where}: a value must not lead to a hidden file or folder ({min(hidden)})"
        raise StepFailed(message, kind="prompt", path=path)
    return where


def _hidden(path: str) -> set[str]:
    return {part for part in path.replace("\\", "/").split("/") if part.startswith(".")} - {".", ".."}


MOST_UNFIT = 5
"""Unfit answers to one question after which it waits in the inbox."""


class WrongAnswer(ValueError):
    """An answer that does not fit; the message says what would be right."""


def ask(step: Step, question: Ask, path: str, scope: PlaybookScope) -> Generator[Request, Any, str]:
    answer: str = yield HumanRequest(
        path=f"{path}/ask",
        label=step.label,
        title=step.title,
        kind=question.kind,
        prompt=scope.render(question.prompt),
        options=tuple(scope.render(option) for option in question.options),
        default=scope.render(question.default) if question.default is not None else None,
    )
    for name in dict.fromkeys((step.number, step.label)):
        scope.captured[f"__elicit_step_{name}"] = len(scope.entries)
        yield scope.name(f"{path}/ask", step.label, f"__elicit_step_{name}", answer)
    scope.add_entry(Entry(step.label, step.title, answer, answer=True))
    return answer


def checked_answer(kind: str, options: Sequence[str], answer: str) -> str:
    """Return the answer as it is kept. Raises `WrongAnswer`."""
    if kind == "confirm":
        word = answer.strip().lower()
        if word in ("yes", "y"):
            return "yes"
        if word in ("no", "n"):
            return "no"
        raise WrongAnswer("answer yes or no")
    if kind == "select" and options:
        if answer in options:
            return answer
        trimmed = answer.strip()
        if trimmed in options:
            return trimmed
        raise WrongAnswer("answer one of: " + " | ".join(options))
    return answer


def unattended_answer(kind: str, options: Sequence[str], default: str | None) -> str:
    """Return the answer that is used if no person can be asked."""
    if default is not None:
        return default
    if kind == "confirm":
        return "yes"
    return options[0] if kind == "select" and options else ""


def use_tool(
    step: Step, work: UseTool, path: str, scope: PlaybookScope
) -> Generator[Request, Any, tuple[str, str | None]]:
    """Return the result as text, and the content written if the tool writes one file."""
    if problem := tool_call_problem(work):
        raise StepFailed(problem, kind="arguments", path=path)
    result: Value
    arguments = _value(work.arguments, scope)
    if not isinstance(arguments, Mapping):
        raise StepFailed(
            f"@tool({work.connection}, {work.tool}): the arguments must be a JSON object, not {encode(arguments)[:60]}",
            kind="arguments",
            path=path,
        )
    if work.connection == OWN and scope.setting is not None and work.tool in scope.setting.documents:
        from quire.engine.interpreter.callees import call_document

        called = call_document(work.tool, arguments, f"{path}/call/", path, scope.setting)
        result = yield from below(step.label, called)
    else:
        result = yield ToolRequest(f"{path}/tool", step.label, work.connection, work.tool, arguments, form="text")
    return text_or_json(result), _written(work, arguments)


def _written(work: UseTool, arguments: Mapping[str, Value]) -> str | None:
    content = arguments.get("content")
    if work.connection == OWN and canonical(work.tool) == WRITE and isinstance(content, str):
        return content
    return None


def _value(tree: Arguments, scope: PlaybookScope) -> Value:
    match tree:
        case Template():
            return scope.render(tree)
        case ValueSlot():
            return _hole(tree, scope)
        case tuple():
            return [_value(part, scope) for part in tree]
        case dict():
            if scope.rules < 4:
                return {key: _value(part, scope) for key, part in tree.items()}
            rendered = {scope.render(template(key)): _value(part, scope) for key, part in tree.items()}
            if len(rendered) < len(tree):
                message = f"two keys of the arguments become the same: {', '.join(rendered)}"
                raise StepFailed(message, kind="arguments")
            return rendered
    return tree


def _hole(hole: ValueSlot, scope: PlaybookScope) -> Value:
    text = scope.render(Template((hole.reference,)))
    try:
        return decode(text)
    except InvalidValue:
        return text


MAX_RENDERED = 16_000_000
"""Most characters of one text with its values filled in."""


class PlaybookScope(Struct):
    """Values of one walk.

    Changed only by the interpreter that owns it, in document order; so a replay builds the same one.
    """

    plan: Plan
    inputs: dict[str, str]
    context_budget: int | None = None
    named: dict[str, str] = field(default_factory=dict)
    entries: Earlier = field(default_factory=Earlier)
    labels: list[tuple[str, str]] = field(default_factory=list)
    """For each entry, the label of its step and that of the step around it; empty if there is none."""
    labelled: dict[str, list[int]] = field(default_factory=dict)
    """The first entries by these labels; they are added when a step chooses."""
    indexed: int = 0
    """How many entries are in `labelled`."""
    captured: dict[str, int] = field(default_factory=dict)
    """The entries by the names that their results were kept under."""
    source: tuple[str, str] | None = None
    """The result of the step that the artifact comes from, and the part that a person is shown; None if it did not
    run."""
    around: str = ""
    """The label of the step whose arm is under way."""
    result: str = ""
    """Output of the last executed step."""
    shown: str = ""
    """The part of `result` that a person is shown."""
    cut: bool = False
    """True if the last reply broke off."""
    setting: Environment | None = None
    work: PureWork = field(default_factory=PureWork)
    rules: int = SEMANTICS_VERSION

    def lookup(self, name: str) -> str | None:
        """Return the input of that name, else the named result, else None."""
        value = self.inputs.get(name)
        return value if value is not None else self.named.get(name)

    def render(self, text: Template) -> str:
        out: list[str] = []
        room = MAX_RENDERED
        for part in text.parts:
            if isinstance(part, str):
                out.append(part)
            else:
                value = self.lookup(part.name)
                out.append(value if value is not None else part.raw if part.default is None else part.default)
            room -= len(out[-1])
            if room < 0:
                message = f"with its values filled in, a text has more than {MAX_RENDERED:,} characters"
                raise StepFailed(message, kind="prompt")
        self.work.add_text(MAX_RENDERED - room)
        return "".join(out)

    def name(self, path: str, label: str, name: str, value: str) -> Emit:
        """Keep a named result; the caller must yield the returned event."""
        self.named[name] = value
        return Emit("named", path, label, live={"name": name, "value": value}, kept=False)

    def override(self, path: str, label: str, name: str, value: str) -> Emit | None:
        """Set a value that a person gave at a stop. It replaces an input, or a named result until that is set again."""
        if any(declared.name == name for declared in self.plan.inputs):
            self.inputs[name] = value
            return None
        return self.name(path, label, name, value)

    def add_entry(self, entry: Entry) -> None:
        self.labels.append((entry.label, self.around))
        self.entries.append(entry)

    def drop_entries(self, length: int) -> None:
        """Remove all entries from this index on."""
        if length == len(self.entries):
            return
        for labels in self.labels[length : self.indexed]:
            for label in labels:
                self.labelled[label].pop()
        self.indexed = min(self.indexed, length)
        del self.labels[length:]
        self.captured = {name: at for name, at in self.captured.items() if at < length}
        self.entries.cut(length)

    def chosen(self, names: tuple[str, ...] | None, own: int) -> tuple[int, ...] | None:
        """Return the entries that these names choose; None for all. The step's own, from `own` on, are always among
        them."""
        if names is None:
            return None
        for at in range(self.indexed, len(self.labels)):
            for label in self.labels[at]:
                self.labelled.setdefault(label, []).append(at)
        self.indexed = len(self.labels)
        entries = set(range(own, len(self.entries)))
        for name in names:
            entries.update((self.captured[name],) if name in self.captured else self.labelled.get(name, ()))
        return tuple(sorted(entries))

    def system_message(self, closing: str, chosen: tuple[int, ...] | None, budget: int | None) -> str | SystemText:
        if self.entries and chosen != ():
            return SystemText.of(self.plan.system, self.entries, budget, closing, self.rules, chosen)
        return "\n\n".join(part for part in (self.plan.system, closing) if part)

    def left_out(self, system: str | SystemText, chosen: tuple[int, ...] | None, budget: int | None) -> str:
        """Return the warning about earlier results that a message does not hold; empty if it holds all."""
        count = system.first if isinstance(system, SystemText) else 0
        if not count or budget is None:
            return ""
        labels = [self.labels[at][0] for at in (range(count) if chosen is None else chosen[:count])]
        steps = f"{count} earlier {pluralize('result', count)} (of {', '.join(first_of(labels, 8))})"
        return f"left out {steps}: more than {budget:,} characters ([runs] context_budget)"


def closing_instruction(captures: tuple[Capture, ...], rules: int = SEMANTICS_VERSION) -> str:
    """Return the sentences that ask a model to end its reply with the object; empty if no field is read from it."""
    if not captures:
        return ""
    fields = ", ".join(f'"{capture.field}"{_hint(capture)}' for capture in captures)
    example = ", ".join(f'"{capture.field}": …' for capture in captures)
    noun = pluralize("field", len(captures))
    before = "First do all that is asked above, in full." if rules > 1 else "Write the answer freely."
    return (
        f"{before} Then end the reply with one JSON object on a line of its own that holds the {noun} "
        f"{fields}, in the form {{{example}}}. Write nothing after it."
    )


def _hint(capture: Capture) -> str:
    match capture.type:
        case "enum" if capture.options:
            return f" (one of {', '.join(capture.options)})"
        case "number" | "boolean":
            return f" (a {capture.type})"
    return ""


def closing_schema(captures: tuple[Capture, ...]) -> dict[str, Value] | None:
    """Return the JSON Schema of the object; None if no field is read from it."""
    if not captures:
        return None
    properties: dict[str, Value] = {str(capture.field): _schema(capture) for capture in captures}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _schema(capture: Capture) -> Value:
    match capture.type:
        case "enum" if capture.options:
            return {"type": "string", "enum": list(capture.options)}
        case "number" | "boolean":
            return {"type": capture.type}
        case "json":
            return {}
    return {"type": "string"}
