"""Texts that look like something else: references where none are filled in, slips in expressions, and commands that
cannot run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from quire.diagnostics import Edit
from quire.expr.slips import slips
from quire.formats.pipeline.codes import lints, warnings
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.inputs import inferred_inputs
from quire.formats.pipeline.prompts import attempts, foreign, references
from quire.formats.pipeline.syntax import AgentBody, Argument, Literal, Pipeline, ShellBody, Text, ToolBody
from quire.formats.pipeline.walk import expressions, walk
from quire.source import Span
from quire.values import Value

_ROOTS = ("ctx", "pipe", "item", "acc")


def check_texts(pipeline: Pipeline, fields: Fields) -> None:
    names = _mistakable(pipeline)
    for _, step in walk(pipeline):
        for expression in expressions(step):
            for slip in slips(expression.expression):
                fields.report(slip.code, slip.message, fields.at(expression, slip.span), slip.help)
        match step.body:
            case AgentBody(prompt=prompt):
                _check_prompt(prompt, names, fields)
            case ToolBody(args=args, name=name):
                for key, value in args:
                    _check_argument(value, fields)
                    if name.text == "shell" and key.text == "command":
                        _check_command(value, fields)
            case ShellBody(command=command):
                _check_argument(command, fields)
                _check_command(command, fields)


def _mistakable(pipeline: Pipeline) -> Collection[str]:
    """The names that doubled braces may be meant to refer to: none where a prompt has a reference in single ones."""
    prompts = [step.body.prompt.text for _, step in walk(pipeline) if isinstance(step.body, AgentBody)]
    if any(True for prompt in prompts for _ in references(prompt)):
        return ()
    return {step.output.text for _, step in walk(pipeline) if step.output} | {*inferred_inputs(pipeline), "ctx", "pipe"}


def _check_prompt(prompt: Text, names: Collection[str], fields: Fields) -> None:
    if not prompt.text.strip():
        fields.report(lints.EMPTY_PROMPT, "the prompt is empty", prompt.span)
    for part in attempts(prompt.text):
        text = prompt.text[part.start : part.end]
        inside = text[1:-1].strip()
        is_path = any(one.span.end == len(inside) + 2 for one in references(f"{{{inside}}}"))
        help = f"write {{{inside}}}" if is_path else "compute it in a transform step, and refer to its output"
        message = f"{fields.shown(text)} is not a reference: the model is sent it as it stands"
        place = fields.at(prompt, part)
        fix = (Edit(place, text, f"{{{inside}}}"),) if is_path else ()
        fields.report(lints.NO_REFERENCE, message, place, help, fix)
    for part, path in foreign(prompt.text):
        _check_foreign(prompt, part, path, names, fields)


def _check_foreign(prompt: Text, part: Span, path: str, names: Collection[str], fields: Fields) -> None:
    """Braces are doubled on purpose too: `names` is empty where the author knows how references are written."""
    text = prompt.text[part.start : part.end]
    root = path.partition(".")[0]
    if text.startswith("{{") and root in names:
        message = f"{fields.shown(text)} is an escape: the model is sent {fields.shown(text[1:-1])}"
    elif text.startswith("$") and root in _ROOTS:
        message = f"the $ before {fields.shown(text[1:])} is text: the model is sent it before the value"
    elif text.startswith("{input:"):
        message = f"{fields.shown(text)} is how directives refer to inputs: here the model is sent it as it stands"
    else:
        return
    fields.report(lints.NO_REFERENCE, message, fields.at(prompt, part), f"write {{{path}}}")


def _check_argument(value: Argument, fields: Fields) -> None:
    if not isinstance(value, Literal):
        return
    for text in _texts(value.value):
        for found in references(text):
            if found.path[0] not in _ROOTS:
                continue
            path = ".".join(found.path)
            whole = text == f"{{{path}}}" and text == value.value
            help = f"write !expr {path}" if whole else "write the whole value as an expression after !expr"
            message = f"{{{path}}} is not filled in here: only prompts have references"
            fields.report(lints.LITERAL_REFERENCE, message, value.span, help)
            return


def _check_command(value: Argument, fields: Fields) -> None:
    if not isinstance(value, Literal):
        return
    command = value.value
    if isinstance(command, str) and command:
        return
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        return
    message = "a command is a text, or a list of texts with at least one"
    fields.report(warnings.COMMAND, message, value.span, 'write numbers in quotes: [sleep, "1"]')


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
