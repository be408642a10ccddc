"""Small values that a workspace keeps from one run to the next, such as the last release that was seen; and the present
moment, a result that is recorded, so that a replay sees the same.

The values are in one file of the user folder for each workspace, not in the workspace: a clone cannot bring them, and
no file tool or sandboxed command reaches them. A change is made under a lock and replaces the whole file. A file that
cannot be read is never replaced.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from msgspec import Struct

from quire.errors import ToolFailed
from quire.patterns import late_pattern
from quire.source import read_bytes, real_path, try_lock, written_beside
from quire.values import InvalidValue, Value, decode, encode

LONGEST_NAME = 200
MAX_VALUE = 65_536
MOST_VALUES = 1000
MAX_STATE = 1_000_000

_VERSION = 1
_PATIENCE = 10.0


class State(Struct, frozen=True):
    """The values of one workspace."""

    file: Path
    workspace: Path

    @classmethod
    def of(cls, space: Path, workspace: Path) -> State:
        """Return the state of a workspace, by its real path, in the space of a user."""
        folder = real_path(workspace)
        mark = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in folder.name[:40])
        return cls(space / "state" / f"{name.strip('-') or 'root'}-{mark}.json", folder)

    def get(self, arguments: Mapping[str, Value]) -> Value:
        name = _name(arguments)
        return self.values().get(name, arguments.get("default"))

    def set(self, arguments: Mapping[str, Value]) -> Value:
        """Keep a value, or remove the name with None; return the value."""
        name, value = _name(arguments), arguments["value"]
        size = len(encode(value).encode())
        if size > MAX_VALUE:
            raise ToolFailed(f"the value has {size:,} bytes; {MAX_VALUE:,} are allowed", kind="too_large")
        with self._alone():
            values = dict(self.values())
            if value is None:
                values.pop(name, None)
            else:
                values[name] = value
            self._write(values)
        return value

    def values(self) -> Mapping[str, Value]:
        """Return all values by name. Raises `ToolFailed` if the file cannot be read."""
        try:
            if self.file.stat().st_size > 2 * MAX_STATE:
                raise self._broken("is too large")
            data = decode(read_bytes(self.file).decode("utf-8"))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._broken(f"cannot be read ({error.strerror or error})") from None
        except (InvalidValue, UnicodeError) as error:
            raise self._broken(f"is not JSON ({error})") from None
        values = data.get("values") if isinstance(data, Mapping) else None
        if not isinstance(data, Mapping) or data.get("version") != _VERSION or not isinstance(values, Mapping):
            raise self._broken("is not a state that this version of Quire wrote")
        return values

    def _write(self, values: Mapping[str, Value]) -> None:
        folder = os.fsencode(self.workspace).decode("utf-8", "replace")
        data = encode({"version": _VERSION, "workspace": folder, "values": values}).encode()
        if len(values) > MOST_VALUES or len(data) > MAX_STATE:
            raise ToolFailed(
                f"a workspace keeps at most {MOST_VALUES:,} values and {MAX_STATE:,} bytes; state__set with the value "
                f"null removes one ({self.file})",
                kind="too_large",
            )
        try:
            with written_beside(self.file, data) as new:
                new.replace(self.file)
        except OSError as error:
            message = f"the state of this workspace cannot be written: {self.file}: {error.strerror or error}"
            raise ToolFailed(message, kind="state") from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other runs and processes from changing the state at the same time."""
        path = self.file.with_suffix(".lock")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            message = f"the state of this workspace cannot be written: {path}: {error.strerror or error}"
            raise ToolFailed(message, kind="state") from None
        try:
            until = time.monotonic() + _PATIENCE
            while not try_lock(file):
                if time.monotonic() > until:
                    raise ToolFailed(f"another process holds the state of this workspace ({path})", kind="state")
                time.sleep(0.005)
            yield
        finally:
            os.close(file)

    def _broken(self, reason: str) -> ToolFailed:
        return ToolFailed(
            f"the state of this workspace is broken: {self.file} {reason}; it was not changed: repair it, or move it "
            "away to begin with no values",
            kind="state",
        )


def _name(arguments: Mapping[str, Value]) -> str:
    name = str(arguments["name"])
    if not name.isprintable() or name != name.strip():
        raise ToolFailed(f"{name[:100]!r} is not a name of a value: it has spaces around it, or invisible characters")
    return name


_ZONE = late_pattern(r"[A-Za-z0-9_+-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,3}")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def moment_of(seconds: float, arguments: Mapping[str, Value]) -> Value:
    """Return a moment, given in seconds since 1970, in the zone of the arguments. Raises `ToolFailed`."""
    name = str(arguments.get("zone", "UTC"))
    at = datetime.fromtimestamp(int(seconds), _zone(name))
    iso = at.isoformat()
    return {
        "iso": iso.replace("+00:00", "Z") if name == "UTC" else iso,
        "date": at.date().isoformat(),
        "time": at.time().isoformat(),
        # Not strftime, which follows the language of the machine.
        "weekday": _DAYS[at.weekday()],
        "unix": int(seconds),
        "zone": name,
    }


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo

    try:
        if _ZONE.fullmatch(name):
            return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        pass
    raise ToolFailed(
        f"unknown time zone {name[:100]!r}; a name is one of the IANA list, such as Europe/Berlin", kind="arguments"
    )
