"""The line before a run: numbers with the sizes of the inputs, money, questions, and the places that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

from quire.display.preflight_line import preflight_line
from quire.library.document import load
from quire.library.foresight import Foresight
from quire.runs.proven import prove_run
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

BOARD = """pipeline: board
dialect: quire
input:
  readers: {type: list, of: {type: string}}
  doc: {type: string}
steps:
  - for_each:
      over: ctx.readers
      on_error: abort
      do: {agent: {prompt: "As {item} read {ctx.doc}", capabilities: {tools: []}}}
      collect: {transform: {value: pipe}}
"""
ASKS = """
  - tool: {name: ask, args: {type: confirm, prompt: "Publish?"}, output: ok}
"""
WRITES = """
  - tool: {name: file__write, args: {path: reports/x.md, content: !expr ctx.doc}}
  - tool: {name: file__write, args: {path: !expr ctx.doc, content: x}}
  - shell: {command: [make, all]}
"""
PRICES = '[models.prices."script:m"]\ninput = 3.0\noutput = 15.0\n'
WINDOW = "window = 1000000\n"


def line(folder: Path, text: str, inputs: dict[str, Value], model: str = "script:m", prices: str = PRICES) -> str:
    home = folder / "home"
    given({"home/quire.toml": prices, "p.yaml": text}, folder)
    document = load(folder / "p.yaml")
    settings = load_settings(find_workspace(folder), {"QUIRE_HOME": str(home)})
    found = prove_run(document, settings, inputs, model=model, one_model=True)
    return preflight_line(found.quantities, found.sizes, Foresight(settings).envelope(document.runnable()))


READERS: dict[str, Value] = {"readers": ["a", "b", "c"], "doc": "ä" * 500}


@pytest.mark.parametrize(
    ("text", "inputs", "said"),
    [
        # 3 replies of 4,096 tokens at $15 a million are $0.18432; the text has 1,000 bytes, the frame 1,056.
        (BOARD, READERS, "3 model calls, ≤ $0.76"),
        (BOARD, {**READERS, "doc": ""}, "3 model calls, ≤ $0.75"),
        (BOARD, {**READERS, "readers": ["a"]}, "1 model call, ≤ $0.26"),
        (BOARD, {**READERS, "readers": ["a"] * 120}, "120 model calls, stopped at 100"),
        (BOARD, {"doc": "x"}, "at most |readers| model calls, stopped at 100"),
        (BOARD + ASKS, READERS, "3 model calls, ≤ $0.76, 1 question"),
        (
            BOARD + WRITES,
            READERS,
            "3 model calls, ≤ $0.76; writes: shell make, shell script, file__write (any path), reports/x.md",
        ),
        ("pipeline: p\nsteps:\n- transform: {value: '1'}\n", {}, "no model calls"),
    ],
    ids=["sizes", "bytes", "one", "over the cap", "not given", "asks", "writes", "nothing"],
)
def test_lines(tmp_path: Path, text: str, inputs: dict[str, Value], said: str) -> None:
    assert line(tmp_path, text, inputs).startswith(said)


def test_a_price_that_is_not_known_is_never_nothing(tmp_path: Path) -> None:
    assert line(tmp_path, BOARD, READERS, "script:other") == "3 model calls, at a price that is not known"


def test_an_estimate_stands_beside_a_bound_that_is_far_from_it(tmp_path: Path) -> None:
    text = (
        "pipeline: p\nsteps:\n"
        "  - agent: {prompt: Write, output: draft, capabilities: {tools: []}}\n"
        '  - agent: {prompt: "Check {ctx.draft}", capabilities: {tools: []}}\n'
    )
    said = line(tmp_path, text, {}, prices=PRICES + WINDOW)
    bound, _, estimate = said.removeprefix("2 model calls, ≤ $").partition(" (~ $")
    assert 2 * float(estimate.rstrip(")")) < float(bound.replace(",", ""))
    # real-work M5: without a window there is no bound, and the estimate stands alone.
    assert line(tmp_path, text, {}) == f"2 model calls, ~ ${estimate.rstrip(')')}"


def test_a_count_that_nobody_has_chosen_is_not_said(tmp_path: Path) -> None:
    """seeds 6: a product of defaults is not a bound."""
    inner = "{for_each: {over: range(10000), on_error: abort, do: {tool: {name: ask, args: {prompt: a}}}, collect: %s}}"
    collect = "{transform: {value: pipe}}"
    steps = f"- for_each: {{over: 'range(10000)', on_error: abort, do: {inner % collect}, collect: {collect}}}\n"
    said = line(tmp_path, f"pipeline: p\ndialect: quire\nsteps:\n{steps}", {})
    assert said == "no model calls, any number of questions"


def test_an_unknown_callee_is_named(tmp_path: Path) -> None:
    said = line(tmp_path, "pipeline: p\nsteps:\n- call: {pipeline: nowhere}\n", {})
    assert said.startswith(
        "any number of model calls, stopped at 100, at a price without a bound, any number of questions"
    )
    assert said.endswith("and what nowhere does, which is not known here")
