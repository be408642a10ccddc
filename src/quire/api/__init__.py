"""Quire from Python: check a document, run it, watch it. No part of the command line is imported."""

from __future__ import annotations

from quire.api.document import check
from quire.api.launching import Launch, launch
from quire.api.result import Result
from quire.api.running import Running, run

__all__ = ["Launch", "Result", "Running", "check", "launch", "run"]
