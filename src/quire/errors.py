"""Everything that Quire raises on purpose.

    QuireError                     exit
    ├── CannotStart                 2    usage, a missing file, no model: nothing has run
    │   ├── Unreadable                   a file that is no document
    │   ├── BadDocument                  a document with fatal diagnostics
    │   ├── BadInputs                    every wrong or missing input, listed at once
    │   ├── NoModel                      no model is configured; says three ways to get one
    │   ├── BadConfiguration             quire.toml, .mcp.json
    │   └── NoSuchRun
    ├── StepFailed                  3    one step could not be done; has its path
    │   ├── ModelFailed                  the provider refused, timed out, or answered nothing
    │   └── ToolFailed                   the tool said no, raised, or is not there
    ├── LimitReached                5    a budget of money, tokens or time
    ├── Refused                     6    permission, signature, trust
    │   ├── Denied                       a capability is missing
    │   ├── Untrusted                    the workspace asks for something nobody has confirmed
    │   └── BrokenSeal                   a stored run is not as this user's Quire wrote it
    ├── StoreError                  2    the database is full, damaged, or of a newer Quire
    │   └── StoreLocked                  another process writes to it: it will be free again
    ├── RunBusy                     2    another process drives the run
    ├── RunState                    2    the run is not in a state for this verb
    ├── Fenced                           another process took the run over; this one must stop
    └── JournalMismatch             3    the run's journal does not belong to this request

A wrong document is not an exception but diagnostics (`quire.diagnostics`); a bug is a traceback.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar


class QuireError(Exception):
    """The base of all of them. The text is one line, or a line and a list, and is fit for a user."""

    exit_code: ClassVar[int] = 3


class CannotStart(QuireError):
    """Nothing has run and nothing was written."""

    exit_code = 2


class Unreadable(CannotStart):
    """`kind` is `empty` or `too_large` where the file is there and could be a document but for that."""

    def __init__(self, path: Path, reason: str, kind: str = "") -> None:
        super().__init__(f"{path} {reason}")
        self.path = path
        self.reason = reason
        self.kind = kind


class BadDocument(CannotStart):
    """The document has fatal diagnostics; the printers show them, the text only counts them."""


class BadInputs(CannotStart):
    """All that is wrong with the inputs of a run, one problem a line."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class NoModel(CannotStart):
    pass


class BadConfiguration(CannotStart):
    pass


class NoSuchRun(CannotStart):
    pass


class RunBusy(QuireError):
    exit_code = 2


class RunState(QuireError):
    exit_code = 2


class StepFailed(QuireError):
    """One step could not be done. `kind` is a stable word for machines, the text is for people.

    `path` is that of the effect to blame, or of the step; `also` are those that failed beside it. `label` is that of
    the innermost step, once the failure has passed one.
    """

    exit_code = 3

    def __init__(self, message: str, *, kind: str = "failed", path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.path = path
        self.also: tuple[str, ...] = ()
        self.label = ""


class ModelFailed(StepFailed):
    """`transient` failures (429, 5xx, time-outs) have already been retried inside the effect."""

    def __init__(
        self,
        message: str,
        *,
        kind: str = "model",
        path: str = "",
        transient: bool = False,
        delays: tuple[float, ...] = (),
    ) -> None:
        super().__init__(message, kind=kind, path=path)
        self.transient = transient
        self.delays = delays


class ToolFailed(StepFailed):
    def __init__(self, message: str, *, kind: str = "tool", path: str = "") -> None:
        super().__init__(message, kind=kind, path=path)


class LimitReached(QuireError):
    exit_code = 5


class Refused(QuireError):
    exit_code = 6


class Denied(Refused):
    """A capability is missing; names it and says how to grant it."""


class Untrusted(Refused):
    pass


class BrokenSeal(Refused):
    """A stored run is not as this user, or this cluster, wrote it. `old` says that it calls itself one of 0.1.0, which
    sealed nothing: then the user's word is enough."""

    def __init__(self, run: str, reason: str, *, old: bool = False) -> None:
        remedy = f"`quire runs seal {run}` seals it, if it is yours; " if old else ""
        super().__init__(
            f"run {run} is not driven: {reason}; {remedy}`quire runs {run}` shows it, "
            f"and `quire fork {run} --from STEP` goes on without its grants"
        )
        self.run = run
        self.reason = reason
        self.old = old


class StoreError(QuireError):
    exit_code = 2


class StoreLocked(StoreError):
    """Nothing was written, and the same write may well succeed a moment later."""


class Fenced(QuireError):
    """Another process took this run over. Nothing of it may be written from here any more."""


class JournalMismatch(QuireError):
    def __init__(self, path: str) -> None:
        super().__init__(f"the recorded effect at {path} answers a different request: this run cannot be replayed")
        self.path = path
