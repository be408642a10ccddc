"""Now and questions: what the API answers, and the page that answers from it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect
from tests.browser import PHONE, Pages, axe, check_looks, picture
from tests.cli.test_inbox import add_questions
from tests.server.served import Served, served
from tests.server.team_workspace import ordinary_day, write_documents
from tests.stores.postgres_server import shared_server

from quire.engine.records import Status
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.server.site import SiteOptions
from quire.stores.contract import MOST_QUESTIONS

pytestmark = pytest.mark.asyncio(loop_scope="session")

RELEASE = """# Release notes

## STEP 1: Draft

Write release notes.

## STEP 2: Decide

@elicit(select, "Publish the notes?", "now", "tomorrow", "never")

## STEP 3: Sign

@elicit(input, "Which name stands below them?")
"""
MANY = """pipeline: refunds
steps:
  - for_each:
      over: ctx.orders
      max_items: 2000
      max_parallel: 100
      on_error: continue
      do:
        tool: {name: ask, args: {prompt: !expr item, type: confirm}}
      collect: {transform: {value: pipe}}
      output: decided
"""
DOCUMENTS = {"release.playbook.md": RELEASE, "refunds.yaml": MANY}
REPLIES = ["## Fixed\n\nThe **queue** no longer stalls."]


async def _send(server: Served, path: str, body: object) -> tuple[int, Any]:
    async with server.client() as client:
        answer = await client.post(path, json=body)
        return answer.status_code, answer.json()


async def _asks(server: Served) -> str:
    run = await server.start("release.playbook.md", model=server.script("s.json", REPLIES))
    async with asyncio.timeout(10):
        while not await server.site.runtime.store.questions(run["id"]):
            await asyncio.sleep(0.01)
    return str(run["id"])


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_now_has_every_kind_of_run_with_what_helps(tmp_path: Path, kind: str) -> None:
    settings = ""
    if kind == "postgresql":
        store = shared_server()
        settings = f'[store]\nurl = "{store.url(schema=store.new_schema())}"\n'
    async with served(tmp_path / "team", {}, settings=settings) as server:
        assert (await server.read("/now"))["documents"] == 0
        write_documents(server.folder)
        runs = await ordinary_day(server.site.runtime)
        now = await server.read("/now")
        (group,) = now["questions"]["groups"]
        assert (group["run"], group["count"]) == (runs["waiting"], 1)
        assert group["items"][0]["command"] == f"quire answer {runs['waiting']} VALUE"
        paused = next(row for row in now["stopped"] if row["id"] == runs["paused"])
        assert paused["action"]["kind"] == "resume"
        assert paused["action"]["command"] == f"quire resume {runs['paused']}"
        assert runs["done"] in [row["id"] for row in now["finished"]]
        (oldest,), total = await server.site.runtime.store.oldest_questions(1)
        assert (oldest.run, total) == (runs["waiting"], 1)


async def test_failed_runs_say_what_helps(tmp_path: Path) -> None:
    one = "# One\n\n## STEP 1: Ask\n\nSay something.\n\n## STEP 2: Again\n\nSay more.\n"
    async with served(tmp_path / "team", {"one.playbook.md": one}) as server:
        failing = server.script("lost.json", [{"error": "the connection was lost"}])
        paid = server.script(
            "paid.json", [{"reply": "a", "usage": {"input_tokens": 1, "output_tokens": 1, "cost": 0.5}}, "b"]
        )
        lost = await server.start("one.playbook.md", model=failing)
        poor = await server.start("one.playbook.md", model=paid, budget=0.4)
        for run in (lost, poor):
            await server.site.runs.ended(run["id"], 10)
        groups = (await server.read("/now"))["failed"]
        actions = {group["latest"]["id"]: group["latest"]["action"] for group in groups}
        assert actions[lost["id"]]["kind"] == "resume"
        assert (actions[poor["id"]]["kind"], actions[poor["id"]]["limit"]) == ("more", "budget")
        assert actions[poor["id"]]["command"] == f"quire resume {poor['id']} --budget MORE"


LOGIN, EXPORT = "the login service", "the export"
REVIEW = """# Review

