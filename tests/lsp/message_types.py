"""Hold messages to the types of the protocol, as `lsprotocol` has them."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def _converter() -> Any:
    from lsprotocol.converters import get_converter

    return get_converter()


def require_valid_answer(method: str, answer: dict[str, Any]) -> None:
    """Raise if the answer to a request is not of the type that the protocol gives it."""
    from lsprotocol.types import METHOD_TO_TYPES, CodeAction, ResponseErrorMessage

    if "error" in answer:
        _converter().structure(answer, ResponseErrorMessage)
    elif method == "textDocument/codeAction":
        # The library takes every object with a `command` for a Command, and an action may have one.
        for action in answer["result"] or ():
            _require_all_kept(action, _converter().unstructure(_converter().structure(action, CodeAction)), method)
    elif method in METHOD_TO_TYPES:
        structured = _converter().structure(answer, METHOD_TO_TYPES[method][1])
        _require_all_kept(answer["result"], _converter().unstructure(structured).get("result"), method)


def require_valid_message(message: dict[str, Any]) -> None:
    """Raise if a notification or a request of the server is not of the type that the protocol gives it."""
    from lsprotocol.types import METHOD_TO_TYPES

    structured = _converter().structure(message, METHOD_TO_TYPES[message["method"]][0])
    _require_all_kept(message.get("params"), _converter().unstructure(structured).get("params"), message["method"])


def _require_all_kept(sent: Any, known: Any, way: str) -> None:
    """Raise if the type does not know something that was sent: a misspelt key would be ignored by every editor."""
    if isinstance(sent, dict) and isinstance(known, dict):
        for key, value in sent.items():
            if way.endswith(".data") or value is None or key == "data":
                continue
            assert key in known, f"{way}.{key} is not known to the protocol"
            _require_all_kept(value, known[key], f"{way}.{key}")
    elif isinstance(sent, list) and isinstance(known, list):
        assert len(sent) == len(known), way
        for one, kept in zip(sent, known, strict=True):
            _require_all_kept(one, kept, way)
