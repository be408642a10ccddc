"""Find, before the first effect of a run, everything that is certain to be refused or to fail.

A problem that every completing run meets is refused; one that only some runs meet is a warning. A tool that a playbook
names and that does not exist, or cannot be called like that, is refused in a branch too: the document is wrong either
way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, assert_never

from msgspec import Struct, field

from quire.engine.requests import Load
from quire.errors import BadInputs, Denied, StepFailed, ToolChanged, ToolFailed
from quire.library.callees import Callee, no_such
from quire.library.texts import leads_out, read_file
from quire.plan.built_in_tools import SHELL
from quire.plan.nodes import Plan, Think, UseTool
from quire.plan.pipeline_work import (
    Agent,
    Block,
    Call,
    Fail,
    Fold,
    ForEach,
    Invoke,
    Parallel,
    Repeat,
    Select,
    Stop,
    Transform,
)
from quire.plan.reach import Reached, nesting_problems, reached_steps
from quire.plan.thread import Thread
from quire.plan.uses import OWN, OWN_TOOLS, is_built_in, step_tools
from quire.runs.static_failures import check_cap, server_prompts, static_failures
from quire.source import PLACEHOLDER
from quire.tools.arguments import PlannedBuiltIns, PlannedCall
from quire.tools.builtin import NAMES, SPECS
from quire.tools.gate import Gate
from quire.tools.registry import Connections
from quire.trust.capabilities import Grants, canonical
from quire.trust.secrets import Redactor
from quire.workspace.grants import denied_tools, reach_of
from quire.workspace.mcp_config import BUILT_IN
from quire.workspace.settings import AgentSettings, Settings

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.library.library import Library
    from quire.runs.adapters import Models
    from quire.tools.builtin.connection import BuiltInConnection
    from quire.values import Value

Find: TypeAlias = Callable[[str, str], "Callee | None"]
"""Finds a document by its name and its kind. Raises `QuireError` for one that cannot be used."""


class Findings(Struct):
    """The problems found before a start."""

    wrong: dict[str, None] = field(default_factory=dict)
    """Errors; they stop the run before it starts."""
    denied: dict[str, None] = field(default_factory=dict)
    """Missing permissions; they stop the run before it starts."""
    changed: dict[str, None] = field(default_factory=dict)
    """Tools that are not those that were locked, among the denied ones."""
    warnings: dict[str, None] = field(default_factory=dict)
    notices: dict[str, None] = field(default_factory=dict)
    """Reminders of what the user has allowed. They are not failures."""

    def add(self, problem: str | ToolFailed | Denied, at: Reached, *, document: bool = False) -> None:
        """Add a problem. `document` marks one that is wrong in a playbook for every branch taken."""
        text = str(problem)
        if not at.certain and (isinstance(problem, Denied) or not document or at.format != "playbook"):
            self.warnings[f"step {at.place} may fail, if the run comes to it: {text}"] = None
        elif isinstance(problem, Denied):
            self.denied[text] = None
            if isinstance(problem, ToolChanged):
                self.changed |= dict.fromkeys(problem.tools)
        else:
            self.wrong[text] = None

    def raise_if_any(self) -> None:
        """Raise `BadInputs`, or `Denied` if only permissions are missing."""
        if self.wrong:
            raise BadInputs([*self.wrong, *self.denied])
        if self.changed and len(self.denied) == len(self.changed):
            raise ToolChanged("\n".join(self.denied), tuple(self.changed))
        if self.denied:
            raise Denied("\n".join(self.denied))


class Start(Struct, frozen=True):
    """A run that is about to start."""

    plan: Plan
    documents: Mapping[str, Plan]
    bundles: Mapping[str, Bundle]
    """The bundles of the directives among the documents; that of the document itself is under ""."""
    grants: Grants
    folder: Path | None
    """The folder of the document."""
    model: str = ""
    """The model of the run."""
    overrides: Mapping[str, Value] = field(default_factory=dict)
    """The limits that the user gives the document."""
    reuses: bool = False
    """True if replies of another run are taken: then it is not known how many calls the run makes at least."""
    shelf: bool = False
    """True for a document of the user's document list, which looks up names there."""
    inputs: Mapping[str, Value] = field(default_factory=dict)
    """The inputs of the document."""
    calls: int = 0
    """How many model calls the run may make; 0 for any number."""


