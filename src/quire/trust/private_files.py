"""Files that only the user may read: keys, and decisions about keys.

They are created unreadable to others, and a private key that others could have read is not used.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from quire.errors import BadConfiguration, CannotStart, Refused
from quire.os_flags import NO_LINK, NO_WAIT
from quire.patterns import late_pattern

MAX_KEY_BYTES = 16_384
NAME = late_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SECRET_PREFIX, SHORTEST_SECRET = "whsec_", 24
_POSIX = os.name == "posix"


def make_folder(folder: Path) -> None:
    """Create a folder that only the user may enter. Raises `Refused` for an existing one that others may write to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = folder.stat().st_mode
    except OSError as error:
        raise CannotStart(f"{folder} cannot be made: {error.strerror or error}") from None
    if _POSIX and mode & 0o022:
        raise Refused(f"others may write to {folder}, where keys are kept; close it with: chmod 700 {folder}")


def write_new(path: Path, text: str) -> None:
    """Write a new file that only the user can read. Raises `FileExistsError` if it exists."""
    make_folder(path.parent)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):
            path.unlink()
        raise CannotStart(f"{path} cannot be written: {error.strerror or error}") from None


def read_private(path: Path, what: str = "private key", remedy: str = "") -> str:
    """Return the text of a file with a secret. Raises `Refused` for a file that others could have read or could change.

    `remedy` is the advice for a key that others have read, if that is not to revoke it.
    """
    make_folder(path.parent)
    try:
        handle = os.open(path, os.O_RDONLY | NO_LINK | NO_WAIT)
    except OSError as error:
        raise CannotStart(f"the {what} {path} cannot be read: {error.strerror or error}") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"the {what} {path} is not a regular file")
        if _POSIX and status.st_mode & 0o077:
            raise Refused(
                f"others can read the {what} {path}, so it is not used; if no other account has read it, close it: "
                f"chmod 600 {path}, else {remedy or f'revoke it with: quire trust keys revoke {path.stem}'}"
            )
        if _POSIX and status.st_uid != os.geteuid():
            raise Refused(f"the {what} {path} belongs to another user, so it is not used")
        return _text(path, file.read(MAX_KEY_BYTES + 1))


def shared_secret(
    place: str, variable: str | None, file: Path | str | None, environ: Mapping[str, str], *, encoded: bool = True
) -> bytes:
    """Return the secret that signs messages. If `encoded`, the text after `whsec_` is Base64, as Standard Webhooks has
    it. Raises `CannotStart`, which names the place of the setting, or `Refused`."""
    if variable:
        text, where = environ.get(variable, ""), f"the variable {variable}"
    else:
        text, where = read_private(Path(file or "").expanduser(), "secret of a webhook"), str(file)
    text = text.strip()
    if not text:
        raise CannotStart(f"{place}: {where} has no secret")
    try:
        is_base64 = encoded and text.startswith(SECRET_PREFIX)
        secret = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True) if is_base64 else text.encode()
    except binascii.Error:
        raise CannotStart(f"{place}: the text after {SECRET_PREFIX} in {where} is not Base64") from None
    if len(secret) < SHORTEST_SECRET:
        raise CannotStart(f"{place}: the secret in {where} is shorter than {SHORTEST_SECRET} bytes")
    return secret


def read_small(path: Path) -> str:
    """Return the text of a file that is not larger than a key may be."""
    try:
        if not path.is_file():
            raise CannotStart(f"{path} is not a file with a key")
        with path.open("rb") as file:
            return _text(path, file.read(MAX_KEY_BYTES + 1))
    except OSError as error:
        raise CannotStart(f"{path} cannot be read: {error.strerror or error}") from None


def names_in(folder: Path, suffix: str) -> list[str]:
    """Return the stems of the files with that suffix, sorted; none if the folder does not exist."""
    try:
        return sorted(entry.name.removesuffix(suffix) for entry in os.scandir(folder) if entry.name.endswith(suffix))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadConfiguration(f"{folder} cannot be read: {error.strerror or error}") from None


def _text(path: Path, data: bytes) -> str:
    if len(data) > MAX_KEY_BYTES:
        raise CannotStart(f"{path} is too large for a key")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise CannotStart(f"{path} is not text, so it is not a key in PEM or TOML form") from None
