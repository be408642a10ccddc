"""`make simulate STORE=postgresql`: the simulator on a PostgreSQL server that is started for it, and removed after."""

from __future__ import annotations

import sys

from tests.simulator.__main__ import main
from tests.stores.postgres_server import own_server

if __name__ == "__main__":
    sys.exit(main(store=own_server().url(), command="python -m tests.simulation"))
