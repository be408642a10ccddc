"""What `check` finds in a pipeline that can be read: one module for each thing that it looks at."""
