"""Where the local Ollama is and what it holds, asked with the standard library so that choosing stays cheap."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

PORT = 11434


def ollama_url(environ: Mapping[str, str]) -> str:
    """The address without a path. `OLLAMA_HOST` may be a bare host, a host and port, or a URL."""
    host = environ.get("OLLAMA_HOST", "").strip()
    if not host:
        return f"http://127.0.0.1:{PORT}"
    parts = urlsplit(host if "://" in host else f"http://{host}")
    try:
        port = parts.port
    except ValueError:
        port = None
    # The server reads the same variable as the address to bind to, so it often holds one that nobody can call.
    name = parts.hostname if parts.hostname not in (None, "", "0.0.0.0", "::") else "127.0.0.1"  # noqa: S104
    shown = f"[{name}]" if name and ":" in name else name
    return f"{parts.scheme}://{shown}:{port or (443 if parts.scheme == 'https' else PORT)}"


def ollama_models(environ: Mapping[str, str], timeout: float = 0.3) -> tuple[str, ...]:
    """The chat models it holds, newest first; none when it does not answer in time."""
    import http.client

    parts = urlsplit(ollama_url(environ))
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "127.0.0.1", parts.port, timeout=timeout)
    try:
        connection.request("GET", "/api/tags")
        response = connection.getresponse()
        found: object = json.loads(response.read(1_000_000)) if response.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return ()
    finally:
        connection.close()
    listed = found.get("models") if isinstance(found, dict) else None
    names = [item.get("name") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    # Cloud models cost money and embedding models do not talk: neither is taken without being asked for.
    return tuple(n for n in names if isinstance(n, str) and not n.endswith("-cloud") and "embed" not in n)
