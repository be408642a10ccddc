"""Run a step that gives an agent one turn: its prompt, its tools, and the shape of its reply."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from quire.engine.capture import json_objects
from quire.engine.conversation import Message, Offered, early_end
from quire.engine.interpreter.pipeline.simple import question
from quire.engine.interpreter.tool_turns import ToolTurns
from quire.engine.premises import DIALECT_TURNS, smallest
from quire.engine.requests import Emit, Load, ModelRequest, Offer, Request, Walk
from quire.errors import StepFailed
from quire.plan.built_in_tools import ALIASES
from quire.trust.capabilities import canonical
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.engine.interpreter.callees import Profile
    from quire.engine.interpreter.pipeline.steps import PipelineScope
    from quire.plan.nodes import Step
    from quire.plan.pipeline_work import Agent, AgentStepSettings
    from quire.schema import Schema


def run_agent(step: Step, work: Agent, path: str, frame: PipelineScope) -> Walk:
    identity = work.identity or frame.setting.identity
    profile = frame.setting.profiles.get(identity)
    if profile is None:
        names = ", ".join(frame.setting.profiles) or "none"
        raise StepFailed(f"there is no identity {identity} (known: {names})", kind="identity", path=path)
    if work.settings is not None:
        profile = with_settings(profile, work.settings, one_model=frame.setting.one_model)
    schema = frame.schema(work.schema, path) if work.schema else None
    prompt = work.prompt
    if work.file:
        from quire.formats.pipeline.prompt_references import template

        prompt = template(str((yield Load(f"{path}/prompt", step.label, "file", work.file))))
    text = frame.render(prompt, path, strict=work.settings is not None)  # in the Quire dialect
    return (yield from _Turn(step, work, path, frame, identity, profile, schema).run(text))


def with_settings(profile: Profile, own: AgentStepSettings, *, one_model: bool = False) -> Profile:
    """Return the profile with what a step of the Quire dialect says: its model and temperature count, its limits only
    where they are lower. With `one_model`, its model does not count."""
    return replace(
        profile,
        model=profile.model if one_model else own.model or profile.model,
        turns=smallest(own.turns, profile.turns) or DIALECT_TURNS,
        max_tokens=smallest(own.max_tokens, profile.max_tokens),
        temperature=profile.temperature if own.temperature is None else own.temperature,
    )


class _Turn:
    def __init__(
        self,
        step: Step,
        work: Agent,
        path: str,
        frame: PipelineScope,
        identity: str,
        profile: Profile,
        schema: Schema | None,
    ) -> None:
        self._step = step
        self._work = work
        self._path = path
        self._frame = frame
        self._identity = identity
        self._profile = profile
        self._schema = schema
        self._offered: tuple[Offered, ...] = ()

    def run(self, prompt: str) -> Walk:
        self._offered = yield from self._offers()
        messages = [Message("user", prompt)]
        turns = ToolTurns(self._path, self._step.label, self._profile, self._offered, self._request, question)
        reply = yield from turns.run(messages)
        last = turns.last
        yield from self._warn_of_end(reply, last)
        if self._schema is None:
            return str(reply["text"])
        return (yield from self._shaped(self._schema, reply, messages, last))

    def _warn_of_end(self, reply: Mapping[str, Value], path: str) -> Generator[Request, Any, None]:
        if warning := early_end(reply):
            yield Emit("warning", path, self._step.label, {"message": warning})

    def _shaped(self, schema: Schema, reply: Mapping[str, Value], messages: list[Message], last: str) -> Walk:
        """Return the reply as its schema requires; one that does not fit, or was cut off, is sent back with the
        problem."""
        for repair in range(self._frame.setting.repairs + 1):
            text = str(reply["text"])
            value, problem = self._conforming(schema, text)
            if reply.get("cut") is True:
                problem = "it was cut off at the longest that you may write, so it has to be shorter"
            if not problem:
                return value
            if repair == self._frame.setting.repairs:
                break
            wrong = (
                f"That reply does not fit: {problem}. Send the whole JSON object again, corrected, and nothing else."
            )
            messages += [Message("assistant", text), Message("user", wrong)]
            last = f"{self._path}/model/repair[{repair + 1}]"
            reply = yield self._request(last, messages)
            yield from self._warn_of_end(reply, last)
        raise StepFailed(f"the reply does not fit the schema {schema.name}: {problem}", kind="schema", path=last)

    def _conforming(self, schema: Schema, text: str) -> tuple[Value, str]:
        objects = json_objects(text)
        if not objects:
            return None, "it holds no JSON object"
        value = objects[-1].value
        violations = schema.violations(value, self._frame.plan.schemas.get)
        return value, "; ".join(
            f"{violation.path or 'the reply'}: {violation.message}" for violation in violations[:20]
        )

    def _offers(self) -> Generator[Request, Any, tuple[Offered, ...]]:
        names = agent_tools(self._work, self._profile.tools)
        if not names:
            return ()
        offers: list[list[Any]] = yield Offer(f"{self._path}/offer", self._step.label, names)
        return tuple(Offered(name, description, schema) for name, description, schema in offers)

    def _request(self, path: str, messages: list[Message]) -> ModelRequest:
        return ModelRequest(
            path=path,
            label=self._step.label,
            instructions=self._system(),
            messages=tuple(messages),
            schema=self._schema.json_schema(self._frame.plan.schemas.get) if self._schema else None,
            tools=self._offered,
            model=self._profile.model,
            temperature=self._profile.temperature,
            max_tokens=self._profile.max_tokens,
            reasoning=self._profile.reasoning,
            timeout=self._profile.timeout,
            identity=self._identity,
            allow=self._work.tools,
        )

    def _system(self) -> str:
        if self._schema is None:
            return self._profile.system
        shape = encode(self._schema.json_schema(self._frame.plan.schemas.get))
        order = f"Reply with one JSON object that fits this JSON Schema, and nothing else:\n{shape}"
        return f"{self._profile.system}\n\n{order}" if self._profile.system else order


def agent_tools(agent: Agent, held: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tools of an agent: those that its profile holds, narrowed by what its step allows."""
    return held if agent.tools is None else narrowed_tools(agent.tools, held)


def narrowed_tools(names: Sequence[str], held: Sequence[str]) -> tuple[str, ...]:
    """Return the intersection of two lists of tools, each made of names and patterns with `*`.

    If a name fits a pattern, or one pattern includes another, the narrower one is kept. Two patterns that only overlap
    leave nothing, which is too little and therefore safe.
    """
    narrower = (
        name if _fits(other, name) else other
        for name in names
        for other in held
        if _fits(other, name) or _fits(name, other)
    )
    return tuple(dict.fromkeys(narrower))


def _fits(pattern: str, name: str) -> bool:
    if "*" not in pattern:
        return canonical(pattern) == canonical(name) or bool({pattern} & _spellings(name))
    return any(fnmatchcase(spelling, pattern) for spelling in _spellings(name))


def _spellings(name: str) -> set[str]:
    """Return all spellings of a name: aliases of a built-in tool, and `SERVER__TOOL`, `SERVER/TOOL`,
    `mcp/SERVER/TOOL`."""
    identity = canonical(name)
    aliases = {alias for alias, meant in ALIASES.items() if meant == identity}
    spellings = {name, identity, *aliases}
    if aliases:
        return spellings
    bare = name.removeprefix("mcp/")
    for mark, other in (("/", "__"), ("__", "/")):
        server, there, tool = bare.partition(mark)
        if there and server and tool:
            spellings |= {bare, f"{server}{other}{tool}", f"mcp/{server}/{tool}"}
    return spellings
