"""Pipelines that call, loop and fail in many ways, and random edits of them."""

from __future__ import annotations

import random
import re

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
PIECES = (
    "\n", " ", "  - ", "ctx.", "item", "acc", "a", "x", "{", "}", "{{x}}", "'", '"', "[", "]", ": ", ", ", "output: a",
    "output: b", ", when: 'a > 1'", "ctx.rows", "pipe", ", schema: Item", ", schema: Itm", "!expr a", "&z", "#", "1",
    "\n  - transform: {value: 'a', output: b}\n", "\n  - transform: {value: 'ctx.b.x', output: a, when: 'b'}\n",
    ", on_error: continue", "get(ctx, 'a')", "call: {pipeline: helper, pass: [topic]}", "---\n", "ä", "|", "sonme",
    "schema: More\nfields: {a: {type: number}}\n---\n", "input:\n  a: {type: string, required: false}\n", "+", "\n\n",
    "dialect: quire\n",
)  # fmt: skip


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
