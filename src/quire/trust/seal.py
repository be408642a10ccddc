"""Seals on stored runs: keyed hashes that only this user, or this cluster, can make.

A store is a file in a workspace, or a database that others can write to. The permissions of a run and its records count
only under a seal whose key is kept elsewhere:

    QUIRE_SEAL_KEY           the key itself, for the workers and clients of a cluster
    QUIRE_SEAL_KEY_FILE      a file with the key
    USER/keys/seal.key       made on first use, readable by the user alone; it may name the system's keyring instead
"""

from __future__ import annotations

import json
import os
from _blake2 import blake2b
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from quire.errors import CannotStart
from quire.source import written_beside
from quire.trust.private_files import make_folder, read_private, read_small

VARIABLE = "QUIRE_SEAL_KEY"
FILE_VARIABLE = "QUIRE_SEAL_KEY_FILE"
MIN_KEY_LETTERS = 32

_MAC_BYTES = 16
_KEYRING = "keyring:"
_RANDOM_KEY = "python3 -c 'import secrets; print(secrets.token_hex(32))'"

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


class Seal:
    """Make and check seals. The key is read when the first seal is needed: listing runs does not need it."""

    def __init__(self, load: Callable[[], str], exists: Callable[[], bool] = lambda: True) -> None:
        """`exists` tells whether there is a key already, so that code which only checks seals does not create one."""
        self._load = load
        self.exists = exists

    @classmethod
    def of(cls, text: str) -> Seal:
        return cls(lambda: text)

    @cached_property
    def _key(self) -> bytes:
        return blake2b(self._load().encode(), digest_size=32, person=b"quire seal key").digest()

    @cached_property
    def key_id(self) -> str:
        """Return an id that tells keys apart in messages and reveals nothing of the key."""
        return blake2b(self._key, digest_size=4, person=b"quire seal id").hexdigest()

    @cached_property
    def _rows(self) -> blake2b:
        return blake2b(key=self._key, digest_size=_MAC_BYTES, person=b"quire journal")

    def row(self, content: bytes) -> str:
        """Return the seal of one row of a journal. Every journaled step pays for this call."""
        mac = self._rows.copy()
        mac.update(content)
        return mac.hexdigest()

    def facts(self, kind: str, *facts: str | int | float | None) -> str:
        """Return the seal of some facts, valid only for the purpose that `kind` names."""
        content = _encode([kind, *facts]).encode("utf-8", "surrogatepass")
        return blake2b(content, key=self._key, digest_size=_MAC_BYTES, person=b"quire facts").hexdigest()

    def fits(self, seal: object, kind: str, *facts: str | int | float | None) -> bool:
        return isinstance(seal, str) and same(seal, self.facts(kind, *facts))


PUBLIC_SEAL = Seal.of("quire: a key that is not secret")
"""For stores without a key of their own, as in tests: it detects accidents but does not prevent forging."""


def same(seal: str, other: str) -> bool:
    import hmac  # loads OpenSSL, and a command without a run compares nothing

    return hmac.compare_digest(seal.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def user_seal(user: Path, environ: Mapping[str, str] = os.environ) -> Seal:
    """Return the seal of the user whose space is `user`, or of the cluster that the environment names."""
    named = [name for name in (VARIABLE, FILE_VARIABLE) if environ.get(name, "").strip()]
    return Seal(lambda: seal_key(user, environ), lambda: bool(named) or key_file(user).exists())


def seal_source(user: Path, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the values that decide which key `user_seal` reads: equal sources mean the same key. Reads no file."""
    return (str(user), *(environ.get(name, "").strip() for name in (VARIABLE, FILE_VARIABLE)))


def seal_key(user: Path, environ: Mapping[str, str] = os.environ) -> str:
    """Return the text of the key; create one if there is none. Raises `CannotStart` and `Refused`."""
    if key := environ.get(VARIABLE, "").strip():
        return _long_enough(key, VARIABLE)
    if named := environ.get(FILE_VARIABLE, "").strip():
        return _long_enough(read_small(Path(named)).strip(), named)
    file = key_file(user)
    if not file.exists():
        _make(file, os.urandom(32).hex())  # as `secrets` does, whose import takes 2 ms
    text = read_private(file, "seal key", f"move it away, and seal your runs again: mv {file} {file}.old").strip()
    if text.startswith(_KEYRING):
        from quire.trust.keys import get

        return _long_enough(get(text.removeprefix(_KEYRING)), "the seal key in the keyring")
    return _long_enough(text, str(file))


def key_place(user: Path, environ: Mapping[str, str] = os.environ) -> str:
    """Describe in words where the key comes from."""
    for variable in (VARIABLE, FILE_VARIABLE):
        if environ.get(variable, "").strip():
            return f"the variable {variable}"
    return "the keyring of the system" if is_in_keyring(user, environ) else str(key_file(user))


def is_in_keyring(user: Path, environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether reading the key asks the system's keyring, which may ask the user for a password."""
    if any(environ.get(variable, "").strip() for variable in (VARIABLE, FILE_VARIABLE)):
        return False
    file = key_file(user)
    return file.exists() and read_private(file, "seal key", "").startswith(_KEYRING)


def move_key(user: Path, *, keyring: bool) -> None:
    """Move the key of the user folder into the system's keyring, or back into its file."""
    from quire.trust.keys import put

    text, file = seal_key(user, {}), key_file(user)
    name = f"seal-{Seal.of(text).key_id}"
    if keyring:
        put(name, text)
    written = f"{_KEYRING}{name}" if keyring else text
    try:
        with written_beside(file, f"{written}\n".encode()) as new:
            new.replace(file)
    except OSError as error:
        raise CannotStart(f"{file} cannot be written: {error.strerror or error}") from None


def key_file(user: Path) -> Path:
    return user / "keys" / "seal.key"


def _long_enough(text: str, where: str) -> str:
    if len(text) < MIN_KEY_LETTERS:
        raise CannotStart(
            f"the seal key of {where} is too short: it needs {MIN_KEY_LETTERS} letters at least, as from {_RANDOM_KEY}"
        )
    return text


def _make(file: Path, text: str) -> None:
    """Write the key if there is none. If two processes do so at once, both then read the same one."""
    try:
        make_folder(file.parent)
        with written_beside(file, f"{text}\n".encode()) as new:
            os.link(new, file)
    except FileExistsError:
        return
    except OSError as error:
        raise CannotStart(
            f"the key that seals runs cannot be written to {file}: {error.strerror or error}; name a folder of yours "
            f"with QUIRE_HOME, or give a key with {VARIABLE}"
        ) from None
