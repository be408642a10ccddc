"""`Runtime` under the name that 0.1.0 had for its module. New programs use `quire.open`."""

from __future__ import annotations

from quire.runs.runtime import Runtime

__all__ = ["Runtime"]
