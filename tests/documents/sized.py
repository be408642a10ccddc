"""Documents whose cost depends on the sizes of their inputs: fans over lists that are given, made by expressions,
returned by agents and tools, and agents with tools inside of them. They add to those of the simulator."""

from __future__ import annotations

from tests.documents.dialect import DialectPipelines
from tests.documents.draw import Draw
from tests.documents.pipeline import Built, lasting
from tests.simulator.scenario import Scenario

from quire.values import Value

_SETTINGS = """\
[agents.default]
tools = ["read_here", "write_here"]
turns = {turns}
[agents.quiet]
tools = ["ask"]
turns = 2
[agents.plain]
tools = []
"""

_LISTED = """\
schema: Listed
fields:
  names: {type: list, of: {type: string}%s}
  fine: {type: bool}
---
"""

_MADE = (
    "{list}",
    "filter({list}, x -> x != 'a')",
    "map({list}, x -> [x, x])",
    "sort({list})",
    "{list} + {list}",
    "flatten(map({list}, x -> [x, x]))",
    "distinct({list})",
    "slice({list}, 0, 2)",
    "reverse({list})",
    "[ctx.doc, ctx.doc, 'a']",
    "split(ctx.doc)",
    "split(ctx.doc, ',')",
    "keys(ctx.table)",
    "values(ctx.record)",
    "entries(ctx.record)",
    "group({list}, x -> x)",
    "range(3)",
    "range(ctx.count)",
    "get(ctx.record, 'names')",
    "ctx.record.names",
    "zip({list}, {list})",
    "parse(json({list}))",
    "merge(ctx.record, {{a: 1}}).names",
    "ctx.count > 2 and {list} or []",
    "range(count({list}))",
    "range(2, count({list}) + 1)",
    "range(max(count({list}), 2))",
    "flatten([{list}, {list}, 'a'])",
    "get(ctx, 'rows')",
    "get(ctx, 'more', [])",
    "get(ctx, 'nested', [[1]])",
    "keys(ctx)",
    "first(values(ctx))",
    "first(reverse({list}))",
    "first(sort(map({list}, x -> [x, x, x])))",
    "get(first(reverse(map({list}, x -> {{many: [x, x, x]}}))), 'many')",
    "last(distinct([{list}, ['a', 'b']]))",
    "flatten(slice(map({list}, x -> [x, x]), 0, 1))",
    "range(first(map(range(2000000, 2000004), x -> x - 1999998)))",
)

_GATHERED = (
    "map(range(ceil(count(acc) / 2)), n -> slice(acc, n * 2, (n + 1) * 2))",
    "range(round(count(acc) / 3))",
    "range(1, count(acc))",
    "range(min(count(acc) - 1, 3))",
    "slice(acc, 1, 9)",
    "acc + ['a']",
    "flatten([acc, acc])",
    "range(count(get(ctx, 'gathered', [])) + count(acc))",
)
"""The items of a round, in a loop whose value is the list of the results of the round before. Some of them become
fewer, some more."""


