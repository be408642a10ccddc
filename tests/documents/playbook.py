"""Playbooks: thinking, asking, tools, captures, branches and sub-steps; chosen contexts, artifacts and prompt files."""

from __future__ import annotations

from collections.abc import Iterator

from tests.documents.draw import Draw
from tests.simulator.scenario import Scenario

from quire.workspace.settings import OnUncertain

UNCERTAIN: tuple[OnUncertain, ...] = ("rerun", "rerun", "rerun", "ask", "fail")
RESUMES = 16
"""More than there are steps that fail when they are first done."""

_LETTERS = "abcdefgh"

_SETTINGS = """\
[agents.reader]
tools = ["read_here", "write_here"]
turns = 3
[playbooks."simulated"]
agent = "reader"
"""


class PlaybookText:
    """The lines of a playbook with an input `topic`. What a step does, a subclass draws."""

    values = ("tea", "yes", "one")
    """The words that conditions compare with."""

    def __init__(self, draw: Draw, title: str) -> None:
        self._draw = draw
        self._names = ["topic"]
        self.lines = [f"# {title}", "", "## INPUTS", "", "- `topic` (string): What it is about", ""]

    def _work(self, label: str) -> None:
        raise NotImplementedError

    def _branches(self, number: int) -> None:
        self._say(f'```if {self._draw.pick(self._names)} == "{self._draw.pick(self.values)}"```')
        letters = iter(_LETTERS)
        self._arm(number, letters)
        if self._draw.chance(70):
            self._say("```else```")
            self._arm(number, letters)
        self._say("```endif```")

    def _arm(self, number: int, letters: Iterator[str]) -> None:
        for _ in range(self._draw.between(1, 2)):
            label = f"{number}{next(letters)}"
            self.lines += [f"### STEP {label}: S{label}", ""]
            self._work(label)

    def _say(self, *lines: str) -> None:
        for line in lines:
            self.lines += [line, ""]


class _Playbook(PlaybookText):
    def __init__(self, draw: Draw) -> None:
        super().__init__(draw, "Simulated")
        self._results: list[str] = []

    def write(self) -> str:
        for number in range(1, self._draw.between(1, 5) + 1):
            self._step(number)
        if self._draw.chance(40):
            self.lines += ["## ARTIFACTS", "", f"from: {self._draw.pick([*self._results, '9'])}", ""]
        return "\n".join(self.lines)

    def _step(self, number: int) -> None:
        self.lines += [f"## STEP {number}: S{number}", ""]
        if self._draw.chance(30):
            self._branches(number)
        else:
            self._work(str(number), name=f"v{number}")

    def _work(self, label: str, *, name: str = "") -> None:
        known = self._draw.pick(self._names)
        kind = self._draw.pick(["think", "tool", "ask", "choose", "confirm", "mixed", "down", "file"])
        match kind:
            case "think":
                self._say(f"Think {label} about {{{{{known}}}}}.")
            case "file":
                self._say(f"Think {label} by a file.", "@prompt(file:prompts/{{topic}}.md)")
            case "tool":
                tool = self._draw.pick(["write", "read", "same"])
                self._say(f'@tool(sim, {tool}, {{"at": "{label}", "of": "{{{{{known}}}}}"}})')
            case "down":
                self._say(f'@tool(sim, down{label}, {{"of": "{{{{{known}}}}}"}})')
            case "ask":
                self._say(f'@elicit(input, "What of {label},\\n{{{{{known}}}}}?")')
            case "choose":
                self._say(f'@elicit(select, "Which of {label}, {{{{{known}}}}}?", "one", "two")')
            case "confirm":
                self._say(f'@elicit(confirm, "Is {label} {{{{{known}}}}}?")')
            case "mixed":
                self._say(f"Think {label} of the answer.", f'@elicit(input, "Say {label} on {{{{{known}}}}}")')
        if kind in ("think", "mixed", "file"):
            self._choose()
        self._results.append(label)
        if name and self._draw.chance(60):
            extract = ', extract:"mark"' if kind == "think" and self._draw.chance(40) else ""
            self._say(f"@output({name}{extract})")
            self._names.append(name)
            self._results.append(name)

    def _choose(self) -> None:
        if self._draw.chance(30):
            seen = [self._draw.pick([*self._results, "9"]) for _ in range(self._draw.between(1, 3))]
            self._say(f"@context({self._draw.pick(['none', ', '.join(seen)])})")
        if self._draw.chance(20):
            self._say("@model(cheap)")


def draw_playbook(draw: Draw) -> Scenario:
    text = _Playbook(draw).write()
    policy = draw.pick(UNCERTAIN)
    name = "simulated.playbook.md"
    # A call that is not made again changes what comes out, and that is what was asked for.
    exact = policy != "fail"
    files = {name: text, "prompts/tea.md": "About {{topic}}."}
    if draw.chance(40):
        files["quire.toml"] = _SETTINGS
    return Scenario("playbook", files, name, {"topic": "tea"}, exact, on_uncertain=policy, resumes=RESUMES)
