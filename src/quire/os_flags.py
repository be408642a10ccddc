"""Flags of `os.open`, 0 where the system does not have them, and the verbs that work on Windows."""

from __future__ import annotations

import os

NO_WAIT = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)
CLOSES: int = getattr(os, "O_CLOEXEC", 0)
FOLDER: int = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | NO_LINK | CLOSES
IS_WINDOWS = os.name == "nt"
WINDOWS_VERBS = ("check", "show", "test", "new", "grammar", "lsp", "docs")
