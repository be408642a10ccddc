"""Start a document again as an earlier run was started: with its inputs and options, where no others are named.

The document is that of the run's file as it is now. Consent was given to a text: if the document or one that it calls
has changed since, tools, prepared answers and the absence of people are not taken from the run. A run that others
wrote gives its inputs alone.

A request with a key is made again without starting anything: it means the run of the first time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from quire.errors import BadInputs, CannotStart, KeyReused
from quire.library.callees import pinned
from quire.runs.drives import apply_amendments
from quire.runs.edited_document import document_in_place
from quire.runs.pins import PinnedState
from quire.source import read_source, relative_to_here
from quire.stores.occurrences import Occurrence
from quire.values import encode, sha256

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.runs.options import RunOptions
    from quire.runs.runtime import Runtime
    from quire.stores.occurrences import Start
    from quire.values import Value

REDACTED = "[redacted:"
_CONSENT = ("allow", "answers", "unattended")


class EarlierStart(Struct, frozen=True):
    """A document with the inputs and options of one of its runs."""

    document: Document
    inputs: Mapping[str, Value]
    options: Mapping[str, Value]
    """The options that the run had set, by their names in `RunOptions`."""
    notice: str
    """Says what has changed since that run; empty if nothing has."""

    def completed(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """Return the inputs with the given ones in their place. Raises `BadInputs` for a redacted one that is not
        given."""
        kept = {name: value for name, value in self.inputs.items() if name not in given}
        hidden = [name for name, value in kept.items() if REDACTED in encode(value)]
        problems = {name: f"{name}: its value was redacted: give it again" for name in hidden}
        if problems:
            raise BadInputs(list(problems.values()), problems)
        return {**kept, **given}

    def unnamed(self, given: Struct, *, budget: bool) -> dict[str, Any]:
        """Return the options that a new start does not name. `budget` says whether that holds for the budget, which
        may be named as none."""
        options = self.options.items()
        return {name: value for name, value in options if (budget if name == "budget" else not getattr(given, name))}


async def earlier_start(runtime: Runtime, named: str, file: Path | None = None) -> EarlierStart:
    """Return what a run was started with, for a start of its document as it is now. `file` is that of the document.
    Raises `CannotStart` if the file is gone, or is not that document any more."""
    from quire.engine.inputs import kept_inputs

    row = await runtime.row(await runtime.find(named))
    pins = apply_amendments(PinnedState.of(row.pins), await runtime.store.effects(row.id))
    is_own = not pins.imported and await runtime.is_sealed(row.id)
    if file is None:
        if not pins.folder or not is_own:
            raise CannotStart(f"run {row.id} was not started from a file of yours: quire run DOC -i NAME=VALUE")
        file = Path(pins.folder, Path(row.document).name)
    document = document_in_place(read_source(Path(relative_to_here(file) or file)), row, pins)
    plan, options, notice = document.runnable(), given_options(pins) if is_own else {}, ""
    callees = runtime.callees(one_model=pins.one_model, allow=pins.allow, shelf=pins.shelf).reachable(plan)
    if (document.sha256, _texts(pinned(callees))) != (pins.document, _texts(pins.callees)):
        left_out = [name for name in _CONSENT if options.pop(name, None)]
        notice = f"the document has changed since run {row.id}"
        notice += f": not taken from it are {', '.join(left_out)}" if left_out else ""
    return EarlierStart(document, kept_inputs(plan, pins.inputs), options, notice)


_REQUESTED = ("model", "budget", "limits", "breakpoints", "answers", "unattended", "says_yes", "allow", "reuse")


def occurrence_of(document: Document, inputs: Mapping[str, Value], options: RunOptions) -> Occurrence:
    """Return the occurrence of a request with a key. The text of a file is not part of the request: it may be edited
    before the request is sent again."""
    name = document.sha256 if document.name.startswith("<") else document.name
    asked = {option: getattr(options, option) for option in _REQUESTED}
    return Occurrence("id", options.key, sha256(encode([name, dict(inputs), asked]).encode()))


def run_of(claim: Start, occurrence: Occurrence) -> str:
    """Return the run of a claimed key. Raises `KeyReused` if the key was used for another request."""
    if claim.request != occurrence.request:
        raise KeyReused(f"the key {claim.key} was used for another request: it has started run {claim.run}")
    return claim.run


def given_options(pins: PinnedState) -> dict[str, Value]:
    """Return the options that a run was started with, or continued with since. A model that was not named is chosen
    anew."""
    options: dict[str, Value] = {
        "model": pins.instead or (pins.model if pins.one_model else ""),
        "budget": pins.budget,
        "limits": {**pins.limits},
        "breakpoints": pins.breakpoints,
        "answers": {**pins.answers},
        "unattended": pins.unattended,
        "allow": pins.allow,
    }
    return {name: value for name, value in options.items() if value or (value == 0 and name == "budget")}


def _texts(callees: Mapping[str, Value]) -> dict[str, Value]:
    return {name: callee.get("sha256") for name, callee in callees.items() if isinstance(callee, Mapping)}
