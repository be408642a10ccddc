"""Edit the prompt of one step in the text of its document, in the quoting of its format.

A prompt is the prose of a step of a playbook, the scalar of an agent step of a pipeline, or the prose of a directive.
Each edit is checked by reading the edited text again: the step has exactly the new prompt, and everything else means
the same. So a prompt with a heading, a fence or a key in it stays text, or the edit is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from quire.errors import NotTried, QuireError
from quire.formats.pipeline import prompt_references
from quire.formats.pipeline.syntax import Text
from quire.formats.playbook.syntax import Step as PlaybookStep
from quire.formats.playbook.syntax import join
from quire.formats.yaml.nodes import Style
from quire.library.document import parse_pipelines, parse_playbook, read, unnamed
from quire.plan.nodes import EXTENDED_PLAYBOOKS, SEMANTICS_VERSION, Think
from quire.plan.pipeline_work import Agent
from quire.plan.templates import template
from quire.plan.thread import THREAD_PATH, Thread
from quire.source import Source, Span, line_start
from quire.values import clean, encode

if TYPE_CHECKING:
    from quire.formats.yaml import Scalar
    from quire.library.document import Document
    from quire.plan.nodes import Plan


Pieces: TypeAlias = list[tuple[Span, str]]
"""Places, each with its new text."""


def prompt_text(document: Document, path: str, rules: int = SEMANTICS_VERSION) -> str:
    """Return the prompt of the step at a path of the plan as its document has it, with its references. Raises
    `NotTried` for a step without one."""
    match place := _place(document, path, rules):
        case Span():
            return place.of(document.source.text)
        case PlaybookStep():
            return place.content
    return place.text


def with_prompt(document: Document, path: str, text: str, rules: int = SEMANTICS_VERSION) -> Source:
    """Return the text of a document in which the step at a path has another prompt. Raises `NotTried` if no edit means
    this and nothing else."""
    source, text = document.source, clean(Source.of(text).text)
    if text == prompt_text(document, path, rules):
        return source
    match place := _place(document, path, rules):
        case Span():
            text = text.strip()
            ways: Iterable[Pieces] = [[(place, text)]]
        case PlaybookStep():
            text = join(text, [(0, len(text))])
            ways = _in_pieces(place, text)
        case Text(scalar=scalar):
            ways = [[(scalar.body, way)] for way in _scalars(source, scalar, text)] if scalar else []
    if not text.strip():
        raise NotTried("a prompt needs a text")
    for way in ways:
        new = Source.of(_with(source.text, way), document.name)
        if _means(document, path, text, new, rules):
            return new
    raise NotTried(
        f"this text cannot be the prompt of step {path}: more than the prompt would change in {document.name}"
    )


def _with(text: str, pieces: Pieces) -> str:
    for span, new in sorted(pieces, key=lambda piece: piece[0].start, reverse=True):
        text = text[: span.start] + new + text[span.end :]
    return text


def _place(document: Document, path: str, rules: int) -> Span | PlaybookStep | Text:
    """Return the place of a prompt: of a directive its prose, of a playbook its step, of a pipeline its scalar."""
    plan, source = document.runnable(), unnamed(document.source)
    if plan.thread:
        from quire.formats.directive.parse import parse

        if path != THREAD_PATH or not plan.thread.body:
            raise NotTried(f"{path} has no prose of this document: its prompt cannot be edited here")
        return parse(document.source).partial.body_span
    step = dict(plan.steps()).get(path)
    work = step.work if step else None
    if step is None or not isinstance(work, Think | Agent) or (isinstance(work, Agent) and work.file):
        where = f"in the file {work.file}" if isinstance(work, Agent) else "not in this document"
        raise NotTried(f"the prompt of step {path} is {where}: it cannot be edited here")
    if plan.format == "playbook":
        playbook = parse_playbook(source, rules >= EXTENDED_PLAYBOOKS)[0].playbook
        for own in _steps(playbook.steps if playbook else ()):
            if own.span == step.span and own.has_text:
                return own
        raise NotTried(f"step {path} has no text of its own: its prompt cannot be edited here")
    from quire.formats.pipeline.walks import own_prompts, walk_file

    file = parse_pipelines(source, bool(document.declared)).file
    prompts = [own_prompts(part) for _, part in walk_file(file) if part.span == step.span] if file else []
    return prompts[0][0]


def _steps(steps: tuple[PlaybookStep, ...]) -> Iterator[PlaybookStep]:
    for step in steps:
        yield step
        for arm in step.arms:
            yield from _steps(arm.steps)


def _in_pieces(step: PlaybookStep, text: str) -> Iterator[Pieces]:
    """Yield ways to write the prose of a step between its directives: one piece changed, then all in the first one."""
    document = step.document
    pieces = [(start, end) for start, end in step.pieces if not document[start:end].isspace()]
    for at, (start, end) in enumerate(pieces):
        before, after = join(document, pieces[:at]), join(document, pieces[at + 1 :])
        if text.startswith(before) and text.endswith(after) and len(before) + len(after) < len(text):
            yield [_inside(document, start, end, text[len(before) : len(text) - len(after)].strip("\n"))]
    first, *others = pieces
    yield [_inside(document, *first, text), *(_inside(document, start, end, "") for start, end in others)]


def _inside(document: str, start: int, end: int, text: str) -> tuple[Span, str]:
    """Return the edit of a piece that keeps the white space around it."""
    piece = document[start:end]
    return Span(start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())), text


_LEAD = re.compile(r"[ ]*(?:-[ ]+)*")
_INDENT = re.compile(r"\n([ ]+)\S")
_UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def _scalars(source: Source, scalar: Scalar, text: str) -> Iterator[str]:
    """Yield ways to write a scalar, the present one first. A way that does not fit is found when it is read again."""
    written = scalar.body.of(source.text)
    is_block = scalar.style in (Style.LITERAL, Style.FOLDED)
    if "\n" not in text and not is_block:
        if scalar.style is Style.PLAIN:
            yield text
        if scalar.style is Style.SINGLE:
            yield "'" + text.replace("'", "''") + "'"
    if (is_block or "\n" in text) and not _UNSEEN.search(text):
        at = line_start(source.text, scalar.body.start)
        lead = _LEAD.match(source.text, at)
        present = _INDENT.search(written) if is_block else None
        indent = present[1] if present else " " * (len(lead[0]) + 2 if lead else 2)
        body, end = text.rstrip("\n"), len(text) - len(text.rstrip("\n"))
        mark = str(len(indent) - (len(lead[0]) if lead else 0)) if body[:1].isspace() else ""
        lines = "".join(f"\n{indent}{line}" if line else "\n" for line in body.split("\n"))
        yield f"|{mark}{'-' if not end else '' if end == 1 else '+'}{lines}" + "\n" * max(0, end - 1)
    yield _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", encode(text))


def _means(document: Document, path: str, text: str, new: Source, rules: int) -> bool:
    """Tell whether a text is the document with this prompt at this path, and the same in everything else."""
    try:
        before, at = _plans(document, document.source, rules)
        after, _ = _plans(document, new, rules)
    except (QuireError, ValueError):
        return False
    if len(before) != len(after):
        return False
    was, work = _work(before[at], path), _work(after[at], path)
    match work:
        case Thread(body=body):
            fits = body == text
        case Think(prompt=prompt):
            fits = prompt == template(text)
        case Agent(prompt=prompt):
            fits = prompt == prompt_references.template(text)
        case _:
            fits = False
    return fits and all(_same(a, b, was) for a, b in zip(before, after, strict=True))


def _plans(document: Document, source: Source, rules: int) -> tuple[list[Plan], int]:
    """Return the plans of all documents of a text, and which of them is the document."""
    if document.format != "pipeline":
        return [read(source, rules).runnable()], 0
    from quire.formats.pipeline.lower import lower

    file = parse_pipelines(unnamed(source), bool(document.declared)).file
    pipelines = file.pipelines if file else ()
    names = [pipeline.name.text for pipeline in pipelines]
    at = names.index(document.declared) if document.declared else 0
    return [lower(file, pipeline) for pipeline in pipelines if file], at


def _work(plan: Plan, path: str) -> object:
    step = dict(plan.steps()).get(path)
    return plan.thread if path == THREAD_PATH else step.work if step else None


_PROMPTS = ("prompt", "body")


def _same(a: object, b: object, aside: object) -> bool:
    """Tell whether two parts of plans, at any places, mean the same apart from the prompt of the work `aside`."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Span):
        return True
    if isinstance(a, Struct):
        names = (name for name in a.__struct_fields__ if a is not aside or name not in _PROMPTS)
        return all(_same(getattr(a, name), getattr(b, name), aside) for name in names)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return list(a) == list(b) and all(_same(a[name], b[name], aside) for name in a)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(_same(one, other, aside) for one, other in zip(a, b, strict=True))
    return a == b
