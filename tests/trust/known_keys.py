"""Keys that are the same in every process, for names of test cases."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from quire.trust.keys import PublicKey, SigningKey


def known_key(number: int, name: str = "default") -> SigningKey:
    private = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
    return SigningKey(name, PublicKey.from_key(private.public_key()), private)
