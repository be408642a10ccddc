"""Pipelines: fans in folds in calls, with every policy for what fails, and people asked in the middle of it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.documents.draw import Draw
from tests.documents.playbook import RESUMES, UNCERTAIN
from tests.simulator.scenario import Scenario

SCHEMA = "schema: Mark\nfields:\n  mark: {type: string}\n  fine: {type: bool}\n---\n"


class Expr(str):
    """An argument that is an expression."""


def flow(value: object) -> str:
    """YAML in one line."""
    if isinstance(value, Expr):
        return f"!expr {json.dumps(str(value))}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)}: {flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(part) for part in value) + "]"
    return json.dumps(value)


Built = dict[str, object]


class Pipelines:
    """`files` are the documents that the first one calls. `sees` are the names that a step may read besides `pipe`.

    Where failures are forgiven, nothing fails that would not fail again: else a crash decides what comes out.
    """

    head = ""
    """Lines of each document before its steps."""

    def __init__(self, draw: Draw, most_steps: int = 4, *, forgiving: bool = False) -> None:
        self._draw = draw
        self._sites = 0
        self._forgiving = forgiving
        self._most = most_steps
        self.files: dict[str, str] = {}
        self.max_parallel = draw.between(1, 4)

    def document(self, name: str, depth: int, sees: tuple[str, ...]) -> str:
        """A pipeline of that name, as text."""
        steps = [self._step(depth, sees, "abort") for _ in range(self._draw.between(1, self._most))]
        return SCHEMA + f"pipeline: {name}\n{self.head}steps:\n" + "".join(f"- {flow(step)}\n" for step in steps)

    def _step(self, depth: int, sees: tuple[str, ...], policy: str) -> Built:
        self._sites += 1
        site = self._sites
        plain = ["transform", "tool", "agent", "ask", "shaped"]
        nested = ["for_each", "parallel", "fold", "call", "match"] if depth > 0 else []
        match self._draw.pick([*plain, *nested]):
            case "transform":
                return {"transform": {"value": f"[{site}, {', '.join(['pipe', *sees])}]"}}
            case "agent":
                failing = "failing-once " if policy == "retry" and self._draw.chance(40) else ""
                return {"agent": {"prompt": f"{failing}site {site}: {self._told(sees)}"}}
            case "shaped":
                return {"agent": {"prompt": f"shape {site}: {self._told(sees)}", "schema": "Mark"}}
            case "ask":
                return self._ask(site, sees)
            case "for_each":
                return self._for_each(depth, sees, site)
            case "parallel":
                return self._parallel(depth, sees)
            case "fold":
                return self._fold(depth, sees, site)
            case "call":
                return {"call": self._call(depth, sees)}
            case "match":
                return self._match(depth, sees)
        return {"tool": {"name": self._tool(site, policy), "args": {"site": site, "of": self._of(sees)}}}

    def _told(self, sees: tuple[str, ...]) -> str:
        return " ".join(f"{{{name}}}" for name in ("pipe", *sees))

    def _of(self, sees: tuple[str, ...]) -> Expr:
        return Expr(f"[{', '.join(['pipe', *sees])}]")

    def _tool(self, site: int, policy: str) -> str:
        kinds = ["write", "read", "same"]
        match policy:
            case "retry":
                kinds += ["flaky", "flaky"]
            case "continue":
                kinds += ["odd", "broken"]
            case "abort":
                kinds += ["down"] if not self._forgiving and self._draw.chance(25) else []
        kind = self._draw.pick(kinds)
        return f"{kind}{site}"

    def _ask(self, site: int, sees: tuple[str, ...]) -> Built:
        texts = ", ".join([f"'site {site}'", *(name for name in sees if not name.endswith(("acc", ".v", "round")))])
        prompt = Expr(f"join([{texts}], ' ')")
        kind = self._draw.pick(["input", "confirm", "select"])
        options: Built = {"options": ["one", "two"]} if kind == "select" else {}
        return {"tool": {"name": "ask", "args": {"prompt": prompt, "type": kind, **options}}}

    def _inner(self, depth: int, sees: tuple[str, ...], policy: str) -> Built:
        before, self._forgiving = self._forgiving, self._forgiving or policy == "continue"
        step = self._step(depth - 1, sees, policy)
        self._forgiving = before
        return step

    def _policy(self) -> tuple[str, str]:
        policy = self._draw.pick(["abort", "continue", "retry"])
        return policy, f"retry({self._draw.between(1, 2)})" if policy == "retry" else policy

    def _for_each(self, depth: int, sees: tuple[str, ...], site: int) -> Built:
        policy, text = self._policy()
        inner = (*lasting(sees), "item")
        return {
            "for_each": {
                "items": [f"{site}-{number}" for number in range(self._draw.between(1, 4))],
                "max_parallel": self.max_parallel,
                "on_error": text,
                "do": self._inner(depth, inner, policy),
                "collect": self._collect(),
            }
        }

    def _parallel(self, depth: int, sees: tuple[str, ...]) -> Built:
        policy, text = self._policy()
        branches = {
            f"b{number}": self._inner(depth, lasting(sees), policy) for number in range(self._draw.between(1, 3))
        }
        return {"parallel": {"branches": branches, "on_error": text, "collect": self._collect()}}

    def _collect(self) -> Built:
        if self._draw.chance(70):
            return {"transform": {"value": "[pipe, errors]"}}
        self._sites += 1
        return {"tool": {"name": f"write{self._sites}", "args": {"of": Expr("[pipe, errors]")}}}

    def _fold(self, depth: int, sees: tuple[str, ...], site: int) -> Built:
        inner = (*lasting(sees), "item", "acc")
        items = [f"{site}-{number}" for number in range(self._draw.between(1, 3))]
        do = self._step(depth - 1, inner, "abort")
        return {"fold": {"items": items, "init": "pipe", "do": do, "output": f"sum{site}"}}

    def _call(self, depth: int, sees: tuple[str, ...]) -> Built:
        name = f"callee{len(self.files)}"
        self.files[f"pipelines/{name}.yaml"] = ""
        given = [one for one in sees if one in ("item", "acc", "round")]
        renamed = {"v": "pipe", **{f"in_{one}": one for one in given}}
        sees_there = tuple(f"ctx.{one}" for one in renamed)
        most, self._most = self._most, 2
        self.files[f"pipelines/{name}.yaml"] = self.document(name, depth - 1, sees_there)
        self._most = most
        return {"pipeline": name, "pass": renamed}

    def _match(self, depth: int, sees: tuple[str, ...]) -> Built:
        cases = {"True": self._call(depth, sees)}
        return {"match": {"on": "pipe == null", "cases": cases, "default": self._call(depth, sees)}}


def lasting(sees: tuple[str, ...]) -> tuple[str, ...]:
    """Without what only the step in a loop sees, and no fan in it."""
    return tuple(name for name in sees if name not in ("item", "acc", "round"))


def draw_pipeline(draw: Draw) -> Scenario:
    made = Pipelines(draw)
    text = made.document("simulated", draw.between(0, 3), ("ctx.topic",))
    policy = draw.pick(UNCERTAIN)
    tight = draw.chance(10)
    calls = draw.between(1, 6) if tight else 0
    return Scenario(
        "pipeline",
        {"simulated.yaml": text, **made.files},
        "simulated.yaml",
        {"topic": "tea"},
        # Which of several calls finds the cap reached, the moment decides.
        exact=policy != "fail" and not tight,
        max_parallel=made.max_parallel,
        max_model_calls=calls,
        on_uncertain=policy,
        resumes=RESUMES,
    )
