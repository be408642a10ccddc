"""Stories of the page in a real Firefox: it reads, answers, follows, edits and draws there as it does in Chromium."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.firefox import WITHOUT_FIREFOX, Firefox, find_firefox, firefox
from tests.server.served import served
from tests.server.test_stories import DOCUMENTS, REPLIES

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def fox(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Firefox]:
    if find_firefox() is None:
        pytest.skip(WITHOUT_FIREFOX)
    async with firefox(tmp_path_factory.mktemp("firefox")) as browser:
        yield browser


async def test_faults_of_a_page_fail_its_test(fox: Firefox, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        with pytest.raises(AssertionError) as faults:
            async with fox.tab(server.url) as tab:
                await tab.find("main", "Nothing waits for you.")
                await tab.value("document.body.setAttribute('style', 'color: red')")
                await tab.value("setTimeout(() => { throw new Error('a bug') })")
                await tab.value("void (location = 'http://127.0.0.2/')")
                async with asyncio.timeout(10):
                    while len(fox.faults) < 3:
                        await asyncio.sleep(0.01)
        style, bug, request = str(faults.value).splitlines()
        assert "an inline style" in style
        assert "a bug" in bug
        assert request == "a request left for http://127.0.0.2/"


async def test_now_shows_a_question_and_answers_it(fox: Firefox, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        await server.start("release.playbook.md", inputs={"version": "2.0"}, model=server.script("s.json", REPLIES))
        async with fox.tab(server.url) as tab:
            await tab.find("main", "Publish the notes?")
            await tab.click("button", "yes")
            await tab.find("h2", "Lately finished")
