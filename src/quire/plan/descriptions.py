"""Words for steps: the texts that outlines, flowcharts, previews and progress share."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from quire.plan.nodes import Comparison, Step, Template, UseTool
from quire.plan.pipeline_work import (
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Formula,
    Guard,
    Invoke,
    Literal,
    OnError,
    Repeat,
    Select,
    Stop,
    listed_items,
)
from quire.wording import pluralize

QUESTIONS = {"input": "asks for text", "confirm": "asks yes or no", "select": "asks to choose"}
"""The words for a question to a person, by its kind."""


_WORDS = {
    "agent": "Ask the model",
    "think": "Ask the model",
    "transform": "Compute",
    "for_each": "For each item",
    "parallel": "Side by side",
    "match": "Choose",
    "fold": "Item by item",
    "steps": "Block",
}


def step_name(step: Step) -> str:
    """Return the name of a step in all views: its title, else the name of its output, else the document or the tool
    that it calls, else a few words about its work."""
    if step.title or step.capture:
        return step.title or (step.capture.name if step.capture else "")
    match step.work:
        case Call(document=document):
            return document
        case Invoke() | UseTool():
            return tool_name(step.work)
        case ForEach(do=do) | Fold(do=do) | Repeat(do=do) if do.capture or isinstance(do.work, Call | Invoke):
            return step_name(do)
    kind = step.kind or (type(step.work).__name__.lower() if step.work else "ask")
    return _WORDS.get(kind, kind.replace("_", " ").capitalize())


def tool_name(work: UseTool | Invoke) -> str:
    """Return the tool that a step calls, as people name it."""
    return f"{work.connection}/{work.tool}" if isinstance(work, UseTool) else work.tool


def instead_of_model(step: Step) -> str:
    """Say what a step does that does not ask a model."""
    match step.work:
        case Invoke(tool="ask"):
            return "it asks a person"
        case UseTool() | Invoke():
            return f"it calls the tool {tool_name(step.work)}"
        case Call(document=document):
            return f"it runs the pipeline {document}"
        case Select():
            named = dict.fromkeys(call.document for call in step.calls())
            return f"it runs one of the pipelines {', '.join(named)}" if named else "it runs one of its blocks"
        case Block():
            return f"its steps do ({', '.join(inner.label for inner in step.work.body.steps)})"
        case Fail():
            return "it fails"
        case Stop():
            return "it ends the pipeline"
        case None if step.ask:
            return "it asks a person"
        case None:
            cases = step.match.cases if step.match else ()
            labels = [below.label for case in cases for below in case.body.steps]
            return f"its branches do ({', '.join(labels)})" if labels else "it has no text"
    return f"it is a {step.kind}"


def written(text: Template) -> str:
    """Return the text of a template as it is written in the document."""
    return "".join(part if isinstance(part, str) else part.raw for part in text.parts)


def condition(test: Comparison) -> str:
    """Return a condition as it is written in a document."""
    return f'{test.variable} {test.operator} "{test.value}"'


def condition_in_words(test: Comparison | None) -> str:
    """Return a condition as people read it: only documents have a name for the answer to a question."""
    if test is None:
        return "else"
    step = test.variable.removeprefix("__elicit_step_")
    return condition(test if step == test.variable else replace(test, variable=f"the answer of step {step}"))


def source_text(source: Formula | Literal | None) -> str:
    """Describe the list that a step iterates over."""
    match source:
        case Formula(text=text):
            return text
        case Literal():
            count = listed_items(source)
            return f"{count} {pluralize('given item', count)}"
    return "the value before"


def on_error_text(on_error: OnError) -> str:
    match on_error.policy:
        case "continue":
            return "failures dropped"
        case "retry":
            again = f"failures tried {'once' if on_error.times == 1 else f'{on_error.times} times'} more"
            return f"{again}, then dropped" if on_error.survives else again
    return "a failure ends it"


def guard_texts(guard: Guard) -> Iterator[str]:
    """Yield the meanings of the keys around a step, one each."""
    if guard.when is not None:
        yield f"only if {guard.when.text}" + (f", else {guard.default.text}" if guard.default is not None else "")
    if guard.on_error is not None and guard.on_error.policy == "retry":
        times = guard.on_error.times
        yield f"tried {'once' if times == 1 else f'{times} times'} more if it fails"
    if guard.goes_on:
        value = guard.default.text if guard.default is not None else "null"
        yield f"a failure is survived, its value is {value}"
    if guard.timeout is not None:
        yield f"at most {guard.timeout:g} seconds"


def guarded_text(what: str, step: Step) -> str:
    """Add to the work of a step how often and how long it is tried, and whether the run survives its failure."""
    guard = step.guard
    if guard is None:
        return what
    times = guard.on_error.times if guard.on_error is not None else 0
    words = [
        what,
        f"{times + 1} tries" if times else "",
        f"at most {guard.timeout:g} s" if guard.timeout is not None else "",
        "failures survived" if guard.goes_on else "",
    ]
    return ", ".join(word for word in words if word)