class SizedPipelines(DialectPipelines):
    """Pipelines of the dialect with fans over lists of any origin."""

    def __init__(self, draw: Draw, most_steps: int = 4) -> None:
        super().__init__(draw, most_steps)
        self._kept: list[str] = []
        self._limited = draw.chance(40)

    def _source(self, sees: tuple[str, ...]) -> str:
        lists = ["ctx.rows", "ctx.table", "ctx.names", *self._kept]
        if "item" in sees:
            lists += ["item.lines", "item"]
        if "acc" in sees:
            lists.append("acc")
        return self._draw.pick(_MADE).format(list=self._draw.pick(lists))

    def _for_each(self, depth: int, sees: tuple[str, ...], site: int) -> Built:
        step = super()._for_each(depth, sees, site)
        return self._over(step, "for_each", sees)

    def _repeat(self, depth: int, sees: tuple[str, ...]) -> Built:
        if depth < 1 or self._draw.chance(50):
            return super()._repeat(depth, sees)
        site = self._sites = self._sites + 1
        fan: Built = {
            "over": self._draw.pick(_GATHERED),
            "output": "gathered",
            "on_error": self._draw.pick(["abort", "retry(1)", "continue"]),
            "do": self._draw.pick([{"tool": {"name": f"read{site}", "args": {"of": "x"}}}, {"agent": {"prompt": "x"}}]),
            "collect": {"transform": {"value": "pipe"}},
        }
        loop: Built = {
            "init": self._draw.pick(["ctx.names", "['a', 'b', 'c', 'd', 'e']", "range(7)"]),
            "do": {"steps": [{"for_each": fan}]} if self._draw.chance(50) else {"for_each": fan},
            "until": self._draw.pick(["count(acc) == 1", "false"]),
            "max": self._draw.between(2, 4),
            "on_max": "keep",
        }
        if self._draw.chance(40):
            self._remember(loop, fan)
        return {"repeat": loop}

    def _remember(self, loop: Built, fan: Built) -> None:
        """Change a loop into one whose value is a map, that a store holds in each round, and whose lists move on from
        one part to the other."""
        parts = ["state.past", "state.new", "get(ctx, 'older', [])"]
        lists = [self._draw.pick([*parts, f"{parts[0]} + ['a']", "gathered"]) for _ in range(3)]
        loop["init"] = f"{{past: [], new: {loop['init']}}}"
        loop["until"] = "count(acc.new) == 1"
        steps = [
            {"transform": {"value": "acc", "output": "state"}},
            {
                "for_each": {
                    **fan,
                    "over": str(fan["over"]).replace("acc", self._draw.pick(["state.past", "state.new"])),
                }
            },
            {"transform": {"value": lists[0], "output": "older"}},
            {"transform": {"value": f"{{past: {lists[1]}, new: {lists[2]}}}"}},
        ]
        loop["do"] = {"steps": steps}

    def _fold(self, depth: int, sees: tuple[str, ...], site: int) -> Built:
        return self._over(super()._fold(depth, sees, site), "fold", sees)

    def _over(self, step: Built, kind: str, sees: tuple[str, ...]) -> Built:
        body = step[kind]
        assert isinstance(body, dict)
        if self._draw.chance(75):
            del body["items"]
            rest = {"over": self._source(lasting(sees) if kind == "fold" else sees), **body}
            if self._draw.chance(20):
                rest["max_items"] = self._draw.between(0, 5)
            return {kind: rest}
        return step

    def _step(self, depth: int, sees: tuple[str, ...], policy: str) -> Built:
        site = self._sites = self._sites + 1
        match self._draw.below(12):
            case 0:
                return self._agent(site, sees)
            case 1:
                self._kept.append(f"kept{site}")
                return {"transform": {"value": self._source(sees), "output": f"kept{site}"}}
            case 2:
                self._kept.append(f"listed{site}.names")
                prompt = f"list {site}: {self._told(sees)}"
                return {"agent": {"prompt": prompt, "schema": "Listed", "output": f"listed{site}"}}
            case 3:
                self._kept.append(f"did{site}.list")
                return {"tool": {"name": f"read{site}", "args": {"of": "x"}, "output": f"did{site}"}}
        return super()._step(depth, sees, policy)

    def _agent(self, site: int, sees: tuple[str, ...]) -> Built:
        body: Built = {"prompt": f"site {site}: {self._told(sees)}"}
        match self._draw.below(4):
            case 0:
                body["identity"] = self._draw.pick(["quiet", "plain"])
            case 1:
                body["turns"] = self._draw.between(1, 3)
            case 2:
                body["schema"] = "Listed"
        if self._draw.chance(30):
            body["on_error"] = f"retry({self._draw.between(1, 2)})"
        return {"agent": body}

    def document(self, name: str, depth: int, sees: tuple[str, ...]) -> str:
        kept, self._kept = self._kept, []
        text = super().document(name, depth, sees)
        self._kept = kept
        return _LISTED % (", max_items: 3" if self._limited else "") + text


_INPUTS = """\
{rows: {type: list, of: {type: string}%s}, names: {type: list, of: {type: string}, default: [a]},
  table: {type: list, of: {type: object, fields: {lines: {type: list, of: {type: string}}}}},
  record: {type: object, fields: {names: {type: list, of: {type: string}}}},
  doc: {type: string}, topic: {type: string}, count: {type: number, maximum: 4}}"""


_UNDECLARED = ("more", "nested")
"""Inputs that only pipelines without a declaration take."""


def draw_inputs(draw: Draw, *, long: bool = False) -> dict[str, Value]:
    """Inputs of a sized pipeline. Long ones have lists and texts of tens."""
    most = 12 if long else 3

    def words() -> list[Value]:
        return [draw.pick(["a", "b", "tea", "Zürich"]) for _ in range(draw.below(most + 1))]

    table: list[Value] = [{"lines": words()} for _ in range(draw.below(most + 1))]
    return {
        "rows": words()[: 4 if not long else None],
        "names": words(),
        "table": table,
        "record": {"names": words()},
        "doc": draw.pick(["", "one two", "a,b,c", "line\nline", "x" * 10]) * (6 if long else 1),
        "topic": "tea",
        "count": draw.below(5),
        "more": words(),
        "nested": [words(), words()],
    }


def draw_sized(draw: Draw) -> Scenario:
    made = SizedPipelines(draw)
    text = made.document("simulated", draw.between(0, 3), ("ctx.topic",))
    if draw.chance(70):
        rows = ", max_items: 4" if draw.chance(40) else ""
        text = made.declaring(text, _INPUTS % rows)
        given = {name: value for name, value in draw_inputs(draw).items() if name not in _UNDECLARED}
    else:
        given = draw_inputs(draw)
    files = {"simulated.yaml": text, **made.files}
    if draw.chance(60):
        files["quire.toml"] = _SETTINGS.format(turns=draw.between(1, 4))
    return Scenario("sized", files, "simulated.yaml", given)
