"""All shared cases of the formats that have landed, through the kit's own checker and protocol."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KIT = HERE.parents[2] / "shared" / "conformance"
LANDED = ("playbook", "pipeline", "directive")


@pytest.mark.skipif(not KIT.is_dir(), reason="the conformance kit is not beside this clone")
@pytest.mark.parametrize("system", LANDED)
def test_every_shared_case_passes(system: str) -> None:
    adapter = [sys.executable, str(HERE / "adapter.py")]
    command = [sys.executable, str(KIT / "check.py"), "--system", system, "--", *adapter]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    passed, total = done.stdout.strip().splitlines()[-1].removeprefix(f"{system} ").split("/")
    assert int(passed) == int(total) > 0
