"""Start, drive, resume, fork and explain runs: the engine with adapters behind its ports. The command line, the Python
API and every server use this package."""

from quire.runs.options import RunOptions
from quire.runs.pins import Pins
from quire.runs.runtime import Runtime
from quire.runs.view import RunView

__all__ = ["Pins", "RunOptions", "RunView", "Runtime"]