## Inputs

- `service` (string): The service
- `customers` (number): Customers who noticed

## STEP 1: Gate

@elicit(confirm, "Is it urgent?")

## STEP 2: Report

Write about {{service}}, which {{customers}} customers noticed.
"""
DEPLOY = """pipeline: deploy
dialect: quire
description: Publishes a version after a person agreed.
input:
  version: {type: string}
steps:
  - tool: {name: ask, args: {type: confirm, prompt: !expr "format('Publish {}?', ctx.version)"}, output: approved}
  - stop: {when: approved != 'yes', value: "'not approved'"}
  - shell: {command: !expr "['sh', 'publish.sh', ctx.version]"}
"""


async def test_runs_that_ask_alike_are_one_group_and_a_gate_before_an_effect_stands_alone(tmp_path: Path) -> None:
    documents = {"review.playbook.md": REVIEW, "deploy.yaml": DEPLOY}
    async with served(tmp_path / "team", documents, options=SiteOptions(allow=("shell",))) as server:
        for service, customers in ((LOGIN, 35), (EXPORT, 0), (LOGIN, 400)):
            inputs = {"service": service, "customers": customers}
            await server.start("review.playbook.md", inputs=inputs, model=server.script("s.json", ["done"]))
        for version in ("1.0", "1.0"):
            await server.start("deploy.yaml", inputs={"version": version})
        async with asyncio.timeout(20):
            while (now := await server.read("/now"))["questions"]["total"] < 5:
                await asyncio.sleep(0.01)
        review, deploy = sorted(now["questions"]["groups"], key=lambda group: -group["count"])
        assert (review["count"], review["same"], review["alone"]) == (3, True, False)
        assert [LOGIN in ask["subject"] or EXPORT in ask["subject"] for ask in review["items"]] == [True] * 3
        assert len({ask["subject"] + ask["differing"] for ask in review["items"]}) == 3
        assert review["frees"] == {"effects": [], "calls": [1, 1], "price": None, "red": False, "word": ""}
        assert (deploy["count"], deploy["alone"]) == (2, True)
        assert deploy["frees"]["effects"] == [{"name": "sh publish.sh ctx.version", "kind": "write", "world": True}]
        assert (deploy["frees"]["red"], deploy["frees"]["word"]) == (True, "publish")
        listed = (await server.read("/questions"))["items"]
        assert [ask["alone"] for ask in listed].count(True) == 2
        assert {ask["group"] for ask in listed} == {review["key"], deploy["key"]}


async def test_failures_that_differ_in_numbers_are_one_group_and_leave_when_they_are_seen(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        runs = [
            await server.start(
                "release.playbook.md", model=server.script(f"{at}.json", [{"error": f"lost after {at} s"}])
            )
            for at in (3, 41)
        ]
        for run in runs:
            await server.site.runs.ended(run["id"], 10)
        (group,) = (await server.read("/now"))["failed"]
        assert (group["count"], sorted(group["runs"])) == (2, sorted(run["id"] for run in runs))
        assert "lost after # s" in group["message"]


async def test_an_answer_that_came_elsewhere_is_told_with_its_author(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        run = await _asks(server)
        question = await server.read(f"/questions/{run}/2/ask")
        assert [step["output"] for step in question["led"]] == REPLIES
        assert "<strong>queue</strong>" in question["led"][0]["html"]
        other = server.other()
        await other.answer(run, "2/ask", "tomorrow", by="ada")
        body = {"value": "now", "hash": question["hash"]}
        status, problem = await _send(server, f"/questions/{run}/2/ask/answer", body)
        assert (status, problem["code"]) == (409, "already-answered")
        assert problem["answer"]["value"] == "tomorrow"
        assert problem["detail"] == "answered tomorrow by ada, in a terminal"
        await other.drive(run)
        await other.close()
        closed = await server.read(f"/questions/{run}/2/ask")
        assert (closed["open"], closed["answer"]["value"]) == (False, "tomorrow")
        assert closed["answer"]["at"] > question["asked_at"]
        status, problem = await _send(server, f"/questions/{run}/3/ask/answer", {"value": "x", "hash": "old"})
        assert (status, problem["code"]) == (409, "question-changed")
        assert (await server.read(f"/questions/{run}/9/ask", 404))["code"] == "no-such-question"


async def test_an_answer_that_does_not_fit_is_refused_in_the_words_of_the_checker(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        run = await _asks(server)
        question = await server.read(f"/questions/{run}/2/ask")
        body = {"value": "perhaps", "hash": question["hash"]}
        status, problem = await _send(server, f"/questions/{run}/2/ask/answer", body)
        assert (status, problem["code"]) == (422, "unfit-answer")
        assert "now" in problem["detail"]


async def test_many_questions_are_answered_at_once(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        run = await server.start("refunds.yaml", inputs={"orders": [f"Refund order A{at}?" for at in range(30)]})
        await server.site.runs.ended(run["id"], 20)
        now = await server.read("/now")
        (group,) = now["questions"]["groups"]
        assert (group["count"], len(group["items"]), now["questions"]["total"]) == (30, 20, 30)
        first = await server.read("/questions?limit=20")
        rest = await server.read(f"/questions?limit=20&after={first['next']}")
        assert (len(rest["items"]), rest["next"]) == (10, None)
        answers = [
            {"run": one["run"], "path": one["path"], "hash": one["hash"], "value": "yes"}
            for one in [*first["items"], *rest["items"]]
        ]
        answers[0]["value"] = "perhaps"
        status, result = await _send(server, "/questions/answers", {"answers": answers})
        assert (status, result["answered"]) == (200, 29)
        assert result["items"][0]["problem"]["code"] == "unfit-answer"
        await server.site.runs.ended(run["id"], 20)
        assert (await server.read("/now"))["questions"]["total"] == 1


async def test_the_page_answers_and_the_card_stays_in_its_place(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        run = await _asks(server)
        page = await pages.open(server.url)
        await expect(page).to_have_title("(1) Quire")
        assert "icon-waiting" in str(await page.locator('link[rel="icon"]').get_attribute("href"))
        await page.get_by_text("What led here").click()
        await expect(page.get_by_text("no longer stalls")).to_be_visible()
        other = server.other()
        await other.answer(run, "2/ask", "tomorrow", by="ada")
        await expect(page.get_by_text("Answered tomorrow by ada, in a terminal")).to_be_visible()
        await other.drive(run)
        await page.get_by_label("Your answer").fill("Ada")
        await expect(page.get_by_text("Answered tomorrow by ada")).to_be_visible()
        # A terminal answers while the page holds another answer: the first one counts, and the page says so.
        await page.get_by_label("Your answer").press("Control+Enter")
        await expect(page.get_by_role("button", name="Undo")).to_be_visible()
        await other.answer(run, "3/ask", "Grace", by="grace")
        await other.drive(run)
        await other.close()
        await expect(page.get_by_role("heading", name="Ended")).to_be_visible()
        await expect(page.get_by_text("Answered Grace by grace, in a terminal")).to_be_visible()
        recorded = {one.path: one.value for one in await server.site.runtime.store.effects(run)}
        assert recorded["3/ask"] == "Grace"
        await expect(page).to_have_title("Quire")
    pages.faults[:] = [fault for fault in pages.faults if "409" not in fault]


async def test_all_questions_of_a_fan_out_are_answered_alike(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        run = await server.start("refunds.yaml", inputs={"orders": [f"Refund order A{at}?" for at in range(45)]})
        page = await pages.open(server.url)
        await expect(page.get_by_text("45 alike")).to_be_visible()
        first = page.locator(".asked > li").first
        await first.get_by_role("button", name="No").click()
        await expect(first.get_by_text("Answered no")).to_be_visible()
        await picture(page, "now-fan-out")
        await page.get_by_role("button", name="Answer all 45").click()
        await page.get_by_role("dialog").get_by_role("button", name="Yes").click()
        await expect(page.locator(".held")).to_have_count(20)
        await expect(page.get_by_role("heading", name="Ended")).to_be_visible()
        await expect(page.locator(".asked .answered")).to_have_count(20)
        view = await server.site.runtime.view(run["id"])
        assert view.value == ["no", *["yes"] * 44] or view.value == [False, *[True] * 44]


async def test_a_question_on_a_phone(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        run = await _asks(server)
        page = await pages.open(server.at(f"/q/{run}/2/ask"), width=PHONE, height=740)
        await expect(page.get_by_role("heading", level=1)).to_have_text("Publish the notes?")
        await expect(page.get_by_text("no longer stalls")).to_be_visible()
        assert await page.locator(".rail").count() == 0
        for target in await page.locator("main button:visible, main a.button:visible, nav a").all():
            box = await target.bounding_box()
            assert box is not None and box["height"] >= 44, await target.inner_text()
        await check_looks(page, "question")
        await page.get_by_role("button", name="Open on another device").click()
        await expect(page.get_by_role("img", name="QR code of the address with its token")).to_be_visible()
        await page.get_by_label("The server, as the other device reaches it").fill("https://quire.example.org")
        await expect(page.get_by_text("This address is reached from this machine only.")).to_be_hidden()
        await check_looks(page, "qr")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("img", name="QR code of the address with its token")).to_be_hidden()
        await page.set_viewport_size({"width": 320, "height": 700})
        assert await page.evaluate("document.documentElement.scrollWidth") <= 320
        # A key may come while the page is laid out for its new size, and be lost.
        tomorrow = page.get_by_role("button", name="tomorrow")
        for _ in range(5):
            await page.keyboard.press("2")
            with suppress(AssertionError):
                await expect(tomorrow).to_be_focused(timeout=2000)
                break
        await expect(tomorrow).to_be_focused()
        assert await server.site.runtime.store.questions(run), "a key alone answers nothing"
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Answered tomorrow. The run continues.")).to_be_visible()
        await page.goto(server.at(f"/q/{run}/3/ask"))
        await page.get_by_label("Your answer").fill("A name that is not lost")
        await page.get_by_role("link", name="Quire").click()
        await expect(page.get_by_label("Your answer")).to_have_value("A name that is not lost")
        await page.go_back()
        other = server.other()
        await other.answer(run, "3/ask", "Grace", by="grace")
        await expect(page.get_by_text("Answered Grace by grace, in a terminal")).to_be_visible()
        await other.close()
    pages.faults[:] = [fault for fault in pages.faults if "409" not in fault]


async def test_the_bell_asks_for_permission_only_when_it_is_clicked(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        context = await pages.context(server.url)
        await context.add_init_script(
            "globalThis.told = []; globalThis.Notification = class { static permission = 'default';"
            " static requestPermission = () => { told.push('asked'); return Promise.resolve('granted') };"
            " constructor(title, { body }) { told.push(`${title}: ${body}`) } close() {} };"
            " Object.defineProperty(document, 'hidden', { get: () => true })"
        )
        page = await context.new_page()
        await page.goto(server.url)
        bell = page.get_by_role("button", name="Tell me about questions")
        await expect(bell).to_be_visible()
        assert await page.evaluate("told") == []
        await bell.click()
        await expect(page.get_by_role("button", name="Tells you about questions")).to_be_visible()
        row = await server.site.runtime.row(await _asks(server))
        await expect(page).to_have_title("(1) Quire")
        await page.wait_for_timeout(50)
        assert await page.evaluate("told") == [
            "asked",
            f"1 question waits for you: {row.label}: Publish the notes?",
        ]


async def test_failures_that_are_alike_are_tried_again_together_and_leave_when_seen(
    pages: Pages, tmp_path: Path
) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        model = server.script("lost.json", [{"error": "the connection was lost"}])
        runs = [str((await server.start("release.playbook.md", model=model))["id"]) for _ in range(2)]
        for run in runs:
            await server.site.runs.ended(run, 10)
        page = await pages.open(server.url)
        await page.get_by_role("button", name="Try both again").click()
        await expect(page.get_by_role("dialog").get_by_text("Continues 2 runs")).to_be_visible()
        assert [(await server.site.runtime.row(run)).epoch for run in runs] == [1, 1], "a look costs nothing"
        await page.get_by_role("dialog").get_by_role("button", name="Try 2 runs again").click()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        async with asyncio.timeout(20):
            for run in runs:
                while (row := await server.site.runtime.row(run)).epoch < 2 or row.status is not Status.FAILED:
                    await asyncio.sleep(0.02)
        await page.get_by_role("button", name="Seen").click()
        await expect(page.locator("#failed")).to_have_count(0)
        assert None not in [(await server.site.runtime.row(run)).seen_at for run in runs]
        assert (await server.read("/now"))["failed"] == []


async def test_the_bars_of_the_pulse_lead_to_the_runs_of_a_day(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server:
        await _asks(server)
        page = await pages.open(server.url)
        bars = page.locator(".pulse .bars").first.get_by_role("link")
        await expect(bars).to_have_count(14)
        await expect(page.locator(".pulse .bars")).to_have_count(4)
        days = (await server.read("/pulse"))["days"]
        await expect(bars.last).to_have_accessible_name(f"{days[-1]['day']}: 1 run")
        await bars.last.focus()
        await page.keyboard.press("ArrowLeft")
        await expect(bars.nth(12)).to_be_focused()
        await bars.last.click()
        assert f"/runs?since={days[-1]['since']:.0f}" in page.url.replace(".0", "")


async def test_now_looks(pages: Pages, tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}, options=SiteOptions()) as server:
        page = await pages.open(server.url)
        await expect(page.get_by_text("This workspace has no documents yet.")).to_be_visible()
        await check_looks(page, "now-first-visit")
        write_documents(server.folder)
        await page.reload()
        await expect(page.get_by_text("Run a document:")).to_be_visible()
        await check_looks(page, "now-empty")
        await ordinary_day(server.site.runtime)
        server.write("release.playbook.md", RELEASE)
        server.write("refunds.yaml", MANY)
        runtime = server.site.runtime
        failing = server.script("lost.json", [{"error": "the connection was lost"}])
        lost = await runtime.start(
            load(str(server.folder / "release.playbook.md")), {}, RunOptions(model=failing, budget=0.5)
        )
        await server.site.runs.go_on(lost)
        await server.start("refunds.yaml", inputs={"orders": [f"Refund order A{at}?" for at in range(3)]})
        await server.site.runs.ended(lost, 10)
        await page.reload()
        await expect(page.get_by_role("heading", name="Stopped, and can continue")).to_be_visible()
        await check_looks(page, "now-ordinary")
        assert await axe(page) == []
        await page.locator(".halted", has_text="the connection was lost").get_by_role("button").first.click()
        async with asyncio.timeout(10):
            while (row := await runtime.row(lost)).status is not Status.FAILED or row.epoch < 2:
                await asyncio.sleep(0.01)


async def test_many_questions_in_pages(tmp_path: Path) -> None:
    """They are counted up to a limit, and none is repeated or left out."""
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        run = await _asks(server)
        add_questions(server.folder, run, MOST_QUESTIONS)
        places, after = list[tuple[float, str]](), ""
        for _ in range(4):
            answer = (
                await client.get("/questions", params={"limit": 400, **({"after": after} if after else {})})
            ).json()
            places += [(question["asked_at"], question["path"]) for question in answer["items"]]
            assert answer["total"] == MOST_QUESTIONS + 1
            if not (after := answer["next"]):
                break
        assert len(places) == MOST_QUESTIONS + 1 and places == sorted(set(places))
        own = (await client.get("/questions", params={"run": run, "limit": 400})).json()
        rest = (await client.get("/questions", params={"run": run, "limit": 400, "after": own["next"]})).json()
        assert [item["path"] for item in (*own["items"], *rest["items"])] == [path for _, path in places[:800]]
        assert (await client.get("/questions", params={"after": "x"})).status_code == 422
        now = (await client.get("/now")).json()["questions"]
        assert now["total"] == MOST_QUESTIONS + 1
