"""The files of the page, held in memory with their gzip, and the shell that loads them.

The shell names all modules that the screen of its address needs, so that the browser asks for them at once and not one
after the other as it finds their imports. All files lie below `/static/HASH`, where HASH covers every file: a browser
may keep them for ever, and a new version has new addresses. The shell itself is never kept.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
import posixpath
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.responses import HTMLResponse, Response

from quire.server.frames import FRAME_KINDS, frame_headers, frame_page
from quire.server.security_headers import asset_headers, page_headers

if TYPE_CHECKING:
    from starlette.requests import Request

PAGE = Path(__file__).parent / "page"
TYPES: Mapping[str, str] = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
}
IMPORTS: Mapping[str, str] = {
    "preact": "vendor/preact.js",
    "preact/hooks": "vendor/hooks.js",
    "htm": "vendor/htm.js",
    "@preact/signals": "vendor/signals.js",
    "@preact/signals-core": "vendor/signals-core.js",
}
"""The bare names that modules of the page import, and the files that they mean."""
MAIN, SCREENS = "app/main.js", "app/screens.js"
_IMPORT = re.compile(r'^(?:import|export)\b[^"\';]*"([^"]+)";', re.MULTILINE)
_SCREEN = re.compile(r'\["([^"]+)", \(\) => import\("\./([^"]+)"\)')
_NAMED = re.compile(r"[:*]\w+")
_STYLE = re.compile(r'<link rel="stylesheet" href="\{\{static\}\}/([\w.]+)">')
SHEET = "all.css"
"""The address of all style sheets of the shell in one."""
FOR_EVER = "public, max-age=31536000, immutable"


class Asset(Struct, frozen=True):
    body: bytes
    packed: bytes
    type: str


class Assets:
    """All files of the page. `base` is the path below which the server is reached."""

    def __init__(self, base: str = "", folder: Path = PAGE) -> None:
        self._base = base
        self._files = {
            path.relative_to(folder).as_posix(): path
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix in TYPES
        }
        whole = hashlib.sha256()
        for name, path in self._files.items():
            whole.update(f"{name}\n".encode() + path.read_bytes())
        self.version = whole.hexdigest()[:16]
        self._held: dict[str, Asset] = {}
        self._needed: dict[str, tuple[str, ...]] = {}
        self._shell, self._sheets = _with_one_sheet((folder / "index.html").read_text(encoding="utf-8"))
        self.import_map = json.dumps(
            {"imports": {name: f"{self.prefix}/{file}" for name, file in IMPORTS.items()}}, separators=(",", ":")
        )

    @property
    def prefix(self) -> str:
        return f"{self._base}/static/{self.version}"

    def shell(self, path: str = "/") -> Response:
        """Return the one HTML file of the page, with the modules that the screen at this path needs."""
        modules = self.modules(path)
        preload = "\n".join(f'<link rel="modulepreload" href="{self.prefix}/{name}">' for name in modules)
        text = (
            self._shell.replace("{{base}}", html.escape(self._base))
            .replace("{{static}}", self.prefix)
            .replace("{{importmap}}", self.import_map)
            .replace("{{preload}}", preload)
        )
        return Response(text, media_type="text/html", headers=page_headers(text))

    def modules(self, path: str) -> tuple[str, ...]:
        """Return the modules that a browser loads to show a screen, without those that come later by themselves."""
        screen = next((name for pattern, name in self._screens if pattern.fullmatch(path.rstrip("/") or "/")), None)
        return tuple(dict.fromkeys([*IMPORTS.values(), *self._needs(MAIN), *(self._needs(screen) if screen else ())]))

    @cached_property
    def _screens(self) -> tuple[tuple[re.Pattern[str], str], ...]:
        """The patterns of addresses with the modules of their screens, from the table in the page."""
        found = _SCREEN.findall(self._text(SCREENS))
        return tuple((re.compile(_NAMED.sub(_segment, pattern)), f"app/{name}") for pattern, name in found)

    def _needs(self, name: str) -> tuple[str, ...]:
        """Return a module and all modules that it imports, directly or through others."""
        if name not in self._needed:
            found, open = {name: None}, [name]
            while open:
                for imported in self._imports(open.pop()):
                    if imported not in found:
                        found[imported] = None
                        open.append(imported)
            self._needed[name] = tuple(found)
        return self._needed[name]

    def _imports(self, name: str) -> list[str]:
        folder = posixpath.dirname(name)
        found = _IMPORT.findall(self._text(name)) if name.startswith("app/") else []
        paths = [IMPORTS.get(one) or posixpath.normpath(posixpath.join(folder, one)) for one in found]
        return [one for one in paths if one in self._files]

    def _text(self, name: str) -> str:
        return self._files[name].read_text(encoding="utf-8")

    def frame(self, request: Request) -> Response:
        """Return the document of a sandboxed frame."""
        kind = next((kind for kind in FRAME_KINDS if kind == request.path_params["kind"]), None)
        if kind is None:
            return Response("", 404)
        headers = frame_headers(kind, request.headers["host"], self.prefix)
        return HTMLResponse(frame_page(kind, self.prefix), headers=headers)

    def file(self, request: Request) -> Response:
        """Return one file; 404 for another version, because its modules would not fit together."""
        name = request.path_params["file"]
        if request.path_params["version"] != self.version or (name not in self._files and name != SHEET):
            return Response("", 404)
        asset = self._asset(name)
        headers = {**asset_headers(name), "Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(asset.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.type)
        return Response(asset.body, headers=headers, media_type=asset.type)

    def _asset(self, name: str) -> Asset:
        if name not in self._held:
            files = [self._files[one] for one in (self._sheets if name == SHEET else (name,))]
            body = b"\n".join(path.read_bytes() for path in files)
            self._held[name] = Asset(body, gzip.compress(body, 9, mtime=0), TYPES[posixpath.splitext(name)[1]])
        return self._held[name]


def _with_one_sheet(shell: str) -> tuple[str, tuple[str, ...]]:
    """Return the shell with one link instead of those to the style sheets, and the sheets: one request for all."""
    sheets = tuple(_STYLE.findall(shell))
    links = list(_STYLE.finditer(shell))
    whole = shell[: links[0].start()] + links[0][0].replace(sheets[0], SHEET) + shell[links[-1].end() :]
    return whole, sheets


def _segment(name: re.Match[str]) -> str:
    """Return the pattern of a named part of an address: `*path` may contain slashes."""
    return ".+" if name[0].startswith("*") else "[^/]+"
