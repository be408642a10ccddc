"""A house with the built-in tools, and a server for those that fetch."""

from tests.tools.built_in import house
from tests.tools.web import server

__all__ = ["house", "server"]
