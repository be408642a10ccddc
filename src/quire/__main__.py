"""Run `quire` as `python -m quire`."""

from __future__ import annotations

import sys

from quire.python_process import leave_current_folder

if __name__ == "__main__":
    # This must come before any library is imported: Python has put the current folder first on the path.
    leave_current_folder()
    from quire.cli import main

    sys.exit(main())
