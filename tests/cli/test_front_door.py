"""The front door: short answers are cheap, failures are a line and a number."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.given import given

from quire import __version__
from quire.cli import BROKEN_PIPE, main
from quire.errors import BadInputs, Denied, QuireError

GOOD = "# T\n\n## STEP 1: A\n\nx\n"


@pytest.mark.parametrize("option", ["--version", "-V", "version"])
def test_version(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main([option]) == 0
    assert capsys.readouterr().out == f"quire {__version__} (checkout)\n"


def imported_by(code: str, tmp_path: Path) -> set[str]:
    (tmp_path / "a.md").write_text(GOOD)
    script = f"import sys\n{code}\nsys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    return set(done.stderr.split("\n")[-1].split())


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import quire", ["click", "asyncio", "sqlite3", "rich", "dataclasses"]),
        ("from quire.cli import main; main(['--version'])", ["click", "dataclasses", "asyncio"]),
        (
            "from quire.cli import main; main(['check', 'a.md'])",
            [
                "asyncio",
                "sqlite3",
                "rich",
                "json",
                "pydantic_ai",
                "mcp",
                "xllamacpp",
                "opentelemetry",
                "quire.engine",
                "quire.cli.run",
            ],
        ),
        ("from quire.cli import main; main(['--help'])", ["asyncio", "sqlite3", "rich", "quire.cli.check"]),
    ],
)
def test_start_up_imports_nothing_it_does_not_need(tmp_path: Path, code: str, forbidden: list[str]) -> None:
    assert imported_by(code, tmp_path).isdisjoint(forbidden)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["chekc"], "quire: unknown verb 'chekc'; did you mean 'check'? (see quire --help)"),
        (["zzz"], "quire: unknown verb 'zzz' (see quire --help)"),
        (["--verison"], "quire: unknown option --verison; did you mean --version? (see quire --help)"),
        (["check", "--stric"], "quire: unknown option --stric; did you mean --strict? (see quire check --help)"),
        (["parse"], "quire: missing argument 'FILE' (see quire parse --help)"),
    ],
)
def test_a_usage_error_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], line: str) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == f"{line}\n"


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (Denied("no \x1b[31mway"), 6, "quire: no ␛[31mway\n"),
        (BadInputs(["a is missing", "b is wrong"]), 2, "quire: a is missing\n  b is wrong\n"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
        (click.ClickException("Oh."), 1, "quire: oh (see quire --help)\n"),
    ],
)
def test_failures(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    status: int,
    text: str,
) -> None:
    import quire.cli.syntax

    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr(quire.cli.syntax.parse_command, "callback", lambda *args, **named: fail())
    assert main(["parse", "x"]) == status
    assert capsys.readouterr().err == text


def test_a_bug_stays_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    import quire.cli.syntax

    def fail(*args: object, **named: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(quire.cli.syntax.parse_command, "callback", fail)
    with pytest.raises(ZeroDivisionError):
        main(["parse", "x"])
    assert not issubclass(ZeroDivisionError, QuireError)


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# T\n\n## STEP 1: A\n\n{{x}}\n")
    reading, writing = os.pipe()
    os.close(reading)
    script = "import sys; from quire.cli import main; sys.exit(main(['check', 'a.md']))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (BROKEN_PIPE, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", [["check", "a.md"], ["runs", "--json"], ["show", "a.md"]])
def test_a_full_disk_is_one_line(tmp_path: Path, arguments: list[str]) -> None:
    given({"a.md": "# T\n\n## STEP 1: A\n\n{{x}}\n", "quire.toml": ""}, tmp_path)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", f"import sys; from quire.cli import main; sys.exit(main({arguments}))"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "quire: the output could not be written: No space left on device"
    assert "Traceback" not in done.stderr


def test_an_error_with_a_file_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    import quire.cli.syntax

    def fail(*args: object, **named: object) -> None:
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(quire.cli.syntax.parse_command, "callback", fail)
    with pytest.raises(OSError, match="somewhere"):
        main(["parse", "x"])


@pytest.mark.parametrize(("closing", "out"), [("2>&-", "said\n"), (">&- 2>&-", ""), ("<&- >&- 2>&-", "")])
def test_closed_streams_are_no_failure(tmp_path: Path, closing: str, out: str) -> None:
    given({"a.md": GOOD, "quire.toml": "", "script.json": '["said"]'}, tmp_path)
    code = "import sys; from quire.cli import main; sys.exit(main(sys.argv[1:]))"
    command = f'exec "$0" -c "$1" run a.md --script script.json {closing}'
    environ = {**os.environ, "QUIRE_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, code],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, out, "")
    listed = subprocess.run(
        [sys.executable, "-c", code, "runs", "last", "--output"],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.stdout == "said\n", listed.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["run", "x"],
        ["run", "FILE"],
        ["run", "FILE", "--out", "y"],
        ["runs"],
        ["runs", "verify", "x"],
        ["inbox"],
        ["show", "FILE"],
        ["doctor"],
        ["new", "playbook", "a"],
        ["trust", "list"],
    ],
    ids=" ".join,
)
def test_a_current_folder_that_is_gone(
    words: list[str], tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, gone = tmp_path / "x.playbook.md", tmp_path / "gone"
    file.write_text(GOOD)
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main([str(file) if word == "FILE" else word for word in words]) == 2
    assert capsys.readouterr().err == "quire: the current folder does not exist any more: change to another one\n"
