"""Whoever only looks at a capability or at a first line pays for no cryptography."""

from __future__ import annotations

import subprocess
import sys

MODULES = ("capabilities", "keys", "risk", "sign_file", "signatures", "trusted_keys")
HEAVY = ("cryptography", "keyring", "lxml", "asyncio", "yaml", "tempfile")


def test_importing_trust_costs_nothing_heavy() -> None:
    imports = ", ".join(f"quire.trust.{module}" for module in MODULES)
    code = (
        f"import sys, {imports}; from quire.trust import signatures, trusted_keys; "
        "signatures.verify_text('# x', 'playbook', 'x.md', trusted_keys.TrustedKeys()); "
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
