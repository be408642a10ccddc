"""Documents with questions before effects, drawn from a seed: pipelines of the dialect, and playbooks, with callees.

Every effect has a number of its own, so that a call in a run is known in the proof. Most values are words that answers
have too: a yes that nobody gave must not be taken for one.
"""

from __future__ import annotations

import json
import random
from typing import Any

NAMES = ("ok", "sure", "go", "plan", "flag")
WORDS = ("yes", "no", "send", "")
INPUTS = ("text", "flag")
CALLEES = ("first", "second")
_OPTIONS = (["send", "keep"], ["no", "yes"], ["yes"])


class GatedPipelines:
    """Draws pipelines as texts: YAML is read from JSON."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._effects = 0
        self._fans = 0
        self._loops = 0
        self._written: list[str] = []
        self._answers: list[str] = []

    def documents(self) -> dict[str, str]:
        """Return the document and its callees by name. The document is called `main`, and calls are not recursive."""
        found = {"second": self._document("second", ())}
        found["first"] = self._document("first", ("second",))
        found["main"] = self._document("main", CALLEES)
        return found

    def _document(self, name: str, callees: tuple[str, ...]) -> str:
        head: dict[str, Any] = {"pipeline": name, "dialect": "quire"}
        if self._chance(70) or name != "main":
            head["input"] = {one: {"type": "string", "default": self._draw.choice(["no", "yes"])} for one in INPUTS}
        self._written, self._answers = [*(INPUTS if "input" in head else ())], []
        count = self._draw.randint(3, 7) if name == "main" else self._draw.randint(1, 3)
        begin = self._draw.sample(NAMES, self._draw.choice([0, 2, 5, 5]))
        self._written += begin
        first = [{"transform": {"value": f"'{self._draw.choice(WORDS)}'", "output": one}} for one in begin]
        head["steps"] = [*first, *(self._step(2, callees) for _ in range(count))]
        return json.dumps(head).replace('"!expr ', '!expr "')

    def _chance(self, percent: int) -> bool:
        return self._draw.random() * 100 < percent

    def _step(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        kinds = ["ask"] * 4 + ["effect"] * 4 + ["transform"] * 3 + ["fail"] + ["stop"] * (not self._fans)
        if depth:
            kinds += ["block", "block", "match", "for_each", "fold", "repeat", "repeat", "parallel"]
            kinds += ["call"] * bool(callees)
        kind = self._draw.choice(kinds)
        body: dict[str, Any] = getattr(self, f"_{kind}")(depth, callees)
        ((key, keys),) = body.items()
        if kind in ("stop", "fail") or self._chance(60 if kind == "effect" else 20):
            keys["when"] = self._condition()
        if isinstance(keys, dict) and kind in ("ask", "effect", "block", "call") and self._chance(20):
            keys["on_error"] = self._draw.choice(["continue", "retry(1)", "retry(1), continue"])
            if "continue" in keys["on_error"] and self._chance(40) and kind in ("ask", "effect", "call"):
                keys["default"] = f"'{self._draw.choice(WORDS)}'"
        may_keep = kind in ("ask", "effect", "transform", "call", "match", "repeat", "fold", "for_each", "parallel")
        if may_keep and (kind == "fold" or self._chance(70 if kind == "ask" else 40)):
            keys["output"] = self._draw.choice(NAMES)
            self._written.append(keys["output"])
            if kind == "ask":
                self._answers.append(keys["output"])
        return {key: keys}

    def _ask(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        kind = self._draw.choice(["confirm", "confirm", "confirm", "select", "input"])
        arguments: dict[str, Any] = {"prompt": "Go?", "type": kind}
        if kind == "select":
            arguments["options"] = self._draw.choice(_OPTIONS)
        return {"tool": {"name": "ask", "args": arguments}}

    def _effect(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        self._effects += 1
        return {"shell": {"command": ["run", f"e{self._effects}"]}}

    def _transform(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        return {"transform": {"value": self._value()}}

    def _stop(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        return {"stop": {"value": self._value()}}

    def _fail(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        return {"fail": {"message": "no"}}

    def _steps(self, depth: int, callees: tuple[str, ...]) -> list[dict[str, Any]]:
        return [self._step(depth - 1, callees) for _ in range(self._draw.randint(1, 3))]

    def _block(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        return {"steps": {"do": self._steps(depth, callees)}}

    def _match(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        on = self._draw.choice([self._name(), self._condition()])
        labels = self._draw.sample(["yes", "no", "send", "True", "False"], self._draw.randint(1, 3))
        cases = {label: {"steps": self._steps(depth, callees)} for label in labels}
        default: Any = {"steps": self._steps(depth, callees)} if self._chance(50) else "null"
        return {"match": {"on": on, "cases": cases, "default": default}}

    def _in_fan(self, depth: int, callees: tuple[str, ...]) -> list[dict[str, Any]]:
        """Draw steps of a fan, in which no step may end the pipeline."""
        self._fans += 1
        found = self._steps(depth, callees)
        self._fans -= 1
        return found

    def _in_loop(self, depth: int, callees: tuple[str, ...]) -> list[dict[str, Any]]:
        self._loops += 1
        found = self._steps(depth, callees)
        self._loops -= 1
        return found

    def _for_each(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        return {
            "for_each": {
                "items": ["yes", "no"],
                "on_error": self._draw.choice(["abort", "continue", "retry(1)"]),
                "do": {"steps": self._in_fan(depth, callees)},
                "collect": {"transform": {"value": self._draw.choice(["pipe", "first(pipe)", "'yes'"])}},
            }
        }

    def _fold(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        return {"fold": {"items": ["yes", "no"], "init": self._value(), "do": {"steps": self._in_loop(depth, callees)}}}

    def _repeat(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        keys: dict[str, Any] = {
            "do": {"steps": self._in_loop(depth, callees)},
            "until": self._draw.choice([self._condition(), "acc == 'yes'", "acc == 'yes'"]),
            "max": 2,
        }
        if self._chance(30):
            keys["on_max"] = "keep"
        if self._chance(50):
            keys["init"] = self._value()
        return {"repeat": keys}

    def _parallel(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        branches = {name: {"steps": self._in_fan(depth, callees)} for name in ("left", "right")}
        value = self._draw.choice(["left", "right", "pipe", "{go: left}"])
        return {"parallel": {"branches": branches, "collect": {"transform": {"value": value}}}}

    def _call(self, depth: int, callees: tuple[str, ...]) -> dict[str, Any]:
        given = {name: self._value() for name in INPUTS if self._chance(60)}
        return {"call": {"pipeline": self._draw.choice(callees), "pass": given}}

    def _name(self) -> str:
        if self._answers and self._chance(60):
            return self._draw.choice(self._answers[-2:])
        if self._written and self._chance(80):
            return self._draw.choice(self._written[-4:])
        bound = ["item", "pipe"] if self._fans else ["acc", "pipe"] if self._loops else ["pipe"]
        return self._draw.choice([*NAMES, "ctx.ok", *bound, *bound, "plan.go", "errors.ok"])

    def _word(self) -> str:
        return f"'{self._draw.choice(['yes', 'yes', 'no', 'no', 'send', 'x', 'Yes'])}'"

    def _condition(self) -> str:
        name = self._name()
        simple = [
            f"{name} == {self._word()}",
            f"{name} != {self._word()}",
            f"not ({name} == {self._word()})",
            f"contains(['yes', 'send'], {name})",
            f"lower(text({name})) == 'yes'",
            f"get(ctx, '{self._draw.choice(NAMES)}', {self._word()}) == {self._word()}",
            f"{name} == 'yes'",
            f"{name} == 'yes'",
            f"{name} != 'no'",
            f"get(ctx, '{self._draw.choice(NAMES)}') == {self._word()}",
            name,
            f"all([{name}], x -> x == 'yes')",
        ]
        first = self._draw.choice(simple)
        if self._chance(25):
            return f"({first}) {self._draw.choice(['and', 'or'])} ({self._draw.choice(simple)})"
        return first

    def _value(self) -> str:
        name = self._name()
        return self._draw.choice(
            [
                name,
                name,
                self._word(),
                f"{{go: {name}, text: {self._word()}}}",
                f"{name} == 'yes'",
                f"{name} == 'yes' and 'yes' or 'no'",
                f"{name} == 'yes' and 'yes' or null",
                f"get(ctx, '{self._draw.choice(NAMES)}', {self._word()})",
                f"first([{name}])",
                f"trim({name})",
            ]
        )


class GatedPlaybooks:
    """Draws playbooks as texts. The callee is a playbook or a pipeline."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._effects = 0
        self._steps = 0
        self._pipelines = GatedPipelines(seed)

    def documents(self) -> dict[str, str]:
        found = {"first": self._document("First", ())}
        self._steps = 0
        found["second"] = self._pipelines.documents()["second"].replace('"e', '"p')
        found["main"] = self._document("Main", CALLEES)
        return found

    def _chance(self, percent: int) -> bool:
        return self._draw.random() * 100 < percent

    def _document(self, title: str, callees: tuple[str, ...]) -> str:
        inputs = "".join(f"- `{name}` (string: no): A word\n" for name in ("text", "flag"))
        steps = [self._step(2, callees) for _ in range(self._draw.randint(2, 6))]
        return f"# {title}\n\n## SYSTEM\n\nYou help.\n\n## INPUTS\n\n{inputs}\n" + "".join(steps)

    def _step(self, level: int, callees: tuple[str, ...], label: str = "") -> str:
        if not label:
            self._steps += 1
            label = str(self._steps)
        lines = []
        kind = self._draw.choice(["ask", "ask", "effect", "effect", "think", "call"] if callees else ["ask", "effect"])
        is_split = level == 2 and self._chance(50)
        if kind == "ask" or self._chance(20):
            lines.append(self._ask())
        if kind == "effect" and not lines:
            self._effects += 1
            lines.append(f'@tool(quire, shell, {{"command": ["run", "e{self._effects}"]}})')
        elif kind == "call" and not lines:
            word = self._draw.choice(['"yes"', '"{{ok}}"', "{{ok}}", '"{{go}}"'])
            lines.append(f'@tool(quire, {self._draw.choice(callees)}, {{"text": {word}}})')
        elif kind == "think" or not lines:
            lines.append("Say a word.")
        if self._chance(60):
            type = self._draw.choice(["", "", ": string", ': enum, "yes", "no"', ": boolean"])
            lines.append(f"@output({self._draw.choice((*NAMES, 'ok', 'ok'))}{type})")
        if is_split:
            lines.append(self._branches(label, callees))
        return f"{'#' * level} STEP {label}: Part\n\n" + "\n\n".join(lines) + "\n\n"

    def _ask(self) -> str:
        kind = self._draw.choice(["confirm", "confirm", "select", "input"])
        options = ', "send", "keep"' if kind == "select" else ""
        return f'@elicit({kind}, "Go?"{options})'

    def _condition(self) -> str:
        name = self._draw.choice(
            [*NAMES, "ok", "ok", "text", f"__elicit_step_{self._draw.randint(1, max(1, self._steps))}"]
        )
        operator = self._draw.choice(["==", "==", "!="])
        return f'{name} {operator} "{self._draw.choice(["yes", "yes", "no", "send", "x"])}"'

    def _branches(self, label: str, callees: tuple[str, ...]) -> str:
        letters = iter("abcdef")
        parts = [f"```if {self._condition()}```\n\n{self._step(3, callees, label + next(letters))}"]
        if self._chance(40):
            parts.append(f"```elif {self._condition()}```\n\n{self._step(3, callees, label + next(letters))}")
        if self._chance(40):
            parts.append(f"```else```\n\n{self._step(3, callees, label + next(letters))}")
        return "".join(parts) + "```endif```"
