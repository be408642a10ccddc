from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.given import given

from quire.cli import main
from quire.cli.model import _progress, command
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


def test_the_progress_of_a_download_is_one_line_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    report = _progress("qwen2.5-coder-1.5b")
    for so_far in (0, 1_117_000_000):
        report(so_far, 1_117_000_000)
    lines = capsys.readouterr().err.split("\r")
    assert lines == ["", "qwen2.5-coder-1.5b: 0 MB of 1117 MB", "qwen2.5-coder-1.5b: 1117 MB of 1117 MB"]


def _typed(monkeypatch: pytest.MonkeyPatch, *lines: str | None) -> list[str]:
    """Answer the prompts of the terminal. Returns the prompts."""
    answers, prompts = iter(lines), list[str]()

    async def typed_line(prompt: str, *_: object) -> str | None:
        prompts.append(prompt)
        return next(answers)

    monkeypatch.setattr("quire.cli.terminal.typed_line", typed_line)
    monkeypatch.setattr("quire.cli.start.SessionOptions.interactive", True)
    return prompts


@pytest.fixture
def playbook(workspace: Path, folder: Path) -> str:
    return str(given({"one.playbook.md": "# One\n\n## STEP 1: Say\n\nSay hello.\n"}, workspace) / "one.playbook.md")


@pytest.mark.parametrize(("lines", "asked"), [(["3"], 1), ([""], 1), ([None], 1), (["x", "4", "0", "3"], 4)])
def test_a_run_without_a_model_offers_one_on_a_terminal(
    lines: list[str | None],
    asked: int,
    playbook: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("xllamacpp")
    prompts = _typed(monkeypatch, *lines)
    assert main(["run", playbook]) == 2
    out, err = capsys.readouterr()
    assert (out, prompts) == ("", ["a number [3]: "] * asked)
    assert err.startswith(
        "no model is configured. Download one, or use the key of a provider?\n"
        "  1. qwen2.5-coder-1.5b, 1.1 GB, follows instructions\n  2. smollm2, 98 MB, a toy\n  3. a provider's key\n"
    )
    assert "quire: no model is configured. Three ways to get one:" in err


@pytest.mark.parametrize(("line", "name"), [("1", "qwen2.5-coder-1.5b"), ("2", "smollm2")])
def test_the_chosen_model_is_downloaded_and_the_run_starts(
    line: str,
    name: str,
    playbook: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("xllamacpp")
    _typed(monkeypatch, line)
    pulled = []

    def pull(wanted: str, *, report: object) -> None:
        pulled.append(wanted)
        (folder / f"{wanted}.gguf").write_bytes(b"not a model")

    monkeypatch.setattr("quire.cli.model.pull_model", pull)
    assert main(["run", playbook]) != 0, "the file that was fetched here is not a model"
    assert pulled == [name]
    assert f"{name}.gguf" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--json"], ["--unattended"], ["--detach"]])
def test_nothing_is_offered_to_a_script(
    options: list[str], playbook: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("quire.cli.drive.somebody_is_here", lambda: True)
    monkeypatch.setattr("quire.cli.model.offer_models", lambda: pytest.fail("offered"))
    assert main(["run", playbook, *options]) == 2
    assert "no model is configured" in capsys.readouterr().err


def test_nothing_is_offered_that_cannot_run(
    playbook: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = _typed(monkeypatch)
    monkeypatch.setattr("quire.cli.model.find_spec", lambda name: None)
    assert main(["run", playbook]) == 2
    assert (prompts, "Download one" in capsys.readouterr().err) == ([], False)
