"""What a run is started with, besides its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quire.trust.capabilities import Grants
from quire.values import Value


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`answers` are by step label, `limits` are those of a thread. `within` is all that the run may do at most, where
    another run launches it. `out` is the file, or the folder with a slash at its end, that whoever drives it from a
    command line puts its output into."""

    model: str | None = None
    breakpoints: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    unattended: bool = False
    allow: tuple[str, ...] = ()
    budget: float | None = None
    reply_to: str = ""
    limits: Mapping[str, Value] = field(default_factory=dict)
    within: Grants | None = None
    out: str = ""
