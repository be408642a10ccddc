"""`make simulate STORE=postgresql`: the simulator on a PostgreSQL server that is started for it, and removed after."""

from __future__ import annotations

import sys

from tests.store.postgres_server import own_server

from quire.testing.simulator.__main__ import main

if __name__ == "__main__":
    sys.exit(main(store=own_server().url(), command="python -m tests.simulation"))
