from __future__ import annotations

import subprocess
import sys

HEAVY = ("asyncio", "mcp", "rich", "sqlite3", "pydantic", "pydantic_ai", "xllamacpp", "jsonschema_rs", "re2", "ssl")
MODULES = (
    "quire.trust.capabilities",
    "quire.workspace.configuration",
    "quire.workspace.grants",
    "quire.library.texts",
    "quire.tools.builtin.connection",
    "quire.tools.gate",
    "quire.tools.mcp",
    "quire.tools.python",
)


def test_importing_the_doors_costs_nothing_heavy() -> None:
    code = f"import sys, {', '.join(MODULES)}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
