"""Many hosts: runs handed to Temporal, driven by workers from a store that they share.

Temporal sees runs, not steps. One workflow stands for a run; it has the run looked at by a worker, which drives it
until it ends or waits, and then itself waits for a signal or for the hour at which the run expires. Whatever is true
about a run is in the store: it is written there first, and a signal only says *look*.
"""
