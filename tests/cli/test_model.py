from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from quire.cli.model import command
from quire.errors import CannotStart


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUIRE_MODELS", str(tmp_path))
    return tmp_path


def test_list_and_remove(folder: Path) -> None:
    (folder / "smollm2.gguf").write_bytes(b"x" * 2_000_000)
    (folder / "ant.gguf").write_bytes(b"x")
    listed = CliRunner().invoke(command, ["list"])
    assert listed.exit_code == 0
    assert listed.stdout.splitlines() == [
        f"smollm2\t2 MB\t{folder / 'smollm2.gguf'}\t--model local:smollm2, and runs that find no other model",
        f"ant\t0 MB\t{folder / 'ant.gguf'}\t--model local:ant",
    ]
    removed = CliRunner().invoke(command, ["remove", "smollm2"])
    assert (removed.exit_code, removed.stdout) == (0, "")
    rows = json.loads(CliRunner().invoke(command, ["list", "--json"]).stdout)
    assert [(row["name"], row["size"]) for row in rows] == [("ant", 1)]
    assert rows[0]["used_by"].endswith("find no other model")


def test_an_empty_list_says_what_to_do(folder: Path) -> None:
    result = CliRunner().invoke(command, ["list"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert "quire model pull" in result.stderr
    assert json.loads(CliRunner().invoke(command, ["list", "--json"]).stdout) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["pull", "smolm2"], "did you mean smollm2?"),
        (["pull", "http://127.0.0.1:9/m.gguf", "--sha256", "0" * 64], "cannot be reached"),
        (["remove", "nothing"], "no model named nothing is here"),
    ],
)
def test_what_goes_wrong_is_one_line_and_exit_2(folder: Path, arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, CannotStart)
    assert result.exception.exit_code == 2
    assert says in str(result.exception)
    assert "\n" not in str(result.exception)
    assert result.stdout == ""


def test_what_is_here_already_is_only_named(folder: Path, smollm2_file: Path) -> None:
    (folder / "smollm2.gguf").symlink_to(smollm2_file)
    result = CliRunner().invoke(command, ["pull", "smollm2"])
    assert result.exit_code == 0
    assert result.stdout == f"{folder / 'smollm2.gguf'}\n"
    assert "--model local:smollm2" in result.stderr


@pytest.fixture
def smollm2_file() -> Path:
    from quire.models.downloads import pulled_model

    found = pulled_model("smollm2", {})
    if found is None:
        pytest.skip("the model file is not here: `quire model pull smollm2` fetches it")
    return found.path
