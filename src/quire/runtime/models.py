"""Which model a run asks: the one that is given, else what the user, the directive or the settings say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from quire.engine.ports import Model, ModelCall, ModelReply
from quire.errors import ModelFailed
from quire.models.choose import Choice, choose_model
from quire.models.opening import open_model
from quire.workspace.requests import require_trusted
from quire.workspace.settings import Settings

LOCAL_CONTEXT_CHARACTERS = 12_000
CONTEXT_CHARACTERS = 400_000
"""About 100,000 tokens: the earlier results that a model with a window of 128,000 can read."""


@dataclass(frozen=True, slots=True)
class Models:
    """`given` stands in for all others."""

    settings: Settings
    environ: Mapping[str, str]
    given: Model | None = None

    def choose(self, asked: str | None, wanted: Callable[[], Choice] | None = None) -> Choice:
        """Which one a run started now would ask, and why. `wanted` says which one a document would like."""
        if self.given is not None:
            return Choice(self.given.name, "given")
        if asked is None and wanted is not None:
            choice = wanted()
        else:
            choice = choose_model(asked, None, self.settings.models, self.environ)
        if asked is None and choice.spec.startswith(("http://", "https://")):
            require_trusted(self.settings)
        if asked is None or asked in self.settings.models.tiers:
            self._check_excess(choice.spec)
        self._check_provider(choice.spec)
        return choice

    def open(self, spec: str) -> Model:
        """A model by its name. A run that asks none has none to open."""
        if self.given is not None:
            return self.given
        self._check_provider(spec)
        if spec in self.settings.models.tiers:
            self._check_excess(self.settings.models.tiers[spec])
        return open_model(spec, self.settings.models, self.environ) if spec else NoModelHere()

    def context_budget(self, spec: str) -> int:
        """How many characters of earlier results a model is told, without a setting: what it can read.

        The embedded model has little room: there they take at most half of it."""
        budget = self.settings.runs.context_budget
        if budget is not None:
            return budget
        return LOCAL_CONTEXT_CHARACTERS if spec.startswith("local:") else CONTEXT_CHARACTERS

    def _check_provider(self, spec: str) -> None:
        """A file of the workspace may say where a provider is: what is sent there, the user has to agree to first."""
        name = self.settings.models.tiers.get(spec, spec).partition(":")[0]
        if name in self.settings.models.providers:
            require_trusted(self.settings)

    def _check_excess(self, spec: str) -> None:
        """A model that stands in for the user's own, or a file of weights: a workspace may only ask for it."""
        if any(one.kind == "model" and one.value == spec for one in self.settings.excess):
            require_trusted(self.settings)


class NoModelHere:
    """Stands for a model in a run that asks none."""

    name = "none"

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        raise ModelFailed("this run was started without a model", kind="no_model")
