"""Every number that says how this Quire writes something that lasts: one table. The numbers only rise."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from quire import __version__

if TYPE_CHECKING:
    from quire.values import Value

EXPORTED_RUN = 1
"""The version of the files of `quire runs export`."""


def version_line() -> str:
    """Return the version with the commit and day of the build, as `quire --version` prints it."""
    try:
        from quire._build import COMMIT, DATE  # type: ignore[import-not-found]  # written by the build
    except ImportError:
        return f"quire {__version__} (checkout)"
    return f"quire {__version__} ({COMMIT[:8]}, {DATE})"


def format_numbers() -> dict[str, int]:
    """Return the numbers of all formats by name."""
    from quire.analysis.lock.file import VERSION as LOCK
    from quire.plan.nodes import SEMANTICS_VERSION
    from quire.stores.postgres.statements import MIGRATIONS as POSTGRES
    from quire.stores.sqlite.statements import MIGRATIONS as SQLITE

    return {
        "semantics": SEMANTICS_VERSION,
        "sqlite_schema": len(SQLITE),
        "postgresql_schema": len(POSTGRES),
        "lock_file": LOCK,
        "test_file": 1,
        "exported_run": EXPORTED_RUN,
        "http_api": 1,
    }


def versions() -> dict[str, Value]:
    """Return the package's version, the numbers of all formats, and the protocols of MCP if it is installed."""
    numbers: dict[str, Value] = {"package": version_line().removeprefix("quire "), **format_numbers()}
    if find_spec("mcp_types"):
        from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS

        numbers["mcp_protocols"] = list(SUPPORTED_PROTOCOL_VERSIONS)
    return numbers
