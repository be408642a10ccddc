"""Run a case once on a real model, in the same world as without one: scripted tools and people, its own folder.

Only the model and the clock are real. A wait of the document that is longer than a minute is not waited for: the
clock of the case goes on instead.

With real tools a try is a run as `quire run` makes it, in the workspace itself, with the settings, the keys and the
consent of the user. Only its records are not kept. Grants, settings and files of the case do not hold there: a test
may come from others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.ports import Model, ModelCall, ModelReply, Priced
from quire.errors import QuireError
from quire.runs.runtime import Runtime
from quire.testing.case_run import Bench, CaseRun, CaseRuntime, CaseWorld, Stage, moment
from quire.testing.world.model import CaseModel, Meter, Replies
from quire.testing.world.process import CaseProcess, MortalStore

if TYPE_CHECKING:
    from quire.engine.ports import Tools
    from quire.formats.test.syntax import Case, Script
    from quire.plan.nodes import Plan
    from quire.testing.observation import SeenPrompt
    from quire.trust.capabilities import Grants
    from quire.workspace.settings import Settings

LONGEST_TRY = 600.0
"""Seconds that one run may take."""
LONGEST_WAIT = 60.0
"""Seconds that a document may really wait."""


class LiveModel(CaseModel):
    """A real model under its own name, which keeps every prompt. It replaces all models of the document."""

    def __init__(self, model: Model, spec: str, meter: Meter, script: Script | None = None) -> None:
        super().__init__(Replies(script, {}), meter)
        self.name = spec
        self._model = model

    def estimate(self, call: ModelCall) -> float | None:
        return self._model.estimate(call) if isinstance(self._model, Priced) else None

    async def _reply(self, call: ModelCall, seen: SeenPrompt, on_delta: Callable[[str], None]) -> ModelReply:
        return await self._model.complete(call, on_delta)


class LiveWorld(CaseWorld):
    """The world of a case with a real model and real time, which long waits set forward."""

    def __init__(self, bench: Bench, case: Case, model: Model, spec: str) -> None:
        super().__init__(bench, case)
        self.model = LiveModel(model, spec, self.meter)
        self._ahead = moment(case.setting.clock) - time.time() if case.setting.clock else 0.0

    def now(self) -> float:
        return time.time() + self._ahead

    async def sleep(self, seconds: float) -> None:
        if seconds > LONGEST_WAIT:
            self.advance(seconds)
            seconds = 0.0
        await asyncio.sleep(seconds)

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


class RealTools(Struct, frozen=True):
    """The settings and the environment of the user, for tries with real tools."""

    settings: Settings
    environ: Mapping[str, str]


class RealToolsRuntime(CaseRuntime):
    """A runtime whose tools are those of the workspace, behind its own gate."""

    def __init__(self, real: RealTools, world: LiveWorld, process: CaseProcess) -> None:
        store = MortalStore(world.memory, world.now, process)
        Runtime.__init__(self, real.settings, store, environ=real.environ, model=world.model, clock=world)

    def gate(self, plans: Sequence[Plan], grants: Grants, run: str = "") -> Tools:
        return Runtime.gate(self, plans, grants, run)

    def _reaches_out(self, plans: Sequence[Plan]) -> bool:
        return Runtime._reaches_out(self, plans)


class LiveRun(CaseRun):
    """One try of a case, or of one row of it. With `real`, its tools are real."""

    def __init__(self, bench: Bench, case: Case, model: Model, spec: str, real: RealTools | None = None) -> None:
        if real is not None:
            case = replace(case, setting=replace(case.setting, allow=(), config={}, files={}))
        super().__init__(bench, case)
        self.world: LiveWorld = LiveWorld(bench, case, model, spec)
        self._real = real

    def _prepare(self) -> None:
        if self._real is None:
            super()._prepare()

    def _runtime(self) -> CaseRuntime:
        if self._real is None:
            return super()._runtime()
        self.world.enter(self.process)
        return RealToolsRuntime(self._real, self.world, self.process)

    async def go(self) -> tuple[list[Stage], list[str]]:
        """Run the case on the running event loop, and return its stages; or none, and the reason."""
        try:
            async with asyncio.timeout(LONGEST_TRY):
                return await self._play(), []
        except TimeoutError:
            return [], [f"it took longer than {LONGEST_TRY:g} s"]
        except QuireError as error:
            return [], [str(error)]
        finally:
            self.world.folder.remove()
