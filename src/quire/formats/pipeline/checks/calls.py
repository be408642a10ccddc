"""Targets of `call` and `match`: whether they exist, what is passed to them, and whether they lead back."""

from __future__ import annotations

from collections.abc import Iterator

from quire.formats.pipeline.checks.resolver import Find
from quire.formats.pipeline.codes import errors, lints, warnings
from quire.formats.pipeline.fields import Fields
from quire.formats.pipeline.inputs import Use, inferred_inputs, uses
from quire.formats.pipeline.syntax import Pipeline, Target
from quire.formats.pipeline.walk import targets, walk

_MAX_CYCLES = 20


def call_cycles(pipeline: Pipeline, find: Find) -> list[tuple[tuple[str, ...], Target]]:
    """The ways in which pipelines reach themselves, from here on: the names along each, and the target of this
    pipeline by which it is entered."""
    found: list[tuple[tuple[str, ...], Target]] = []
    done: set[int] = set()
    way: list[tuple[Pipeline, Iterator[Target]]] = [(pipeline, _targets(pipeline))]
    first: Target | None = None
    while way and len(found) < _MAX_CYCLES:
        here, left = way[-1]
        target = next(left, None)
        if target is None:
            done.add(id(here))
            way.pop()
            continue
        if len(way) == 1:
            first = target
        callee = find(target.pipeline.text, here)
        if callee is None or id(callee) in done:
            continue
        at = next((at for at, (one, _) in enumerate(way) if one is callee), None)
        if at is None:
            way.append((callee, _targets(callee)))
        elif first is not None:
            found.append((tuple(one.name.text for one, _ in way[at:]), first))
    return found


def check_calls(pipeline: Pipeline, find: Find, fields: Fields, *, complete: bool) -> None:
    """`complete` says that what cannot be found does not exist."""
    for names, target in call_cycles(pipeline, find):
        way = " → ".join([*names[:8], *(["…"] if len(names) > 8 else []), names[0]])
        fields.report(errors.CYCLE, f"the pipeline {names[0]} can reach itself: {way}", target.pipeline.span)
    for _, step in walk(pipeline):
        for target in targets(step):
            callee = find(target.pipeline.text, pipeline)
            if callee is not None:
                _check_passes(target, callee, fields)
            elif complete:
                message = f"there is no pipeline {fields.shown(target.pipeline.text)}"
                fields.report(warnings.UNKNOWN_PIPELINE, message, target.pipeline.span)
            seen: set[str] = set()
            for one in target.passes:
                if one.name.text in seen:
                    message = f"{one.name.text} is passed twice"
                    fields.report(lints.NEEDLESS_PASS, message, one.name.span)
                seen.add(one.name.text)


def _check_passes(target: Target, callee: Pipeline, fields: Fields) -> None:
    names = {one.name.text: one.name for one in target.passes}
    for needed in inferred_inputs(callee):
        if needed not in names:
            message = f"{callee.name.text} reads {needed}, which is not passed to it"
            fields.report(warnings.NOT_PASSED, message, target.pipeline.span, f"pass: [{', '.join([*names, needed])}]")
    found = [*uses(callee)]
    if any(
        use.path == ("ctx",) and not _is_base(use, then) for use, then in zip(found, [*found[1:], None], strict=False)
    ):
        return  # It may read any name out of the whole.
    read = {use.store for use in found}
    for text, name in names.items():
        if text not in read:
            help = fields.suggestion(text, [one for one in read if one])
            fields.report(lints.NEEDLESS_PASS, f"{callee.name.text} never reads {text}", name.span, help)


def _is_base(use: Use, then: Use | None) -> bool:
    """Whether a place is what a `get` reads from: then the place of the `get` itself is the next one."""
    return then is not None and then.optional and then.text is use.text and then.path[: len(use.path)] == use.path


def _targets(pipeline: Pipeline) -> Iterator[Target]:
    return (target for _, step in walk(pipeline) for target in targets(step))
