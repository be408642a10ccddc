"""A small page with the real headers, frames and modules, for tests of what draws a model's texts.

`show(KIND, TEXT)` in the page draws a text in a frame, `show("markup", HTML)` inserts HTML through the one policy.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from tests.vendor.manifest import PAGE

from quire.server.assets import FRAME_KINDS, FrameKind, asset_headers, frame_headers, frame_page, page_headers

STATIC = "/static/t"
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css"}

INDEX = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Stage</title><base href="/">
<script type="importmap">{{"imports": {{
  "preact": "{STATIC}/vendor/preact.js", "preact/hooks": "{STATIC}/vendor/hooks.js", "htm": "{STATIC}/vendor/htm.js",
  "@preact/signals": "{STATIC}/vendor/signals.js", "@preact/signals-core": "{STATIC}/vendor/signals-core.js"
}}}}</script>
<script type="module" src="{STATIC}/stage.js"></script><link rel="stylesheet" href="{STATIC}/stage.css">
<link rel="icon" href="data:,"></head>
<body><main><h1>Stage</h1><div id="root"></div></main></body></html>"""

SCRIPT = """
import { h, render } from "preact";
import { Frame } from "./app/parts/frame.js";
import { Markup } from "./app/parts/markup.js";
const root = document.getElementById("root");
globalThis.show = (kind, text) =>
  render(kind === "markup" ? h(Markup, { html: text }) : h(Frame, { kind, text, title: "Drawing" }), root);
globalThis.showAll = (kind, texts) =>
  render(texts.map((text, at) => h(Frame, { key: at, kind, text, title: `Drawing ${at}` })), root);
"""
STYLE = "iframe { display: block; width: 640px; height: 320px; border: 0 }"


def stage_app() -> Starlette:
    return Starlette(
        routes=[
            Route("/", lambda request: HTMLResponse(INDEX, headers=page_headers(INDEX))),
            Route("/frames/{kind}", _frame),
            Route(f"{STATIC}/{{path:path}}", _file),
        ]
    )


def _frame(request: Request) -> Response:
    kind = _kind(request.path_params["kind"])
    return HTMLResponse(frame_page(kind, STATIC), headers=frame_headers(kind, request.headers["host"], STATIC))


def _kind(name: str) -> FrameKind:
    assert name in get_args(FrameKind)
    return FRAME_KINDS[FRAME_KINDS.index(name)]


def _file(request: Request) -> Response:
    path = request.path_params["path"]
    own = {"stage.js": SCRIPT, "stage.css": STYLE}
    target = PAGE / path
    if path not in own and not target.is_file():
        return Response(status_code=404)
    data = own[path] if path in own else target.read_bytes()
    headers = asset_headers(path) | {"Cache-Control": "max-age=31536000, immutable"}
    return Response(data, media_type=TYPES["." + path.rpartition(".")[2]], headers=headers)


@contextmanager
def serving(app: Starlette) -> Iterator[str]:
    """Serve an application on a free port of this machine, in a thread; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
