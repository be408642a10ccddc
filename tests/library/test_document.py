"""Reading one document."""

from __future__ import annotations

import pytest

from quire import formats
from quire.errors import CannotStart
from quire.library.document import read
from quire.source import Source


def test_a_format_that_nothing_runs_is_not_taken_for_a_playbook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Someone may add a format to `FORMATS` and forget to say how its documents run."""
    monkeypatch.setattr(formats, "format_of", lambda source: "checklist")
    with pytest.raises(CannotStart, match="nothing here runs a checklist"):
        read(Source.of("# T\n\n## STEP 1: A\n\nx\n", "a.checklist.md"))
