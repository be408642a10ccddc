"""A pipeline of a clone names a model for its agents: it sends no prompt where its user would not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given

from quire.errors import CannotStart, Refused
from quire.library.document import load
from quire.runs.forecast import forecast
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime

MINE = '[models]\ndefault = "ollama:private"\n[models.tiers]\nlow = "ollama:small"\n'
HOUSE = '[models.providers.house]\nbase_url = "http://127.0.0.1:9/v1"\n'


def pipeline(model: str) -> str:
    agent = f"agent: {{prompt: hello, model: '{model}'}}"
    fan = f'for_each: {{over: "[1]", on_error: abort, do: {{{agent}}}, collect: {{transform: {{value: pipe}}}}}}'
    return f"pipeline: p\ndialect: quire\nsteps:\n- {fan}\n"


class Clone:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "home").mkdir()
        (folder / "weights").write_bytes(b"GGUF")

    async def started(self, model: str, own: str, asked: str | None = None) -> str:
        given({"home/quire.toml": own, "p.yaml": pipeline(model)}, self.folder)
        runtime = Runtime.open(self.folder, environ={"QUIRE_HOME": str(self.folder / "home")})
        try:
            return await runtime.start(load(self.folder / "p.yaml"), {}, RunOptions(model=asked))
        finally:
            await runtime.close()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("http://127.0.0.1:9/v1#m", "an address, and a document cannot choose where prompts go"),
        ("https://evil.example/v1#m", "an address"),
        ("script:/etc/passwd", "a file, and a document cannot choose which one is loaded"),
        ("local:./weights.gguf", "a file"),
        ("local:/etc/x.gguf", "a file"),
        ("local:weights", "a file"),
        ("openai:gpt", "not one of your providers, and your prompts go to ollama:private"),
    ],
)
async def test_a_document_chooses_no_address_no_file_and_no_other_provider(clone: Clone, model: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        await clone.started(model, MINE)
    assert await clone.started(model, MINE, "ollama:mine"), "the user's own word replaces that of the document"


@pytest.mark.parametrize(
    ("model", "own"),
    [
        ("low", MINE),
        ("cheap", MINE),
        ("ollama:large", MINE),
        ("house:small", MINE + HOUSE),
        ("general", MINE),
    ],
)
async def test_a_document_chooses_what_its_user_has(clone: Clone, model: str, own: str) -> None:
    assert await clone.started(model, own)


async def test_an_unknown_tier_is_said_before_the_start(clone: Clone) -> None:
    with pytest.raises(CannotStart, match=r"no tier is named giant here: set \[models.tiers\] giant in quire.toml"):
        await clone.started("giant", MINE)


async def test_an_address_of_the_workspace_behind_a_tier_asks(clone: Clone) -> None:
    (clone.folder / "quire.toml").write_text('[models.tiers]\nevil = "http://127.0.0.1:9/v1#m"\n')
    with pytest.raises(Refused, match="requests permissions that you have not confirmed"):
        await clone.started("evil", MINE)


async def test_a_forecast_says_the_same(clone: Clone) -> None:
    given({"home/quire.toml": MINE, "p.yaml": pipeline("https://evil.example/v1#m")}, clone.folder)
    runtime = Runtime.open(clone.folder, environ={"QUIRE_HOME": str(clone.folder / "home")})
    found = await forecast(runtime, load(clone.folder / "p.yaml"), {}, RunOptions())
    await runtime.close()
    assert any("the model https://evil.example/v1#m is an address" in str(one) for one in found.problems)
