"""The files of the page, held in memory with their gzip, and the shell that loads them.

All files lie below `/static/HASH`, where HASH covers every file: a browser may keep them for ever, and a new version
has new addresses. The shell itself is never kept.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import json
from collections.abc import Mapping
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
        self._shell = (folder / "index.html").read_text(encoding="utf-8")
        self.import_map = json.dumps(
            {"imports": {name: f"{self.prefix}/{file}" for name, file in IMPORTS.items()}}, separators=(",", ":")
        )

    @property
    def prefix(self) -> str:
        return f"{self._base}/static/{self.version}"

    def shell(self) -> Response:
        """Return the one HTML file of the page."""
        modules = [name for name in self._files if name.startswith(("app/", "vendor/")) and name.endswith(".js")]
        preload = "\n".join(f'<link rel="modulepreload" href="{self.prefix}/{name}">' for name in modules)
        text = (
            self._shell.replace("{{base}}", html.escape(self._base))
            .replace("{{static}}", self.prefix)
            .replace("{{importmap}}", self.import_map)
            .replace("{{preload}}", preload)
        )
        return Response(text, media_type="text/html", headers=page_headers(text))

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
        if request.path_params["version"] != self.version or name not in self._files:
            return Response("", 404)
        asset = self._asset(name)
        headers = {**asset_headers(name), "Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(asset.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.type)
        return Response(asset.body, headers=headers, media_type=asset.type)

    def _asset(self, name: str) -> Asset:
        if name not in self._held:
            path = self._files[name]
            body = path.read_bytes()
            self._held[name] = Asset(body, gzip.compress(body, 9, mtime=0), TYPES[path.suffix])
        return self._held[name]
