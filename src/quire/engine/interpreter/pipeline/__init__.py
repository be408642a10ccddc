"""The walk through a pipeline: values in, values out, one module for each kind of step."""

from quire.engine.interpreter.environment import Profile, Setting
from quire.engine.interpreter.pipeline.interpret import interpret_pipeline

__all__ = ["Profile", "Setting", "interpret_pipeline"]
