"""The walk through a pipeline: values in, values out, one module for each kind of step."""

from quire.engine.pipeline.setting import Profile, Setting
from quire.engine.pipeline.walk import interpret_pipeline

__all__ = ["Profile", "Setting", "interpret_pipeline"]
