"""Compress responses of the API for clients that accept it. Streams and small responses stay as they are."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING

from starlette.responses import StreamingResponse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

SMALLEST = 4_000
IN_THREAD = 200_000
"""Bytes from which on a body is compressed in a thread."""
LEVEL = 5
"""Level 9 takes four times as long for a tenth less."""


async def compressed(response: Response, request: Request) -> Response:
    """Return the response, compressed if that is worth it."""
    body = b"" if isinstance(response, StreamingResponse) else bytes(response.body)
    if len(body) < SMALLEST or "content-encoding" in response.headers:
        return response
    response.headers["Vary"] = "Accept-Encoding"
    if "gzip" not in request.headers.get("accept-encoding", "").lower():
        return response
    if len(body) < IN_THREAD:
        packed = gzip.compress(body, LEVEL, mtime=0)
    else:
        packed = await asyncio.to_thread(gzip.compress, body, LEVEL, mtime=0)
    response.body = packed
    response.headers["Content-Encoding"] = "gzip"
    response.headers["Content-Length"] = str(len(packed))
    return response
