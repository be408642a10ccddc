"""The files of the page, held in memory with their gzip, and the shell that loads them.

All files lie below `/static/HASH`, where HASH covers every file: a browser may keep them for ever, and a new version
has new addresses. The shell itself is never kept.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.responses import Response

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
LAZY = "vendor-lazy/"
"""Files that only the sandboxed frames load. A frame has an opaque origin, so these may be read from anywhere."""
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

    @property
    def policy(self) -> str:
        """Return the content security policy of the shell."""
        digest = base64.b64encode(hashlib.sha256(self.import_map.encode()).digest()).decode()
        return (
            f"default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self'; img-src 'self' data: blob:; "
            "connect-src 'self'; frame-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'; "
            "object-src 'none'; manifest-src 'self'; require-trusted-types-for 'script'; trusted-types quire"
        )

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
        return Response(text, media_type="text/html", headers={"Content-Security-Policy": self.policy})

    def file(self, request: Request) -> Response:
        """Return one file; 404 for another version, because its modules would not fit together."""
        name = request.path_params["file"]
        if request.path_params["version"] != self.version or name not in self._files:
            return Response("", 404)
        asset = self._asset(name)
        headers = {"Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"}
        if name.startswith(LAZY):
            headers |= {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(asset.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.type)
        return Response(asset.body, headers=headers, media_type=asset.type)

    def _asset(self, name: str) -> Asset:
        if name not in self._held:
            path = self._files[name]
            body = path.read_bytes()
            self._held[name] = Asset(body, gzip.compress(body, 9, mtime=0), TYPES[path.suffix])
        return self._held[name]
