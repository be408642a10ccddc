"""The pipeline format: YAML documents of steps and schemas, for machines."""
