"""Settings of tiers and agents, from `quire.toml` to the service that sees them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')

from quire.cli import main
from quire.engine.premises import REPLY_TOKENS, SHORT_REPLY_TOKENS

if TYPE_CHECKING:
    from tests.models.conftest import Stub

PLAYBOOK = "# Hello\n\n## STEP 1: Say\n\nSay hello.\n\n## STEP 2: Again\n\nSay it again.\n"
PIPELINE = "pipeline: p\nsteps:\n- agent: {prompt: hello}\n- agent: {prompt: there, identity: calm}\n"
HOUSE = '[models.providers.house]\nbase_url = "{url}"\n[models]\ndefault = "cheap"\n'
TIER = '[models.tiers.cheap]\nmodel = "house:small"\ntemperature = 0.25\nmax_tokens = 50\nreasoning = "low"\n'


class Place:
    def __init__(self, base: Path, stub: Stub) -> None:
        self.work, self.home, self.stub = base / "work", base / "home", stub
        self.work.mkdir()
        self.home.mkdir()
        stub.behaviours = [stub.say("fine")]

    def configure(self, text: str) -> None:
        (self.home / "quire.toml").write_text(HOUSE.format(url=self.stub.url) + text)

    def sent(self) -> list[tuple[object, object, object]]:
        return [
            (
                one.get("temperature"),
                one.get("max_tokens") or one.get("max_completion_tokens"),
                one.get("reasoning_effort"),
            )
            for one in self.stub.requests
        ]


@pytest.fixture
def place(tmp_path: Path, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path, stub)
    monkeypatch.setenv("QUIRE_HOME", str(place.home))
    monkeypatch.chdir(place.work)
    (place.work / "hello.playbook.md").write_text(PLAYBOOK)
    (place.work / "p.yaml").write_text(PIPELINE)
    return place


def test_the_settings_of_a_tier_are_sent(place: Place) -> None:
    place.configure(TIER)
    assert main(["run", "hello.playbook.md"]) == 0
    assert place.sent() == [(0.25, 50, "low")] * 2
    assert {one["model"] for one in place.stub.requests} == {"small"}
    place.stub.requests.clear()
    assert main(["run", "hello.playbook.md", "--model", "house:small"]) == 0
    assert place.sent() == [(None, REPLY_TOKENS, None)] * 2


def test_an_agent_has_its_own_over_those_of_the_tier(place: Place) -> None:
    place.configure(TIER + '[agents.calm]\nmodel = "cheap"\ntemperature = 0\nmax_tokens = 500\n')
    assert main(["run", "p.yaml"]) == 0
    assert place.sent() == [(0.25, 50, "low"), (0.0, 50, "low")]


def test_a_run_keeps_the_settings_that_it_was_started_with(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure(TIER + "[agents.calm]\nmax_tokens = 20\n")
    place.stub.behaviours = [place.stub.say("fine"), place.stub.refuse(400), place.stub.say("fine")]
    assert main(["run", "p.yaml", "--quiet"]) == 3
    place.configure('[models.tiers]\ncheap = "house:small"\n')
    capsys.readouterr()
    assert main(["resume", "last"]) == 0
    assert place.sent() == [(0.25, 50, "low"), (0.25, 20, "low"), (0.25, 20, "low")]


def test_replies_at_another_temperature_are_not_reused(place: Place) -> None:
    place.configure(TIER)
    assert main(["run", "hello.playbook.md"]) == 0
    assert main(["run", "hello.playbook.md", "--reuse", "last"]) == 0
    assert len(place.stub.requests) == 2, "all replies are reused"
    place.configure(TIER.replace("0.25", "0.5"))
    assert main(["run", "hello.playbook.md", "--reuse", "last"]) == 0
    assert [sent[0] for sent in place.sent()] == [0.25, 0.25, 0.5, 0.5]


def test_a_fork_with_another_tier_has_its_settings(place: Place) -> None:
    place.configure(TIER + '[models.tiers.wild]\nmodel = "house:small"\ntemperature = 1.5\n')
    assert main(["run", "hello.playbook.md"]) == 0
    place.stub.requests.clear()
    assert main(["fork", "last", "--from", "2", "--model", "wild"]) == 0
    assert place.sent() == [(1.5, REPLY_TOKENS, None)]


def test_a_wrong_setting_ends_a_run_before_it_starts(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure("[agents.calm]\ntemperature = 3\n")
    assert main(["run", "p.yaml"]) == 2
    file = place.home / "quire.toml"
    assert f"{file}: [agents.calm] temperature must be a number from 0 to 2, not 3" in capsys.readouterr().err
    assert place.stub.requests == []


STEPS = """pipeline: p
dialect: quire
steps:
- agent: {prompt: hello, model: wild, max_tokens: 30}
- agent: {prompt: there, model: cheap, temperature: 0}
- agent: {prompt: again}
"""


def test_the_steps_of_a_pipeline_have_their_own_over_all(place: Place) -> None:
    (place.work / "p.yaml").write_text(STEPS)
    place.configure(TIER + '[models.tiers.wild]\nmodel = "house:large"\ntemperature = 1.5\nmax_tokens = 40\n')
    assert main(["run", "p.yaml"]) == 0
    assert place.sent() == [(1.5, 30, None), (0.0, 50, "low"), (0.25, 50, "low")]
    assert [one["model"] for one in place.stub.requests] == ["large", "small", "small"]
    place.stub.requests.clear()
    assert main(["run", "p.yaml", "--model", "house:mine"]) == 0
    assert [one["model"] for one in place.stub.requests] == ["mine"] * 3


def test_a_budget_needs_the_prices_of_models_that_steps_name(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (place.work / "p.yaml").write_text(STEPS)
    prices = '[models.prices."house:small"]\ninput = 1\noutput = 1\n'
    place.configure(TIER + '[models.tiers]\nwild = "house:large"\n' + prices)
    assert main(["run", "p.yaml", "--budget", "1.00"]) == 2
    assert "the price of house:large is not known" in capsys.readouterr().err
    assert place.stub.requests == []


def test_the_usual_length_of_a_reply_is_a_setting_and_pinned(place: Place) -> None:
    usual = "[runs]\nreply_tokens = 700\n"
    place.configure(usual + "[agents.calm]\nmax_tokens = 20\n")
    place.stub.behaviours = [place.stub.say("fine"), place.stub.refuse(400), place.stub.say("fine")]
    assert main(["run", "p.yaml", "--model", "house:small", "--quiet"]) == 3
    place.configure("[runs]\nreply_tokens = 800\n")
    assert main(["resume", "last"]) == 0
    assert [sent[1] for sent in place.sent()] == [700, 20, 20]
    place.stub.requests.clear()
    assert main(["run", "hello.playbook.md", "--model", "house:small"]) == 0
    assert [sent[1] for sent in place.sent()] == [800, 800]


def test_a_workspace_lowers_the_usual_length_and_asks_for_more(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.configure("[runs]\nreply_tokens = 700\n")
    (place.work / "quire.toml").write_text("[runs]\nreply_tokens = 300\n")
    assert main(["run", "hello.playbook.md", "--model", "house:small"]) == 0
    assert [sent[1] for sent in place.sent()] == [300, 300]
    place.stub.requests.clear()
    (place.work / "quire.toml").write_text("[runs]\nreply_tokens = 701\n")
    assert main(["run", "hello.playbook.md", "--model", "house:small"]) == 6
    assert "set [runs] reply_tokens = 701, above your 700" in capsys.readouterr().err
    assert place.stub.requests == []


def test_the_longest_reply_is_part_of_what_a_budget_reserves(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    prices = '[models.prices."house:small"]\ninput = 0\noutput = 1\n'
    place.configure(prices + "[runs]\nreply_tokens = 700000\n")
    assert main(["run", "hello.playbook.md", "--model", "house:small", "--budget", "0.69"]) == 5
    assert "the next call may cost $0.7000" in capsys.readouterr().err
    assert place.stub.requests == []


def test_a_service_that_refuses_so_long_a_reply_is_asked_for_a_shorter_one(place: Place) -> None:
    place.configure("")
    place.stub.behaviours = [place.stub.refuse(400), place.stub.say("fine"), place.stub.say("fine")]
    assert main(["run", "hello.playbook.md", "--model", "house:small"]) == 0
    assert [tokens for _, tokens, _ in place.sent()] == [REPLY_TOKENS, SHORT_REPLY_TOKENS, SHORT_REPLY_TOKENS]


def test_a_length_that_was_set_is_not_shortened(place: Place) -> None:
    place.configure("[models.tiers.cheap]\nmodel = 'house:small'\nmax_tokens = 9000\n")
    place.stub.behaviours = [place.stub.refuse(400)]
    assert main(["run", "hello.playbook.md"]) == 3
    assert [tokens for _, tokens, _ in place.sent()] == [9000]
