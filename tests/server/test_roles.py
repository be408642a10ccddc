"""Users of a server: each operation needs a role, and a token with a name or a person behind a proxy has one."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from playwright.async_api import expect
from tests.browser import Pages, axe
from tests.server.served import TOKEN, Served, served

from quire.library.document import load
from quire.operations import OPERATIONS
from quire.runs.options import RunOptions
from quire.runs.pins import PinnedState
from quire.server.access import Users
from quire.server.app import application
from quire.server.guard import CHECK_SECONDS
from quire.server.routes import ENDPOINTS
from quire.workspace.settings import ROLES, Role

pytestmark = pytest.mark.asyncio(loop_scope="session")

HELLO = "# Hello\n\n## STEP 1: Greet\n\nSay hello.\n"
ASKS = '# Ask\n\n## STEP 1: Decide\n\n@elicit(confirm, "Go on?")\n'
DOCUMENTS = {"reports/hello.playbook.md": HELLO, "reports/ask.playbook.md": ASKS, "ask.playbook.md": ASKS}
PEOPLE = """
[serve]
different_approver = true
[serve.people]
"anna@x.org" = "run"
"ben@x.org" = "answer"
"eva@x.org" = "administer"
"""
NEEDED: dict[Role, str] = {
    "look": "root openapi docs now list_letters list_documents check_text show_document language list_cases list_tools"
    " metrics"
    " explain_code list_runs group_runs pulse count_runs list_actions verify_export verify_run export_run diff_runs"
    " show_fork show_run run_graph document_graph document_svg document_history show_tree read_text show_step"
    " list_effects show_effect show_why show_prompt show_transcript show_values show_state show_pinned show_artifact"
    " list_questions show_question search list_artifacts health doctor list_models show_trust list_webhooks run_events"
    " page_events list_triggers check_trigger list_fires",
    "answer": "answer_questions answer_question",
    "run": "preview_prompt preflight run_cases label_run preview_fork fork_run try_step start_run resume_run"
    " resume_runs pause_run cancel_run",
    "administer": "save_document prune_runs delete_run import_run share_run list_shares revoke_share draft_test"
    " test_webhook drop_messages enable_trigger disable_trigger fire_trigger backfill_trigger tick_triggers",
}
DOUBTFUL = [
    ["eve@x.org"],
    [""],
    [],
    ["anna@x.org", "anna@x.org"],
    ["anna@x.org, ben@x.org"],
    ["ANNA@x.org"],
    ["anna@x.org" * 500],
    ["Zo\u00eb <anna@x.org>"],
]
"""Values of the header of a proxy that name nobody with a role."""
OPEN_PATHS = {"/static/{version}/{file:path}", "/frames/{kind}", "/problems/{code}", "/hooks/{name}", "/{rest:path}"}
"""Routes without data of the workspace, which need no token. A webhook needs a signature."""


class User(httpx2.AsyncClient):
    """A client with a token, and the headers that a proxy adds."""

    def __init__(self, server: Served, token: str, **headers: str) -> None:
        headers = {"Authorization": f"Bearer {token}".strip(), "Content-Type": "application/json", **headers}
        super().__init__(base_url=f"http://{server.place}/api/v1", headers=headers, timeout=30)


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    async with served(tmp_path_factory.mktemp("roles") / "team", DOCUMENTS, has_tokens=True) as one:
        yield one


def tokens(server: Served) -> Users:
    return Users(server.site.runtime.settings)


@pytest.fixture(scope="module")
def secrets(server: Served) -> dict[str, str]:
    """A token for each role."""
    return {role: tokens(server).add(f"the-{role}", role) for role in ROLES}


async def asked(server: Served, document: str = "ask.playbook.md", **body: Any) -> tuple[str, dict[str, str]]:
    """Start a run that asks. Return its id, and the path and the hash of its question."""
    run = (await server.start(document, **body))["id"]
    return run, await question_of(server, run)


async def question_of(server: Served, run: str) -> dict[str, str]:
    await server.site.runs.ended(run, 30)
    (question,) = (await server.read(f"/questions?run={run}"))["items"]
    return question


async def owners_run(server: Served, options: RunOptions) -> str:
    """Start and drive a run in a terminal."""
    runtime = server.other()
    try:
        run = await runtime.start(load(str(server.folder / "ask.playbook.md")), {}, options)
        await runtime.drive(run)
        return run
    finally:
        await runtime.close()


def answer_to(run: str, question: dict[str, str]) -> tuple[str, dict[str, str]]:
    return f"/questions/{run}/{question['path']}/answer", {"value": "yes", "hash": question["hash"]}


async def test_each_operation_has_its_role() -> None:
    stated = {name: role for role, names in NEEDED.items() for name in names.split()}
    assert {operation.name: operation.role for operation in OPERATIONS if operation.http} == stated
    assert {endpoint.name: endpoint.role for endpoint in ENDPOINTS} == stated


async def test_other_routes_hold_nothing_of_the_workspace(server: Served) -> None:
    app: Any = application(server.site, token=TOKEN, hosts=[], origins=[])
    routes = {route.path for route in app._app._app.routes}
    api = {f"/api/v1{endpoint.path}" for endpoint in ENDPOINTS} | {"/api/v1/{rest:path}"}
    assert routes - api == OPEN_PATHS


@pytest.mark.parametrize("role", [*ROLES, "", "wrong"])
async def test_every_operation_and_role(server: Served, secrets: dict[str, str], role: str) -> None:
    """A role that does not allow an operation is told so before anything else; without a token there is nothing."""
    token = secrets.get(role, f"quire-x-{48 * '0'}" if role else "")
    run = "2aaaaaa-aaaaa"
    async with User(server, token) as user:
        for endpoint in ENDPOINTS:
            at = re.sub(r"\{run\}", run, re.sub(r"\{(?!run)\w+(:path)?\}", "none", endpoint.path))
            # Bodies that fit nothing, so that no operation does anything.
            content = '{"odd": 1}' if endpoint.method != "GET" else None
            accept = {"Accept": "application/json"}
            at += "?odd=1" if endpoint.name in ("run_events", "page_events") else ""
            answer = await user.request(endpoint.method, at, content=content, headers=accept)
            code = answer.json()["code"] if answer.is_client_error else ""
            if role not in ROLES:
                assert (answer.status_code, code) == (401, "wrong-token"), endpoint.name
            elif ROLES.index(role) < ROLES.index(endpoint.role):
                assert (answer.status_code, code) == (403, "no-role"), endpoint.name
                assert f"needs the role {endpoint.role}" in answer.json()["detail"]
            else:
                assert code not in ("no-role", "wrong-token"), (endpoint.name, answer.text)


async def test_a_role_can_do_what_it_allows_under_its_name(server: Served, secrets: dict[str, str]) -> None:
    async with User(server, secrets["run"]) as runner, User(server, secrets["answer"]) as answerer:
        made = await runner.post("/runs", json={"document": "ask.playbook.md"})
        assert made.status_code == 201, made.text
        run = made.json()["id"]
        question = await question_of(server, run)
        at, body = answer_to(run, question)
        assert (await answerer.post("/runs", json={"document": "ask.playbook.md"})).status_code == 403
        assert (await answerer.post(at, json=body)).is_success
        shown = (await answerer.get(f"/questions/{run}/{question['path']}")).json()
        about = (await answerer.get("/")).json()
    assert shown["answer"]["by"] == "the-answer"
    assert about["role"] == "answer"
    row = await server.site.runtime.row(run)
    assert row.source == PinnedState.of(row.pins).source == "token:the-run"
    own = await server.site.runtime.row((await asked(server))[0])
    assert own.source == "" and (await server.read("/"))["role"] == "administer"


async def test_a_role_does_not_widen_allow(server: Served, secrets: dict[str, str]) -> None:
    async with User(server, secrets["administer"]) as user:
        answer = await user.post("/runs", json={"document": "ask.playbook.md", "allow": ["shell"]})
    assert answer.status_code == 422 and "granted in a terminal only" in answer.text


async def test_a_token_is_kept_as_its_hash_in_a_file_for_the_user_alone(server: Served) -> None:
    secret = tokens(server).add("kept", "look")
    files = [path for path in server.site.runtime.settings.user.rglob("*") if path.is_file()]
    (file,) = [path for path in files if b"token:kept" in path.read_bytes()]
    assert file.stat().st_mode & 0o077 == 0 and not any(secret.encode() in path.read_bytes() for path in files)
    hashed = json.loads(file.read_text())["hash"]
    for wrong in (hashed, f"quire-kept-{hashed}", f"quire-kept-{hashed[:48]}", secret[:-1], secret + "0", secret[6:]):
        async with User(server, wrong) as user:
            assert (await user.get("/runs")).status_code == 401


async def test_tokens_with_names_need_a_place_that_nobody_can_take(tmp_path: Path) -> None:
    async with (
        served(tmp_path / "team", DOCUMENTS) as server,
        User(server, tokens(server).add("anna", "look")) as user,
    ):
        assert (await user.get("/runs")).status_code == 401


@pytest.mark.parametrize(
    ("at", "accept"),
    [("/events", "text/event-stream"), ("/events", "*/*"), ("/runs/{run}/events", "text/event-stream")],
)
async def test_a_stream_ends_when_its_token_is_revoked(server: Served, at: str, accept: str) -> None:
    run, _ = await asked(server)
    secret = tokens(server).add("leaver", "administer")
    async with User(server, secret) as user:
        async with user.stream("GET", at.replace("{run}", run), headers={"Accept": accept}) as answer:
            assert answer.status_code == 200
            pieces = answer.aiter_bytes()
            assert b"retry" in await anext(pieces)
            tokens(server).revoke("leaver")
            await server.start("ask.playbook.md")  # a change that every page is told
            async with asyncio.timeout(CHECK_SECONDS * 10):
                rest = b"".join([piece async for piece in pieces])
        assert b"event: runs" not in rest
        assert (await user.get("/runs")).status_code == 401
    while server.site.hub.listeners:
        await asyncio.sleep(0.02)


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def team(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """A server behind a proxy that names people, of whom another has to answer."""
    folder = tmp_path_factory.mktemp("people") / "team"
    async with served(folder, DOCUMENTS, has_tokens=True, header="X-Email", settings=PEOPLE) as one:
        yield one


def person(server: Served, name: str, token: str = TOKEN) -> User:
    return User(server, token, **{"X-Email": name})


async def test_a_person_has_the_role_of_the_settings(team: Served) -> None:
    async with person(team, "ben@x.org") as ben, person(team, "anna@x.org") as anna:
        assert (await ben.get("/")).json()["role"] == "answer"
        assert (await ben.post("/runs", json={"document": "ask.playbook.md"})).json()["code"] == "no-role"
        run = (await anna.post("/runs", json={"document": "ask.playbook.md"})).json()["id"]
    assert (await team.site.runtime.row(run)).source == "person:anna@x.org"


@pytest.mark.parametrize(
    ("operation", "body"), [("fire", {}), ("backfill", {"since": "2026-01-01", "until": "2026-01-02"})]
)
async def test_a_run_that_must_be_approved_by_another_user_is_not_started_by_hand(
    team: Served, operation: str, body: dict[str, str]
) -> None:
    """The run would be that of the trigger, so its starter could say yes to it."""
    async with person(team, "eva@x.org") as eva:
        answer = await eva.post(f"/triggers/any/{operation}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (403, "same-user")
        assert (await eva.post("/triggers/any/disable", json={})).json()["code"] != "same-user"


@pytest.mark.parametrize("names", DOUBTFUL)
async def test_other_people_and_doubtful_headers_get_in_nowhere(team: Served, names: list[str]) -> None:
    async with User(team, TOKEN) as user:
        headers = [*user.headers.multi_items(), *(("X-Email", name) for name in names)]
        answer = await user.get("/runs", headers=httpx2.Headers(headers, "latin-1"))
    assert (answer.status_code, answer.json()["code"]) == (403, "unknown-person")
    assert len(answer.text) < 1000


async def test_the_header_without_the_servers_token_is_not_believed(team: Served, server: Served) -> None:
    secret = tokens(team).add("carl", "look")
    for token, expected in (("", 401), ("wrong", 401), (secret, 200)):
        async with person(team, "anna@x.org", token) as user:
            answer = await user.get("/")
            assert answer.status_code == expected
            assert answer.is_error or answer.json()["role"] == "look"
    async with person(server, "anna@x.org") as user:  # no such header was agreed on
        assert (await user.get("/")).json()["role"] == "administer"


async def test_another_user_than_the_one_who_started_a_run_answers_its_confirms(team: Served) -> None:
    secret = tokens(team).add("dora", "answer")
    async with person(team, "anna@x.org") as anna, User(team, secret) as dora:
        run = (await anna.post("/runs", json={"document": "ask.playbook.md"})).json()["id"]
        await team.site.runs.ended(run, 30)
        (question,) = (await anna.get(f"/questions?run={run}")).json()["items"]
        at, body = answer_to(run, question)
        several = {"answers": [{"run": run, "path": question["path"], **body}]}
        refused = await anna.post(at, json=body)
        assert (refused.status_code, refused.json()["code"]) == (403, "same-user")
        assert (await anna.post("/questions/answers", json=several)).json()["answered"] == 0
        for more in ({"answers": {"1": "yes"}}, {"unattended": True}, {"unattended": "yes"}):
            for path in ("/runs", f"/runs/{run}/resume", f"/runs/{run}/fork"):
                known = {"/runs": {"document": "ask.playbook.md"}, f"/runs/{run}/fork": {"from": "1"}}
                answer = await anna.post(path, json={**known.get(path, {}), **more})
                assert answer.json()["code"] == "same-user", (path, more, answer.text)
        fork = (await anna.post(f"/runs/{run}/fork", json={"from": "1"})).json()["id"]
        assert (await team.site.runtime.row(fork)).source == "person:anna@x.org"
        assert (await dora.post(at, json=body)).is_success
        shown = (await anna.get(f"/questions/{run}/{question['path']}")).json()
    assert shown["answer"]["by"] == "dora"


@pytest.mark.parametrize("options", [RunOptions(answers={"1": "yes"}), RunOptions(unattended=True, says_yes=True)])
async def test_no_user_takes_over_the_answers_of_another_run(team: Served, options: RunOptions) -> None:
    run = await owners_run(team, options)
    async with person(team, "anna@x.org") as anna:
        for path, body in (("/runs", {"like": run}), (f"/runs/{run}/fork", {"from": "1"})):
            answer = await anna.post(path, json=body)
            assert (answer.status_code, answer.json()["code"]) == (403, "same-user"), (path, answer.text)


async def test_a_fork_does_not_use_an_approval_again(team: Served) -> None:
    async with person(team, "anna@x.org") as anna, person(team, "ben@x.org") as ben:
        run = (await anna.post("/runs", json={"document": "ask.playbook.md"})).json()["id"]
        await team.site.runs.ended(run, 30)
        (question,) = (await anna.get(f"/questions?run={run}")).json()["items"]
        at, body = answer_to(run, question)
        assert (await ben.post(at, json=body)).is_success
        await team.site.runs.ended(run, 30)
        for path in (f"/runs/{run}/fork", f"/runs/{run}/fork/preview"):
            answer = await anna.post(path, json={"from": "1"})
            assert (answer.status_code, answer.json()["code"]) == (403, "same-user"), answer.text
        assert (await anna.post("/runs", json={"like": run})).is_success  # it asks again


async def test_no_user_takes_over_the_tools_of_another_run(server: Served, secrets: dict[str, str]) -> None:
    run = await owners_run(server, RunOptions(allow=("shell",)))
    requests = {
        "/runs": {"like": run},
        f"/runs/{run}/fork": {"from": "1"},
        f"/runs/{run}/tries": {"path": "1/model"},
        f"/runs/{run}/resume": {"set": {"x": "y"}},
    }
    for path, body in requests.items():
        async with User(server, secrets["administer"]) as user:
            answer = await user.post(path, json=body)
        assert answer.status_code == 422 and "granted in a terminal only" in answer.text, path
    async with server.client() as owner:
        assert (await owner.post(f"/runs/{run}/fork", json={"from": "1"})).is_success


async def test_the_owner_answers_the_own_run_in_a_terminal(team: Served) -> None:
    run, runtime = await owners_run(team, RunOptions()), team.other()
    try:
        assert (await runtime.answer(run, None, "yes", by="owner")).kind == "confirm"
    finally:
        await runtime.close()


async def test_a_limited_token_reaches_its_documents_and_their_runs(server: Served) -> None:
    secret = tokens(server).add("limited", "run", "reports/*")
    own, question = await asked(server, "reports/ask.playbook.md")
    other, others = await asked(server, "ask.playbook.md")
    async with User(server, secret) as user:
        for path in ("", "/tree", "/events", "/export", "/steps/1"):
            answer = await user.get(f"/runs/{other}{path}")
            assert (answer.status_code, answer.json()["code"]) == (404, "no-such-run"), path
            assert answer.json()["detail"] == f"unknown run {other}"
        # An unknown run has the same answer, without the names of runs that are similar.
        assert (await user.get(f"/runs/{other[:-1]}x")).json()["detail"] == f"unknown run {other[:-1]}x"
        assert (await user.get(f"/questions/{other}/{others['path']}")).status_code == 404
        for path in (f"/runs/{other}/cancel", answer_to(other, others)[0]):
            body = answer_to(other, others)[1] if "questions" in path else {}
            assert (await user.post(path, json=body)).status_code == 404, path
        for name in ("ask.playbook.md", "ask", "reports/../ask.playbook.md", "reports/none.playbook.md"):
            answer = await user.post("/runs", json={"document": name})
            assert (answer.status_code, answer.json()["code"]) == (404, "no-such-document"), name
        for body in ({"like": other}, {"document": "reports/ask.playbook.md", "reuse": other}):
            assert (await user.post("/runs", json=body)).status_code == 404, body
        assert (await user.get("/documents/ask.playbook.md")).status_code == 404
        for path in ("/search?q=ask", "/runs", "/now", "/questions", "/events", f"/runs/{own}/diff/{other}"):
            assert (await user.get(path)).json()["code"] == "no-role", path
        several = {"answers": [{"run": other, "path": others["path"], "value": "yes", "hash": others["hash"]}]}
        assert (await user.post("/questions/answers", json=several)).json()["code"] == "no-role"
        assert (await user.get(f"/runs/{own}")).is_success
        assert (await user.get("/documents/reports/ask.playbook.md")).is_success
        made = await user.post("/runs", json={"document": "reports/ask.playbook.md"})
        assert made.status_code == 201
        at, body = answer_to(own, question)
        assert (await user.post(at, json=body)).is_success


async def test_an_idempotency_key_belongs_to_its_user(server: Served, secrets: dict[str, str]) -> None:
    request, key = {"document": "ask.playbook.md"}, {"Idempotency-Key": "the-same"}
    async with User(server, secrets["run"]) as first, User(server, secrets["administer"]) as second:
        assert (await first.post("/runs", json=request, headers=key)).status_code == 201
        answer = await second.post("/runs", json=request, headers=key)
    assert (answer.status_code, answer.json()["code"]) == (422, "key-reused")


async def test_the_page_offers_what_the_role_allows(server: Served, secrets: dict[str, str], pages: Pages) -> None:
    run, _ = await asked(server)
    words = re.compile("^(Fork|Resume|Answer|Cancel|Share|Run again|Name and note|Run|Yes|No|Import.*)$", re.IGNORECASE)
    for role, offered in (("look", False), ("administer", True)):
        page = await pages.open(f"http://{server.place}/runs/{run}#token={secrets[role]}")
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await expect(page.get_by_role("button", name="Compare").first).to_be_visible()
        assert (await page.get_by_role("button", name=words).count() > 0) == offered
        assert await axe(page) == []
        for screen in (
            "/",
            "/documents",
            "/documents/ask.playbook.md",
            "/runs",
            "/health",
            "/trust",
        ):
            await page.goto(f"http://{server.place}{screen}")
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            if not offered:
                await expect(page.get_by_role("button", name=words)).to_have_count(0)
                assert await axe(page) == [], screen
