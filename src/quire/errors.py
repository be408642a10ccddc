"""All exceptions that Quire raises on purpose.

    QuireError                     exit
    ├── CannotStart                 2    usage, a missing file, no model: nothing has run
    │   ├── Unreadable                   a file that is not a document
    │   ├── NoSuchDocument               a name that no document has
    │   ├── BadDocument                  a document with fatal diagnostics
    │   │   └── NearMisses               one that seems to ask, branch or continue where it does not
    │   ├── BadInputs                    every wrong or missing input, listed at once
    │   ├── NoModel                      no model is configured; lists three ways to get one
    │   ├── KeyReused                    the key of a request was used for another request
    │   ├── PriceUnknown                 there is a budget, and the price of a model is not known
    │   ├── BadConfiguration             quire.toml, .mcp.json
    │   └── NoSuchRun
    ├── StepFailed                  3    one step could not be performed; has its path
    │   ├── ModelFailed                  the provider refused, timed out, or returned nothing
    │   │   └── Parked                   it asks for a longer wait than a call may take: the run waits instead
    │   └── ToolFailed                   the tool refused, raised, or does not exist
    ├── LimitReached                5    a limit of the run: calls, money, work
    ├── Refused                     6    permission, signature, trust
    │   ├── BadDefinition                a pipeline that an agent wrote at run time has errors
    │   ├── Denied                       a capability is missing
    │   │   └── ToolChanged              a tool of a server is not the one that was locked
    │   ├── Untrusted                    the workspace requests something the user has not confirmed
    │   └── BrokenSeal                   a stored run differs from what this user's Quire wrote
    ├── StoreError                  2    the database is damaged, read-only, or of a newer Quire
    │   ├── StoreGone                    it was removed or replaced, with everything in it
    │   └── StoreLocked                  another process writes to it: it will be free again
    │       └── StoreFull                its disk has no room left: there may be some again
    ├── RunBusy                     2    another process drives the run
    ├── RunState                    2    the run is not in a state for this verb
    ├── WrongResult                 3    the result of a run does not fit the type that a program wants
    ├── Fenced                           another process took the run over; this one must stop
    └── JournalMismatch             3    the run's journal does not belong to this request

A wrong document is not an exception but diagnostics (`quire.diagnostics`); a bug is a traceback.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic
    from quire.source import Source
    from quire.values import Value


class QuireError(Exception):
    """Base of all exceptions of Quire. The text is one line, or a line and a list, and can be shown to the user."""

    exit_code: ClassVar[int] = 3
    code: str = "error"
    """A stable word for programs: `code` of the error of `--json`, and with dashes that of the HTTP API."""
    is_printed = False
    """True if stdout has JSON about it already."""


class CannotStart(QuireError):
    """Nothing has run and nothing was written."""

    code = "cannot_start"

    exit_code = 2


class KeyReused(CannotStart):
    """The key of a request belongs to another request."""

    code = "key_reused"


class Unreadable(CannotStart):
    """A file cannot be read as a document.

    `kind` is `empty`, `too_large` or `not_utf8` if the file exists and only that keeps it from being a document.
    """

    code = "no_such_document"

    def __init__(self, path: Path, reason: str, kind: str = "") -> None:
        super().__init__(f"{path} {reason}")
        self.path = path
        self.reason = reason
        self.kind = kind
        if os.path.lexists(path):
            self.code = "unreadable"


class NoSuchDocument(CannotStart):
    """No document has this name."""

    code = "no_such_document"


class BadDocument(CannotStart):
    """The document has fatal diagnostics. The printers show them; the text only counts them."""

    code = "bad_document"


class NearMisses(BadDocument):
    """A document, or one that it calls, has findings that stop a run. `documents` are their sources, each with its
    findings, `codes` those of the findings; the text lists all of them."""

    code = "near_misses"

    def __init__(self, documents: Sequence[tuple[Source, Sequence[Diagnostic]]]) -> None:
        lines = ["not started: this looks like a part of the document that does something, and is read as text"]
        for source, findings in documents:
            for one in findings[:200]:
                at = source.position(one.span.start)
                lines.append(f"  {source.name}:{at.line}:{at.column}: {one.code.id} {one.message}")
        super().__init__("\n".join(lines))
        self.documents = documents
        self.codes = tuple(dict.fromkeys(finding.code.id for _, found in documents for finding in found))


class BadInputs(CannotStart):
    """Lists everything that is wrong with the inputs of a run, one problem per line. `inputs` are the problems of
    single inputs, by their names."""

    code = "bad_inputs"

    def __init__(self, problems: list[str], inputs: dict[str, str] | None = None) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.inputs = inputs or {}


class NoModel(CannotStart):
    code = "no_model"


class PriceUnknown(CannotStart):
    """A budget cannot be kept, because the price of a model is not known."""

    code = "price_unknown"


class BadConfiguration(CannotStart):
    code = "bad_configuration"


class NoSuchRun(CannotStart):
    code = "no_such_run"


class RunBusy(QuireError):
    code = "run_busy"
    exit_code = 2


class RunState(QuireError):
    code = "run_state"
    exit_code = 2


class StepFailed(QuireError):
    """One step could not be performed. `kind` is a stable word for programs, the text is for people.

    `path` is the path of the effect that failed, or of the step; `also` are the paths of others that failed beside it.
    `label` is the label of the innermost step, set once the failure has passed a step.
    """

    code = "step_failed"

    exit_code = 3

    def __init__(self, message: str, *, kind: str = "failed", path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.path = path
        self.also: tuple[str, ...] = ()
        self.label = ""


class ModelFailed(StepFailed):
    """A model call failed. `transient` failures (429, 5xx, timeouts) have already been retried inside the effect."""

    def __init__(
        self,
        message: str,
        *,
        kind: str = "model",
        path: str = "",
        transient: bool = False,
        delays: tuple[float, ...] = (),
        used: tuple[int, int, float | None] | None = None,
    ) -> None:
        """`used` are the input tokens, the output tokens and the dollars of a reply that arrived and is of no use."""
        super().__init__(message, kind=kind, path=path)
        self.transient = transient
        self.delays = delays
        self.used = used


class Parked(ModelFailed):
    """A service asks for a longer wait than a call may take. A run waits until `wake_at`, and nothing is recorded."""

    wake_at = 0.0
    reason = ""


class ToolFailed(StepFailed):
    def __init__(self, message: str, *, kind: str = "tool", path: str = "") -> None:
        super().__init__(message, kind=kind, path=path)


class LimitReached(QuireError):
    """A limit of the whole run, which no policy of a step or a thread survives, as it is not a `StepFailed`. `path` and
    `label` are those of the call that was refused, if there was one."""

    code = "limit_reached"

    exit_code = 5

    def __init__(self, message: str, kind: str = "limit", path: str = "", label: str = "") -> None:
        super().__init__(message)
        self.kind, self.path, self.label = kind, path, label


class Refused(QuireError):
    code = "refused"
    exit_code = 6


class NotTried(Refused):
    """A step that is not tried, or a text that cannot be its prompt."""

    code = "run_state"


class BadDefinition(Refused):
    """A pipeline that an agent wrote at run time is not launched. `mistakes` are all errors as JSON objects."""

    def __init__(self, message: str, mistakes: Sequence[Value]) -> None:
        super().__init__(message)
        self.mistakes = list(mistakes)


class Denied(Refused):
    """A capability is missing. The text names it and says how to grant it."""

    code = "denied"


class ToolChanged(Denied):
    """Tools of servers are not those that were locked. `tools` are their names, `SERVER/TOOL`."""

    def __init__(self, message: str, tools: tuple[str, ...]) -> None:
        super().__init__(message)
        self.tools = tools


class Untrusted(Refused):
    code = "untrusted"


class BrokenSeal(Refused):
    """A stored run differs from what this user, or this cluster, wrote.

    `old` is true if the run claims to be of 0.1.0, which sealed nothing: then a confirmation by the user is enough.
    """

    code = "broken_seal"

    def __init__(self, run: str, reason: str, *, old: bool = False) -> None:
        remedy = f"`quire runs seal {run}` seals it, if it is yours; " if old else ""
        super().__init__(
            f"run {run} is not driven: {reason}; {remedy}`quire runs {run}` shows it, "
            f"and `quire runs fork {run} --from STEP` continues without its grants"
        )
        self.run = run
        self.reason = reason
        self.old = old


class StoreError(QuireError):
    code = "store"
    exit_code = 2


class StoreLocked(StoreError):
    """Nothing was written. The same write may succeed a moment later."""

    code = "store_locked"


class StoreFull(StoreLocked):
    code = "store"


class StoreGone(StoreError):
    pass


class WrongResult(QuireError):
    """The result of a run does not fit a type. `path` is the place in the result: `$.items[0].price`, `$` for all of
    it."""

    code = "wrong_result"

    def __init__(self, message: str, path: str = "$") -> None:
        super().__init__(message)
        self.path = path


class Fenced(QuireError):
    """Another process took this run over. This process must not write anything to it any more."""

    code = "fenced"


class JournalMismatch(QuireError):
    code = "journal"

    def __init__(self, path: str) -> None:
        super().__init__(f"the recorded effect at {path} answers a different request: this run cannot be replayed")
        self.path = path