async def look_ahead(
    library: Library, start: Start, gate: object, models: Models | None, find: Find | None = None
) -> Findings:
    """Check a run before its start. Raises `LimitReached`.

    If `gate` is not a `Gate` of Quire, because a program uses the engine with its own tools, only problems that do not
    depend on tools are found, and the cap on model calls is not checked. Without `models` the run belongs to a cluster,
    which has its own keys, servers and modules: only built-in tools are checked. `find` looks up the documents that
    directives name.
    """
    plan, documents, settings = start.plan, start.documents, library.settings
    findings = Findings(wrong=dict.fromkeys(static_failures(plan)))
    reached = reached_steps(plan, documents)
    for at in reached:
        inputs = start.inputs if at.document not in documents else {}
        if (missing := _missing_prompt(at, start.folder, inputs)) and missing not in findings.wrong:
            findings.add(missing, at, document=True)
    if not isinstance(gate, Gate):
        return findings
    if not start.reuses:
        check_cap(plan, documents, start.calls, start.inputs)
    nests = bool(documents) or plan.format == "pipeline"
    for at in reached:
        if nests:
            for problem in nesting_problems(at, documents, settings.spawn.max_pipeline_fan_out_depth):
                findings.add(problem, at)
        own = documents.get(at.document, plan)
        if problem := _unknown_name(library, at, own, documents) or _not_given(at, documents):
            findings.add(f"step {at.place}: {problem}", at)
        if models is not None or _is_built_in(at):
            await _look_at_tool(library, at, documents, gate, findings)
    if models is None:
        return findings
    for label, failed in await gate.missing_prompts(server_prompts(plan)):
        owner = next((at for at in reached if at.name == label), None)
        if owner is not None:
            findings.add(failed, owner, document=True)
    await _look_for_sandbox(settings, reached, start.grants, findings)
    if start.bundles:
        from quire.runs.preflight_threads import ThreadLook

        look = ThreadLook(settings, start, gate, models, find, findings)
        for at in reached:
            if isinstance(at.step.work, Thread):
                await look.at(at)
    return findings


def built_in_gate(settings: Settings, grants: Grants, environ: Mapping[str, str] | None = None) -> Gate:
    """Return a gate with the built-in tools only, to check calls. Without `environ` another machine will make them."""

    def connect() -> BuiltInConnection:
        from quire.runs.workspace_gate import built_in_connection

        return built_in_connection(settings, grants, environ or {})

    planned = PlannedBuiltIns(None if environ is None else connect)
    return Gate(Connections({BUILT_IN: planned}), grants, Redactor({}), denied=denied_tools(settings))


def _is_built_in(at: Reached) -> bool:
    calls = at.step.work.tool_calls() if at.step.work else ()
    return any(place == BUILT_IN or (not place and canonical(tool) in NAMES) for place, tool in calls)


async def _look_at_tool(
    library: Library, at: Reached, documents: Mapping[str, Plan], gate: Gate, findings: Findings
) -> None:
    match at.step.work:
        case UseTool(connection=place, tool=tool, problem="") as work if tool not in documents:
            if place == BUILT_IN and not is_built_in(tool):
                findings.add(no_such(tool, library), at, document=True)
            elif problem := await gate.problem_with(PlannedCall.of_tool(work)):
                findings.add(problem, at, document=True)
        case Invoke(tool="ask") as work:
            if wrong := PlannedCall.of_invoke(work).wrong_names(SPECS["ask"]):
                findings.add(f"step {at.place}: ask does not take these arguments: {'; '.join(wrong)}", at)
        case Invoke() as work:
            if problem := await gate.problem_with(PlannedCall.of_invoke(work)):
                findings.add(problem, at)
        case Agent() as work:
            from quire.engine.interpreter.pipeline.agent import agent_tools

            profile = library.settings.agents.get(work.identity or "default", AgentSettings())
            names = [name for name in agent_tools(work, profile.tools) if name not in OWN_TOOLS]
            await _look_at_offers(f"the agent of step {at.place}", names, at, gate, findings)
        case Think():
            await _look_at_offers(f"the model of step {at.place}", step_tools(at.step), at, gate, findings)
        case None | UseTool() | Transform() | Thread() | Call() | Select() | Fold() | ForEach() | Parallel():
            pass
        case Block() | Repeat() | Fail() | Stop():
            pass
        case _:
            assert_never(at.step.work)


