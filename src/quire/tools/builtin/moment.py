"""The present moment, as a document sees it: a result that is recorded, so that a replay sees the same."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from quire.errors import ToolFailed
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quire.values import Value

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
        f"there is no time zone {name[:100]!r}; a name is one of the IANA list, such as Europe/Berlin", kind="arguments"
    )
