"""Random pipelines in which some tools bring in text from outside, and every kind of step passes values on.

Each tool has a name of its own, so a call is found in the proof by it. What a tool does, its name says: `web` is from
outside, `vault` is private, `disk` neither; `bad` fails with a text from outside.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from tests.documents.draw import Draw
from tests.documents.pipeline import Expr, flow

SCHEMA = """schema: Mark
fields:
  mark: {type: string}
  kind: {type: enum, values: [a, b]}
  n: {type: number}
---
"""
Step = dict[str, object]
TEXT, MAP, LIST, MARK, ANY = "text", "map", "list", "mark", "any"


class Pipelines:
    """Writes documents. `files` has the callees; the shapes of values are known, so that most steps succeed."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._sites = 0
        self.files: dict[str, str] = {}

    def document(self, name: str, depth: int, sees: Mapping[str, str], least: int = 2) -> str:
        known = dict(sees)
        steps = [self._step(depth, known) for _ in range(self._draw.between(least, 7))]
        lines = "".join(f"- {flow(step)}\n" for step in steps)
        return f"{SCHEMA}pipeline: {name}\ndialect: quire\nsteps:\n{lines}"

    def _step(self, depth: int, sees: dict[str, str]) -> Step:
        plain = [
            "put",
            "take",
            "source",
            "sink",
            "sink",
            "transform",
            "transform",
            "agent",
            "shaped",
            "ask",
            "held",
            "hand",
        ]
        nested = ["steps", "match", "for_each", "parallel", "fold", "repeat", "call", "guarded", "guarded", "ends"]
        kind = self._draw.pick([*plain, "hand", *(nested if depth > 0 else ())])
        site = self._sites = self._sites + 1
        match kind:
            case "source":
                tool = self._draw.pick(["web", "web", "disk", "vault"])
                step: Step = {"tool": {"name": f"{tool}{site}", "args": {"of": Expr(self._expr(sees)[0])}}}
                shape = MAP
            case "put":
                args = {"name": self._place(sees), "value": Expr(self._expr(sees)[0])}
                step, shape = {"tool": {"name": f"put{site}", "args": args}}, ANY
            case "take":
                step, shape = {"tool": {"name": f"take{site}", "args": {"name": self._place(sees)}}}, ANY
            case "held":
                step = {"tool": {"name": f"{self._draw.pick(['webmark', 'diskmark'])}{site}", "schema": "Mark"}}
                shape = MARK
            case "transform":
                text, shape = self._expr(sees)
                step = {"transform": {"value": text}}
            case "agent":
                step, shape = {"agent": {"prompt": self._prompt(site, sees), "capabilities": {"tools": []}}}, TEXT
            case "shaped":
                body = {"prompt": self._prompt(site, sees), "schema": "Mark", "capabilities": {"tools": []}}
                step, shape = {"agent": body}, MARK
            case "hand":
                tools = self._draw.pick([["webhand"], ["diskhand"], ["vaulthand", "diskhand"]])
                body = {"prompt": self._prompt(site, sees), "identity": "hand", "capabilities": {"tools": tools}}
                step, shape = {"agent": body}, TEXT
            case "ask":
                step, shape = self._ask(sees), TEXT
            case "sink":
                args = {name: Expr(self._expr(sees)[0]) for name in ("one", "two")}
                step, shape = {"tool": {"name": f"sink{site}", "args": args}}, MAP
            case _:
                return self._nested(kind, depth, site, sees)
        self._keep(step, shape, sees)
        return step

    def _place(self, sees: Mapping[str, str]) -> str:
        """Return the name of a kept value: one of a few, or one that only a run knows."""
        return Expr(f"json({self._expr(sees)[0]})") if self._draw.chance(15) else self._draw.pick(["k1", "k2", "k3"])

    def _keep(self, step: Step, shape: str, sees: dict[str, str]) -> None:
        (body,) = step.values()
        assert isinstance(body, dict)
        if self._draw.chance(15):
            body["when"] = self._condition(sees)
            shape = ANY
        if self._draw.chance(70):
            # Some names are written again and again.
            name = self._draw.pick([f"s{self._sites}", f"s{self._sites}", "x", "y"])
            body["output"] = name
            sees[f"ctx.{name}"] = shape if sees.get(f"ctx.{name}", shape) == shape else ANY
        sees["pipe"] = shape

    def _nested(self, kind: str, depth: int, site: int, sees: dict[str, str]) -> Step:
        inner = dict(sees)
        match kind:
            case "steps":
                several = [self._step(depth - 1, inner) for _ in range(self._draw.between(1, 3))]
                sees |= dict.fromkeys(inner, ANY)
                return {"steps": {"do": several}}
            case "match":
                arms = {word: {"steps": [self._step(depth - 1, inner)]} for word in ("a", "True")}
                default = {"steps": [self._step(depth - 1, inner)]} if self._draw.chance(50) else self._expr(sees)[0]
                on = self._draw.pick([self._condition(sees), self._some(sees, MARK, "kind") or "'a'"])
                # Names of one arm may be missing in the others.
                sees["pipe"] = ANY
                return {"match": {"on": on, "cases": arms, "default": default}}
            case "for_each":
                source = self._draw.pick(["['1', '2']", self._some(sees, MAP, "items") or "['3']"])
                once = {**_lasting(sees), "item": TEXT}
                policy = self._draw.pick(["continue", "abort", "retry(1)"])
                body: Step = {"over": source, "max_items": 4, "on_error": policy}
                body["do"] = self._failing(site, once) if policy == "continue" else self._step(depth - 1, once)
                body["collect"] = {"transform": {"value": self._draw.pick(["pipe", "[pipe, errors]", "errors"])}}
                step: Step = {"for_each": body}
                self._keep(step, ANY, sees)
                return step
            case "parallel":
                once = _lasting(sees)
                branches = {"p": self._step(depth - 1, dict(once)), "q": self._failing(site, dict(once))}
                collect = {
                    "transform": {
                        "value": self._draw.pick(["pipe", "get(pipe, 'p', 'none')", "errors", "[pipe, errors]"])
                    }
                }
                step = {"parallel": {"branches": branches, "on_error": "continue", "collect": collect}}
                self._keep(step, ANY, sees)
                return step
            case "fold":
                once = {**_lasting(sees), "item": TEXT, "acc": ANY}
                body = {"over": self._some(sees, MAP, "items") or "['1', '2']", "init": self._expr(sees)[0]}
                sees[f"ctx.f{site}"] = sees["pipe"] = ANY
                return {"fold": {**body, "do": self._round(depth, once), "output": f"f{site}"}}
            case "repeat":
                once = {**_lasting(sees), "acc": ANY}
                until = self._draw.pick(["round == 2", "count(split(json(acc))) > 40", "acc == null"])
                body = {"init": self._expr(sees)[0], "until": until, "max": 3, "on_max": "keep"}
                step = {"repeat": {**body, "do": self._round(depth, once)}}
                self._keep(step, ANY, sees)
                return step
            case "call":
                step = {"call": self._call(depth, sees)}
                self._keep(step, ANY, sees)
                return step
            case "guarded":
                first = [self._step(0, inner)] if self._draw.chance(50) else []
                body = {"do": [*first, self._failing(site, sees)], "on_error": "continue", "output": f"g{site}"}
                step = {"steps": body}
                if self._draw.chance(40):
                    body["default"] = self._expr(sees)[0]
                sees["errors"] = sees[f"ctx.g{site}"] = sees["pipe"] = ANY
                return step
        # Ends the pipeline early, in some runs.
        return {"stop": {"value": self._expr(sees)[0], "when": self._condition(sees)}}

    def _round(self, depth: int, sees: dict[str, str]) -> Step:
        """Return the body of a loop. In half of them stores pass values on from round to round, each to the next one,
        so that a mark needs several rounds to come through."""
        if self._draw.chance(50):
            return self._step(depth - 1, sees)
        names = [f"c{self._sites}{letter}" for letter in "abcd"[: self._draw.between(1, 4)]]
        moved: list[Step] = [{"transform": {"value": "acc", "output": names[0]}}] if self._draw.chance(50) else []
        for to, name in itertools.pairwise(names):
            moved.append({"transform": {"value": f"get(ctx, '{name}', null)", "output": to}})
        sees |= dict.fromkeys((f"ctx.{name}" for name in names[:-1]), ANY)
        step = self._step(depth - 1, sees)
        kept = {"transform": {"value": self._expr(sees)[0], "output": names[-1]}}
        parts = {name: Expr(f"get(ctx, '{name}', null)") for name in names}
        made = ", ".join(f"{name}: {self._draw.pick([str(part), 'pipe', 'acc'])}" for name, part in parts.items())
        closing = self._draw.pick([f"{{{made}}}", f"[acc, get(ctx, '{names[0]}', 1)]", f"ctx.{names[-1]}"])
        return {"steps": {"do": [*moved, step, kept, {"transform": {"value": closing}}]}}

    def _failing(self, site: int, sees: dict[str, str]) -> Step:
        if self._draw.chance(30):
            return {"steps": {"do": [self._bad(site), {"transform": {"value": "'unreached'"}}]}}
        return self._draw.pick(
            [
                self._bad(site),
                {"fail": {"message": Expr(f"json({self._expr(sees)[0]})")}},
                {"transform": {"value": f"number(json({self._expr(sees)[0]}))"}},
                {"tool": {"name": f"disk{site}f", "args": {"of": Expr(self._expr(sees)[0])}}},
            ]
        )

    def _bad(self, site: int) -> Step:
        return {"tool": {"name": f"bad{site}"}}

    def _call(self, depth: int, sees: Mapping[str, str]) -> Step:
        name = f"callee{len(self.files)}"
        self.files[name] = ""
        given = {"v": self._expr(sees)[0], "w": self._expr(sees)[0]}
        self.files[name] = self.document(name, depth - 1, {"ctx.v": ANY, "ctx.w": ANY}, least=1)
        return {"pipeline": name, "pass": given}

    def _ask(self, sees: Mapping[str, str]) -> Step:
        args: Step = {"prompt": Expr(f"'Well? ' + json({self._expr(sees)[0]})")}
        args["type"] = self._draw.pick(["input", "confirm"])
        return {"tool": {"name": "ask", "args": args}}

    def _prompt(self, site: int, sees: Mapping[str, str]) -> str:
        named = [name for name in sees if sees[name] != ANY or name in ("pipe", "item", "acc")] or ["pipe"]
        told = " ".join(f"{{{self._draw.pick(named)}}}" for _ in range(self._draw.between(0, 2)))
        return f"site {site}: {told}"

    def _some(self, sees: Mapping[str, str], shape: str, field: str) -> str:
        """Return a field of a value of that shape; empty if there is none."""
        fitting = [name for name in sees if sees[name] == shape]
        return f"{self._draw.pick(fitting)}.{field}" if fitting else ""

    def _condition(self, sees: Mapping[str, str]) -> str:
        text = self._expr(sees)[0]
        return self._draw.pick(
            [f"{text} != null", f"count(split(json({text}), 'e')) > 5", "true", f"json({text}) == '1'"]
        )

    def _expr(self, sees: Mapping[str, str], depth: int = 2) -> tuple[str, str]:
        """Return an expression that hardly ever fails, and the shape of its value."""
        leaves = ["literal", "name", "name", "name", "field", "field", "all"]
        made = ["list", "map", "text", "json", "sum", "count", "or", "compare", "first", "each", "split", "sort", "get"]
        match self._draw.pick(leaves + (made if depth > 0 else [])):
            case "literal":
                return self._draw.pick([("'plain'", TEXT), ("7", ANY), ("['u', 'v']", LIST)])
            case "field":
                several = [
                    (self._some(sees, MAP, "text"), TEXT),
                    (self._some(sees, MARK, "mark"), TEXT),
                    (self._some(sees, MARK, "kind"), TEXT),
                    (self._some(sees, MARK, "n"), ANY),
                    (self._some(sees, MAP, "items"), LIST),
                ]
                fitting = [one for one in several if one[0]]
                return self._draw.pick(fitting) if fitting else ("'none'", TEXT)
            case "all" if self._draw.chance(30):
                return "ctx", ANY
            case "list":
                return f"[{self._expr(sees, depth - 1)[0]}, {self._expr(sees, depth - 1)[0]}]", LIST
            case "map":
                return f"{{k: {self._expr(sees, depth - 1)[0]}, l: {self._expr(sees, depth - 1)[0]}}}", ANY
            case "get":
                inner = f"{{k: {self._expr(sees, depth - 1)[0]}, l: {self._expr(sees, depth - 1)[0]}}}"
                return f"get({inner}, '{self._draw.pick('klm')}', {self._expr(sees, depth - 1)[0]})", ANY
            case "text" | "json":
                return f"json({self._expr(sees, depth - 1)[0]})", TEXT
            case "sum":
                return f"'a' + json({self._expr(sees, depth - 1)[0]})", TEXT
            case "count":
                return f"count(split(json({self._expr(sees, depth - 1)[0]}), 'e'))", ANY
            case "or":
                word = self._draw.pick(["or", "and"])
                return f"({self._expr(sees, depth - 1)[0]} {word} {self._expr(sees, depth - 1)[0]})", ANY
            case "compare":
                return f"({self._expr(sees, depth - 1)[0]} == {self._expr(sees, depth - 1)[0]})", ANY
            case "first":
                return f"{self._draw.pick(['first', 'last'])}([{self._expr(sees, depth - 1)[0]}, 1])", ANY
            case "each":
                name, body = self._draw.pick(
                    [("map", "[i, 1]"), ("filter", "i != null"), ("find", "i != null"), ("map", "'x'")]
                )
                source = f"[{self._expr(sees, depth - 1)[0]}, {self._expr(sees, depth - 1)[0]}]"
                return f"{name}({source}, i -> {body})", ANY
            case "split":
                return f"split(json({self._expr(sees, depth - 1)[0]}), 'e')", LIST
            case "sort":
                name = self._draw.pick(["sort", "distinct", "reverse"])
                return f"{name}([json({self._expr(sees, depth - 1)[0]}), 'b'])", LIST
        name = self._draw.pick(list(sees) or ["pipe"])
        return name, sees.get(name, ANY)


def _lasting(sees: Mapping[str, str]) -> dict[str, str]:
    return {name: shape for name, shape in sees.items() if name not in ("item", "acc")}
