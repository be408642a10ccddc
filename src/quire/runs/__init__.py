"""The engine with its ports put together: what the command line, the Python API and every server stand on."""

from quire.runs.options import RunOptions
from quire.runs.pins import Pins
from quire.runs.runtime import Runtime
from quire.runs.view import RunView

__all__ = ["Pins", "RunOptions", "RunView", "Runtime"]
