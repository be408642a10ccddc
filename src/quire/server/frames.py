"""Documents of the sandboxed frames that draw what models wrote: HTML, Mermaid diagrams and Chart.js charts.

A frame is the same for every text: the page sends the text with `postMessage`, so no URL and no state of the server
carries it. The `sandbox` directive is in the header, so that opening a frame's address directly is harmless as well.
"""

from __future__ import annotations

import re
from html import escape
from typing import Literal, get_args

from quire.server.security_headers import COMMON_HEADERS, policy_text

FrameKind = Literal["html", "mermaid", "chart"]
FRAME_KINDS: tuple[FrameKind, ...] = get_args(FrameKind)

_SCRIPTS: dict[FrameKind, tuple[str, ...]] = {
    "html": ("frames/html.js",),
    "mermaid": ("frames/mermaid.js",),
    "chart": ("vendor-lazy/chart.umd.min.js", "frames/chart.js"),
}

_HOST = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]+)?")


def frame_page(kind: FrameKind, static: str) -> str:
    """The HTML of a frame. `static` is the address of the static files, absolute or relative to the frame's own."""
    base = escape(static.rstrip("/"))
    scripts = "".join(_script(f"{base}/{path}") for path in _SCRIPTS[kind])
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


def _script(address: str) -> str:
    kind = "" if "vendor-lazy/" in address else ' type="module"'
    return f'<script{kind} src="{address}"></script>\n'
