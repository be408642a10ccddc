"""Turn the exceptions of client libraries into `ModelFailed`. This is the only place that does so.

A message says what happened and what to do. It never holds a key: a library's text may quote what a server sent back,
so known secrets are removed, and for a refused key the server's text is not shown at all.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic import ValidationError
from pydantic_ai import exceptions as pai

from quire.engine.premises import TIMEOUT
from quire.errors import ModelFailed
from quire.models.http_limits import NotEvents, TooMuch, cause_of, with_causes
from quire.models.retry import TransportFailed
from quire.trust.secrets import SHORTEST, Redactor, secrets_of
from quire.wording import did_you_mean

SHOWN = 300
"""Characters of a foreign text that are shown; it is cut after secrets are removed."""


class Service(Struct, frozen=True):
    """Facts about a service for its error messages."""

    secrets: tuple[str, ...] = ()
    no_key: str = ""
    """How to configure a key, if none is sent."""
    absent: str = ""
    """The advice to give if the service does not answer."""
    url: str = ""


def failure_of(error: Exception, model: str, service: Service, seconds: float = TIMEOUT) -> ModelFailed:
    """Return the failure for an exception. `seconds` is the time that the service was waited for."""
    match cause_of(error):
        case TooMuch() as limit:
            return ModelFailed(f"{model}: the reply was broken off: it {limit}", kind="bad_reply")
        case NotEvents() as other:
            what = f"it is not a stream of events but {str(other)[:40] or 'of no type'} (is the base_url right?)"
            return ModelFailed(f"{model}: the reply could not be read: {what}", kind="bad_reply")
    secrets = service.secrets
    status = f" (HTTP {error.status_code})" if isinstance(error, pai.ModelHTTPError) else ""
    words = _said(error, secrets)
    match error:
        case pai.ModelQuotaExceededError():
            return ModelFailed(f"{model}: the account's quota or credit is used up{status}", kind="quota")
        case pai.ModelRateLimitError():
            pause = error.retry_after or _retry_delay(error.body)
            wait = f"; it asks to wait {pause:g} s" if pause else ""
            return TransportFailed(f"{model}: too many requests{status}{wait}", kind="rate_limit", retry_after=pause)
        case pai.ModelUnavailableError() | pai.ModelServerError():
            message = f"{model}: the provider failed{status}{words}"
            return TransportFailed(message, kind="server", retry_after=error.retry_after)
        case pai.ModelTimeoutError() | pai.ModelRequestTimeout() | TimeoutError():
            waited = f"no answer in time: the timeout is {seconds:g} s ([models] timeout in quire.toml)"
            return TransportFailed(f"{model}: {waited}", kind="timeout")
        case pai.ModelConnectionError() | ConnectionError():
            why = redacted(_reason(error), secrets)[:SHOWN]
            parts = urlsplit(service.url)
            at = f" ({parts.netloc.rpartition('@')[2]})" if parts.hostname else ""
            message = f"{model}: the connection failed{at}: {why}{service.absent}"
            if any(isinstance(cause, ConnectionRefusedError | socket.gaierror) for cause in with_causes(error)):
                # No service listens at the address, or the host name does not exist: a retry would not help.
                return ModelFailed(message, kind="connection")
            return TransportFailed(message, kind="connection")
        case pai.ModelAuthenticationError() if service.no_key:
            return ModelFailed(f"{model}: it wants a key{status}, and none was sent: {service.no_key}", kind="auth")
        case pai.ModelAuthenticationError():
            return ModelFailed(f"{model}: the provider refused the key{status}: check that it is right", kind="auth")
        case pai.ModelNotFoundError():
            near = getattr(error, "suggested_model_id", None)
            help_ = did_you_mean(near, " (or the base_url is wrong)", lead=" (")
            return ModelFailed(f"{model}: the provider does not know this model{status}{help_}", kind="unknown_model")
        case pai.ModelContextWindowExceededError():
            return ModelFailed(f"{model}: the prompt is longer than the model's context{words}", kind="too_long")
        case pai.ModelRequestRejectedError():
            return ModelFailed(f"{model}: the provider rejected the request{status}{words}", kind="refused")
        case pai.ContentFilterError():
            return ModelFailed(f"{model}: the provider's content filter stopped the reply", kind="refused")
        case pai.ModelHTTPError(status_code=408):
            return TransportFailed(f"{model}: the provider did not get the request in time{status}", kind="timeout")
        case pai.ModelHTTPError():
            return ModelFailed(f"{model}: the provider rejected the request{status}{words}", kind="refused")
        case pai.UserError():
            return ModelFailed(f"{model}: the request cannot be made{words}", kind="refused")
    return ModelFailed(f"{model}: the reply could not be read{_unreadable(error) or words}", kind="bad_reply")


def refuses_request(error: Exception) -> bool:
    """Tell whether the service, or the library before it, rejects the kind of request rather than the key, the model or
    the length of the prompt."""
    if isinstance(error, pai.ModelContextWindowExceededError | pai.ModelAuthenticationError | pai.ModelNotFoundError):
        return False
    if isinstance(error, pai.ModelHTTPError):
        return error.status_code in (400, 422, 501)
    return isinstance(error, pai.ModelRequestRejectedError | pai.UserError)


def _reason(error: BaseException) -> str:
    """Return the message of the innermost cause that has one: each wrapping loses words."""
    for exception in reversed(with_causes(error)):
        if isinstance(exception, ConnectionError) and exception.errno:
            return os.strerror(exception.errno)
        if isinstance(exception, OSError) and exception.strerror:
            return " ".join(exception.strerror.split())
        if text := " ".join(str(exception).split()):
            return text
    return type(error).__name__


def _retry_delay(body: object) -> float | None:
    """Return the wait that Gemini asks for: it is in the details of an error, not in a header."""
    error = body.get("error") if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else []:
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (seconds := re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s", delay)):
            return float(seconds[1])
    return None


def _unreadable(error: Exception) -> str:
    """Say what is wrong with a reply on which a library failed; the library's own message is about its internals."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f": {where[:SHOWN]}: {first['msg'][:SHOWN]}"
    if isinstance(error, pai.AgentRunError | pai.UserError) and str(error):
        return ""
    return ": it does not follow the protocol of the provider"


def _said(error: Exception, secrets: Iterable[str]) -> str:
    """Return the server's or library's own message, on one line, shortened, without secrets."""
    body = error.body if isinstance(error, pai.ModelAPIError) else None
    if isinstance(body, dict):
        inner = body.get("error")
        body = inner if isinstance(inner, str) else (inner if isinstance(inner, dict) else body).get("message")
    if isinstance(error, pai.ModelHTTPError) and not isinstance(body, str):
        return ""
    text = body if isinstance(body, str) else str(getattr(error, "message", None) or error)
    text = redacted(" ".join(text.split()), secrets)
    return f": {text[:SHOWN]}" if text else ""


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return the text without the secrets, and without any value of the environment whose name looks secret."""
    for secret in sorted((secret for secret in secrets if len(secret) >= SHORTEST), key=len, reverse=True):
        text = text.replace(secret, "…")
    return Redactor(secrets_of(os.environ)).text(text)
