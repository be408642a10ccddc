"""Metrics and logs, for the operators of servers and workers."""
