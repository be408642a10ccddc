"""A run that is left to a process of its own."""

from __future__ import annotations

import sys


def leave_to_itself(run: str) -> None:
    """The run goes on although this process ends; `quire runs` shows how."""
    import subprocess

    nowhere = subprocess.DEVNULL
    subprocess.Popen(  # noqa: S603  # our own interpreter, a run id that we made
        [sys.executable, "-m", "quire", "resume", run, "--quiet"],
        stdin=nowhere,
        stdout=nowhere,
        stderr=nowhere,
        start_new_session=True,
    )