async def _look_at_offers(who: str, names: Sequence[str], at: Reached, gate: Gate, findings: Findings) -> None:
    """Check the tools that a model is offered. It goes without those that are not granted."""
    for name in names:
        problem = None if "*" in name else await gate.problem_with(PlannedCall("", name))
        if isinstance(problem, Denied):
            findings.warnings[f"{who} goes without {name}: {problem}"] = None
        elif problem is not None:
            findings.add(problem, at)


def _unknown_name(library: Library, at: Reached, plan: Plan, documents: Mapping[str, Plan]) -> str:
    """Return the problem if a step names a pipeline, a schema or an identity that does not exist."""
    work = at.step.work
    if isinstance(work, Call) and work.document not in documents:
        broken = library.registry().problems
        return f"unknown pipeline {work.document}" + (f"; not loaded: {'; '.join(broken[:3])}" if broken else "")
    if isinstance(work, Agent | Invoke) and work.schema is not None and work.schema not in plan.schemas:
        return f"unknown schema {work.schema}: it is not in this file"
    identities = {"default", *library.settings.agents}
    if isinstance(work, Agent) and work.identity and work.identity not in identities:
        return f"unknown identity {work.identity} (known: {', '.join(sorted(identities))})"
    return ""


def _not_given(at: Reached, documents: Mapping[str, Plan]) -> str:
    """Return the problem if a caller does not pass all inputs that a playbook or a directive needs."""
    match at.step.work:
        case Call(document=name, passes=passes):
            names: Collection[str] = [passed for passed, _ in passes]
        case UseTool(connection=place, tool=name, arguments=dict() as arguments) if place == OWN:
            names = arguments
        case _:
            return ""
    callee = documents.get(name)
    if callee is None or callee.format == "pipeline":
        return ""
    from quire.library.interface import interface_of_plan

    return interface_of_plan(name, callee).missing(names)


def _missing_prompt(at: Reached, folder: Path | None, inputs: Mapping[str, Value]) -> str:
    """Return the problem if the prompt file of a step does not exist. Values in its path count if they are inputs."""
    work = at.step.work
    source = work.preamble if isinstance(work, Think) else None
    if isinstance(work, Agent) and work.file:
        try:
            read_file(Load("", at.step.label, "file", work.file), folder)
        except StepFailed as error:
            return f"step {at.place}: {error.message}"
    if source is None or source.scheme != "file":
        return ""
    where = PLACEHOLDER.sub(lambda match: str(inputs.get(match[1], match[0])), source.where)
    if PLACEHOLDER.search(source.where) and PLACEHOLDER.search(where):
        return ""
    if leads_out(where):
        return (
            "" if where == source.where else f"step {at.place}: prompt file:{where} leads out of the document's folder"
        )
    if folder is not None and _is_file(folder / where.replace("\\", "/")):
        return ""
    why = "the file does not exist" if folder is not None else "the document has no folder"
    return f"step {at.place}: prompt file:{where}: {why}"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


async def _look_for_sandbox(settings: Settings, reached: Sequence[Reached], grants: Grants, findings: Findings) -> None:
    """Report commands that are allowed but could not run, because the machine has no sandbox."""
    calls = [at for at in reached if _is_shell(at)]
    if calls and reach_of(grants).unsandboxed:
        findings.notices["commands run without a sandbox, with your home folder and your environment"] = None
        return
    if not calls or settings.rehearsal or not grants.allows("execute", "tool", SHELL):
        return  # looking for a sandbox starts one, and a rehearsal starts nothing
    from quire.tools.blocking import in_thread
    from quire.tools.sandbox import require_sandbox

    try:
        await in_thread(lambda: require_sandbox(settings.workspace.folder))
    except Denied as denied:
        for at in calls:
            findings.add(denied, at)


def _is_shell(at: Reached) -> bool:
    calls = at.step.work.tool_calls() if at.step.work else ()
    return any(place in ("", BUILT_IN) and canonical(tool) == SHELL for place, tool in calls)
