"""VS Code as a server: installed from npm once, with the extension, and started for a while."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.given import given

from quire import __version__

ROOT = Path(__file__).parents[3]
EXTENSION = ROOT / "editors" / "vscode"
VERSION = "4.100.3"
SETTINGS = """{
  "workbench.startupEditor": "none",
  "workbench.colorTheme": "Default Light Modern",
  "workbench.tips.enabled": false,
  "workbench.reduceMotion": "on",
  "workbench.layoutControl.enabled": false,
  "window.commandCenter": false,
  "window.menuBarVisibility": "hidden",
  "chat.commandCenter.enabled": false,
  "editor.minimap.enabled": false,
  "files.autoSave": "off",
  "files.exclude": {"**/.quire": true, "**/.venv": true},
  "telemetry.telemetryLevel": "off",
  "terminal.integrated.gpuAcceleration": "off",
  "testing.automaticallyOpenPeekView": "never",
  "security.workspace.trust.startupPrompt": "never",
  "security.workspace.trust.banner": "never"
}
"""


class CodeServer:
    """A program with an extension and settings of its own, in a folder that is thrown away."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self._program = _installed()
        self._data = ["--user-data-dir", str(place / "data"), "--extensions-dir", str(place / "extensions")]
        # No `quire` on the path: each folder says with its own environment which one is used.
        path = os.pathsep.join(
            part for part in os.environ["PATH"].split(os.pathsep) if not (Path(part) / "quire").exists()
        )
        self.environment = {**os.environ, "HOME": str(place), "QUIRE_HOME": str(place / "quire-home"), "PATH": path}
        self.environment.pop("VIRTUAL_ENV", None)
        given({"data/User/settings.json": SETTINGS}, place)
        package = EXTENSION / "dist" / f"quire-{__version__}.vsix"
        subprocess.run(
            [self._program, *self._data, "--install-extension", str(package)],
            check=True,
            env=self.environment,
            stdout=subprocess.DEVNULL,
        )

    def put_on_path(self, folder: Path) -> None:
        """Let the user's shell find programs of a folder first: VS Code asks the shell for the path."""
        self.environment["PATH"] = f"{folder}{os.pathsep}{self.environment['PATH']}"
        (self.place / ".profile").write_text(f"export PATH='{self.environment['PATH']}'\n")

    @contextmanager
    def running(self, *, trusts: bool) -> Iterator[str]:
        """Yield the address of a running server. With `trusts` every folder is trusted; else none is at first."""
        port = _free_port()
        options = [
            "--auth",
            "none",
            "--bind-addr",
            f"127.0.0.1:{port}",
            "--disable-telemetry",
            "--disable-update-check",
        ]
        options += ["--disable-workspace-trust"] if trusts else []
        with (self.place / "server.log").open("ab") as log:
            server = subprocess.Popen(
                [self._program, *self._data, *options], env=self.environment, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                url = f"http://127.0.0.1:{port}/"
                _wait(url, server)
                yield url
            finally:
                server.terminate()
                server.wait(30)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until and server.poll() is None:
        with suppress(OSError), urllib.request.urlopen(f"{url}healthz", timeout=10):
            return
        time.sleep(0.2)
    raise SystemExit("code-server did not start")


def _installed() -> Path:
    """Return the program, which is installed from npm if it is missing yet."""
    folder = Path(os.environ.get("QUIRE_CODE_SERVER", EXTENSION / ".code-server"))
    program = folder / "node_modules" / ".bin" / "code-server"
    ready = folder / ".ready"
    if not ready.exists():
        folder.mkdir(exist_ok=True)
        npm = ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run([*npm, "--prefix", str(folder), f"code-server@{VERSION}"], check=True)
        inside = folder / "node_modules" / "code-server" / "lib" / "vscode"
        # Its own script would install these; the native parts are compiled here.
        for below in (inside, inside / "extensions"):
            subprocess.run([*npm, "--omit=dev", "--legacy-peer-deps"], cwd=below, check=True)
        rebuild, environment = ["npm", "rebuild"], {**_headers(), **os.environ}
        native = ["@vscode/spdlog", "native-watchdog", "node-pty"]
        subprocess.run([*rebuild, *native], cwd=inside, check=True, env=environment)
        subprocess.run([*rebuild, "argon2"], cwd=folder, check=True, env=environment)
        # Searching for files needs ripgrep, which its own script would download.
        search = inside / "node_modules" / "@vscode" / "ripgrep" / "bin" / "rg"
        search.parent.mkdir(exist_ok=True)
        search.symlink_to(_ripgrep())
        ready.touch()
    return program


def _headers(prefix: Path = Path("/usr")) -> dict[str, str]:
    """Return the setting that names the headers of node if the system has them: npm would download them otherwise."""
    return {"npm_config_nodedir": str(prefix)} if (prefix / "include" / "node" / "node.h").is_file() else {}


def _ripgrep() -> str:
    found = shutil.which("rg")
    if found is None:
        raise SystemExit("VS Code searches for files with ripgrep: install ripgrep")
    return found


def link_program(folder: Path) -> None:
    """Give a folder an environment with the `quire` of this Python."""
    program = folder / ".venv" / "bin" / "quire"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.symlink_to(Path(sys.executable).with_name("quire"))
