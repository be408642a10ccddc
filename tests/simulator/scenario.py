"""What is simulated: a document in a workspace of its own, and what may be expected of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace
from tests.given import given
from tests.simulator.fakes import SIMULATED, Cast

from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import Workspace
from quire.workspace.settings import OnUncertain, Settings, TrustSettings


@dataclass(frozen=True, slots=True)
class Scenario:
    """`document` is the one of `files` that runs.

    `exact` says that its output and its records do not depend on which of several branches is faster. One that is not
    still has to end, and to keep every other law. `max_parallel` bounds each of its loops, where it has any.
    `max_turns`, `max_spend` and `max_spawns` bound each of its threads. `resumes` is how often a failed run is resumed.
    """

    name: str
    files: Mapping[str, str]
    document: str
    inputs: Mapping[str, Value] = field(default_factory=dict)
    exact: bool = True
    max_parallel: int = 0
    max_turns: int = 0
    max_spend: float = 0.0
    max_spawns: int = 0
    max_model_calls: int = 100
    on_uncertain: OnUncertain = "rerun"
    resumes: int = 3
    cast: Cast = SIMULATED

    def settle(self, folder: Path) -> Settings:
        """Writes the files into a workspace there; everything that it asks for is granted."""
        home = folder / "workspace"
        home.mkdir(parents=True, exist_ok=True)
        given(self.files, home)
        settings = load_settings(Workspace(home), {"QUIRE_HOME": str(folder / "user")})
        settings = replace(
            settings,
            granted=("*",),
            trust=TrustSettings("warn"),
            runs=replace(settings.runs, on_uncertain=self.on_uncertain),
            spawn=replace(settings.spawn, max_pipeline_spawns=self.max_model_calls),
        )
        confirm(settings)
        return settings
