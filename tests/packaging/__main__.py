"""`make package`: builds wheel and sdist. From each, the playbook of the first page and a document test by pytest run.

The environment is of the oldest CPython that this machine has, and holds what the wheel needs and nothing else; then
also pytest and common plugins. The replies come from a script, so neither a model nor a key is needed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.docs.pages import blocks
from tests.pythons.environment import ROOT, base_packages, install, requirements
from tests.pythons.interpreters import find_interpreters

from quire.formats.grammars import NAMES

DIST = ROOT / "dist"
REPLIES = [
    {"step": "1", "reply": 'Bread, on time.\n\n{"best": "Bread, on time."}'},
    {"step": "3a", "reply": "Bread on time."},
]
OUTPUT = "Bread on time."
PYTEST_PLUGINS = ("pytest", "pytest-asyncio", "pytest-xdist", "pytest-lsp")
CODE_PAGE = "from quire.lsp.wire import code_address; print(code_address('PB106'))"
"""Editors open this page, so it has to come with the package."""


def main() -> int:
    shutil.rmtree(DIST, ignore_errors=True)
    _run(sys.executable, "-m", "hatchling", "build", "-d", str(DIST))
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    interpreter = find_interpreters()[0]
    with tempfile.TemporaryDirectory(prefix="quire-package-") as folder:
        rebuilt = Path(folder, "from-sdist")
        _pip("wheel", "--no-deps", "--no-build-isolation", "-w", str(rebuilt), str(sdist))
        for package in (wheel, *rebuilt.glob("*.whl")):
            _try(package, interpreter.program, Path(tempfile.mkdtemp(dir=folder)))
            print(f"{package.parent.name}/{package.name}: a playbook runs on {interpreter.name}", flush=True)
    return 0


def _try(package: Path, program: Path, folder: Path) -> None:
    environment, work = folder / "environment", folder / "work"
    _run(str(program), "-m", "venv", "--without-pip", str(environment))
    install(environment, requirements(base_packages()))
    _pip("--python", str(environment / "bin" / "python"), "install", "--no-deps", "--no-index", str(package))
    work.mkdir()
    playbook = blocks("docs/start/playbook.md", "markdown")[0].text
    (work / "tagline.playbook.md").write_text(playbook, encoding="utf-8")
    (work / "replies.json").write_text(json.dumps(REPLIES), encoding="utf-8")
    quire = str(environment / "bin" / "quire")
    _run(quire, "check", "--strict", "tagline.playbook.md", cwd=work)
    given = ("-i", "product=a bakery", "-i", "tone=dry", "--answer", "2=yes", "--script", "replies.json")
    said = _run(quire, "run", "-q", "tagline.playbook.md", *given, cwd=work)
    if said.strip() != OUTPUT:
        raise SystemExit(f"{package.name}: the first page's playbook gave {said!r}")
    page = _run(str(environment / "bin" / "python"), "-c", CODE_PAGE, cwd=work).strip()
    if not page.startswith(f"file://{environment.resolve()}/"):
        raise SystemExit(f"{package.name}: the page of codes is not in the package: {page!r}")
    for name in NAMES:
        if not _run(quire, "grammar", name, cwd=work).startswith("# "):
            raise SystemExit(f"{package.name}: the grammar of {name} is not in the package")
    _try_pytest(environment, work)


def _try_pytest(environment: Path, work: Path) -> None:
    """Run a document test by pytest beside plugins that take part in every item, all of them loaded as usual."""
    install(environment, requirements((*base_packages(), *PYTEST_PLUGINS)))
    shutil.copytree(ROOT / "examples" / "hello", work / "hello")
    said = _run(str(environment / "bin" / "python"), "-m", "pytest", "-n", "2", "hello", cwd=work)
    if " passed" not in said:
        raise SystemExit(f"pytest ran no test of a document:\n{said}")


def _pip(*arguments: str) -> None:
    _run(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments)


def _run(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
