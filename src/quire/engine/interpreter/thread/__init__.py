"""The thread of a directive: an agent that follows a document under permissions, limits and hooks.

Pure parts have modules of their own (`budgets`, `hooks`, `compose`, `own_tools`, `tool_results`). Nothing is imported
here, so that a command loads only the parts that it uses.
"""
