"""Random playbooks in which some tools bring in text from outside, and every later model call reads it."""

from __future__ import annotations

from tests.documents.draw import Draw
from tests.documents.marked_pipelines import ANY, Pipelines
from tests.documents.playbook import PlaybookText


def playbook(draw: Draw, callees: Pipelines) -> str:
    """Return a playbook. The pipelines that it calls are added to those of `callees`."""
    return _Playbook(draw, callees).write()


class _Playbook(PlaybookText):
    values = ("tea", "yes", "a")

    def __init__(self, draw: Draw, callees: Pipelines) -> None:
        super().__init__(draw, "Marked")
        self._callees = callees
        self._labels: list[str] = []
        self._sites = 1000

    def write(self) -> str:
        for number in range(1, self._draw.between(2, 6) + 1):
            self.lines += [f"## STEP {number}: S{number}", ""]
            if self._draw.chance(25):
                self._branches(number)
            else:
                self._work(str(number))
        if self._draw.chance(30):
            self._say("## ARTIFACTS", f"from: {self._draw.pick([*self._names, *self._labels])}")
        return "\n".join(self.lines)

    def _work(self, label: str) -> None:
        site = self._sites = self._sites + 1
        known = self._draw.pick(self._names)
        kind = self._draw.pick(["think", "think", "source", "source", "sink", "sink", "ask", "prompt", "call"])
        match kind:
            case "think":
                self._say(f"Think, site {site}: {{{{{known}}}}}.")
            case "prompt":
                where = self._draw.pick([f"{{{{{known}}}}}", "mcp:sim/p", "file:p.md"])
                self._say(f"Think, site {site}: more.", f"@prompt({where})")
            case "source":
                tool = self._draw.pick(["web", "disk", "vault"])
                self._say(f'@tool(sim, {tool}{site}, {{"of": "{{{{{known}}}}}"}})')
            case "sink":
                other = self._draw.pick(self._names)
                self._say(f'@tool(sim, sink{site}, {{"one": "{{{{{known}}}}}", "two": ["x", "a {{{{{other}}}}}"]}})')
            case "ask":
                how = self._draw.pick(['input, "What', 'confirm, "Is'])
                self._say(f'@elicit({how} {{{{{known}}}}}?")')
            case "call":
                name = f"callee{len(self._callees.files)}"
                self._callees.files[name] = ""
                text = self._callees.document(name, 1, {"ctx.v": ANY}, least=1)
                self._callees.files[name] = text
                self._say(f'@tool(quire, {name}, {{"v": "{{{{{known}}}}}"}})')
        if kind in ("think", "prompt") and self._draw.chance(30):
            seen = [self._draw.pick([*self._labels, *self._names, "9"]) for _ in range(self._draw.between(1, 2))]
            self._say(f"@context({self._draw.pick(['none', ', '.join(seen)])})")
        self._labels.append(label)
        if self._draw.chance(60):
            name = self._draw.pick([f"v{site}", "x", "y", "topic"])
            more = self._draw.pick(["", "", ': enum, "a", "b"', ": number", ', extract:"mark"'])
            self._say(f"@output({name}{more})")
            self._names.append(name)

    def _branches(self, number: int) -> None:
        super()._branches(number)
        if self._draw.chance(30):
            self._say(f"@output(b{number})")
            self._names.append(f"b{number}")
        self._labels.append(str(number))
