"""Prints `docs/reference/versions.md`: the number of every format, from the table in the program.

python -m tests.docs.versions_page > docs/reference/versions.md
"""

from __future__ import annotations

from quire import __version__
from quire.versions import format_numbers, versions

MEANINGS = {
    "semantics": "how a recorded run is replayed; a run keeps the number of its start, and newer versions know it",
    "sqlite_schema": "the tables of a SQLite store; an older file is migrated at the first write, and a copy is kept",
    "postgresql_schema": "the tables of a PostgreSQL store; migrated at the first use by the owner of the tables",
    "lock_file": "`quire.lock`; another number is the finding [LK002](codes/LK.md#lk002-lock-version)",
    "test_file": "`x.test.yaml`",
    "exported_run": "the files of `quire runs export`",
    "http_api": "the first part of every path of the [HTTP API](http.md), as in `/api/v1`",
}

INTRODUCTION = f"""\
# Versions

The numbers of all formats that Quire {__version__} writes and reads. Made from `src/quire/versions.py`. They only
rise; a format of a newer Quire is refused and not changed.

`quire --version` prints the version with commit and day. `quire doctor` prints the same numbers under `formats`; `GET
/health` of [the server](http.md) has them as `versions`.
"""


def versions_page() -> str:
    numbers = format_numbers()
    rows = [f"| `{name}` | {number} | {MEANINGS[name]} |" for name, number in numbers.items()]
    protocols = versions()["mcp_protocols"]
    assert isinstance(protocols, list) and set(MEANINGS) == set(numbers)
    spoken = ", ".join(f"`{protocol}`" for protocol in protocols)
    table = "\n".join(["| format | number | of what |", "| --- | --- | --- |", *rows])
    return f"{INTRODUCTION}\n{table}\n\n`quire mcp` and MCP servers can speak these protocols of MCP: {spoken}.\n"


if __name__ == "__main__":
    print(versions_page(), end="")
