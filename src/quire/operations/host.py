"""The door that an operation is called through: the caller, the permissions it may grant, and the driver of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType

from quire.display.run_json import row_data
from quire.errors import BadInputs, CannotStart
from quire.operations.shelf import Shelf
from quire.runs.drives import Given
from quire.runs.live_views import LiveViews
from quire.runs.options import RunOptions

if TYPE_CHECKING:
    from quire.operations import field_types
    from quire.runs.runtime import Runtime
    from quire.values import Value

Job = tuple[str, str]
"""A text that becomes HTML, after the way that it is rendered."""


class Caller(Struct, frozen=True):
    """A door, and the permissions of its callers. It is made where the door is opened; no operation can widen it."""

    door: str = ""
    """The mark of runs that are started through it, in their pins."""
    by: str = ""
    """The author of answers that come through it."""
    source: str = ""
    """The source of its runs, as in their pins."""
    trace: str = ""
    """The `traceparent` of the request."""
    key: str = ""
    """The key under which the caller may send the request again."""
    person: bool = False
    """Answers come from a person. Others cannot say yes or no."""
    allow: tuple[str, ...] = ()
    """Tools that its runs may be granted, besides those of the settings."""
    edits: bool = False
    """Documents may be saved."""
    model: str | None = None
    budget: float | None = None
    """The model and the budget of runs whose request names none."""

    def granted(self, tools: Sequence[str]) -> tuple[str, ...]:
        """Return the tools to grant. Raises `BadInputs` for a tool that the user has not granted to this door."""
        beyond = [tool for tool in tools if tool not in self.allow]
        if beyond:
            raise BadInputs(
                [f"allow: {tool} is granted in a terminal only: quire serve --allow {tool}" for tool in beyond]
            )
        return tuple(tools)

    def options(self, given: field_types.RunOptions) -> RunOptions:
        """Return the options of a new run. Raises `CannotStart` for options that do not fit, and what `granted`
        raises."""
        return RunOptions(
            model=given.model or self.model,
            breakpoints=given.breakpoints,
            answers=given.answers,
            unattended=bool(given.unattended),
            says_yes=given.unattended == "yes",
            force=given.force,
            allow=self.allow if isinstance(given.allow, UnsetType) else self.granted(given.allow),
            budget=self.budget if given.budget is UNSET else given.budget,
            limits=given.limits,
            reuse=given.reuse,
            door=self.door,
            source=self.source,
            trace=self.trace,
        )


class Host:
    """The runtime that operations work on, as seen through a door. A door that drives runs, shows HTML or keeps
    versions says so in a subclass."""

    def __init__(
        self, runtime: Runtime, caller: Caller, views: LiveViews | None = None, shelf: Shelf | None = None
    ) -> None:
        self.runtime = runtime
        self.caller = caller
        self.views = views or LiveViews(runtime)
        self.shelf = shelf or Shelf(runtime)
        self.kept: dict[str, tuple[float, Value]] = {}
        """Answers that are given again for a while, each with its time. A server drops them when runs change."""

    @property
    def folder(self) -> Path:
        return self.runtime.settings.workspace.folder

    def drives(self, run: str) -> bool:
        """Tell whether the process of this door drives a run now."""
        return False

    async def go_on(
        self,
        run: str,
        *,
        given: Given | None = None,
        overrides: Mapping[str, Value] | None = None,
        goes_on: bool = False,
    ) -> None:
        """Drive a run. With `goes_on` it continues in a process of its own when this one ends."""
        await self.runtime.drive(run, given=given or Given(), overrides=overrides)

    def written(self, run: str, path: str) -> tuple[int, str] | None:
        """Return the text so far of a reply that a model writes now, after the number of characters that are not kept;
        None if there is none, or another process drives the run."""
        return None

    def pause(self, run: str) -> bool:
        """Pause a run after its current step. Returns False for a run that is not driven here."""
        return False

    def detach(self, run: str) -> None:
        """Leave a run to a process of its own."""
        raise CannotStart("a run is left to a process of its own by a server, or by `quire run --detach`")

    def touch(self, run: str) -> None:
        """Note that a run has changed, for those who watch it."""

    def created(self, run: str) -> None:
        """Note that the operation has made a run."""
        self.touch(run)

    async def begin(self, run: str, *, detach: bool, goes_on: bool) -> dict[str, Value]:
        """Drive the run that the operation has made, or leave it to a process of its own, and return it."""
        self.created(run)
        if detach:
            self.detach(run)
        else:
            await self.go_on(run, goes_on=goes_on)
        return await self.shown(run)

    async def shown(self, run: str) -> dict[str, Value]:
        """Return the run that an operation is about, as a list shows it."""
        return row_data(await self.runtime.row(run))

    def has(self, tag: str) -> bool:
        """Note the version of the answer. Returns True if the caller has it already, and wants no other."""
        return False

    def list_goes_on(self, at: str | None) -> None:
        """Note where the next page of a list begins."""

    async def heads(self, runs: Sequence[str]) -> Mapping[str, str]:
        """Return the beginnings of the results of runs, as far as the door has them at hand."""
        return {}

    async def render(self, jobs: Iterable[Job]) -> Mapping[Job, str | None]:
        """Return the HTML of texts; None for each where the door shows none."""
        return dict.fromkeys(jobs)
