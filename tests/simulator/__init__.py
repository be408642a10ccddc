"""A world in which everything that can go wrong does, at a moment that a seed decides.

    case ──► scenario (a document, its files)  ──► life: processes that drive, die, are fenced, park, go on
             faults (which, when)                   │  on one virtual event loop, one real store
                                                    ▼
                                                 witness: sees every write and every effect
                                                    ▼
                                                 judge: against the same scenario without faults

A case is a value: the same case does the same again, and one that finds something is made smaller until it is small
enough to read. `python -m tests.simulator --help` says how to run many of them.
"""
