"""HTTP headers that say what a browser may do with the page and its files: Content-Security-Policy and its neighbours.

The page loads only from its own origin, and `frame-src 'self'` is what stops a sandboxed frame from navigating away
with the data that it was given. Never loosen it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping

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
    hashes = "".join(f" 'sha256-{_sha256(text)}'" for text in _IMPORT_MAP.findall(index))
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


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
