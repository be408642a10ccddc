"""`make package`: builds wheel and sdist. From each, the playbook of the first page and a document test by pytest run.

The environment is of the oldest CPython that this machine has, and holds what the wheel needs and nothing else; then
also pytest and common plugins. The replies come from a script, so neither a model nor a key is needed. Then the wheel
is installed by pip, pipx and uv. With a folder the packages in it are tried: `python -m tests.packaging dist`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.actions.job import Job
from tests.docs.pages import blocks
from tests.packaging.commands import expect, pip, run
from tests.packaging.installers import try_installers
from tests.pythons.environment import ROOT, base_packages, install, requirements
from tests.pythons.interpreters import find_interpreters

from quire import __version__
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
BUILD_FILE = "src/quire/_build.py"
LARGEST_WHEEL = 4_500_000


def main(dist: Path | None) -> int:
    if dist is None:
        dist = DIST
        shutil.rmtree(dist, ignore_errors=True)
        run(sys.executable, "-m", "hatchling", "build", "-d", str(dist))
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    size = wheel.stat().st_size
    expect(size <= LARGEST_WHEEL, f"{wheel.name} has {size:,} bytes, more than {LARGEST_WHEEL:,}")
    _try_content(sdist)
    interpreter = find_interpreters()[0]
    with tempfile.TemporaryDirectory(prefix="quire-package-") as folder:
        rebuilt = Path(folder, "from-sdist")
        pip("wheel", "--no-deps", "--no-build-isolation", "-w", str(rebuilt), str(sdist))
        for package in (wheel, *rebuilt.glob("*.whl")):
            _try(package, interpreter.program, Path(tempfile.mkdtemp(dir=folder)))
            print(f"{package.parent.name}/{package.name}: a playbook runs on {interpreter.name}", flush=True)
        print("Commands that add an extra:", flush=True)
        try_installers(wheel.resolve(), interpreter.program, Path(folder, "installers"))
        _try_action(wheel.resolve(), Path(folder, "action"))
    return 0


def _try_content(sdist: Path) -> None:
    """The build reads only the .gitignore of the root, and takes everything else that lies there."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    others = sorted(names - {*run("git", "ls-files").splitlines(), "PKG-INFO", BUILD_FILE})
    expect(not others, f"{sdist.name} has {len(others)} files that git does not know: {', '.join(others[:8])}")


def _try(package: Path, program: Path, folder: Path) -> None:
    environment, work = folder / "environment", folder / "work"
    run(str(program), "-m", "venv", "--without-pip", str(environment))
    install(environment, requirements(base_packages()))
    pip("--python", str(environment / "bin" / "python"), "install", "--no-deps", "--no-index", str(package))
    work.mkdir()
    playbook = blocks("docs/start/playbook.md", "markdown")[0].text
    (work / "tagline.playbook.md").write_text(playbook, encoding="utf-8")
    (work / "replies.json").write_text(json.dumps(REPLIES), encoding="utf-8")
    quire = str(environment / "bin" / "quire")
    run(quire, "check", "--strict", "tagline.playbook.md", cwd=work)
    given = ("-i", "product=a bakery", "-i", "tone=dry", "--answer", "2=yes", "--script", "replies.json")
    said = run(quire, "run", "-q", "tagline.playbook.md", *given, cwd=work)
    expect(said.strip() == OUTPUT, f"{package.name}: the first page's playbook gave {said!r}")
    _try_version_and_docs(package, environment / "bin", work)
    page = run(str(environment / "bin" / "python"), "-c", CODE_PAGE, cwd=work).strip()
    if not page.startswith(f"file://{environment.resolve()}/"):
        raise SystemExit(f"{package.name}: the page of codes is not in the package: {page!r}")
    for name in NAMES:
        if not run(quire, "grammar", name, cwd=work).startswith("# "):
            raise SystemExit(f"{package.name}: the grammar of {name} is not in the package")
    _try_pytest(environment, work)


def _try_pytest(environment: Path, work: Path) -> None:
    """Run a document test by pytest beside plugins that take part in every item, all of them loaded as usual."""
    install(environment, requirements((*base_packages(), *PYTEST_PLUGINS)))
    shutil.copytree(ROOT / "examples" / "hello", work / "hello")
    said = run(str(environment / "bin" / "python"), "-m", "pytest", "-n", "2", "hello", cwd=work)
    if " passed" not in said:
        raise SystemExit(f"pytest ran no test of a document:\n{said}")


def _try_version_and_docs(package: Path, bin: Path, work: Path) -> None:
    """The version names the commit that was built, also in a wheel that is made from the sdist, where git is not."""
    commit, date = run("git", "show", "--no-patch", "--format=%H %cs", "HEAD").split()
    for name in ("quire", "quire-run"):
        said = run(str(bin / name), "--version", cwd=work).strip()
        expect(said == f"quire {__version__} ({commit[:8]}, {date})", f"{package.name}: {name} --version says {said!r}")
    listed = re.findall(r"^\S+", run(str(bin / "quire"), "docs", cwd=work), re.MULTILINE)
    for page in ("guides/testing", "reference/playbooks", "start/which-format"):
        expect(page in listed, f"{package.name}: quire docs does not list {page}")
        text = run(str(bin / "quire"), "docs", page, cwd=work)
        expect(text.startswith("# "), f"{package.name}: quire docs {page} prints {text[:80]!r}")


def _try_action(wheel: Path, folder: Path) -> None:
    """The action installs the wheel itself, and checks and tests the documents of an example."""
    shutil.copytree(ROOT / "examples" / "hello", folder / "repository")
    job = Job(folder / "repository", folder / "runner", installs=True).use(package=str(wheel))
    if "No matching distribution" in job.printed:
        print("SKIPPED: the action was not tried, because no package index is reachable", flush=True)
        return
    expect(not job.failed and "3 passed" in job.printed, f"the action ended with {job.outcomes}\n{job.printed}")
    expect(str(folder) in job.outputs["install"]["python"], "the action used another Quire than it installed")
    print("The action installs the wheel, and its steps pass", flush=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None))
