"""The steps of a document and of its callees, as a test names them: by label, by the way to them, or by path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quire.patterns import late_pattern
from quire.plan.built_in_tools import ALIASES
from quire.plan.nodes import Plan, Step, UseTool
from quire.plan.pipeline_work import Agent, ForEach, Invoke, Literal, Parallel
from quire.plan.reach import Reached, reached_steps
from quire.plan.thread import Thread
from quire.plan.uses import OWN, OWN_TOOLS
from quire.plan.ways import JOINT, last_label

_TURN = late_pattern(r"turn [1-9][0-9]*|(?:.* )?start")
"""A turn of a thread, or a question before its first turn."""


class DocumentSteps:
    """Answers questions about names of steps. A name that only a run can know counts as known."""

    def __init__(self, plan: Plan, callees: Mapping[str, Plan]) -> None:
        self.plan = plan
        self._callees = callees
        self._reached: dict[str, list[Reached]] = {}
        for one in reached_steps(plan, callees):
            self._reached.setdefault(one.name, []).append(one)
            if JOINT in one.name:
                self._reached.setdefault(last_label(one.name), []).append(one)
        self._threads = any(one.thread for one in (plan, *callees.values()))
        self.is_open = self._calls_unknown() or self._thread_calls()

    def _calls_unknown(self) -> bool:
        """Tell whether a step calls a document that is not among the callees."""
        names = [call.document for _, step in self._all() for call in step.calls()]
        for _, step in self._all():
            match step.work:
                case UseTool(connection=place, tool=tool) if place == OWN:
                    names += [tool] if tool not in OWN_TOOLS and tool not in ALIASES else []
        return any(name not in self._callees for name in names)

    def _thread_calls(self) -> bool:
        """Tell whether a model may call documents that are not known before a run."""
        threads = [step.work for _, step in self._all() if isinstance(step.work, Thread)]
        return any(
            thread.extends or "*" in one or ".tool." not in one
            for thread in threads
            for one in [*(permission.capability for permission in thread.permissions), ".tool."]
        )

    def _all(self) -> Iterator[tuple[str, Step]]:
        for plan in (self.plan, *self._callees.values()):
            yield from plan.steps()

    @property
    def names(self) -> list[str]:
        return list(self._reached)

    def steps(self, name: str) -> list[Step]:
        """Return the steps that a name means; none for one that is not known."""
        return [one.step for one in self._reached.get(name, ())]

    def is_known(self, name: str) -> bool:
        """Tell whether a name is one of a step, or may be one."""
        if name in self._reached or "/" in name or "[" in name:
            return True
        if self._threads and _TURN.fullmatch(last_label(name)):
            return True
        return self.is_open

    def asks_model(self, name: str) -> bool:
        """Tell whether a step asks a model itself."""
        steps = self.steps(name)
        return not steps or any(step.work is not None and step.work.asks_model for step in steps)

    def model_steps(self) -> list[str]:
        """Return the names of the steps that ask a model."""
        return [name for name in self._reached if self.asks_model(name)]

    def person_steps(self) -> list[str]:
        """Return the names of the steps that may ask a person."""
        return [name for name in self._reached if self.asks_person(name)]

    def asks_below(self, name: str) -> list[str]:
        """Return the labels of steps that ask a model, among a step and the steps inside of it."""
        return [label for step in self.steps(name) for label in self._asking(step, ())]

    def asks_person(self, name: str) -> bool:
        """Tell whether a step may ask a person."""
        steps = self.steps(name)
        return not steps or any(map(self._may_ask, steps))

    def _may_ask(self, step: Step) -> bool:
        if step.ask is not None or step.calls() or isinstance(step.work, Agent | Thread):
            return True
        match step.work:
            case Invoke(tool=tool):
                return tool == "ask"
            case UseTool(connection=place, tool=tool):
                return place == OWN and (tool == "ask" or tool in self._callees)
        return False

    def at_a_time(self) -> list[str]:
        """Return the labels of the steps that may ask a model while another call of a model is under way."""
        return list(dict.fromkeys(label for plan in (self.plan, *self._callees.values()) for label in self._fans(plan)))

    def _fans(self, plan: Plan) -> Iterator[str]:
        for _, step in plan.steps():
            match step.work:
                case ForEach(do=do, max_parallel=most, source=source):
                    single = isinstance(source, Literal) and isinstance(source.value, list) and len(source.value) < 2
                    yield from self._asking(do, ()) if most > 1 and not single else ()
                case Parallel(branches=branches):
                    asking = [self._asking(branch, ()) for _, branch in branches]
                    if sum(map(bool, asking)) > 1:
                        yield from (label for labels in asking for label in labels)

    def _asking(self, step: Step, callers: tuple[str, ...]) -> list[str]:
        """Return the labels of the steps that ask a model, inside of a step and of the documents that it calls."""
        found = [step.label] if step.work is not None and step.work.asks_model else []
        inner = [part for _, part in step.work.parts()] if step.work else []
        inner += [one for case in (step.match.cases if step.match else ()) for one in case.body.steps]
        for part in inner:
            found += self._asking(part, callers)
        names = [call.document for call in step.calls()]
        match step.work:
            case UseTool(connection=place, tool=tool) if place == OWN:
                names.append(tool)
        for name in names:
            callee = self._callees.get(name)
            if callee is not None and name not in callers:
                found += [label for one in callee.body.steps for label in self._asking(one, (*callers, name))]
        return found

    def tools(self) -> list[str]:
        """Return the names of the tools that steps call themselves."""
        calls = (call for _, step in self._all() if step.work for call in step.work.tool_calls())
        return list(dict.fromkeys(f"{place}/{tool}" if place and place != OWN else tool for place, tool in calls))

    def models_call_tools(self) -> bool:
        """Tell whether a model may call tools that no step names."""
        formats = {plan.format for plan in (self.plan, *self._callees.values())}
        if self.is_open or formats != {"pipeline"}:
            return True
        return any(isinstance(step.work, Agent) and step.work.tools != () for _, step in self._all())

    def fixed_prompts(self) -> list[str] | None:
        """Return the prompts of the document; None if one of them is known only in a run."""
        if self.is_open or self._threads or self.plan.format != "pipeline" or self._callees:
            return None
        found: list[str] = []
        for _, step in self.plan.steps():
            match step.work:
                case Agent(prompt=prompt, file="", schema=None, identity=None):
                    if any(prompt.references()) or (step.work.tools is None or step.work.tools):
                        return None
                    found.append("".join(part for part in prompt.parts if isinstance(part, str)))
                case Agent():
                    return None
        return found
