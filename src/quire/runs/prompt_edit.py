"""Edit the prompt of one step in the text of its document, in the quoting of its format.

A prompt is the prose of a step of a playbook, the scalar of an agent step of a pipeline, or the prose of a directive.
Each edit is checked by reading the edited text again: the step has exactly the new prompt, and everything else means
the same. So a prompt with a heading, a fence or a key in it stays text, or the edit is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import NotTried, QuireError
from quire.formats.pipeline import prompt_references
from quire.formats.playbook.syntax import join
from quire.formats.yaml.nodes import Style
from quire.library.document import parse_pipelines, parse_playbook, read, unnamed
from quire.plan.nodes import EXTENDED_PLAYBOOKS, SEMANTICS_VERSION, Think
from quire.plan.pipeline_work import Agent
from quire.plan.templates import template
from quire.plan.thread import THREAD_PATH
from quire.source import Source, Span, line_start
from quire.values import clean, encode

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import Step as PlaybookStep
    from quire.formats.yaml import Scalar
    from quire.library.document import Document
    from quire.plan.nodes import Plan


class _Place(Struct, frozen=True):
    """The prompt of a step in its document."""

    text: str
    spans: tuple[Span, ...]
    """Its pieces. Between those of a playbook stand directives."""
    scalar: Scalar | None = None
    """The prompt of a pipeline."""


def prompt_text(document: Document, path: str, rules: int = SEMANTICS_VERSION) -> str:
    """Return the prompt of the step at a path of the plan as its document has it, with its references. Raises
    `NotTried` for a step without one."""
    return _place(document, path, rules).text


def with_prompt(document: Document, path: str, text: str, rules: int = SEMANTICS_VERSION) -> Source:
    """Return the text of a document in which the step at a path has another prompt. Raises `NotTried` if no edit means
    this and nothing else."""
    place, source, text = _place(document, path, rules), document.source, clean(Source.of(text).text)
    if text == place.text:
        return source
    if not text.strip():
        raise NotTried("a prompt needs a text")
    if not place.scalar:
        text = join(text, [(0, len(text))]) if document.format == "playbook" else text.strip()
    first, *others = place.spans
    for written in _scalars(source, place.scalar, text) if place.scalar else [text]:
        edited = source.text
        for span, new in ((first, written), *((span, "") for span in others))[::-1]:
            edited = edited[: span.start] + new + edited[span.end :]
        if _means(document, path, text, new_source := Source.of(edited, document.name), rules):
            return new_source
    raise NotTried(
        f"this text cannot be the prompt of step {path}: more than the prompt would change in {document.name}"
    )


def _place(document: Document, path: str, rules: int) -> _Place:
    plan, source = document.runnable(), unnamed(document.source)
    if plan.thread:
        from quire.formats.directive.parse import parse

        if path != THREAD_PATH or not plan.thread.body:
            raise NotTried(f"{path} has no prose of this document: its prompt cannot be edited here")
        body = parse(document.source).partial.body_span
        return _Place(body.of(document.source.text), (body,))
    step = dict(plan.steps()).get(path)
    work = step.work if step else None
    if step is None or not isinstance(work, Think | Agent) or (isinstance(work, Agent) and work.file):
        where = f"in the file {work.file}" if isinstance(work, Agent) else "not in this document"
        raise NotTried(f"the prompt of step {path} is {where}: it cannot be edited here")
    if plan.format == "playbook":
        playbook = parse_playbook(source, rules >= EXTENDED_PLAYBOOKS)[0].playbook
        for own in _steps(playbook.steps if playbook else ()):
            if own.span == step.span and own.has_text:
                return _Place(own.content, tuple(_pieces(own)))
        raise NotTried(f"step {path} has no text of its own: its prompt cannot be edited here")
    from quire.formats.pipeline.walks import own_prompts, walk_file

    file = parse_pipelines(source, bool(document.declared)).file
    [prompt, *_] = [own_prompts(part)[0] for _, part in walk_file(file) if part.span == step.span] if file else []
    return _Place(prompt.text, (prompt.scalar.body if prompt.scalar else prompt.span,), prompt.scalar)


def _steps(steps: tuple[PlaybookStep, ...]) -> Iterator[PlaybookStep]:
    for step in steps:
        yield step
        for arm in step.arms:
            yield from _steps(arm.steps)


def _pieces(step: PlaybookStep) -> Iterator[Span]:
    """Yield the places of the prose of a step, without the white space around it."""
    for start, end in step.pieces:
        piece = step.document[start:end]
        if not piece.isspace():
            yield Span(start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip()))


_LEAD = re.compile(r"[ ]*(?:-[ ]+)*")
_UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def _scalars(source: Source, scalar: Scalar, text: str) -> Iterator[str]:
    """Yield ways to write a scalar: plain if it is now, as a block if it has lines, and quoted. A way that does not fit
    is found when it is read again."""
    is_block = scalar.style in (Style.LITERAL, Style.FOLDED) or "\n" in text
    if scalar.style is Style.PLAIN and not is_block:
        yield text
    if is_block and not text[0].isspace() and not _UNSEEN.search(text):
        lead = _LEAD.match(source.text, line_start(source.text, scalar.body.start))
        indent, body = " " * (len(lead[0]) + 2 if lead else 2), text.rstrip("\n")
        ends = len(text) - len(body)
        lines = "".join(f"\n{indent}{line}" if line else "\n" for line in body.split("\n"))
        yield f"|{'-' if not ends else '' if ends == 1 else '+'}{lines}" + "\n" * max(0, ends - 1)
    yield _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", encode(text))


_READ: Mapping[str, Callable[[str], object]] = {
    "playbook": template,
    "pipeline": prompt_references.template,
    "directive": str,
}
_PROMPTS = ("prompt", "body")


def _means(document: Document, path: str, text: str, new: Source, rules: int) -> bool:
    """Tell whether a text is the document with this prompt at this path, and the same in everything else."""
    try:
        before, after = _plans(document, document.source, rules), _plans(document, new, rules)
        work, edited = _work(before[0], path), _work(after[0], path)
    except (QuireError, ValueError, LookupError):
        return False
    is_read = _READ[document.format](text) in [getattr(edited, name, None) for name in _PROMPTS]
    return is_read and _same(before, after, work)


def _plans(document: Document, source: Source, rules: int) -> list[Plan]:
    """Return the plans of all documents of a text, that of the document first."""
    if document.format != "pipeline":
        return [read(source, rules).runnable()]
    from quire.formats.pipeline.lower import lower

    file = parse_pipelines(unnamed(source), bool(document.declared)).file
    pipelines = file.pipelines if file else ()
    at = [pipeline.name.text for pipeline in pipelines].index(document.declared) if document.declared else 0
    return [lower(file, pipeline) for pipeline in (*pipelines[at:], *pipelines[:at]) if file]


def _work(plan: Plan, path: str) -> object:
    return plan.thread if path == THREAD_PATH else dict(plan.steps())[path].work


def _same(a: object, b: object, aside: object) -> bool:
    """Tell whether two parts of plans, at any places, mean the same apart from the prompt of the work `aside`."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Struct):
        names = [name for name in a.__struct_fields__ if a is not aside or name not in _PROMPTS]
        return isinstance(a, Span) or all(_same(getattr(a, name), getattr(b, name), aside) for name in names)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return list(a) == list(b) and all(_same(a[name], b[name], aside) for name in a)
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(_same(*pair, aside) for pair in zip(a, b, strict=True))
    return a == b
