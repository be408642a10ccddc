"""Checking a pipeline again after a change finds exactly what checking all of it finds, in the same order."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from tests.depth import depth

from quire.diagnostics import Diagnostic
from quire.formats.pipeline.check import check_reading
from quire.formats.pipeline.incremental_check import IncrementalCheck
from quire.formats.pipeline.parse import parse
from quire.library.snapshot import Snapshot
from quire.source import Source
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

EXAMPLES = Path(__file__).parents[3] / "examples"
HELPER = """\
pipeline: helper
dialect: quire
input: {topic: {type: string}}
steps:
  - transform: {value: 'topic', output: r}
"""
RICH = """\
schema: Item
fields:
  id: {type: number}
  name: {type: string, required: false}
  state: {type: enum, values: [open, closed]}
---
schema: Unused
fields: {x: {type: bool}}
---
pipeline: main
dialect: quire
input:
  topic: {type: string}
  rows: {type: list, of: {type: string}}
  maybe: {type: string, required: false}
steps:
  - agent: {prompt: 'Look at {ctx.topic} and {rows}', schema: Item, output: found}
  - transform: {value: 'found.id + 1', output: a}
  - transform: {value: 'found.nme', output: b, when: 'found.state == "opn"'}
  - tool: {name: file__write, args: {path: x, contnt: !expr b}, output: c, on_error: continue, default: 'null'}
  - tool: {name: http__get, args: {url: 'https://x.test', headers: {Host: y}}, output: page}
  - for_each:
      over: ctx.rows
      on_error: continue
      do: {transform: {value: 'item + maybe', output: lost}}
      collect: {transform: {value: 'pipe'}}
      output: d
  - match:
      on: found.state
      cases:
        open: {steps: [{transform: {value: '1', output: e}}]}
        closd: {pipeline: helper, pass: [topic]}
      output: m
  - call: {pipeline: helper, pass: {topic: a}, output: r}
  - steps:
      - transform: {value: 'later + e', output: f}
      - transform: {value: 'f', output: g}
  - transform: {value: 'g + lost + acc', output: later}
  - fold: {over: rows, init: '0', do: {transform: {value: 'acc + item'}}, output: total}
  - repeat: {do: {transform: {value: 'acc', output: z}}, until: 'z > 2 and round > 3', max: 3, output: q}
  - transform: {value: 'a', output: dup}
  - transform: {value: 'a', output: dup}
  - parallel:
      branches:
        x: {transform: {value: 'get(ctx, "a")'}}
        y: {agent: {prompt: 'hi {toppic}', identity: writr}}
      collect: {transform: {value: 'x + errors'}}
      output: both
"""
LOOSE = """\
pipeline: loose
steps:
  - agent: {prompt: "Say {{name}} to {name}", output: name}
  - transform: {value: 'ctx.rows', output: again}
  - transform: {value: 'nmae + again', output: rows}
  - for_each: {over: rows, on_error: abort, do: {transform: {value: 'itm'}}, collect: {transform: {value: pipe}}}
  - transform: {value: 'count(ctx)', output: all}
"""
SLIPS = """\
pipeline: slips
dialect: quire
steps:
  - transform: {value: 'ctx.rows', output: total}
  - agent: {prompt: 'Look at {totl} and {ctx.totl}', output: answer}
  - for_each:
      over: answr
      on_error: abort
      do: {transform: {value: 'item + totl + ctx.rows'}}
      collect: {transform: {value: 'pipe + get(ctx, "totall")'}}
      output: all
  - repeat: {do: {transform: {value: 'acc + anser'}}, until: 'count(al) > round', max: 3, output: last}
  - steps:
      - tool: {name: file__write, args: {path: x, content: !expr lst}}
      - match: {on: total, cases: {"1": {steps: [{transform: {value: 'lats'}}]}}, output: m}
  - call: {pipeline: helper, pass: [topic, totale], output: r}
