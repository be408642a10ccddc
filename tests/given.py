"""Files that a test begins with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

HERE = Path()


def given(files: Mapping[str, object], folder: Path = HERE) -> Path:
    """Write files into a folder, which is made with the folders that their names ask for, and return the folder.

    A text or bytes are written as they are, any other value as JSON. Without a folder it is the current one.
    """
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder
