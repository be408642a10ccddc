"""Ed25519 keys, which sign documents and verify signatures, and storage of private keys in the system's keyring.

A key is known by its id, the first 16 hex digits of the SHA-256 of its public half in PEM form. `cryptography` is
imported when a key is first used, a public key is decoded once, and a signature is verified once. The keyring is for
users who do not want their private keys in a file.
"""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import CannotStart
from quire.installed import add_extra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


SERVICE = "quire"


def put(key_id: str, pem: str) -> None:
    keyring = _module()
    try:
        keyring.set_password(SERVICE, key_id, pem)
    except keyring.errors.KeyringError as error:
        raise CannotStart(
            f"the keyring does not take the key ({error}); leave out --keyring to keep it in a file"
        ) from None


def get(key_id: str) -> str:
    keyring = _module()
    try:
        pem = keyring.get_password(SERVICE, key_id)
    except keyring.errors.KeyringError as error:
        raise CannotStart(f"the keyring cannot be read: {error}") from None
    if not isinstance(pem, str):
        raise CannotStart(f"the keyring does not hold the key {key_id}; make a new one with: quire trust keys new NAME")
    return pem


def _module() -> ModuleType:
    try:
        import keyring
        import keyring.errors
    except ImportError:
        raise CannotStart(f"keys in the keyring need the package keyring: {add_extra('keyring')}") from None
    return keyring


_PRIVATE = "PRIVATE KEY-----"
_PUBLIC = "PUBLIC KEY-----"


class BadKey(CannotStart):
    """A text that should be a key and is not a usable one."""


class PublicKey(Struct, frozen=True):
    """A public key. Create one with `PublicKey.of`, so that the PEM text is the only way to write this key."""

    pem: str
    key_id: str

    @classmethod
    def of(cls, text: str, where: str = "this") -> PublicKey:
        """Read PEM. Raises `BadKey` for anything that is not a public Ed25519 key."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        if _PRIVATE in text:
            raise BadKey(
                f"{where} is a private key; keep it to yourself and give away the public one: quire trust keys export"
            )
        try:
            key = load_pem_public_key(text.strip().encode("utf-8", "replace") + b"\n")
        except (ValueError, UnsupportedAlgorithm):
            raise BadKey(f"{where} is not a public key in PEM form") from None
        if not isinstance(key, Ed25519PublicKey):
            raise BadKey(f"{where} is a key of another kind; signatures are made with Ed25519 keys")
        return cls.from_key(key)

    @classmethod
    def from_key(cls, key: Ed25519PublicKey) -> PublicKey:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return cls(pem.decode("ascii"), hashlib.sha256(pem).hexdigest()[:16])

    def verifies(self, signature: bytes, message: bytes) -> bool:
        return _verifies(self.pem, signature, message)


@lru_cache(maxsize=1024)
def _verifies(pem: str, signature: bytes, message: bytes) -> bool:
    """Verify a signature.

    The result is cached, because a run verifies the same items again and again, and the answer never changes.
    """
    from cryptography.exceptions import InvalidSignature

    try:
        _decoded(pem).verify(signature, message)
    except InvalidSignature:
        return False
    return True


@lru_cache(maxsize=256)
def _decoded(pem: str) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = load_pem_public_key(pem.encode("ascii"))
    assert isinstance(key, Ed25519PublicKey)  # noqa: S101  # `PublicKey.of` let nothing else in
    return key


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key under the name that its owner gave it. Its repr contains nothing secret."""

    name: str
    public: PublicKey
    private: Ed25519PrivateKey = field(repr=False, compare=False)

    @classmethod
    def generate(cls, name: str) -> SigningKey:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls._of_key(name, Ed25519PrivateKey.generate())

    @classmethod
    def of(cls, name: str, text: str, where: str) -> SigningKey:
        """Read unencrypted PEM. Raises `BadKey`."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        if _PUBLIC in text and _PRIVATE not in text:
            raise BadKey(f"{where} is a public key; to trust it: quire trust add {where}")
        try:
            key = load_pem_private_key(text.strip().encode("utf-8", "replace") + b"\n", None)
        except TypeError:
            raise BadKey(f"{where} is encrypted; decrypt it first: openssl pkey -in {where} -out FILE") from None
        except (ValueError, UnsupportedAlgorithm):
            raise BadKey(f"{where} is not a private key in PEM form") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise BadKey(f"{where} is a key of another kind; signatures are made with Ed25519 keys")
        return cls._of_key(name, key)

    @classmethod
    def _of_key(cls, name: str, key: Ed25519PrivateKey) -> SigningKey:
        return cls(name, PublicKey.from_key(key.public_key()), key)

    @property
    def key_id(self) -> str:
        return self.public.key_id

    def sign(self, message: bytes) -> bytes:
        return self.private.sign(message)

    def private_pem(self) -> str:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        return self.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")


class KeyNote(Struct, frozen=True):
    """A public key as it is stored in TOML: with a name and, for the user's own key, the place of its private half."""

    public: PublicKey
    name: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    def fact(self, key: str) -> str:
        return dict(self.facts).get(key, "")

    def toml(self) -> str:
        lines = [("key_id", self.public.key_id), ("name", self.name), *self.facts]
        head = "".join(f"{key} = {_quoted(value)}\n" for key, value in lines if value)
        return f'{head}public_key = """\n{self.public.pem}"""\n'


def read_note(text: str, where: str) -> KeyNote:
    """Read a key from TOML or bare PEM. Raises `BadKey`, also if the note gives the key an id that is not its own."""
    if text.lstrip("\ufeff \t\r\n").startswith("-----BEGIN"):
        return KeyNote(PublicKey.of(text, where))
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadKey(f"{where} is neither PEM nor TOML: {error}") from None
    pem = data.get("public_key")
    if isinstance(pem, dict):
        pem = pem.get("pem")
    if not isinstance(pem, str):
        raise BadKey(f'{where} has no text "public_key"')
    public = PublicKey.of(pem, where)
    claimed = data.get("key_id", public.key_id)
    if claimed != public.key_id:
        raise BadKey(f"{where} says that its key is {claimed}, but it is {public.key_id}")
    facts = tuple((key, value) for key, value in data.items() if isinstance(value, str) and key not in _OWN_FIELDS)
    name = data.get("name")
    return KeyNote(public, name if isinstance(name, str) else "", facts)


_OWN_FIELDS = ("key_id", "name", "public_key")


def _quoted(text: str) -> str:
    """Return a TOML text on one line. Unusual characters are replaced, since the text is only for people."""
    plain = "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