"""
SCARCE = "pipeline: scarce\nsteps:\n" + "".join(
    f"  - transform: {{value: 'store{n} + stor{n - 1} + ctx.unknown', output: store{n}}}\n" for n in range(28)
)
"""Asks for more suggestions than a reading has."""
PIECES = (
    "\n", " ", "  - ", "ctx.", "item", "acc", "a", "x", "{", "}", "{{x}}", "'", '"', "[", "]", ": ", ", ", "output: a",
    "output: b", ", when: 'a > 1'", "ctx.rows", "pipe", ", schema: Item", ", schema: Itm", "!expr a", "&z", "#", "1",
    "\n  - transform: {value: 'a', output: b}\n", "\n  - transform: {value: 'ctx.b.x', output: a, when: 'b'}\n",
    ", on_error: continue", "get(ctx, 'a')", "call: {pipeline: helper, pass: [topic]}", "---\n", "ä", "|", "sonme",
    "schema: More\nfields: {a: {type: number}}\n---\n", "input:\n  a: {type: string, required: false}\n", "+", "\n\n",
    "dialect: quire\n",
)  # fmt: skip


@pytest.fixture
def library(tmp_path: Path) -> Snapshot:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "helper.yaml").write_text(HELPER)
    (tmp_path / "quire.toml").write_text("[agents.writer]\ntools = []\n")
    return Snapshot(load_settings(find_workspace(tmp_path)), imports=False)


def documents() -> list[str]:
    paths = [path for path in sorted(EXAMPLES.rglob("*.yaml")) if ".test." not in path.name]
    texts = [path.read_text() for path in paths]
    check = IncrementalCheck()
    cut = [text for text in texts if "\nsteps:" in text and check.cut(Source("", text), registered=True) is not None]
    return [*cut, *[RICH] * 8, *[LOOSE] * 4, *[SLIPS] * 4, *[SCARCE] * 4]


def edited(text: str, drawn: random.Random) -> str:
    """Return a text after one random edit."""
    at = drawn.randrange(len(text) + 1)
    lines = text.split("\n")
    match drawn.randrange(8):
        case 0 | 1:
            return text[:at] + drawn.choice(PIECES) + text[at:]
        case 2:
            return text[:at] + text[at + drawn.choice([1, 1, 2, 5, 30]) :]
        case 3:
            line = drawn.randrange(len(lines))
            del lines[line : line + drawn.choice([1, 1, 2, 3])]
            return "\n".join(lines)
        case 4 | 5:
            return _moved_step(lines, drawn)
        case _:
            return _renamed(text, drawn)


def _moved_step(lines: list[str], drawn: random.Random) -> str:
    """Copy a step to another place, move it, or take it out."""
    starts = [at for at, line in enumerate(lines) if line.startswith("  - ")]
    if len(starts) > 1:
        start = drawn.choice(starts[:-1])
        end = next(at for at in starts if at > start)
        step = lines[start:end]
        if drawn.random() < 0.6:
            del lines[start:end]
        if drawn.random() < 0.7:
            at = drawn.choice(starts)
            lines[at:at] = step
    return "\n".join(lines)


def _renamed(text: str, drawn: random.Random) -> str:
    """Write a name of the text in place of another, once or everywhere."""
    names = re.findall(r"\b[a-zA-Z]\w*\b", text)
    if not names:
        return text
    old, new = drawn.choice(names), drawn.choice(names)
    if drawn.random() < 0.5:
        return re.sub(rf"\b{old}\b", new, text)
    found = drawn.choice([*re.finditer(rf"\b{old}\b", text)])
    return text[: found.start()] + new + text[found.end() :]


def told(found: tuple[Diagnostic, ...]) -> list[tuple[object, ...]]:
    return [(one.code.id, one.message, one.span.start, one.span.end, one.help, one.fix) for one in found]


@pytest.mark.parametrize("seed", range(depth(10, 250)))
def test_random_edits(seed: int, library: Snapshot) -> None:
    drawn = random.Random(seed)
    text = drawn.choice(documents())
    check = IncrementalCheck()
    compared = 0
    for _ in range(40):
        new = text
        for _ in range(drawn.choice([1, 1, 2, 3])):
            new = edited(new, drawn)
        registered = drawn.random() < 0.5
        for version in (new, text):
            source = Source("here.yaml", version)
            cut = check.cut(source, registered=registered)
            found = check.findings(cut, library) if cut is not None else None
            if found is None:
                continue  # such a text is checked as a whole
            compared += 1
            whole = check_reading(parse(source, registered=registered), library, plans=False)
            assert told(found) == told(whole), f"seed {seed}:\n{version}"
            if version is new and drawn.random() < 0.7:
                text = new  # the next edit goes on from here
    assert compared > 30, "almost nothing was compared"


def test_a_step_is_looked_at_again_only_if_something_that_it_reads_has_changed(
    library: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    from quire.formats.pipeline import check_types

    seen: list[str] = []
    step = check_types.TypeWalker.step

    def watched(self: check_types.TypeWalker, one: object, scope: object) -> object:
        seen.append(one.kind)  # type: ignore[attr-defined]
        return step(self, one, scope)  # type: ignore[arg-type]

    monkeypatch.setattr(check_types.TypeWalker, "step", watched)
    check = IncrementalCheck()
    text = "pipeline: p\nsteps:\n" + "".join(
        f"  - transform: {{value: 's{n} + 1', output: s{n + 1}}}\n" for n in range(40)
    )

    def looked_at(new: str) -> int:
        seen.clear()
        cut = check.cut(Source("p.yaml", new), registered=False)
        assert cut is not None
        check.findings(cut, library)
        return len(seen)

    assert looked_at(text) == 40
    assert looked_at(f"# above\n{text}") == 0
    assert looked_at(text.replace("s20 + 1", "s20 + 2")) == 1
    assert looked_at(text.replace("s20 + 1", '"text"')) in range(2, 25), "the types of all steps after it are others"
