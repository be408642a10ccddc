"""The verbs below `quire runs`, and that `quire runs [RUN]` is what it was."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from quire.cli import main
from quire.cli.runs import command
from quire.stores.contract import Pruned
from quire.values import encode

Invoke = Callable[..., Result]
MakeRun = Callable[..., str]
PAGE = """# Page

## INPUTS

- `name` (string)

## STEP 1: One

Hello {{name}}.

@output(said)

## STEP 2: Two

Again {{said}}.
"""


@pytest.fixture
def run(make_run: MakeRun) -> str:
    return make_run(PAGE, ["hi", "bye"], {"name": "Bo"})


def test_without_a_verb_it_lists_and_shows(invoke: Invoke, run: str) -> None:
    assert run in invoke(command).stdout
    assert invoke(command, run).stdout.startswith("Page\n")
    assert json.loads(invoke(command, "--json", run).stdout)["id"] == run
    assert json.loads(invoke(command, run, "--json").stdout)["id"] == run
    shown = invoke(command, "--help").stdout
    assert shown.startswith("Usage: quire runs [OPTIONS] [RUN|last]") and "  prune " in shown


def test_a_verb_that_is_nearly_right(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "prnue"]) == 2
    assert capsys.readouterr().err == "quire: unknown run prnue; did you mean quire runs prune?\n"
    assert main(["runs", "why", "last"]) == 2
    assert "(see quire runs why --help)" in capsys.readouterr().err
    assert main(["runs", "--jsn"]) == 2
    assert "(see quire runs --help)" in capsys.readouterr().err


def test_why_for_people_and_for_machines(invoke: Invoke, run: str) -> None:
    page = invoke(command, "why", "last", "2").stdout
    for text in ("step 2: Two", "said = hi  (step 1)", "--- user ---\n    Again hi.", "reply\n    bye"):
        assert text in page
    data = json.loads(invoke(command, "why", run, "1", "--json").stdout)
    assert data["values"] == [{"name": "name", "value": "Bo", "source": "input", "path": None}]
    assert data["effects"][0]["request"]["messages"] == [{"role": "user", "content": "Hello Bo."}]
    assert data["effects"][0]["answer"]["text"] == "hi"
    result = invoke(command, "why", "last", "3")
    assert (result.exit_code, result.stderr) == (2, f"error: run {run} has no step 3: there are 1, 2\n")


def test_diff_for_people_and_for_machines(invoke: Invoke, make_run: MakeRun, run: str) -> None:
    other = make_run(PAGE, ["hi", "ciao"], {"name": "Cy"})
    page = invoke(command, "diff", run, other).stdout
    assert "~ 2  Two  (reply, output)" in page and "-bye" in page and "+ciao" in page
    data = json.loads(invoke(command, "diff", run, other, "--json").stdout)
    assert data["about"] == [{"what": "input", "where": "name", "a": "Bo", "b": "Cy"}]
    assert [step["state"] for step in data["steps"]] == ["changed", "changed"]
    assert "= 1  One\n= 2  Two\n" in invoke(command, "diff", run, run).stdout
    assert invoke(command, "diff", run, "zzz").exit_code == 2


def test_export_verify_import(
    invoke: Invoke, run: str, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke(command, "export", run, "-o", "run.jsonl").stderr.startswith("wrote run.jsonl: ")
    assert invoke(command, "export", run).stdout_bytes == Path("run.jsonl").read_bytes()
    verified = invoke(command, "verify", "run.jsonl")
    assert verified.exit_code == 0 and "replayed to the same result" in verified.stderr
    other = tmp_path / "other"
    other.mkdir()
    (other / "quire.toml").write_text("")
    monkeypatch.chdir(other)
    file = str(workspace / "run.jsonl")
    assert invoke(command, "import", file).stdout == f"{run}\n"
    assert "imported" in invoke(command).stdout
    shown = invoke(command, run)
    assert "imported  from a file, as completed" in shown.stdout
    assert "quire runs fork" in shown.stderr
    assert json.loads(invoke(command, run, "--json").stdout)["imported"] == {"status": "completed"}
    again = invoke(command, "import", file)
    assert again.exit_code == 2 and "already" in again.stderr


def test_a_changed_byte_is_told_with_its_line(invoke: Invoke, run: str) -> None:
    invoke(command, "export", run, "-o", "run.jsonl")
    data = Path("run.jsonl").read_bytes()
    Path("run.jsonl").write_bytes(data.replace(b'"text":"hi"', b'"text":"ho"'))
    number = 1 + data[: data.index(b'"text":"hi"')].count(b"\n")
    result = invoke(command, "verify", "run.jsonl")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"run.jsonl: line {number} has been changed, or a line behind it is missing\n"
    data_ = json.loads(invoke(command, "verify", "run.jsonl", "--json").stdout)
    assert (data_["ok"], data_["line"]) == (False, number)
    assert invoke(command, "import", "run.jsonl").exit_code == 2
    assert invoke(command, "verify", "nothing.jsonl").exit_code == 2


def test_prune(invoke: Invoke, make_run: MakeRun, run: str, workspace: Path) -> None:
    waiting = make_run('# W\n\n## STEP 1: Ask\n\n@elicit(input, "What?")\n', name="w.playbook.md")
    assert invoke(command, "prune").stderr == "nothing to remove\n"
    would = invoke(command, "prune", "--older-than", "0s", "--dry-run")
    assert would.stdout == f"{run}\n"
    assert would.stderr.startswith("would remove 1 run, 2 effects, 1 text; ")
    assert invoke(command, "prune", "--older-than", "0s", "--status", "failed,cancelled").stdout == ""
    done = invoke(command, "prune", "--older-than", "0s", "--vacuum", "--json")
    assert json.loads(done.stdout)["runs"] == [run]
    assert [row["id"] for row in json.loads(invoke(command, "--json").stdout)] == [waiting]
    assert invoke(command, waiting).exit_code == 0


def test_an_old_run_that_was_just_imported_is_not_pruned(invoke: Invoke, run: str, workspace: Path) -> None:
    invoke(command, "export", run, "-o", "run.jsonl")
    lines = [json.loads(line) for line in Path("run.jsonl").read_text(encoding="utf-8").splitlines()]
    lines[0]["run"].update(created_at=1.0, updated_at=2.0)
    head = ""
    for line in lines:
        line["prev"] = head
        if line["type"] == "end":
            line["head"] = head
        head = hashlib.sha256(encode(line).encode()).hexdigest()
    Path("run.jsonl").write_text("".join(f"{encode(line)}\n" for line in lines), encoding="utf-8")
    invoke(command, "prune", "--older-than", "0s")
    assert invoke(command, "import", "run.jsonl").exit_code == 0
    assert json.loads(invoke(command, run, "--json").stdout)["updated_at"] == 2.0
    assert invoke(command, "prune").stderr == "nothing to remove\n"
    assert invoke(command, "prune", "--older-than", "0s").stdout == f"{run}\n"


@pytest.mark.parametrize(
    ("dry_run", "vacuum", "said"),
    [
        (
            True,
            True,
            "would remove 1 run, 0 effects, 2 texts; 3,000 bytes would be free in the database after its next ",
        ),
        (False, False, "removed 1 run, 0 effects, 2 texts; 3,000 bytes are free in the database after its next VACUUM"),
        (False, True, "3,000 bytes are free in the database, 0 went back to the disk"),
    ],
)
def test_what_is_free_in_a_server(
    dry_run: bool, vacuum: bool, said: str, invoke: Invoke, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prune(self: object, *given: object, **how: object) -> Pruned:
        return Pruned(("r1",), 0, 2, 3_000, in_file=False)

    monkeypatch.setattr("quire.stores.sqlite.store.SqliteStore.prune", prune)
    flags = [*(["--dry-run"] if dry_run else []), *(["--vacuum"] if vacuum else [])]
    assert said in invoke(command, "prune", *flags).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--older-than", "soon"], "write a number and s, m, h, d or w: 30d"),
        (["--status", "running"], "only runs that have ended are removed"),
        (["--status", "completed,awaiting_input"], "--status awaiting_input"),
    ],
)
def test_prune_refuses(invoke: Invoke, run: str, arguments: list[str], message: str) -> None:
    result = invoke(command, "prune", *arguments)
    assert result.exit_code == 2 and message in result.stderr
    assert run in invoke(command).stdout


def test_backup(invoke: Invoke, run: str) -> None:
    assert invoke(command, "backup", "copy.db").stderr.startswith("wrote copy.db: ")
    connection = sqlite3.connect("copy.db")
    assert connection.execute("SELECT id FROM runs").fetchall() == [(run,)]
    connection.close()
    again = invoke(command, "backup", "copy.db")
    assert (again.exit_code, again.stderr) == (2, "error: copy.db exists already: name a new file\n")
    assert [path.name for path in Path().iterdir() if "copy" in path.name] == ["copy.db"]


def test_a_store_of_a_newer_version_is_refused_by_all_of_them(
    run: str, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = sqlite3.connect(workspace / ".quire" / "quire.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for verb in (
        ["runs"],
        ["runs", "why", run, "1"],
        ["runs", "export", run],
        ["runs", "prune"],
        ["fork", run, "--from", "1"],
    ):
        assert main(verb) == 2
        assert "was written by a newer Quire (schema 99" in capsys.readouterr().err
