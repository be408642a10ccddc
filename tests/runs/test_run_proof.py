"""Bounds of a run that is not started yet: its model, its limits, its inputs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.directives import directive
from tests.given import given

from quire.engine.proven_bounds import ProvenBounds
from quire.library.document import load, read
from quire.models.choose import NO_SETTINGS, CallSettings
from quire.runs.proven import RunProof, bounds_of_run, number_with, prove_run, sizes_of
from quire.source import Source
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

AGENTS = """pipeline: p
dialect: quire
steps:
  - agent: {prompt: "One", model: "script:cheap", capabilities: {tools: []}}
  - agent: {prompt: "Two {ctx.doc}", capabilities: {tools: []}}
"""
PRICES = """
[models.prices."script:cheap"]
input = 1.0
output = 1.0
[models.prices."script:dear"]
input = 100.0
output = 100.0
"""
DIRECTIVE = directive(
    "look",
    "<execute><tool>rye.file-system.read</tool></execute>",
    '<process><step name="look"><action>Look.</action></step></process>',
    category="tests",
    tier="general",
    meta='<limits turns="3" tokens="1000" />',
)


def proven(folder: Path, text: str, name: str = "p.yaml", **options: object) -> RunProof:
    home = folder / "home"
    given({"home/quire.toml": PRICES, name: text}, folder)
    settings = load_settings(find_workspace(folder), {"QUIRE_HOME": str(home)})
    inputs: dict[str, Value] = {"doc": "x" * 1000}
    return prove_run(load(folder / name), settings, inputs, **options)  # type: ignore[arg-type]


def test_one_model_for_all_has_one_price(tmp_path: Path) -> None:
    mixed = proven(tmp_path, AGENTS, model="script:dear").most("money")
    dear = proven(tmp_path, AGENTS, model="script:dear", one_model=True).most("money")
    cheap = proven(tmp_path, AGENTS, model="script:cheap", one_model=True).most("money")
    assert mixed is not None and dear is not None and cheap is not None
    assert cheap < mixed < dear == 100 * cheap


def test_an_input_that_is_not_given_stays_a_size(tmp_path: Path) -> None:
    found = proven(tmp_path, AGENTS.replace("ctx.doc", "ctx.other"), model="script:cheap", one_model=True)
    assert found.most("money") is None or found.quantity("money").ceiling is not None  # type: ignore[union-attr]
    money = found.quantity("money")
    assert money is not None
    assert money.most.sizes == ("‖other‖",)


def test_a_list_is_as_long_as_its_widest_text(tmp_path: Path) -> None:
    inputs: dict[str, Value] = {"doc": [1] * 100}
    proven(tmp_path, AGENTS)
    settings = load_settings(find_workspace(tmp_path), {"QUIRE_HOME": str(tmp_path / "home")})
    sizes = prove_run(load(tmp_path / "p.yaml"), settings, inputs).sizes
    assert set(sizes) == {"‖doc‖"}
    assert sizes["‖doc‖"] >= len(json.dumps([1] * 100, indent=4))


def test_nothing_is_proven_of_money_without_a_price(tmp_path: Path) -> None:
    assert proven(tmp_path, AGENTS, model="script:unknown", one_model=True).most("money") is None


@pytest.mark.parametrize("turns", [2, 9])
def test_the_limits_of_the_run_count_not_those_of_the_directive(tmp_path: Path, turns: int) -> None:
    found = proven(tmp_path, DIRECTIVE, "look.md", limits={"turns": turns})
    own = proven(tmp_path, DIRECTIVE, "look.md")
    most, usual = found.most("model_calls"), own.most("model_calls")
    assert most is not None and usual is not None
    assert (most < usual) == (turns < 3)
    assert (most > usual) == (turns > 3)


def test_the_bounds_of_a_started_run_have_the_same_price_and_sizes(tmp_path: Path) -> None:
    for one_model in (True, False):
        ahead = proven(tmp_path, AGENTS, model="script:dear", one_model=one_model)
        settings = load_settings(find_workspace(tmp_path), {"QUIRE_HOME": str(tmp_path / "home")})
        plan = load(tmp_path / "p.yaml").runnable()
        inputs: dict[str, Value] = {"doc": "x" * 1000}
        started = bounds_of_run(
            plan, "p.yaml", settings, {}, "script:dear", inputs, {}, priced=True, one_model=one_model
        )
        money = next(one for one in started.quantities if one.name == "money")
        assert number_with(money, started.sizes) == ahead.most("money")
    assert sizes_of({"doc": [1] * 100}, {"‖doc‖"})["‖doc‖"] >= len(json.dumps([1] * 100, indent=4))
    assert sizes_of({"doc": "a", "rows": [1]}, {"|ctx|", "|rows|", "|gone|"}) == {"|ctx|": 2, "|rows|": 1}


def pinned(folder: Path, model: str, own: CallSettings = NO_SETTINGS, *, one_model: bool = True) -> ProvenBounds:
    """Return the bounds that a run with real models would be held to."""
    settings = load_settings(find_workspace(folder), {"QUIRE_HOME": str(folder / "home")})
    plan = load(folder / "p.yaml").runnable()
    inputs: dict[str, Value] = {"doc": "x" * 1000}
    return bounds_of_run(
        plan, "p.yaml", settings, {}, model, inputs, {}, priced=True, one_model=one_model, own=own
    ).proven


def test_money_is_compared_where_the_price_is_known(tmp_path: Path) -> None:
    money = proven(tmp_path, AGENTS, model="https://x/v1#dear", one_model=True).most("money")
    assert pinned(tmp_path, "https://x/v1#dear").cost is None and money is None
    prices = (tmp_path / "home" / "quire.toml").read_text()
    (tmp_path / "home" / "quire.toml").write_text(prices.replace("script:dear", "ollama:dear"))
    found = pinned(tmp_path, "ollama:dear")
    assert found.output_tokens == 2 * 16_384 and found.input_tokens is not None
    assert found.cost == pytest.approx((found.output_tokens + found.input_tokens) * 100 / 10**6)


def test_the_tier_of_the_run_sets_the_longest_reply(tmp_path: Path) -> None:
    proven(tmp_path, AGENTS.replace("script:cheap", "small"))
    (tmp_path / "home" / "quire.toml").write_text(
        '[models.tiers]\nsmall = {model = "ollama:a", max_tokens = 100}\n'
        'large = {model = "ollama:b", max_tokens = 9000}\n'
    )
    large = CallSettings(max_tokens=9000)
    assert pinned(tmp_path, "ollama:b", large).output_tokens == 2 * 9000
    assert pinned(tmp_path, "ollama:b", large, one_model=False).output_tokens == 9000 + 100
    assert pinned(tmp_path, "ollama:b").output_tokens == 2 * 16_384
    text = (tmp_path / "p.yaml").read_text()
    settings = load_settings(find_workspace(tmp_path), {"QUIRE_HOME": str(tmp_path / "home")})
    ahead = prove_run(read(Source.of(text, "p.yaml")), settings, {}, model="ollama:b", one_model=True, own=large)
    assert ahead.most("output_tokens") == 2 * 9000


def test_a_model_that_is_a_script_has_no_tokens_to_compare(tmp_path: Path) -> None:
    proven(tmp_path, AGENTS)
    assert pinned(tmp_path, "ollama:b", one_model=False).output_tokens is None
