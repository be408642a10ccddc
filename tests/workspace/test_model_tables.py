"""Tiers and agents as tables: read, combined, and what is wrong with them said in one line."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from tests.workspace.test_configuration import load

from quire.errors import BadConfiguration
from quire.models.choose import NO_SETTINGS, CallSettings, Price, ProviderLimits

TABLES = """
[models]
default = "cheap"
[models.tiers]
plain = "openai:small"
[models.tiers.cheap]
model = "house:small"
temperature = 0
max_tokens = 500
reasoning = "low"
timeout = "10m"
at_once = 2
[models.limits.house]
at_once = 8
calls_per_minute = 60
tokens_per_minute = 100000
[agents.reviewer]
model = "cheap"
temperature = 1.5
turns = 4
at_once = 1
"""


def test_tiers_and_agents_are_tables(tmp_path: Path) -> None:
    settings = load(tmp_path, "", TABLES)
    models, reviewer = settings.models, settings.agents["reviewer"]
    assert models.tiers == {"plain": "openai:small", "cheap": "house:small"}
    assert models.settings_of("cheap") == CallSettings(0.0, 500, "low", 600.0, 2)
    assert models.settings_of("plain") == NO_SETTINGS
    assert models.limits == {"house": ProviderLimits(8, 60, 100_000)}
    assert (reviewer.model, reviewer.turns, reviewer.call) == ("cheap", 4, CallSettings(1.5, at_once=1))
    assert models.agent_limits == {"reviewer": 1}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[models.tiers.x]\ntemperature = 1", "[models.tiers.x] needs a model"),
        ('[models.tiers.x]\nmodel = ""', "[models.tiers.x] model must be text or a list of texts, not ''"),
        ('[models.tiers.x]\nmodel = "m"\ntemprature = 1', 'temprature is not a setting; did you mean "temperature"?'),
        ('[models.tiers.x]\nmodel = "m"\nturns = 1', "[models.tiers.x] turns is not a setting"),
        ("[models.tiers]\nlow = 1", "[models.tiers] low must be text, a list of texts or a table, not 1"),
        ("[models.tiers]\nlow = []", "[models.tiers] low must be text, a list of texts or a table, not []"),
        ("[agents.x]\ntemperature = 2.1", "[agents.x] temperature must be a number from 0 to 2, not 2.1"),
        ("[agents.x]\ntemperature = -0.1", "temperature must be a number from 0 to 2, not -0.1"),
        ("[agents.x]\ntemperature = nan", "temperature must be a number from 0 to 2, not nan"),
        ("[agents.x]\ntemperature = true", "temperature must be a number from 0 to 2, not True"),
        ('[agents.x]\ntemperature = "0.2"', "temperature must be a number from 0 to 2, not '0.2'"),
        ("[agents.x]\nmax_tokens = 0", "[agents.x] max_tokens must be a whole number, 1 or more, not 0"),
        ("[agents.x]\nmax_tokens = 1.5", "max_tokens must be a whole number, 1 or more, not 1.5"),
        ("[agents.x]\nturns = 0", "[agents.x] turns must be a whole number, 1 or more, not 0"),
        ("[agents.x]\nat_once = -1", "[agents.x] at_once must be a whole number, 1 or more, not -1"),
        ('[agents.x]\nreasoning = "hard"', '[agents.x] reasoning must be "none" or "minimal" or "low" or "medium"'),
        ("[agents.x]\ntimeout = 5", "[agents.x] timeout must be a time like"),
        ("[models.limits]\nopenai = 5", "[models.limits] openai must be a table, not 5"),
        ("[models.limits.openai]\nat_once = 0", "[models.limits.openai] at_once must be a whole number, 1 or more"),
        ("[models.limits.openai]\nper_minute = 5", "[models.limits.openai] per_minute is not a setting"),
    ],
)
def test_a_wrong_value_is_one_line_with_file_and_key(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(BadConfiguration) as wrong:
        load(tmp_path, "", text)
    assert problem in str(wrong.value)
    assert str(wrong.value).startswith(str(tmp_path / "home" / "quire.toml"))
    assert len(str(wrong.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        ("temperature = 1.0", CallSettings(1.0, 500, "low", at_once=2)),
        ('max_tokens = 100000\nat_once = 50\nreasoning = "high"', CallSettings(None, 500, "low", at_once=2)),
        (
            'max_tokens = 10\nat_once = 1\nreasoning = "none"\ntimeout = "5s"',
            CallSettings(None, 10, "none", 5.0, 1),
        ),
    ],
)
def test_a_workspace_lowers_limits_and_never_raises_them(tmp_path: Path, theirs: str, found: CallSettings) -> None:
    limits = 'max_tokens = 500\nreasoning = "low"\nat_once = 2\n'
    mine = f'[models.tiers.cheap]\nmodel = "house:small"\n{limits}[agents.x]\nturns = 3\n{limits}'
    asked = f'[models.tiers.cheap]\nmodel = "house:small"\n{theirs}\n[agents.x]\nturns = 90\n{theirs}\n'
    settings = load(tmp_path, asked, mine)
    assert settings.models.settings_of("cheap") == found
    assert (settings.agents["x"].call, settings.agents["x"].turns) == (found, 3)


def test_a_tier_without_settings_keeps_the_limits_of_the_users(tmp_path: Path) -> None:
    mine = '[models]\ndefault = "cheap"\n[models.tiers.cheap]\nmodel = "house:small"\nmax_tokens = 500\n'
    for theirs in ('[models.tiers]\ncheap = "house:small"\n', '[models]\ndefault = "house:small"\n'):
        models = load(tmp_path, theirs, mine).models
        assert models.default == "cheap"
        assert models.settings_of("cheap").max_tokens == 500


def test_limits_of_the_user_and_of_the_workspace_both_hold(tmp_path: Path) -> None:
    models = load(tmp_path, "[models.limits.x]\nat_once = 90\n", "[models.limits.x]\nat_once = 9\n").models
    assert models.limits == {"x": ProviderLimits(9)}
    assert (models.folder, models.folder_limits) == (str(tmp_path / "work"), {"x": ProviderLimits(90)})


@pytest.mark.parametrize("day", ["2026-10-01", '"2026-10-01"'])
def test_a_price_may_have_a_source_and_a_day(tmp_path: Path, day: str) -> None:
    text = f'[models.prices."house:small"]\ninput = 3\noutput = 0.6\nfrom = "contract"\ndate = {day}\n'
    prices = load(tmp_path, "", text).models.prices
    assert prices == {"house:small": Price(3.0, 0.6, "contract", date(2026, 10, 1))}


@pytest.mark.parametrize(
    "day", ['"2026-13-01"', '"soon"', "20261001", "2026-10-01T00:00:00Z", "2026-10-01T00:00:00", "00:30:00", "true"]
)
def test_a_day_that_is_not_one_is_a_problem(tmp_path: Path, day: str) -> None:
    with pytest.raises(BadConfiguration, match="date must be a day like 2026-11-17, not"):
        load(tmp_path, "", f"[models.prices.x]\ninput = 3\noutput = 1\ndate = {day}\n")


def test_only_the_users_own_file_has_prices(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match=r"is read from the quire\.toml of your user folder"):
        load(tmp_path, '[models.prices.x]\ninput = 3\noutput = 1\nfrom = "a stranger"\n')
