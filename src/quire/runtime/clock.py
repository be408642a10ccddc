"""The clock of this machine."""

from __future__ import annotations

import asyncio
import time


class WallClock:
    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
