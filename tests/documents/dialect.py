"""Pipelines of the Quire dialect: blocks and loops in fans, conditions, survived failures, ends, limits in time, and
declared inputs."""

from __future__ import annotations

from tests.documents.draw import Draw
from tests.documents.pipeline import Built, Pipelines, lasting
from tests.documents.playbook import RESUMES, UNCERTAIN
from tests.simulator.scenario import Scenario

LONG = "24h"
"""Longer than any case lasts: which of two comes first, the moment would decide."""


WORDS = "{word: {type: string, pattern: '^[a-z]+$'}, n: {type: number, minimum: 1, default: 3}}"


class DialectPipelines(Pipelines):
    """Every kind of the seed, and those of the dialect. `stop` is nowhere inside of a fan."""

    head = "dialect: quire\n"

    def __init__(self, draw: Draw, most_steps: int = 4, *, forgiving: bool = False) -> None:
        super().__init__(draw, most_steps, forgiving=forgiving)
        self._fans = 0

    def _step(self, depth: int, sees: tuple[str, ...], policy: str) -> Built:
        kinds = ["seed", "steps", "repeat", "match", "guarded", "stop", "fail"]
        match self._draw.pick(kinds if depth > 0 else ["seed", "guarded", "stop", "fail"]):
            case "steps":
                return self._conditional(self._block(depth, sees, policy))
            case "repeat":
                return self._conditional(self._repeat(depth, sees))
            case "match":
                return self._conditional(self._blocks(depth, sees, policy))
            case "guarded":
                return self._guarded(depth, sees)
            case "stop" if not self._fans:
                return {"stop": {"value": "[pipe, 'stopped']", "when": self._when()}}
            case "fail" if policy == "continue" or not self._forgiving:
                return {"fail": {"message": "as written", "when": "false" if policy == "abort" else self._when()}}
        return self._conditional(super()._step(depth, sees, policy))

    def _when(self) -> str:
        return self._draw.pick(["pipe == null", "pipe != null", "true", "false"])

    def _conditional(self, step: Built) -> Built:
        if self._draw.chance(25):
            (body,) = step.values()
            if isinstance(body, dict):
                body["when"] = self._when()
        return step

    def _block(self, depth: int, sees: tuple[str, ...], policy: str) -> Built:
        steps: list[object] = [self._step(depth - 1, sees, policy) for _ in range(self._draw.between(1, 3))]
        return {"steps": {"do": steps}} if self._draw.chance(50) else {"steps": steps}

    def _blocks(self, depth: int, sees: tuple[str, ...], policy: str) -> Built:
        first: Built = {"steps": [self._step(depth - 1, sees, policy)]}
        default: object = {"steps": [self._step(depth - 1, sees, policy)]} if self._draw.chance(50) else "[pipe]"
        return {"match": {"on": "pipe == null", "cases": {"True": first}, "default": default}}

    def _repeat(self, depth: int, sees: tuple[str, ...]) -> Built:
        rounds = self._draw.between(1, 3)
        inner = (*(name for name in sees if name not in ("acc", "round")), "acc", "round")
        body: Built = {
            "do": self._step(depth - 1, inner, "abort"),
            "until": self._draw.pick([f"round == {rounds}", "acc == null", "false"]),
            "max": rounds,
            "on_max": "keep",
        }
        return {"repeat": {"init": "pipe", **body} if self._draw.chance(50) else body}

    def _guarded(self, depth: int, sees: tuple[str, ...]) -> Built:
        """A step whose failure is tried again, survived, or limited in time."""
        policy, text = self._policy()
        site = self._sites = self._sites + 1
        before, self._forgiving = self._forgiving, self._forgiving or policy == "continue"
        kind = self._draw.pick(["tool", "agent", "call", "steps"] if depth > 0 else ["tool", "agent"])
        body: Built
        match kind:
            case "tool":
                body = {"name": self._tool(site, policy), "args": {"site": site, "of": self._of(sees)}}
            case "agent":
                failing = "failing-once " if policy == "retry" and self._draw.chance(40) else ""
                body = {"prompt": f"{failing}site {site}: {self._told(sees)}"}
            case "call":
                body = self._call(depth, sees)
            case _:
                body = {"do": [self._step(depth - 1, sees, policy) for _ in range(self._draw.between(1, 2))]}
        self._forgiving = before
        body["on_error"] = text
        if policy == "continue" and self._draw.chance(50):
            body["default"] = f"['instead', {site}]"
        if kind in ("tool", "agent") and self._draw.chance(40):
            body["timeout"] = LONG
        return {kind: body}

    def _for_each(self, depth: int, sees: tuple[str, ...], site: int) -> Built:
        self._fans += 1
        step = super()._for_each(depth, sees, site)
        self._fans -= 1
        return step

    def _parallel(self, depth: int, sees: tuple[str, ...]) -> Built:
        self._fans += 1
        step = super()._parallel(depth, sees)
        self._fans -= 1
        return step

    def _fold(self, depth: int, sees: tuple[str, ...], site: int) -> Built:
        return super()._fold(depth, lasting(sees), site)

    def _call(self, depth: int, sees: tuple[str, ...]) -> Built:
        """A callee has its own end, also inside of a fan."""
        before, self._fans = self._fans, 0
        call = self._declaring_call(depth) if self._draw.chance(30) else super()._call(depth, sees)
        self._fans = before
        return call

    def _declaring_call(self, depth: int) -> Built:
        """A call of a pipeline that declares its inputs; some of them do not fit, which fails the step each time."""
        name = f"callee{len(self.files)}"
        self.files[f"pipelines/{name}.yaml"] = ""
        most, self._most = self._most, 2
        text = self.document(name, depth - 1, ("ctx.word", "ctx.n"))
        self._most = most
        self.files[f"pipelines/{name}.yaml"] = self.declaring(text, WORDS)
        wrong = self._draw.chance(8)
        return {"pipeline": name, "pass": {"word": "7" if wrong else "'tea'", **self._further()}}

    def _further(self) -> Built:
        return self._draw.pick([{}, {"n": "2"}, {"n": "null"}])

    def declaring(self, text: str, inputs: str) -> str:
        """The document with declared inputs."""
        return text.replace(self.head, f"{self.head}input: {inputs}\n", 1)


def draw_dialect(draw: Draw) -> Scenario:
    made = DialectPipelines(draw)
    text = made.document("simulated", draw.between(0, 3), ("ctx.topic",))
    if draw.chance(50):
        text = made.declaring(text, "{topic: {type: string, max_length: 5}, more: {type: number, default: 1}}")
    policy = draw.pick(UNCERTAIN)
    return Scenario(
        "dialect",
        {"simulated.yaml": text, **made.files},
        "simulated.yaml",
        {"topic": "tea"},
        exact=policy != "fail",
        max_parallel=made.max_parallel,
        on_uncertain=policy,
        resumes=RESUMES,
    )
