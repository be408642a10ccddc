"""The settings of a clone that go beyond the user's own do nothing before the user agrees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quire.cli import main
from quire.errors import Untrusted
from quire.runs.adapters import Models
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm, is_trusted, requests
from quire.workspace.locate import Workspace
from quire.workspace.settings import Settings

PLAYBOOK = "# Hello\n\n## STEP 1: Say\n\nSay hello.\n"


class House:
    def __init__(self, base: Path) -> None:
        self.work, self.home = base / "work", base / "home"
        self.work.mkdir()
        self.home.mkdir()

    def load(self, theirs: str, own: str = "") -> Settings:
        (self.work / "quire.toml").write_text(theirs)
        (self.home / "quire.toml").write_text(own)
        return load_settings(Workspace(self.work), {"QUIRE_HOME": str(self.home)})


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


PRIVATE = '[models]\ndefault = "local:private"\n[models.tiers]\nlow = "ollama:small"\n'


@pytest.mark.parametrize(
    ("theirs", "own", "asked"),
    [
        ('models.default = "openai:gpt"', PRIVATE, "send prompts to openai:gpt instead of your local:private, as the"),
        ('models.default = "low"\nmodels.tiers.low = "xai:grok"', PRIVATE, "send prompts to xai:grok instead of your"),
        ('models.tiers.low = "openai:gpt"', PRIVATE, "instead of your ollama:small, as the model low"),
        ('models.tiers.high = "openai:gpt"', PRIVATE, "instead of your local:private, as the model high"),
        ('models.default = "local:weights/x.gguf"', "", "load the model file {work}/weights/x.gguf, as the model"),
        ('models.default = "local:/etc/x.gguf"', "", "load the model file /etc/x.gguf"),
        ('models.default = "local:weights"', "", "load the model file {work}/weights"),
        ('models.tiers.low = "local:~/x"', "", "load the model file"),
        ("safety.spawn.max_pipeline_spawns = 101", "", "set [safety.spawn] max_pipeline_spawns = 101, above your 100"),
        ("safety.spawn.max_pipeline_spawns = 0", "", "max_pipeline_spawns = 0 (no limit), above your 100"),
        ("safety.spawn.max_pipeline_fan_out_depth = 6", "", "max_pipeline_fan_out_depth = 6, above your 5"),
        (
            "safety.spawn.max_pipeline_spawns = 60",
            "safety.spawn.max_pipeline_spawns = 50",
            "max_pipeline_spawns = 60, above your 50",
        ),
        ("runs.reply_tokens = 16385", "", "set [runs] reply_tokens = 16385, above your 16384"),
        ("runs.reply_tokens = 900", "runs.reply_tokens = 800", "reply_tokens = 900, above your 800"),
        ('runs.durability = "process"', 'runs.durability = "power"', "durability = process, where you have power"),
        ('runs.on_uncertain = "rerun"', 'runs.on_uncertain = "ask"', "on_uncertain = rerun, where you have ask"),
        ('runs.expiry = "30d"', 'runs.expiry = "1h"', "expiry = 30d, where you have 1h"),
        ("runs.context_budget = 9000", "runs.context_budget = 100", "context_budget = 9000, where you have 100"),
        ('runs.keep = "1h"', "", "set [runs] keep = 1h, where you have no limit"),
        ('runs.keep_failed = "1h"', 'runs.keep_failed = "2h"', "set [runs] keep_failed = 1h, where you have 2h"),
        ('pipelines.entries.x.path = "../x.yaml"', "", "read the pipeline x from ../x.yaml"),
        ('pipelines.entries.x.path = "out/x.yaml"', "", "read the pipeline x from out/x.yaml"),
        ('prompts.folders = ["../home/keys"]', "", "read prompts outside of the workspace, in {home}/keys"),
        ("trust.documents = false", "trust.documents = true", "set [trust] documents = False"),
    ],
)
def test_more_than_the_users_own_is_asked_for(house: House, theirs: str, own: str, asked: str) -> None:
    (house.work / "weights").mkdir()
    (house.work / "out").symlink_to(house.home)
    before = house.load("", own)
    settings = house.load(theirs, own)
    kept = ("runs", "spawn", "trust", "pipelines", "prompt_folders")
    assert all(getattr(settings, name) == getattr(before, name) for name in kept), "it holds before anybody agreed"
    assert not is_trusted(settings)
    assert asked.format(work=house.work, home=house.home) in "\n".join(requests(settings))
    confirm(settings)
    agreed = house.load(theirs, own)
    assert is_trusted(agreed) and (agreed.models, *(getattr(agreed, name) for name in kept)) != (
        before.models,
        *(getattr(before, name) for name in kept),
    )


@pytest.mark.parametrize(
    ("theirs", "own"),
    [
        ('models.default = "openai:gpt"', ""),
        ('models.default = "local:private"', PRIVATE),
        ('models.default = "local:smollm2"', ""),
        ('models.tiers.high = "local:private"', PRIVATE),
        ('models.tiers.high = "openai:gpt"', ""),
        ("runs.reply_tokens = 4096", ""),
        ("runs.reply_tokens = 9000", "runs.reply_tokens = 10000"),
        ("safety.spawn.max_pipeline_spawns = 99", ""),
        ("safety.spawn.max_pipeline_spawns = 500", "safety.spawn.max_pipeline_spawns = 0"),
        ('runs.durability = "process"\nruns.expiry = "7d"\nruns.context_budget = 60000', ""),
        ('runs.on_uncertain = "fail"', 'runs.on_uncertain = "ask"'),
        ('runs.expiry = "30m"', 'runs.expiry = "1h"'),
        ('runs.keep = "90d"', 'runs.keep = "30d"'),
        ('models.timeout = "9m"\ntools.deny = ["shell"]', 'models.timeout = "1m"'),
        ('pipelines.entries.x.path = "sub/x.yaml"\nprompts.folders = ["sub"]', ""),
    ],
)
def test_what_is_not_more_needs_no_leave(house: House, theirs: str, own: str) -> None:
    assert requests(house.load(theirs, own)) == ()


def test_a_private_model_is_not_replaced(house: House) -> None:
    settings = house.load('models.default = "openai:gpt"', PRIVATE)
    models = Models(settings, {"OPENAI_API_KEY": "k"})
    with pytest.raises(Untrusted, match="instead of your local:private"):
        models.choose(None)
    assert models.choose("ollama:mine").spec == "ollama:mine", "the user's own word"
    confirm(settings)
    assert models.choose(None).spec == "openai:gpt"


def test_nor_is_a_tier(house: House) -> None:
    models = Models(house.load('models.tiers.low = "local:./x.gguf"'), {})
    for use in (models.choose, models.open):
        with pytest.raises(Untrusted, match=r"load the model file .*x\.gguf"):
            use("low")


@pytest.fixture
def clone(house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("QUIRE_HOME", str(house.home))
    monkeypatch.chdir(house.work)
    (house.work / "hello.playbook.md").write_text(PLAYBOOK)
    return house


def test_weights_of_a_clone_are_not_loaded(clone: House, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of weights goes to a parser in C: this one would not even be opened."""
    (clone.work / "evil.gguf").write_bytes(b"GGUF" + b"\xff" * 64)
    (clone.work / "quire.toml").write_text('[models]\ndefault = "local:evil.gguf"\n')
    status = main(["run", "hello.playbook.md"])
    err = capsys.readouterr().err
    assert "cannot be loaded" not in err, "the parser had it"
    assert status == 6
    assert f"load the model file {clone.work / 'evil.gguf'}, as the model default" in err and "quire trust" in err
    assert not (clone.work / ".quire" / "quire.db").exists()


MANY = """
pipeline: many
steps:
- for_each:
    over: ctx.items
    on_error: abort
    do: {agent: {prompt: Say it.}}
    collect: {transform: {value: count(pipe)}}
"""


def test_a_lifted_limit_does_not_start(clone: House, capsys: pytest.CaptureFixture[str]) -> None:
    (clone.work / "quire.toml").write_text("[safety.spawn]\nmax_pipeline_spawns = 100000\n")
    (clone.work / "script.json").write_text(json.dumps([{"default": "hello"}]))
    (clone.work / "many.yaml").write_text(MANY)
    (clone.work / "many.json").write_text(json.dumps({"items": list(range(101))}))
    run = ["run", "many.yaml", "-q", "--script", "script.json", "--inputs", "many.json"]
    assert main(run) == 6, "the 101st call was made"
    assert "max_pipeline_spawns = 100000, above your 100" in capsys.readouterr().err
    assert main(["trust", "workspace", "--yes"]) == 0
    assert main(run) == 0
