"""The files of the page, held in memory with their gzip, and the shell that loads them.

The shell names all modules that the screen of its address needs, so that the browser asks for them at once and not one
after the other as it finds their imports. All files lie below `/static/HASH`, where HASH covers every file: a browser
may keep them for ever, and a new version has new addresses. The shell itself is never kept.

The sandboxed frames draw what models wrote: HTML, Mermaid diagrams and Chart.js charts. A frame is the same for every
text: the page sends the text with `postMessage`, so no URL and no state of the server carries it. The `sandbox`
directive is in the header, so that opening a frame's address directly is harmless as well. The page loads only from its
own origin, and `frame-src 'self'` is what stops a sandboxed frame from navigating away with the data that it was given.
Never loosen it.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import posixpath
import re
from collections.abc import Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct
from starlette.responses import HTMLResponse, Response

if TYPE_CHECKING:
    from starlette.requests import Request

FrameKind = Literal["html", "mermaid", "chart"]
FRAME_KINDS: tuple[FrameKind, ...] = get_args(FrameKind)

_SCRIPTS: dict[FrameKind, tuple[str, ...]] = {
    "html": ("frames/html.js",),
    "mermaid": ("frames/mermaid.js",),
    "chart": ("vendor-lazy/chart.umd.min.js", "frames/chart.js"),
}

_MODULE = ' type="module"'
_HOST = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]+)?")


def frame_page(kind: FrameKind, static: str) -> str:
    """The HTML of a frame. `static` is the address of the static files, absolute or relative to the frame's own."""
    base = escape(static.rstrip("/"))
    scripts = "".join(
        f'<script{"" if path.startswith("vendor-lazy/") else _MODULE} src="{base}/{path}"></script>\n'
        for path in _SCRIPTS[kind]
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<title>{kind}</title>\n<link rel="stylesheet" href="{base}/frames/frame.css">\n{scripts}</head>\n'
        f'<body data-kind="{kind}"><div id="place"></div></body>\n</html>\n'
    )


def frame_headers(kind: FrameKind, host: str, static_path: str) -> dict[str, str]:
    """Headers of a frame. Scripts come from two folders of `static_path` on `host`, which is the checked `Host` header.

    A policy cannot name an IPv6 address; there the frame may load scripts from our whole origin.
    """
    ours = f"{host}{static_path.rstrip('/')}" if _HOST.fullmatch(host) else ""
    own = f"{ours}/frames/" if ours else "'self'"
    scripts = f"{ours}/frames/ {ours}/vendor-lazy/" if ours else "'self'"
    # Texts of models may style what they draw. A chart is a canvas, and needs no style.
    styles = own if kind == "chart" else f"{own} 'unsafe-inline'"
    policy = {
        "sandbox": "allow-scripts",
        "default-src": "'none'",
        "script-src": own if kind == "html" else scripts,
        "style-src": styles,
        "img-src": "data:",
        "font-src": "data:" if kind == "html" else "'none'",
        "frame-src": "'none'",
        "worker-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'self'",
    }
    if kind == "chart":
        policy |= {"require-trusted-types-for": "'script'", "trusted-types": "'none'"}
    return {
        **COMMON_HEADERS,
        "Content-Security-Policy": policy_text(policy),
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-cache",
    }


_NO_FEATURES = (
    "accelerometer autoplay camera display-capture encrypted-media fullscreen geolocation gyroscope hid "
    "idle-detection local-fonts magnetometer microphone midi payment picture-in-picture publickey-credentials-get "
    "screen-wake-lock serial usb xr-spatial-tracking"
)

COMMON_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Without it a browser looks up the host of every link of a rendered text, and a host name can carry data.
    "X-DNS-Prefetch-Control": "off",
    "Permissions-Policy": ", ".join(f"{feature}=()" for feature in _NO_FEATURES.split()),
}
"""Headers of every response: page, files, frames and API."""

_IMPORT_MAP = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)


def page_headers(index: str) -> dict[str, str]:
    """Headers of the page itself, with the hash of the import map that `index` contains."""
    digests = (hashlib.sha256(text.encode()).digest() for text in _IMPORT_MAP.findall(index))
    hashes = "".join(f" 'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    policy = {
        "default-src": "'none'",
        "script-src": f"'self'{hashes}",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "connect-src": "'self'",
        "frame-src": "'self'",
        "base-uri": "'self'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "object-src": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "quire",
    }
    return {
        **COMMON_HEADERS,
        "Content-Security-Policy": policy_text(policy),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }


def asset_headers(path: str) -> dict[str, str]:
    """Headers of a static file by its path below `page/`.

    Frames have an opaque origin, so what they load must allow every origin. These files hold nothing secret.
    """
    if path.startswith(("vendor-lazy/", "frames/")):
        shared = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
    else:
        shared = {"Cross-Origin-Resource-Policy": "same-origin"}
    return {**COMMON_HEADERS, **shared}


def policy_text(policy: Mapping[str, str]) -> str:
    return "; ".join(f"{name} {sources}".strip() for name, sources in policy.items())


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
        shell = (folder / "index.html").read_text(encoding="utf-8")
        # One link, and so one request, instead of those to the style sheets.
        first, *_, last = _STYLE.finditer(shell)
        self._sheets = tuple(_STYLE.findall(shell))
        self._shell = shell[: first.start()] + first[0].replace(self._sheets[0], SHEET) + shell[last.end() :]
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
        rows = _SCREEN.findall(self._text(SCREENS))
        return tuple(
            (re.compile(_NAMED.sub(lambda name: ".+" if name[0][0] == "*" else "[^/]+", pattern)), f"app/{name}")
            for pattern, name in rows
        )

    def _needs(self, name: str) -> tuple[str, ...]:
        """Return a module and all modules that it imports, directly or through others."""
        if name not in self._needed:
            modules, open = {name: None}, [name]
            while open:
                for imported in self._imports(open.pop()):
                    if imported not in modules:
                        modules[imported] = None
                        open.append(imported)
            self._needed[name] = tuple(modules)
        return self._needed[name]

    def _imports(self, name: str) -> list[str]:
        folder = posixpath.dirname(name)
        imports = _IMPORT.findall(self._text(name)) if name.startswith("app/") else []
        paths = [IMPORTS.get(module) or posixpath.normpath(posixpath.join(folder, module)) for module in imports]
        return [path for path in paths if path in self._files]

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
            files = [self._files[sheet] for sheet in (self._sheets if name == SHEET else (name,))]
            body = b"\n".join(path.read_bytes() for path in files)
            self._held[name] = Asset(body, gzip.compress(body, 9, mtime=0), TYPES[posixpath.splitext(name)[1]])
        return self._held[name]
