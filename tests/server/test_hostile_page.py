"""What models and documents say cannot run, cannot send and cannot leave, on any screen: nothing reaches the canary."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.browser import Pages
from tests.canary import Canary
from tests.depth import depth
from tests.server.hostile import ARTIFACTS, HTML, LABELS, MARKDOWN, NAME, aimed
from tests.server.served import Served, served

pytestmark = pytest.mark.asyncio(loop_scope="session")

SAYS = "# Say\n\n## ARTIFACTS\n\ntype: {type}\n\n## STEP 1: Say\n\nSay it.\n"

QUOTED = NAME.replace('"', "'")
ASKS = f"""# {NAME}

{NAME} describes it. ![x]({{canary}}/description)

## SYSTEM

{NAME}

## INPUTS

- `topic` (text: {NAME}): {NAME}

## STEP 1: {NAME}

Say {{{{topic}}}}. {NAME}

@output(said)

## STEP 2: {NAME} again

@elicit(select, "{QUOTED} ![x]({{canary}}/prompt)", "<b>one</b> {QUOTED}", "javascript:alert(1)")
"""

LEAKS = ("was blocked", "Content Security Policy", "Refused to", "violates the following", "sandboxed", "ERR_BLOCKED")


async def quiet(page: Page, canary: Canary, what: str) -> None:
    """Fail if a text of the page has done anything, a moment after the page has been drawn."""
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))")
    state = await page.evaluate("({ title: document.title, owned: self.owned, polluted: ({}).polluted })")
    assert state["title"].endswith("Quire"), (what, state)
    assert not state.get("owned") and not state.get("polluted"), (what, state)
    assert canary.hits == [], (what, canary.hits)
    assert not [one for one in page.context.pages if one is not page], what


def forgive(pages: Pages, canary: Canary) -> None:
    """Take what the browser has blocked off the list of faults: the canary knows that nothing has come."""
    blocked = (*LEAKS, f"a request left for {canary.url}")
    pages.faults[:] = [fault for fault in pages.faults if not any(part in fault for part in blocked)]
    assert canary.hits == []


async def test_artifacts_of_every_type(pages: Pages, canary: Canary, tmp_path: Path) -> None:
    documents = {f"{type}.playbook.md": SAYS.replace("{type}", type) for type in dict(ARTIFACTS)}
    async with served(tmp_path / "team", documents) as server, server.client() as client:
        page = await pages.open(server.url)
        # The short suite takes each type once.
        chosen: Sequence[tuple[str, str]] = tuple(dict(ARTIFACTS).items()) if depth(0, 1) == 0 else ARTIFACTS
        for at, (type, text) in enumerate(chosen):
            reply = aimed(text, canary.url)
            model = server.script(f"{at}.json", [{"reply": reply}])
            body = {"document": f"{type}.playbook.md", "model": model}
            run = (await client.post("/runs", json=body, headers={"prefer": "wait=30"})).json()
            assert run["status"] == "completed", run
            await page.goto(server.at(f"/runs/{run['id']}/artifact"))
            await expect(page.locator(".content").first).to_be_visible()
            if type in ("mermaid", "chartjs", "html_css"):
                await expect(page.locator(".frame").first).to_have_attribute("data-state", re.compile("drawn|failed"))
            await quiet(page, canary, f"{type} {at}")
            for locator in await page.locator("iframe").all():
                # What can be clicked in a frame is clicked, by its place: the inner frame is not seen from here.
                await locator.click(position={"x": 40, "y": 10}, force=True, no_wait_after=True)
            await quiet(page, canary, f"{type} {at} clicked")
        await page.goto(server.at("/artifacts"))
        await expect(page.get_by_role("heading", level=1).first).to_be_visible()
        await quiet(page, canary, "the gallery")
    forgive(pages, canary)


async def _hostile_run(server: Served, canary: Canary) -> str:
    reply = aimed(MARKDOWN + HTML, canary.url)
    model = server.script("s.json", [{"default": reply}])
    inputs = {"topic": aimed(NAME + HTML, canary.url)}
    run = (await server.start(DOCUMENT, inputs=inputs, model=model))["id"]
    await server.site.runs.ended(run, 30)
    return str(run)


DOCUMENT = 'a<img src=x onerror=alert(1)> & b\'s "c".playbook.md'


async def test_names_and_texts_on_every_screen(pages: Pages, canary: Canary, tmp_path: Path) -> None:
    documents = {DOCUMENT: aimed(ASKS, canary.url), f"{NAME[:9]}.yaml": "pipeline: [<b>\n"}
    async with served(tmp_path / "team", documents) as server, server.client() as client:
        run, other = await _hostile_run(server, canary), await _hostile_run(server, canary)
        note = aimed(MARKDOWN + HTML, canary.url)[:2000]
        for label in LABELS:
            named = await client.patch(f"/runs/{other}", json={"name": aimed(label, canary.url)[:80], "note": note})
            assert named.json()["label"].isprintable() and named.json()["note"] == note.strip()
        assert (await client.patch(f"/runs/{other}", json={"name": LABELS[0]})).status_code == 200
        question = (await client.get("/questions", params={"run": run})).json()["items"][0]
        page = await pages.open(server.url)
        dialogs: list[str] = []
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        document = json.dumps(DOCUMENT)
        address = await page.evaluate(f"encodeURIComponent({document})")
        screens = [
            "/",
            f"/q/{run}/{question['path']}",
            "/runs",
            "/runs?group=document",
            f"/runs?q={NAME[:5]}&status={NAME[:3]}&sort=%3Cb%3E&document=%3Cimg%20src=x%3E&cost=%3Cb%3E&since=%3Cb%3E&group=x",
            f"/runs/{run}",
            f"/runs/{run}/fork",
            *(f"/runs/{run}?step={at}&tab={tab}" for at in (1, 2) for tab in ("reply", "prompt", "from", "raw")),
            *(f"/runs/{run}?{rest}" for rest in ("view=graph", "tab=inputs", "tab=values", "tab=document")),
            f"/compare/{run}/{other}",
            "/documents",
            *(f"/documents/{address}?tab={tab}" for tab in ("read", "source", "proof", "prompts", "runs", "run")),
            "/search?q=img",
            "/trust",
            "/health",
        ]
        for screen in screens:
            await page.goto(server.at(screen))
            await expect(page.get_by_role("heading", level=1).first).to_be_visible()
            await quiet(page, canary, screen)
            assert await page.locator("main img, main script, main iframe[srcdoc], main svg[onload]").count() == 0, (
                screen
            )
        assert dialogs == []
    forgive(pages, canary)
