"""An environment for each interpreter: only what the suites need, with the versions and hashes of `constraints.txt`."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from tests.pythons.interpreters import Interpreter

from quire.installed import DISTRIBUTION

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / ".venv" / "pythons"
TEST_TOOLS = ("pytest", "pytest-asyncio", "pytest-xdist", "hypothesis")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def environment(interpreter: Interpreter) -> Path:
    """The Python of the environment; it is made where it is missing, or was made for other requirements."""
    folder = ENVIRONMENTS / interpreter.name
    python = folder / "bin" / "python"
    wanted = requirements((*base_packages(), *TEST_TOOLS))
    stamp, content = folder / ".ready", hashlib.sha256(f"{interpreter.program}\n{wanted}".encode()).hexdigest()
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == content:
        return python
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([interpreter.program, "-m", "venv", "--without-pip", folder], check=True)
    install(folder, wanted)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
    Path(packages, "quire-source.pth").write_text(f"{ROOT / 'src'}\n", encoding="utf-8")
    stamp.write_text(content, encoding="utf-8")
    return python


def install(folder: Path, wanted: str) -> None:
    """Installs requirements into an environment, which needs no pip of its own."""
    listed = folder / "requirements.txt"
    listed.write_text(wanted, encoding="utf-8")
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check"]
    command = [*pip, "install", "--only-binary", ":all:", "--no-deps", "--require-hashes", "-r", str(listed)]
    subprocess.run(command, check=True)


def base_packages() -> list[str]:
    """What Quire itself needs, without extras."""
    return [_name(requirement) for requirement in requires(DISTRIBUTION) or () if "extra ==" not in requirement]


def requirements(names: Iterable[str]) -> str:
    """The part of `constraints.txt` that these packages need, with all that they need in turn."""
    blocks: dict[str, str] = {}
    for block in re.split(r"\n(?=\S)", (ROOT / "constraints.txt").read_text(encoding="utf-8")):
        if found := _NAME.match(block):
            blocks[_normal(found[0])] = block
    pending, needed = list(names), set[str]()
    while pending:
        name = _normal(pending.pop())
        if name in needed or name not in blocks:
            continue
        needed.add(name)
        try:
            # Markers are left to pip: another interpreter may need what this one does not.
            pending += [_name(one) for one in requires(name) or () if "extra ==" not in one]
        except PackageNotFoundError:
            continue
    return "\n".join(blocks[name] for name in sorted(needed)) + "\n"


def _name(requirement: str) -> str:
    found = _NAME.match(requirement)
    assert found, requirement
    return _normal(found[0])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
