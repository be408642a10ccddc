"""Names for runs that people can type."""

from __future__ import annotations

import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id(now: float) -> str:
    """Sorts by time, can be typed: seven characters of the second, five of chance."""
    number, text = int(now), ""
    for _ in range(7):
        number, digit = divmod(number, 32)
        text = _ALPHABET[digit] + text
    return text + "-" + "".join(secrets.choice(_ALPHABET) for _ in range(5))
