"""The gate: every tool call of every format goes through `Gate.call`, and no tool can be reached in another way.

The arguments are copied first, and the copy is both checked against the schema and passed to the tool. A request
without a connection is resolved by its name first, and the resolved tool is then checked and called. The result is
limited in size, then redacted, then returned.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from quire import values
from quire.engine.conversation import Offered
from quire.engine.ports import LONGEST_ERROR
from quire.engine.premises import LONGEST_PYTHON, MAX_RESULT_BYTES
from quire.errors import BadInputs, Denied, StepFailed, ToolChanged, ToolFailed
from quire.plan.built_in_tools import SHELL
from quire.tools.arguments import Arguments, Unusable
from quire.tools.builtin import NAMES
from quire.tools.registry import Answer, Connection, Connections, Describing, Foreseeing, Timed, ToolSpec
from quire.tools.tool_names import SELF_CHECKING, Names, ToolTarget, may_use
from quire.trust.capabilities import Grants, capability, flat_name, mcp_tool
from quire.wording import cut_off
from quire.workspace.grants import reaching
from quire.workspace.mcp_config import BUILT_IN

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.budgets import Limits
    from quire.engine.ports import EffectClass
    from quire.engine.requests import ToolRequest
    from quire.tools.arguments import PlannedCall
    from quire.trust.secrets import Redactor
    from quire.values import Value

LONGEST_TOOL_NAME = 64
NO_GRANTS = Grants()


class Gate:
    """The `Tools` port. Close it when the run is over: it holds sessions with servers.

    `scoped` makes the connections that check grants and limits themselves, for a thread that has less than the run.
    `denied` are tools that may not be used under any grants.
    """

    def __init__(
        self,
        registry: Connections,
        grants: Grants,
        redactor: Redactor,
        *,
        max_result: int = MAX_RESULT_BYTES,
        scoped: Callable[[Grants, Limits | None], Mapping[str, Connection]] = lambda grants, limits: {},
        denied: Grants = NO_GRANTS,
    ) -> None:
        self._registry = registry
        self._grants = grants
        self._redactor = redactor
        self._max_result = max_result
        self._arguments = Arguments(redactor.text)
        self._names = Names(registry, grants)
        self._scoped = scoped
        self._denied = denied
        self._views: dict[tuple[str, frozenset[str], Limits | None], Gate] = {}

    def effect_class(self, request: ToolRequest) -> EffectClass:
        target = (request.connection, request.tool) if request.connection else self._names.known(request.tool)
        spec = self._registry.known(*target) if target else None
        return spec.effect if spec else "write"

    async def call(self, request: ToolRequest, effect_id: str) -> Value:
        try:
            view = self._under(request.grants, request.declared, request.limits)
            return await view._call(request, effect_id)
        except ToolFailed as error:
            raise ToolFailed(self._told(error), kind=error.kind, path=request.path) from None

    async def offers(self, names: Sequence[str]) -> Sequence[Offered]:
        """Return those of the named tools that the run may use, under the given names; a name with `*` stands for all
        that match.

        Raises `ToolFailed` for a name that means no tool, or several.
        """
        offered: dict[str, Offered] = {}
        try:
            for name in names:
                for called, spec in await self._offered(name):
                    offered.setdefault(called, Offered(called, *self._shown(spec)))
        except ToolFailed as error:
            raise ToolFailed(self._told(error), kind=error.kind) from None
        return list(offered.values())

    async def offers_under(self, grants: Sequence[str]) -> Sequence[Offered]:
        """Return all tools that both the run and a thread with these grants may use, under flat names."""
        view = self._under(tuple(grants))
        try:
            specs = [
                view._described(place, spec)
                for place in view._registry.names()
                for spec in await view._names.usable(place)
            ]
        except ToolFailed as error:
            raise ToolFailed(self._told(error), kind=error.kind) from None
        return [Offered(name, *self._shown(spec), spec.id) for name, spec in _apart(filter(self._offerable, specs))]

    async def preflight(self, calls: Iterable[ToolTarget]) -> list[str]:
        """Return the problems with these (connection, tool) pairs, before a run. Starts the servers that they need.

        The connection may be empty, as in a request.
        """
        return list(dict.fromkeys(str(problem) for problem in await self._problems(calls)))

    async def require(
        self, calls: Iterable[ToolTarget], also: Sequence[str] = (), prompts: Sequence[tuple[str, str, str]] = ()
    ) -> None:
        """Raise `BadInputs` with everything that `preflight` finds, or `Denied` if only permissions are missing.

        `also` are problems that the caller has found; `prompts` are those of servers: the step, the server, the name.
        """
        problems = [*await self._problems(calls), *await self._missing_prompts(prompts)]
        texts = list(dict.fromkeys([*also, *(str(problem) for problem in problems)]))
        changed = [problem for problem in problems if isinstance(problem, ToolChanged)]
        if changed and not also and len(changed) == len(problems):
            raise ToolChanged("\n".join(texts), tuple(tool for pinned in changed for tool in pinned.tools))
        if problems and not also and all(isinstance(problem, Denied) for problem in problems):
            raise Denied("\n".join(texts))
        if texts:
            raise BadInputs(texts)

    async def problem_with(self, call: PlannedCall) -> ToolFailed | Denied | None:
        """Return the reason why a call in a document could not be made; None if none is known."""
        granted = await self._granted_or_why(call.connection, call.tool)
        if not isinstance(granted, tuple):
            return granted
        connection, spec = granted
        try:
            wrong = call.wrong_names(spec)
            if not wrong and call.complete:
                wrong = self._arguments.problems(spec, call.literal)
            elif not wrong and spec.id in NAMES:
                wrong = call.wrong_values(spec)
        except Unusable as error:
            wrong = [str(error)]
        if not wrong:
            return connection.foreseen(spec, call.literal) if isinstance(connection, Foreseeing) else None
        listed = "\n".join(f"  {problem}" for problem in wrong)
        return ToolFailed(f"{call.tool} does not take these arguments:\n{listed}", kind="arguments")

    async def missing_prompts(self, prompts: Sequence[tuple[str, str, str]]) -> list[tuple[str, ToolFailed | Denied]]:
        """Return the prompts (given as step, server and name) that are not available: the step and the reason."""
        problems: list[tuple[str, ToolFailed | Denied]] = []
        for label, server, name in prompts:
            problems += [(label, problem) for problem in await self._missing_prompts([(label, server, name)])]
        return problems

    async def prompt(self, server: str, name: str) -> str:
        """Return a prompt of an MCP server as text. Raises `StepFailed` or `Denied`."""
        try:
            connection = self._registry.connection(server)
            self._grants.require("fetch", "prompt", mcp_tool(server, name))
            text = await connection.prompt(name)
            if len(text) > self._max_result:
                raise ToolFailed(f"the prompt has {len(text):,} characters; {self._max_result:,} are allowed")
            return values.clean(self._redactor.text(text))
        except ToolFailed as error:
            raise StepFailed(self._told(error), kind="prompt") from None

    def keep_servers(self) -> None:
        """Leave the open sessions with MCP servers to the next gate, which is that of the run."""
        for name in self._registry.names():
            getattr(self._registry.connection(name), "keep", lambda: None)()

    async def close(self) -> None:
        await self._registry.close()

    async def __aenter__(self) -> Gate:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _under(self, patterns: tuple[str, ...] | None, declared: str = "", limits: Limits | None = None) -> Gate:
        """Return the gate for a thread, never wider than this one. How far tools may go is decided by the user's grants
        alone."""
        if patterns is None:
            return self
        own = Grants.of(patterns)
        narrow = own.narrow(self._grants)
        if declared and narrow.patterns != own.patterns:
            declared += ", within what the run was allowed (--allow),"
        grants = Grants(narrow.patterns | reaching(self._grants), declared)
        key = (declared, grants.patterns, limits)
        view = self._views.get(key)
        if view is None:
            registry = self._registry.with_others(self._scoped(grants, limits))
            view = Gate(registry, grants, self._redactor, max_result=self._max_result, denied=self._denied)
            self._views[key] = view
        return view

    async def _call(self, request: ToolRequest, effect_id: str) -> Value:
        connection, spec = await self._granted(request.connection, request.tool)
        if request.reads_only and spec.effect != "read":
            raise ToolFailed(f"{spec.id} changes something, and this step may only read", kind="denied")
        raw = request.arguments
        if request.stdin is not None and spec.id == SHELL and "stdin" not in raw:
            raw = {**raw, "stdin": request.stdin}
        arguments = _copied(spec.id, raw)
        try:
            problems = self._arguments.problems(spec, arguments)
        except Unusable as error:
            raise ToolFailed(f"{spec.id} cannot be used: {error}", kind="schema") from None
        if problems:
            listed = "\n".join(f"  {problem}" for problem in problems)
            raise ToolFailed(f"{spec.id} does not take these arguments:\n{listed}", kind="arguments")
        from quire.tools.blocking import OutOfTime, within

        # The connections have limits of their own, with better words. This one holds for all of them.
        longest = connection.longest(spec, arguments) if isinstance(connection, Timed) else LONGEST_PYTHON
        try:
            result = await within(connection.call(spec, arguments, effect_id), longest)
        except OutOfTime:
            raise ToolFailed(f"{spec.id} took longer than {longest:g} s", kind="timeout") from None
        if isinstance(result, Answer):
            result = result.data if request.form == "data" else result.text
        if spec.id == SHELL and request.form != "text" and arguments.get("text") is not True:
            result = _printed(result)
        return self._checked(spec.id, result)

    def _checked(self, tool: str, result: object) -> Value:
        try:
            text = values.encode(result)  # type: ignore[arg-type]  # the codec refuses everything that is not a value
        except values.InvalidValue as error:
            raise ToolFailed(f"{tool} returned no JSON value: {error}", kind="result") from None
        size = len(text.encode())
        if size > self._max_result:
            raise ToolFailed(f"{tool} returned {size:,} bytes; {self._max_result:,} are allowed", kind="result")
        return self._redactor.value(values.decode(text))

    async def _granted(self, place: str, tool: str) -> tuple[Connection, ToolSpec]:
        """Return the tool after checking that the run may use it: nothing is started for a tool that it may not use."""
        if not place:
            place, tool = await self._names.resolve(tool)
        connection = self._registry.connection(place)
        identity = connection.tool_id(tool)
        if place == BUILT_IN:
            tool = NAMES.get(identity, tool)
            # The names of built-in tools are not secret, and looking them up starts nothing. Elsewhere the permission
            # is checked first.
            await self._registry.spec(place, tool)
        if place not in SELF_CHECKING and not may_use(self._grants, identity):
            self._grants.require("execute", "tool", identity)
        if self._denies(identity):
            name = tool if place == BUILT_IN else identity
            raise Denied(f"permission denied: {name} is under [tools] deny in quire.toml, which always wins")
        spec = await self._registry.spec(place, tool)
        if spec.changed:
            raise ToolChanged(spec.changed, (f"{place}/{spec.name}",))
        if problem := self._arguments.unusable(spec):
            raise ToolFailed(f"{spec.id} cannot be used: {problem}", kind="schema")
        return connection, spec

    def _told(self, error: StepFailed) -> str:
        """Return an error message for the record, redacted before it is cut, since half a secret would not be found."""
        return cut_off(self._redactor.text(error.message), LONGEST_ERROR)

    def _denies(self, tool_id: str) -> bool:
        return self._denied.covers(capability("execute", "tool", tool_id))

    def _shown(self, spec: ToolSpec) -> tuple[str, Mapping[str, Value]]:
        """Return the description of a tool for a model and for the record, redacted, because servers can write anything
        there."""
        schema = self._redactor.value(spec.schema)
        return self._redactor.text(spec.description), schema if isinstance(schema, Mapping) else {}

    def _described(self, place: str, spec: ToolSpec) -> ToolSpec:
        connection = self._registry.connection(place)
        return connection.offered(spec) if isinstance(connection, Describing) else spec

    def _offerable(self, spec: ToolSpec) -> bool:
        return not self._denies(spec.id) and not spec.changed and not self._arguments.unusable(spec)

    async def _offered(self, name: str) -> list[tuple[str, ToolSpec]]:
        if "*" in name:
            return [offer for offer in await self._names.matching(name) if self._offerable(offer[1])]
        try:
            return [(name, (await self._granted("", name))[1])]
        except Denied:
            return []

    async def _problems(self, calls: Iterable[ToolTarget]) -> list[ToolFailed | Denied]:
        import asyncio

        targets = dict.fromkeys(calls)
        outcomes = await asyncio.gather(*(self._granted_or_why(connection, tool) for connection, tool in targets))
        return [outcome for outcome in outcomes if not isinstance(outcome, tuple)]

    async def _missing_prompts(self, prompts: Sequence[tuple[str, str, str]]) -> list[ToolFailed | Denied]:
        problems: list[ToolFailed | Denied] = []
        for label, server, name in prompts:
            where = f"step {label}: prompt mcp:{server}/{name}"
            try:
                await self.prompt(server, name)
            except StepFailed as error:
                problems.append(ToolFailed(f"{where}: {error.message}", kind=error.kind))
            except Denied as error:
                problems.append(Denied(f"{where}: {error}"))
        return problems

    async def _granted_or_why(self, name: str, tool: str) -> tuple[Connection, ToolSpec] | ToolFailed | Denied:
        try:
            return await self._granted(name, tool)
        except ToolFailed as error:
            return ToolFailed(self._told(error), kind=error.kind)
        except Denied as error:
            return error


def _apart(specs: Iterable[ToolSpec]) -> Iterator[tuple[str, ToolSpec]]:
    """Yield the tools under unique flat names: all tools that would share a name get a mark from their id."""
    listed = list(specs)
    shared = Counter(_short(flat_name(spec.id)) for spec in listed)
    for spec in listed:
        name = _short(flat_name(spec.id))
        yield name if shared[name] == 1 else _marked(spec.id), spec


def _short(name: str) -> str:
    """Shorten a name to the length that providers accept."""
    return name if len(name) <= LONGEST_TOOL_NAME else _marked(name)


def _marked(tool_id: str) -> str:
    return f"{flat_name(tool_id)[: LONGEST_TOOL_NAME - 9]}_{hashlib.sha256(tool_id.encode()).hexdigest()[:8]}"


def _printed(result: Value) -> Value:
    """Return the result of a command with its output decoded, if that is JSON."""
    if isinstance(result, str):
        return values.value_of(result)
    if isinstance(result, Mapping) and isinstance(output := result.get("out"), str):
        return {**result, "out": values.value_of(output)}
    return result


def _copied(tool: str, arguments: Mapping[str, Value]) -> dict[str, Value]:
    try:
        return {name: values.copy(value) for name, value in arguments.items()}
    except values.InvalidValue as error:
        raise ToolFailed(f"the arguments of {tool} are not JSON: {error}", kind="arguments") from None
