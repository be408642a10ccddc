"""Quire installed by pip, pipx and uv: from each, `quire doctor` names the command that adds an extra, and it works.

The packages come from a folder, so an installer cannot take a package of the same name from elsewhere. Only pipx and uv
themselves come from an index; without one they are left out, and the run says so.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.commands import expect, pip, run
from tests.pythons.environment import base_packages, requirements

EXTRA, ITS_PACKAGES = "web", ("starlette", "uvicorn", "markdown-it-py", "pygments")
RECEIPT = '[tool]\nrequirements = [{ name = "quire-run", url = "https://evil.example/quire.whl" }]\n'


@dataclass(frozen=True)
class Desk:
    """A folder with a package index and the environments that are made from it."""

    folder: Path
    python: Path
    wheel: Path

    @property
    def index(self) -> Path:
        return self.folder / "index"

    @property
    def environ(self) -> dict[str, str]:
        """Only the folder is an index, and whatever is installed is below this desk."""
        names = ("PIPX_HOME", "PIPX_BIN_DIR", "UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "UV_CACHE_DIR", "QUIRE_HOME")
        places = {name: str(self.folder / name.lower().replace("_", "-")) for name in names}
        pip_only = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.index)}
        uv_only = {"UV_NO_CONFIG": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(self.index), "UV_OFFLINE": "1"}
        path = f"{self.folder / 'tools' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {**places, **pip_only, **uv_only, "UV_PYTHON": str(self.python), "PATH": path}

    def run(self, *command: str) -> str:
        return run(*command, cwd=self.clone, environ=self.environ)

    @property
    def clone(self) -> Path:
        """A folder as somebody else made it: the receipt in it means nothing."""
        made = self.folder / "clone"
        if not made.exists():
            made.mkdir()
            (made / "uv-receipt.toml").write_text(RECEIPT)
            (made / "pipx_metadata.json").write_text('{"main_package": {"package_or_url": "evil"}}')
        return made

    def environment(self, name: str) -> Path:
        run(str(self.python), "-m", "venv", str(self.folder / name))
        return self.folder / name / "bin"


def fill(desk: Desk) -> None:
    """Put our wheel, all that it and the extra need, and a stranger's `quire` into the index."""
    desk.index.mkdir(parents=True)
    listed = desk.folder / "requirements.txt"
    listed.write_text(requirements((*base_packages(), *ITS_PACKAGES)), encoding="utf-8")
    only = ("--only-binary", ":all:", "--no-deps", "--require-hashes")
    pip("--python", str(desk.python), "download", *only, "-d", str(desk.index), "-r", str(listed))
    (desk.index / desk.wheel.name).write_bytes(desk.wheel.read_bytes())
    with zipfile.ZipFile(desk.index / "quire-9.0.0-py3-none-any.whl", "w") as stranger:
        info = "quire-9.0.0.dist-info"
        stranger.writestr("quire/__init__.py", "")
        stranger.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: quire\nVersion: 9.0.0\n")
        stranger.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        stranger.writestr(
            f"{info}/RECORD", f"quire/__init__.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )


def follow_hint(desk: Desk, quire: Path, hint: str) -> None:
    """Compare the command that `quire doctor` names for the extra, run it, and look for the extra."""
    named = doctor(desk, quire)[f"extra {EXTRA}"]
    expect(named == ("missing", hint), f"{quire}: the command for an extra is {named}, not {hint}")
    run("sh", "-c", hint, cwd=desk.clone, environ=desk.environ)
    expect(doctor(desk, quire)[f"extra {EXTRA}"][0] == "ok", f"{quire}: {hint} does not add the extra")
    print(f"  {hint}", flush=True)


def doctor(desk: Desk, *quire: str | Path) -> dict[str, tuple[str, str]]:
    """What `quire doctor` says, by the first finding about each thing that is not fine. It exits with 1 on problems."""
    command = [*map(str, quire), "doctor", "--json"]
    environ = {**os.environ, **desk.environ}
    said = subprocess.run(command, cwd=desk.clone, env=environ, stdout=subprocess.PIPE, text=True).stdout
    findings = {}
    for finding in sorted(json.loads(said), key=lambda finding: finding["state"] != "ok"):
        findings[finding["what"]] = (finding["state"], finding["detail"])
    return findings


def try_pip(desk: Desk) -> None:
    """From the wheel, and by name from the index that has a stranger's package of the same import name."""
    for name, given, source in (
        ("from-wheel", str(desk.wheel), str(desk.wheel)),
        ("from-index", "quire-run", "quire-run"),
    ):
        bin = desk.environment(name)
        desk.run(str(bin / "python"), "-m", "pip", "install", "--quiet", given)
        expect(doctor(desk, bin / "quire")["quire"][0] == "ok", f"{name}: doctor sees a stranger's package")
        wanted = f"{bin / 'python'} -m pip install {shlex.quote(f'{source}[{EXTRA}]')}"
        follow_hint(desk, bin / "quire", wanted)


def try_stranger(desk: Desk) -> None:
    """Both packages in one environment: `quire doctor` warns."""
    bin = desk.environment("stranger")
    for package in ("quire", "quire-run"):
        desk.run(str(bin / "python"), "-m", "pip", "install", "--quiet", package)
    state, detail = doctor(desk, bin / "quire")["quire"]
    expect(state == "problem" and "quire-9.0.0" in detail, f"doctor does not warn of the other package: {detail}")
    print(f"  a package of the same import name: {detail}", flush=True)


def try_uv(desk: Desk) -> None:
    desk.run("uv", "tool", "install", "--quiet", str(desk.wheel))
    quire = desk.folder / "uv-tool-bin-dir" / "quire"
    follow_hint(desk, quire, f"uv tool install --force {shlex.quote(f'{desk.wheel}[{EXTRA}]')}")


def try_uv_environment(desk: Desk) -> None:
    """An environment of uv has no pip. One of `uvx` is in the cache, and belongs to one requirement."""
    folder = desk.folder / "of-uv"
    desk.run("uv", "venv", "--quiet", str(folder))
    python = folder / "bin" / "python"
    desk.run("uv", "pip", "install", "--quiet", "--python", str(python), "quire-run")
    follow_hint(desk, folder / "bin" / "quire", f"uv pip install --python {python} 'quire-run[{EXTRA}]'")
    for command, state in (
        ("uvx --isolated quire-run", "missing"),
        (hint := f"uvx --with 'quire-run[{EXTRA}]' quire-run", "ok"),
    ):
        row = doctor(desk, *shlex.split(command))[f"extra {EXTRA}"]
        expect(row[0] == state and (state == "ok" or row[1] == hint), f"{command}: doctor says {row}")
    print(f"  {hint}", flush=True)


def try_pipx(desk: Desk) -> None:
    desk.run("pipx", "install", "--quiet", "--python", str(desk.python), str(desk.wheel))
    quire = desk.folder / "pipx-bin-dir" / "quire"
    follow_hint(desk, quire, f"pipx install --force {shlex.quote(f'{desk.wheel}[{EXTRA}]')}")


def install_tools(desk: Desk) -> bool:
    """Install pipx and uv, if an index is reachable."""
    run(sys.executable, "-m", "venv", str(desk.folder / "tools"))
    command = [str(desk.folder / "tools" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--retries", "1"]
    return subprocess.run([*command, "uv>=0.9", "pipx>=1.8"], stdin=subprocess.DEVNULL).returncode == 0


def try_installers(wheel: Path, python: Path, folder: Path) -> None:
    desk = Desk(folder, python, wheel)
    fill(desk)
    try_pip(desk)
    try_stranger(desk)
    if not install_tools(desk):
        print("SKIPPED: uv and pipx were not tried, because no package index is reachable", flush=True)
        return
    try_uv(desk)
    try_uv_environment(desk)
    try_pipx(desk)
