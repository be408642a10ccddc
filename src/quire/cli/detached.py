"""A run that is left to a process of its own."""

from __future__ import annotations

from quire.python_process import start_module


def leave_to_itself(run: str) -> None:
    """The run goes on although this process ends; `quire runs` shows how. The current folder says which workspace."""
    start_module("quire", "resume", run, "--quiet")
