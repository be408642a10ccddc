"""What every store does with replies of the HTTP API: one request claims a key, its reply is kept for a day."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from quire.engine.ports import Store
from quire.stores.contract import REPLY_SECONDS, UNDER_WAY_SECONDS, KeptReply

if TYPE_CHECKING:
    from tests.stores.conftest import Shelf

pytestmark = pytest.mark.lasting_store("it has no server whose replies it would keep")


async def test_a_key_is_claimed_once_and_its_reply_is_kept(store: Store, shelf: Shelf) -> None:
    here, there = store, shelf.open()
    claim = await here.claim_key("k", "hash")
    assert isinstance(claim, str)
    assert await there.claim_key("k", "hash") == KeptReply("hash", None)
    await here.keep_reply("k", claim, '{"ü": "\\u0000"}')
    assert await there.claim_key("k", "other") == KeptReply("hash", '{"ü": "\\u0000"}')
    shelf.clock.time += REPLY_SECONDS - 1
    assert await there.claim_key("k", "hash") == KeptReply("hash", '{"ü": "\\u0000"}')
    shelf.clock.time += 2
    assert isinstance(await there.claim_key("k", "other"), str)


async def test_a_key_that_is_given_back_is_free(store: Store, shelf: Shelf) -> None:
    here = store
    claim = await here.claim_key("k", "hash")
    assert isinstance(claim, str)
    await here.keep_reply("k", claim, None)
    again = await here.claim_key("k", "other")
    assert isinstance(again, str)
    # The first claim is over: it neither frees the key nor replies in the place of the second.
    await here.keep_reply("k", claim, None)
    await here.keep_reply("k", claim, "late")
    assert await here.claim_key("k", "other") == KeptReply("other", None)


async def test_a_request_that_was_lost_with_its_server_gives_way(store: Store, shelf: Shelf) -> None:
    lost = await store.claim_key("k", "hash")
    shelf.clock.time += UNDER_WAY_SECONDS + 1
    again = await shelf.open().claim_key("k", "hash")
    assert isinstance(again, str) and again != lost


async def test_of_many_at_once_one_gets_the_key(store: Store, shelf: Shelf) -> None:
    stores = [store, *(shelf.open() for _ in range(3))]
    outcomes = await asyncio.gather(*(one.claim_key("k", "hash") for one in stores for _ in range(4)))
    assert sum(isinstance(outcome, str) for outcome in outcomes) == 1
