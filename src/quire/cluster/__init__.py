"""Runs on many hosts: runs are handed to Temporal, and workers drive them from a shared store.

Temporal sees runs, not steps. One workflow represents a run: it has a worker look at the run and drive it until it
ends or waits, and then waits for a signal or for the time at which the run expires. The store holds the truth about a
run: it is written first, and a signal only says *look*.
"""
