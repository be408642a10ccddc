"""SHA-256 of small things, without OpenSSL, which takes a third of the time of a bare Python to load.

Most commands take the hash of a document or of a few facts. Python has a SHA-256 of its own, under a name that depends
on its version; where it was left out, and for much data, which OpenSSL does faster, `hashlib` is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

_MUCH = 100_000
"""Bytes from which on OpenSSL has caught up."""

if TYPE_CHECKING:
    from typing import Protocol

    class _Hash(Protocol):
        def hexdigest(self) -> str: ...


def sha256(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hex."""
    return _maker(len(data))(data).hexdigest()


def _maker(size: int) -> Callable[[bytes], _Hash]:
    loaded = sys.modules.get("hashlib")
    if size < _MUCH and loaded is None:
        name = "_sha2" if sys.version_info >= (3, 12) else "_sha256"
        try:
            found: Callable[[bytes], _Hash] = __import__(name).sha256
        except (ImportError, AttributeError):
            pass
        else:
            return found
    import hashlib

    return hashlib.sha256
