"""Open OpenAI-compatible services: a configured base_url, an address given directly, Ollama.

The SDK reads several OPENAI_… variables by itself (key, organization, project, extra headers). These must not go to a
service that only speaks the same protocol, so the request is limited to the headers named here.

Imports the SDK and pydantic-ai: only `open_model` imports this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from quire.models.providers import HostedModel, PriceSource

if TYPE_CHECKING:
    import httpx2

    from quire.engine.ports import Model

_HEADERS = frozenset(
    ("host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length", "authorization")
)


def compatible_model(
    spec: str, name: str, base_url: str, key: str, *, free: bool, timeout: float, no_key: str = "", absent: str = ""
) -> Model:
    """Open an OpenAI-compatible service. If `key` is empty, no authorization is sent at all, and `no_key` says how to
    configure one.

    `absent` says what may be wrong if the service does not answer.
    """

    def build(client: httpx2.AsyncClient) -> OpenAIChatModel:
        client.event_hooks["request"].append(_only_ours(key))
        sdk = AsyncOpenAI(base_url=base_url, api_key=key or "none", http_client=client, max_retries=0)
        return OpenAIChatModel(name, provider=OpenAICompatibleProvider("compatible", openai_client=sdk))

    price: PriceSource = "free" if free else "unknown"
    secrets, hint = ((key,), "") if key else ((), no_key)
    return HostedModel(
        spec,
        build,
        price=price,
        secrets=secrets,
        read_seconds=timeout,
        no_key=hint,
        absent=absent,
        effort="openai_reasoning_effort",
    )


def _only_ours(key: str) -> Callable[[httpx2.Request], Awaitable[None]]:
    authorization = f"Bearer {key}" if key else None

    async def limit(request: httpx2.Request) -> None:
        for header in list(request.headers):
            if header.lower() not in _HEADERS:
                del request.headers[header]
        # The header is only removed, never added: on a redirect to another host the client has removed it already.
        if "authorization" in request.headers and request.headers["authorization"] != authorization:
            del request.headers["authorization"]

    return limit
