"""The interpreter of pipelines: one module for each kind of step."""
