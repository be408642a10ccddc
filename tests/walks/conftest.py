"""The house in which walks are driven."""

from tests.engine.conftest import house

__all__ = ["house"]
