"""The samples are read as texts; pytest does not run them, because their documents are not there."""

from __future__ import annotations

collect_ignore = ["samples"]
