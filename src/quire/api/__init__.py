"""Quire from Python: check a document, run it, watch it. No part of the command line is imported."""

from __future__ import annotations

from quire.api.launches import Launch, launch
from quire.api.runs import Result, Running, check, run, run_sync
from quire.api.runs import open_workspace as open

__all__ = ["Launch", "Result", "Running", "check", "launch", "open", "run", "run_sync"]
