"""The units of the page on operations are ones that systemd takes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.docs.pages import text_of

UNIT = re.compile(r'```ini title="[^"]*/([^"/]+)"\n(.*?)```', re.S)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("change", ["", "Surprise=1\n"])
def test_units(change: str, tmp_path: Path) -> None:
    units = UNIT.findall(text_of("docs/guides/operations.md"))
    assert len(units) == 4
    for name, text in units:
        text = text.replace("%h/.local/bin/quire", "/bin/true").replace("Description=", f"{change}Description=")
        (tmp_path / name).write_text(text)
    for name, _ in units:
        command = ["systemd-analyze", "verify", "--user", str(tmp_path / name)]
        environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
        assert bool(done.returncode or done.stderr) == bool(change), done.stderr
