"""`make demo`, as a newcomer runs it, without a terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from quire.models.downloads import pulled_model

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What the demo needs of the project, elsewhere, so that its runs are not kept in this checkout."""
    shutil.copytree(ROOT / "examples" / "hello", tmp_path / "examples" / "hello")
    shutil.copy(ROOT / "examples" / "demo.sh", tmp_path / "examples")
    (tmp_path / "quire.toml").write_text("")
    (tmp_path / ".venv").symlink_to(sys.prefix)
    return tmp_path


def _demo(project: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "examples/demo.sh", *arguments],
        cwd=project,
        env={**os.environ, "QUIRE_HOME": str(project / "home"), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_demo_on_a_named_model(project: Path) -> None:
    done = _demo(project, "script:examples/hello/hello.script.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Take a basket and some small change.\n"
    for said in ("A first look", "keeps the field", "[3/3]", "What to try next", "runs last"):
        assert said in done.stderr
    assert "fetches" not in done.stderr


def test_demo_takes_the_model_of_the_settings_and_fetches_nothing(project: Path) -> None:
    (project / "quire.toml").write_text('[models]\ndefault = "script:examples/hello/hello.script.json"\n')
    done = _demo(project, QUIRE_MODELS=str(project / "no-models"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Take a basket and some small change.\n"
    assert not (project / "no-models").exists()


def test_demo_fails_where_the_run_fails(project: Path) -> None:
    (project / "broken.json").write_text('[{"default": "", "delay_ms": 0}]')
    done = _demo(project, "script:broken.json")
    assert done.returncode == 3
    assert "What to try next" not in done.stderr


def test_demo_on_the_real_small_model(project: Path) -> None:
    if pulled_model("smollm2") is None:
        pytest.skip("the model is not here: quire model pull smollm2")
    done = _demo(project, "local:smollm2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr.count("done") >= 3
