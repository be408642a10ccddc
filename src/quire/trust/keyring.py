"""Private keys in the keyring of the system, for those who do not want them in a file."""

from __future__ import annotations

from types import ModuleType

from quire.errors import CannotStart

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
        found = keyring.get_password(SERVICE, key_id)
    except keyring.errors.KeyringError as error:
        raise CannotStart(f"the keyring cannot be read: {error}") from None
    if not isinstance(found, str):
        raise CannotStart(f"the keyring does not hold the key {key_id}; make a new one with: quire keys new NAME")
    return found


def _module() -> ModuleType:
    try:
        import keyring
        import keyring.errors
    except ImportError:
        raise CannotStart("keys in the keyring need the package keyring: pip install 'quire[keyring]'") from None
    return keyring
