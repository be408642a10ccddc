"""The screens of triggers: the list, and from a check over enabling and a fire to its run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Route, expect
from tests.browser import Pages, check_looks
from tests.runs.trigger_place import HELLO
from tests.server.served import Served, served

from quire.runs.triggers import Triggers
from quire.server.access import Users
from quire.stores.occurrences import Occurrence, StartState

pytestmark = pytest.mark.asyncio(loop_scope="session")

POST = """pipeline: post
steps:
  - tool: {name: http__get, args: {url: "https://news.example.org/today"}, output: page}
  - agent: {prompt: "Sum up {ctx.page}", output: digest}
  - tool: {name: file__write, args: {path: reports/digest.md, content: !expr ctx.digest}}
"""
DOCUMENTS = {
    "hello.playbook.md": HELLO,
    "pipelines/post.yaml": POST,
    "script.json": '[{"default": "Hello."}]',
}
TRIGGERS = """[triggers.{name}]
run = "{run}"
model = "script:{folder}/script.json"
{more}
"""
DAY = 'inputs = {day = {expr = "due"}}'
CRON = 'cron = "0 6 * * 1-5"\nzone = "Europe/Berlin"\nbudget = 2.0\n' + DAY
EVERY = f'every = "10m"\n{DAY}'


def settings(folder: Path, **triggers: str) -> str:
    """Return settings with triggers, each of the document whose name its own name begins with."""
    return "\n".join(
        TRIGGERS.format(name=name, run=name.partition("-")[0], folder=folder, more=more)
        for name, more in triggers.items()
    )


async def enable(server: Served, *names: str) -> None:
    triggers = Triggers(server.site.runtime)
    for name in names:
        proposal = await triggers.propose(name)
        await triggers.enable(name, proposal.digest, "ada")


async def claim(server: Served, name: str, state: StartState, key: str, due: float, reason: str) -> None:
    occurrence = Occurrence(f"trigger:{name}", key, due=due)
    await server.site.runtime.store.start_once(None, occurrence, state=state, reason=reason)


async def test_from_a_check_over_enabling_to_a_run(pages: Pages, tmp_path: Path) -> None:
    folder = tmp_path / "team"
    async with served(folder, DOCUMENTS, settings=settings(folder, hello=CRON)) as server:
        page = await pages.open(server.at("/triggers"))
        row = page.get_by_role("listitem").filter(has_text="hello")
        await expect(row.get_by_text("off", exact=True)).to_be_visible()
        await expect(row.get_by_text("cron 0 6 * * 1-5, Europe/Berlin")).to_be_visible()
        await expect(row.get_by_text("it is not enabled")).to_be_visible()
        await row.get_by_role("link", name="hello").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("hello")
        await expect(page.get_by_text("None: it uses no tools.")).to_be_visible()
        await expect(page.get_by_text("It has not fired yet.")).to_be_visible()
        await expect(page.get_by_role("button", name="Fire now")).to_have_count(0)
        await page.get_by_role("button", name="Enable").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_text("A run costs")).to_be_visible()
        await expect(dialog.get_by_role("definition").filter(has_text=re.compile("^day = due$"))).to_be_visible()
        assert not await server.site.runtime.store.triggers()
        # Settings that change while the dialog is open are not those that it has shown.
        file = Path(server.environ["QUIRE_HOME"]) / "quire.toml"
        file.write_text(file.read_text().replace("budget = 2.0", "budget = 3.0"))
        await dialog.get_by_role("button", name="Enable", exact=True).click()
        await expect(dialog.get_by_text("not what was shown")).to_be_visible()
        pages.expect_fault("403")
        assert not await server.site.runtime.store.triggers()
        await dialog.get_by_role("button", name="Try again").click()
        await expect(dialog.get_by_role("definition").filter(has_text=re.compile(r"^\$3\.00$"))).to_be_visible()
        await dialog.get_by_role("button", name="Enable", exact=True).click()
        await expect(dialog).to_have_count(0)
        await expect(page.get_by_text("on", exact=True)).to_be_visible()
        (enabled,) = (await server.read("/triggers"))["triggers"]
        assert enabled["enabled"] is True
        await page.get_by_role("button", name="Fire now").click()
        await expect(page).to_have_url(re.compile(r"/runs/\w+-\w+$"))
        run = page.url.rpartition("/")[2]
        await server.site.runs.ended(run, 30)
        await page.go_back()
        await expect(page.get_by_text("by hand, ")).to_be_visible()
        link = page.get_by_role("link", name="completed")
        await expect(link).to_have_attribute("href", f"/runs/{run}")
        await page.get_by_role("button", name="Disable").click()
        await expect(page.get_by_text("off", exact=True)).to_be_visible()
        assert not await server.site.runtime.store.triggers()


async def test_the_fires_of_a_trigger_by_their_states(pages: Pages, tmp_path: Path) -> None:
    folder = tmp_path / "team"
    async with served(folder, DOCUMENTS, settings=settings(folder, hello=EVERY)) as server:
        await enable(server, "hello")
        await claim(server, "hello", "missed", "A..B", 1_800_000_000, "nothing started them in time")
        await claim(server, "hello", "skipped", "C", 1_800_003_600, "run 2abcdef-abcde is under way")
        await claim(server, "hello", "refused", "D", 1_800_007_200, "hello.playbook.md may do more:\nit writes x")
        page = await pages.open(server.at("/triggers/hello"))
        fires = page.get_by_role("region", name="Last fires").get_by_role("listitem")
        await expect(fires).to_have_count(3)
        await expect(fires.first.get_by_text("it writes x")).to_be_visible()
        await page.get_by_role("button", name="skipped").click()
        await expect(fires).to_have_count(1)
        await expect(fires.get_by_text("is under way")).to_be_visible()
        assert page.url.endswith("/triggers/hello?state=skipped")
        await page.get_by_role("button", name="skipped").click()
        await page.get_by_role("button", name="started").click()
        await expect(page.get_by_text("None was started.")).to_be_visible()
        await page.get_by_role("button", name="started").click()
        # A run is under way where the document asks: the fire is skipped, and the page says so.
        await expect(fires).to_have_count(3)
        await check_looks(page, "trigger-fires")


async def test_all_reasons_against_a_trigger_and_what_it_may_do(pages: Pages, tmp_path: Path) -> None:
    folder = tmp_path / "team"
    async with served(
        folder, DOCUMENTS, settings=settings(folder, post='every = "1h"\nquestions = "default"')
    ) as server:
        page = await pages.open(server.at("/triggers/post"))
        problems = page.get_by_role("region", name="Problems").get_by_role("listitem")
        await expect(problems.filter(has_text="is not granted: allow names its tool")).to_have_count(1)
        await expect(problems).to_have_count(2)
        table = page.get_by_role("region", name="Table of permissions")
        await expect(table.get_by_role("row").filter(has_text="path=reports/digest.md")).to_contain_text("write")
        await expect(page.get_by_text("every 1 h")).to_be_visible()
        await check_looks(page, "trigger-refused")
        await page.get_by_role("button", name="Enable").click()
        await check_looks(page, "trigger-dialog")
        await expect(page.get_by_role("dialog").get_by_role("button", name="Enable", exact=True)).to_be_disabled()


async def test_the_list_tells_why_one_is_off(pages: Pages, tmp_path: Path) -> None:
    folder = tmp_path / "team"
    given = settings(folder, hello=CRON, **{"hello-often": EVERY, "hello-gone": EVERY})
    async with served(folder, DOCUMENTS, settings=given) as server:
        await enable(server, "hello", "hello-often", "hello-gone")
        file = Path(server.environ["QUIRE_HOME"]) / "quire.toml"
        file.write_text(settings(folder, hello=CRON, **{"hello-often": EVERY.replace("10", "20")}))
        await claim(server, "hello", "skipped", "A", 1_800_000_000, "run 2abcdef-abcde is under way")
        page = await pages.open(server.at("/triggers"))
        rows = page.locator(".rows").get_by_role("listitem")
        await expect(rows.filter(has_text=re.compile("^on.*hello.*next in.*skipped"))).to_be_visible()
        await expect(rows.filter(has_text="every 20 min")).to_contain_text("its settings have changed since")
        await expect(rows.filter(has_text="hello-gone")).to_contain_text("its settings are gone")
        await check_looks(page, "triggers")
        await page.get_by_role("link", name="hello-gone").click()
        await page.get_by_role("button", name="Disable").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Triggers")
        await expect(rows).to_have_count(2)


HOOKS = [{"scheme": "github", "secret_env": "NEW_HOOK"}, {"scheme": "github", "secret_env": "GH_HOOK"}]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"webhook": HOOKS}, "hello: webhook POST /hooks/hello, github, NEW_HOOK or github, GH_HOOK"),
        ({"files": "inbox/*.csv"}, "hello: files inbox/*.csv"),
    ],
)
async def test_sources_that_have_no_times(pages: Pages, tmp_path: Path, source: dict[str, object], words: str) -> None:
    async def answer(route: Route) -> None:
        response = await route.fetch()
        (trigger,) = (await response.json())["triggers"]
        await route.fulfill(response=response, json={"triggers": [{**trigger, "settings": {"run": "hello", **source}}]})

    folder = tmp_path / "team"
    async with served(folder, DOCUMENTS, settings=settings(folder, hello=EVERY)) as server:
        page = await pages.open(server.url)
        await page.route("**/api/v1/triggers", answer)
        await page.get_by_role("link", name="Triggers").click()
        await expect(page.get_by_text(words)).to_be_visible()


async def test_a_check_of_an_enabled_trigger_keeps_what_was_accepted(tmp_path: Path) -> None:
    folder = tmp_path / "team"
    given = settings(folder, hello=EVERY)
    odd = HELLO + "\n## STEP 2: Ask\n\n@elicit(confirm, Publish this?)\n"
    async with served(folder, {**DOCUMENTS, "hello.playbook.md": odd}, settings=given) as server:

        async def problems() -> str:
            async with server.client() as client:
                return " ".join((await client.post("/triggers/hello/check", json={})).json()["problems"])

        assert "PB106" in await problems()
        triggers = Triggers(server.site.runtime)
        await triggers.enable("hello", (await triggers.propose("hello", ("PB106",))).digest, "ada", ("PB106",))
        assert await problems() == ""
        (Path(server.environ["QUIRE_HOME"]) / "quire.toml").write_text(given.replace("10m", "20m"))
        assert "PB106" in await problems()


async def test_without_triggers_it_shows_what_to_write(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        page = await pages.open(server.url)
        await page.get_by_role("link", name="Triggers").click()
        await expect(page.get_by_text("[triggers.nightly]")).to_be_visible()
        await check_looks(page, "triggers-empty")


async def test_a_user_who_looks_has_no_buttons(pages: Pages, tmp_path: Path) -> None:
    folder = tmp_path / "team"
    async with served(folder, DOCUMENTS, has_tokens=True, settings=settings(folder, hello=CRON)) as server:
        secret = Users(server.site.runtime.settings).add("guest", "look")
        page = await pages.open(server.at("/triggers/hello").partition("#")[0] + f"#token={secret}")
        await expect(page.get_by_text("None: it uses no tools.")).to_be_visible()
        await expect(page.get_by_role("button", name="Enable")).to_be_hidden()
        await enable(server, "hello")
        await page.reload()
        await expect(page.get_by_text("on", exact=True)).to_be_visible()
        for name in ("Fire now", "Disable"):
            await expect(page.get_by_role("button", name=name)).to_be_hidden()
