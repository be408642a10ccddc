"""Run a document on marked texts, and compare the places that marks reach with the labels of its proof.

Each text from outside, and each private one, contains a mark. Models repeat all that they read, tools all that they are
given: the worst that may happen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.walks.answers import Performance, Performed
from tests.walks.pure_walk import run_pure
from tests.walks.runs import run_of

from quire.analysis.facts import EffectFact, ModelFact
from quire.analysis.labels import Integrity, Label, Privacy
from quire.analysis.proof import Proof, prove
from quire.analysis.world import AgentFact, ThreadFact, ToolFact
from quire.engine.interpreter.callees import Environment, Profile
from quire.engine.requests import Failure, HumanRequest, Load, ModelRequest, Offer, ToolRequest
from quire.plan.nodes import Plan, StepModel
from quire.plan.pipeline_work import Agent
from quire.plan.thread import HookAction, Thread
from quire.values import Value, encode

OUTSIDE, PRIVATE = "outsidemark", "privatemark"
HANDS = ("webhand", "diskhand", "vaulthand")
_SITE = re.compile(r"site (\d+):")


def tool_of(name: str) -> ToolFact:
    """Return the facts of a tool, which its name says."""
    outside = name.startswith(("web", "bad", "prompt"))
    private = Privacy.PRIVATE if name.startswith("vault") else Privacy.PUBLIC
    effect = "write" if name.startswith(("sink", "put")) else "read"
    is_kept = name.startswith(("put", "take"))
    return ToolFact(
        name,
        "rye.execute.tool.rye.state.any" if is_kept else f"rye.execute.tool.mcp.sim.{name}",
        effect,  # type: ignore[arg-type]
        kind="built-in" if is_kept else "mcp",
        gives=Integrity.OUTSIDE if outside else Integrity.WORKSPACE,
        gives_privacy=private,
    )


class SimulatedWorld:
    """The `World` of the analysis: tools by their names, and documents as they were generated."""

    context_budget: int | None = None

    def __init__(self, documents: Mapping[str, Plan]) -> None:
        self._documents = documents

    def trusts(self, server: str) -> bool:
        return False

    def reads_private(self, patterns: tuple[str, ...]) -> bool:
        return False

    def document(self, name: str) -> Plan | None:
        return self._documents.get(name)

    def tools(self, connection: str, name: str) -> tuple[ToolFact, ...]:
        return (tool_of(name),)

    def agent(self, work: Agent) -> AgentFact:
        names = tuple(work.tools or ()) if work.identity else ()
        return AgentFact("m", tuple(tool_of(name) for name in names))

    def thinker(self, cast: StepModel | None) -> AgentFact:
        return AgentFact("m")

    def thread(self, thread: Thread) -> ThreadFact:
        raise AssertionError("no threads here")

    def server_seconds(self, name: str) -> float:
        return 1.0

    def hook_tool(self, action: HookAction) -> ToolFact | None:
        raise AssertionError("no threads here")


@dataclass
class Marked:
    """The answers of a run, and everything that reached a tool or a model in it."""

    seed: int
    calls: list[tuple[str, str, Value, bool]] = field(default_factory=list)
    """Tool, argument, value, and whether a model made the call."""
    kept: dict[str, Value] = field(default_factory=dict)
    """Values that tools keep for each other."""
    prompts: list[tuple[str, str]] = field(default_factory=list)
    """The site of a model call, and all that the model was told."""

    def __call__(self, request: Performed) -> Performance | None:
        match request:
            case ToolRequest():
                return self._tool(request)
            case ModelRequest():
                return self._model(request)
            case HumanRequest(kind=kind, options=options):
                yes = "yes" if (len(self.calls) + self.seed) % 3 else "no"
                return Performance(yes if kind == "confirm" else options[0] if options else "an answer")
            case Load(scheme=scheme, where=where):
                return Performance(f"{where} {OUTSIDE if scheme == 'mcp' else ''} {{{{x}}}} {{{{y}}}}")
            case Offer(names=names):
                return Performance([[name, "", {"type": "object"}] for name in names])
        raise AssertionError(request)

    def _tool(self, request: ToolRequest) -> Performance:
        name, by_model = request.tool, request.tool in HANDS
        given = dict(request.arguments)
        if request.stdin is not None:
            given["stdin"] = request.stdin
        for argument, value in given.items():
            self.calls.append((name, argument, value, by_model))
        mark = OUTSIDE if name.startswith(("web", "bad")) else PRIVATE if name.startswith("vault") else "plain"
        echo = encode(given)[:20_000]
        if name.startswith("put"):
            self.kept[encode(given["name"])] = given["value"]
            return Performance(None)
        if name.startswith("take"):
            return Performance(self.kept.get(encode(given["name"])))
        if name.startswith("bad") or name.endswith("f"):
            return Performance(failure=Failure("tool", f"failed with {mark}: {echo}"))
        if "mark" in name:
            return Performance({"mark": mark, "kind": "a", "n": 2})
        if request.form == "text":
            return Performance(f"{mark} {echo}")
        return Performance({"text": mark, "echo": echo, "items": [mark, "x"], "kind": "a"})

    def _model(self, request: ModelRequest) -> Performance:
        told = f"{request.system}\n" + "\n".join(message.content for message in request.messages)
        site = _SITE.search(request.messages[0].content)
        self.prompts.append((site[0] if site else "", told))
        # A site that is repeated must not be taken for that of a later call.
        echo = told[:4_000].replace("site ", "place ")
        if request.tools and not any(message.role == "tool" for message in request.messages):
            uses: list[Value] = [[f"u{at}", tool.name, {"of": echo}] for at, tool in enumerate(request.tools)]
            return Performance({"text": "", "uses": uses})
        if request.schema is not None:
            return Performance({"text": encode({"mark": echo, "kind": "b", "n": 1})})
        if request.closing is not None:
            named = request.closing.get("properties")
            assert isinstance(named, Mapping)
            return Performance({"text": f"{echo}\n{encode(dict.fromkeys(named, echo[:500]))}"})
        return Performance({"text": echo})


def unsound(plan: Plan, documents: Mapping[str, Plan], inputs: Mapping[str, Value], seed: int) -> Iterator[str]:
    """Run a document, and yield every place that a mark reached although its proof says otherwise."""
    proof = prove(plan, SimulatedWorld(documents))
    marked = Marked(seed)
    profiles = {"default": Profile(), "hand": Profile(tools=HANDS)}
    environment = Environment(documents=documents, profiles=profiles)
    end = run_pure(run_of(plan, inputs, environment).walk, marked)
    yield from _unsound_calls(proof, marked)
    yield from _unsound_prompts(proof, marked)
    if isinstance(end.result, Mapping):
        yield from _compared("the result", end.result.get("output"), [proof.result.label])


def _unsound_calls(proof: Proof, marked: Marked) -> Iterator[str]:
    effects: dict[tuple[str, bool], list[EffectFact]] = {}
    for effect in proof.effects:
        effects.setdefault((effect.tool.name, effect.by_model), []).append(effect)
    for tool, argument, value, by_model in marked.calls:
        found = effects.get((tool, by_model), [])
        if not found:
            yield f"{tool} is called, and no effect says so"
        labels = [one.chooser if by_model else one.arguments[argument].label for one in found]
        yield from _compared(f"{tool} {argument}", value, labels)


def _unsound_prompts(proof: Proof, marked: Marked) -> Iterator[str]:
    calls: dict[str, list[ModelFact]] = {}
    for fact in proof.model_calls:
        found = _SITE.search(str(getattr(fact.place.step.work, "prompt", "")))
        if found:
            calls.setdefault(found[0], []).append(fact)
    for site, told in marked.prompts:
        yield from _compared(f"the prompt of {site}", told, [one.told for one in calls.get(site, [])])


def _compared(place: str, value: Value, labels: Iterable[Label]) -> Iterator[str]:
    text = value if isinstance(value, str) else encode(value)
    known = list(labels)
    if OUTSIDE in text and not any(one.integrity == Integrity.OUTSIDE for one in known):
        yield f"{place} has a text from outside"
    if PRIVATE in text and not any(one.privacy == Privacy.PRIVATE for one in known):
        yield f"{place} has a private text"
