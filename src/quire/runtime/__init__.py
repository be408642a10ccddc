"""The engine with its ports put together: what the command line, the Python API and every server stand on."""

from quire.runtime.options import RunOptions
from quire.runtime.pins import Pins
from quire.runtime.runtime import Runtime
from quire.runtime.view import RunView

__all__ = ["Pins", "RunOptions", "RunView", "Runtime"]
