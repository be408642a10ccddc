"""SHA-256 without OpenSSL."""

from __future__ import annotations

import hashlib
import sys

import pytest

from quire.digests import sha256


@pytest.mark.parametrize("data", [b"", b"quire", b"x" * 99_999, b"x" * 200_000])
@pytest.mark.parametrize("loaded", [True, False])
def test_it_is_that_of_hashlib(data: bytes, loaded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = hashlib.sha256(data).hexdigest()
    if not loaded:
        monkeypatch.delitem(sys.modules, "hashlib")
    assert sha256(data) == expected
