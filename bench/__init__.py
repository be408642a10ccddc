"""Benchmarks. Processes that they start use compiled code: without it each would compile the package again, which no
user sees.
"""

from __future__ import annotations

import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
