"""Headers of the page, of frames and of files: what a browser may do with them (rules 6 and 7)."""

from __future__ import annotations

import base64
import hashlib

import pytest

from quire.server.assets import FRAME_KINDS, FrameKind, asset_headers, frame_headers, frame_page, page_headers

MAP = '{"imports": {}}'
INDEX = f'<html><script type="importmap">{MAP}</script></html>'


def _policy(headers: dict[str, str]) -> dict[str, str]:
    directives = headers["Content-Security-Policy"].split("; ")
    return {name: sources for name, _, sources in (directive.partition(" ") for directive in directives)}


def test_the_page_loads_from_its_own_origin_only() -> None:
    policy = _policy(page_headers(INDEX))
    digest = base64.b64encode(hashlib.sha256(MAP.encode()).digest()).decode()
    assert policy == {
        "default-src": "'none'",
        "script-src": f"'self' 'sha256-{digest}'",
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


@pytest.mark.parametrize("kind", FRAME_KINDS)
def test_a_frame_is_sandboxed_by_its_header(kind: FrameKind) -> None:
    policy = _policy(frame_headers(kind, "127.0.0.1:8377", "/q/static/abc/"))
    assert policy["sandbox"] == "allow-scripts"
    assert policy["frame-ancestors"] == "'self'"
    shut = ("default-src", "frame-src", "worker-src", "base-uri", "form-action")
    assert {policy[name] for name in shut} == {"'none'"}
    assert "connect-src" not in policy
    assert all(source.startswith("127.0.0.1:8377/q/static/abc/") for source in policy["script-src"].split())


@pytest.mark.parametrize("host", ["[::1]:8377", "evil.example; script-src *", "a b", ""])
def test_a_host_that_a_policy_cannot_name_is_not_written_into_it(host: str) -> None:
    policy = _policy(frame_headers("html", host, "/static/abc"))
    assert policy["script-src"] == "'self'"
    assert policy["style-src"] == "'self' 'unsafe-inline'"


def test_only_files_of_frames_are_shared_with_other_origins() -> None:
    shared = [path for path in ("app/main.js", "vendor/htm.js", "style.css") if _is_shared(path)]
    assert shared == []
    assert _is_shared("vendor-lazy/chart.umd.min.js") and _is_shared("frames/html.js")


def _is_shared(path: str) -> bool:
    headers = asset_headers(path)
    assert headers["X-Content-Type-Options"] == "nosniff"
    return "Access-Control-Allow-Origin" in headers and headers["Cross-Origin-Resource-Policy"] == "cross-origin"


def test_a_frame_has_no_inline_script() -> None:
    page = frame_page("mermaid", '../static/a"b')
    assert '<script type="module" src="../static/a&quot;b/frames/mermaid.js"></script>' in page
