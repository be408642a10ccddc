"""Threads that a thread starts: waited for, or running beside it until it asks for their results.

A child is part of its parent's run: one journal, one inbox, one budget. Its capabilities, limits and money never exceed
its parent's; the money is set aside before the child spends any.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from quire.engine.interpreter.callees import below
from quire.engine.interpreter.thread.budgets import Cost, spawn_refused
from quire.engine.interpreter.thread.compose import Bundle
from quire.engine.interpreter.thread.setup import ParentContext, Setup, set_up
from quire.engine.interpreter.thread.tool_results import finished_walk, succeeded
from quire.engine.requests import TINY, Halt, Join, Load, Meter, Metering, Request, Spawn, Steps, Walk
from quire.errors import Denied, QuireError, StepFailed
from quire.plan.built_in_tools import FORK
from quire.trust.capabilities import Grants
from quire.trust.risk import assess

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.budgets import Purse
    from quire.values import Value

WAIT_SECONDS = 600.0
LONGEST_WAIT = 10**9
"""Seconds; longer than any thread lasts. A model may write numbers that are too large for a clock."""


class Child(Struct):
    """A thread that runs beside its parent."""

    path: str
    purse: Purse
    running: bool = True
    """Turns False once and stays False: if several calls of one turn ask about a child, a replay may get the answers in
    another order."""
    counted: bool = False
    """True once its cost is counted for the parent too."""


class SpawnCheck(Struct, frozen=True):
    """Facts about a thread that are needed to start a child."""

    check: Callable[[str], None] = lambda item_id: None
    """Checks the permission, called with the id of the item that was found. Raises if it is not granted."""
    untrusted: bool = False
    """True if the thread has read content from outside."""


class Children:
    """The children of one thread.

    `started` counts all of them, waited for or not; `outside` becomes True when one of them has read content from
    outside.
    """

    def __init__(self, setup: Setup) -> None:
        self.started = 0
        self.outside = False
        self._setup = setup
        self._beside: dict[str, Child] = {}
        self._seen_to_end: dict[str, list[tuple[Child, Mapping[str, Value]]]] = {}

    def running(self) -> list[str]:
        return [name for name, child in self._beside.items() if child.running]

    def unpaid(self) -> list[Mapping[str, Value]]:
        """Return the costs of the children that the calls of this turn found ended, in the order of the calls: sums of
        floats must not depend on which call was answered first."""
        costs = []
        for path in in_call_order(self._seen_to_end):
            for child, cost in self._seen_to_end[path]:
                if not child.counted:
                    child.counted = True
                    costs.append(cost)
        self._seen_to_end.clear()
        return costs

    def fork(
        self, arguments: Mapping[str, Value], path: str, label: str, cost: Cost, sharing: int, about: SpawnCheck
    ) -> Generator[Request, Any, Walk]:
        """Run the tool `thread_directive`. `sharing` is the number of threads to be started in this turn, this one
        included.

        Raises `StepFailed` if a thread cannot be started.
        """
        item_id, inputs = arguments.get("directive_id"), arguments.get("inputs")
        overrides = arguments.get("limit_overrides")
        if not isinstance(item_id, str) or not item_id:
            raise StepFailed("directive_id is required: which directive?", kind="arguments")
        if not isinstance(inputs, Mapping | None):
            raise StepFailed("inputs must be an object", kind="arguments")
        if not isinstance(overrides, Mapping | None):
            raise StepFailed("limit_overrides must be an object", kind="arguments")
        aside = arguments.get("async") is True
        share = 1.0 / (sharing + 1 if aside else sharing)  # a parent that continues meanwhile keeps one part
        walk, purse = yield from self.thread(item_id, inputs or {}, overrides or {}, path, label, cost, about, share)
        if not aside:
            return walk
        yield Spawn(f"{path}/thread", walk)
        name = f"{item_id}#{self.started}"
        self._beside[name] = Child(f"{path}/thread", purse)
        return finished_walk(succeeded(FORK, {"thread_id": name, "status": "running"}))

    def thread(
        self,
        item_id: str,
        inputs: Mapping[str, Value],
        overrides: Mapping[str, Value],
        path: str,
        label: str,
        cost: Cost,
        about: SpawnCheck,
        share: float = 1.0,
    ) -> Generator[Request, Any, tuple[Walk, Purse]]:
        """Return the walk of a child, and its part of the budget, which is set aside. Raises `StepFailed`."""
        from quire.engine.interpreter.thread.loop import run_thread

        refuse = self._no_room(cost, share)
        text: str | None = yield Load(f"{path}/load", label, "directive", item_id, refuse)
        if text is None:
            raise StepFailed(f"there is no directive {item_id}", kind="unknown_item")
        try:
            bundle = Bundle.of(text)
            about.check(bundle.item_id)
            child = self._child(bundle, inputs, overrides, f"{path}/thread", share, about.untrusted)
        except StepFailed:
            raise
        except QuireError as error:
            raise StepFailed(str(error), kind="refused") from None
        self.started += 1

        def following() -> Walk:
            ending = yield from run_thread(child)
            result = succeeded(item_id, ending.as_value())
            result["cost"], result["ended"] = ending.cost.as_value(), ending.as_value()
            result["outside"] = ending.outside
            return cast("Value", result)

        return below(label, following()), child.purse

    def halt(self, path: str, label: str, names: list[str]) -> Steps:
        """Stop children.

        The amount that they spent is taken from their records: a replay of them may not have come as far.
        """
        children = [self._beside[name] for name in names]
        paths = tuple(child.path for child in children)
        yield Halt(path, label, paths)
        meters: list[Meter] = yield Metering(below=paths)
        for child, meter in zip(children, meters, strict=True):
            child.running = False
            child.purse.settle(meter.cost or 0.0)

    def _no_room(self, cost: Cost, share: float) -> tuple[str, str] | None:
        """Return the limit that leaves no room for another thread, or None."""
        limits, purse = self._setup.limits, self._setup.purse
        reached = spawn_refused(limits, replace(cost, spawns=self.started))
        if reached is not None:
            return reached.limit_code, reached.message
        if limits.spend is not None and purse.left * share <= TINY:
            return "spend_exceeded", "nothing is left of the budget of the thread that starts it"
        return None

    def orchestrate(self, arguments: Mapping[str, Value], path: str, label: str) -> Steps:
        """Run the tool `orchestrator`, which manages the children that run beside this thread."""
        operation = arguments.get("operation")
        names = self._named(arguments)
        paths = tuple(self._beside[name].path for name in names)
        match operation:
            case "wait_threads":
                timeout = arguments.get("timeout")
                seconds = float(min(timeout, LONGEST_WAIT)) if isinstance(timeout, int | float) else WAIT_SECONDS
                states: list[Mapping[str, Value]] = yield Join(f"{path}/join", label, paths, seconds)
                return (yield from self._results(path, names, states))
            case "get_status" | "aggregate_results":
                states = yield Join(f"{path}/join", label, paths, 0.0)
                return (yield from self._results(path, names, states))
            case "list_active":
                states = yield Join(f"{path}/join", label, paths, 0.0)
                yield from self._results(path, names, states)
                running = [name for name, state in zip(names, states, strict=True) if state["state"] == "running"]
                return {"success": True, "threads": running}
            case "cancel_thread" | "kill_thread":
                yield from self.halt(f"{path}/halt", label, names)
                return {"success": True, "cancelled": list(names)}
        operations = "wait_threads, get_status, list_active, aggregate_results, cancel_thread"
        raise StepFailed(f"there is no operation {operation!r}: {operations}", kind="arguments")

    def _child(
        self,
        bundle: Bundle,
        inputs: Mapping[str, Value],
        overrides: Mapping[str, Value],
        path: str,
        share: float,
        untrusted: bool,
    ) -> Setup:
        parent = self._setup
        above = ParentContext(
            Grants.of(parent.grants),
            parent.limits,
            parent.purse,
            share,
            parent.depth + 1,
            parent.declared,
            untrusted,
            parent.open_document,
            parent.startable,
        )
        try:
            child = set_up(bundle, inputs, path, overrides=overrides, above=above)
        except Denied:
            raise StepFailed(
                f"no capabilities: nothing that {bundle.item_id} asks for is granted to the thread that starts it",
                kind="denied",
            ) from None
        composed = child.composed
        risk = assess(
            [capability.capability for capability in composed.capabilities],
            [acknowledgement.risk for acknowledgement in composed.acknowledged],
        )
        if risk.outcome == "block":
            child.purse.close()
            raise StepFailed("; ".join(risk.messages), kind="denied")
        return child

    def _named(self, arguments: Mapping[str, Value]) -> list[str]:
        ids = arguments.get("thread_ids", arguments.get("thread_id"))
        if ids is None:
            return list(self._beside)
        names = [str(id) for id in ids] if isinstance(ids, list | tuple) else [str(ids)]
        unknown = [name for name in names if name not in self._beside]
        if unknown:
            started = ", ".join(self._beside) or "none"
            raise StepFailed(f"this thread has not started {', '.join(unknown)} (it has: {started})", kind="arguments")
        return list(dict.fromkeys(names))

    def _results(self, path: str, names: list[str], states: list[Mapping[str, Value]]) -> Steps:
        """Return the states of children as the model sees them, and settle the purses of those that have ended.

        A replay may pass here long before it has walked through a child, and would count its money as not spent.
        """
        of_names = list(zip(names, states, strict=True))
        children = [self._beside[name] for name, state in of_names if state["state"] != "running"]
        if children:
            meters: list[Meter] = yield Metering(below=tuple(child.path for child in children))
            for child, meter in zip(children, meters, strict=True):
                child.purse.settle(meter.cost or 0.0)
        results: dict[str, Value] = {}
        for name, state in of_names:
            child = self._beside[name]
            child.running = child.running and state["state"] == "running"
            results[name] = self._result(path, child, state)
        success = all(cast("Mapping[str, Value]", result).get("success") is True for result in results.values())
        return {"success": success, "results": results}

    def _result(self, path: str, child: Child, state: Mapping[str, Value]) -> Value:
        match state["state"]:
            case "done":
                result = cast("Mapping[str, Any]", state["value"])
                self.outside = self.outside or result["outside"]
                self._seen_to_end.setdefault(path, []).append((child, result["cost"]))
                return cast("Value", result["ended"])
            case "failed":
                return {"success": False, "status": "error", "error": state["message"]}
            case "stopped":
                return {"success": False, "status": "cancelled"}
        return {"status": "running"}


def in_call_order(paths: Iterable[str]) -> list[str]:
    """Sort the paths of the calls of one turn in the order of the calls: `tool[9]` before `tool[10]`."""
    return sorted(paths, key=lambda path: (len(path), path))
