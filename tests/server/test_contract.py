"""The API keeps its own description: made-up requests to every endpoint get answers that fit it, and never a 500.

The requests are made by schemathesis from the OpenAPI document, half of them wrong on purpose.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.core import NotSet
from tests.depth import depth
from tests.server.served import TOKEN
from tests.server.team_workspace import ordinary_day, write_documents
from tests.warm import run_quire

from quire.operations import JSON
from quire.operations.problems import KINDS
from quire.runs.runtime import Runtime
from quire.server.app import application
from quire.server.endpoints import Endpoint, describe
from quire.server.routes import ENDPOINTS
from quire.server.site import Site, SiteOptions

PLACE = "127.0.0.1:8377"
DESCRIPTION = describe(ENDPOINTS, "")


@cache
def schema() -> Any:
    return schemathesis.openapi.from_dict(json.loads(json.dumps(DESCRIPTION)))


class Api:
    """The application of a workspace, in a loop of its own, with names that made-up requests may mean."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = folder
        self.reports: list[str] = []
        self.loop.run_until_complete(self._open())

    async def _open(self) -> None:
        write_documents(self.folder)
        self.runtime = Runtime.open(self.folder, environ={"QUIRE_HOME": str(self.folder.parent / "home")})
        self.runs = list((await ordinary_day(self.runtime)).values())
        options = SiteOptions(edit=True)
        site = Site(self.runtime, options, hand_over=lambda run: None, report=self.reports.append)
        app = application(site, token=TOKEN, hosts=[PLACE], origins=[f"http://{PLACE}"], report=self.reports.append)
        self.client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app),
            base_url=f"http://{PLACE}/api/v1",
            headers={"Authorization": f"Bearer {TOKEN}"},
            timeout=30,
        )
        self._site = site

    def request(self, method: str, path: str, **rest: Any) -> httpx2.Response:
        return self.loop.run_until_complete(self.client.request(method, path, **rest))

    def close(self) -> None:
        async def work() -> None:
            await self._site.runs.close()
            await self.client.aclose()
            await self.runtime.close()

        self.loop.run_until_complete(work())
        self.loop.close()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """For made-up requests, which remove and change whatever they find."""
    yield from _opened(tmp_path_factory)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    yield from _opened(tmp_path_factory)


def _opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("contract") / "team"
    folder.mkdir()
    (folder / "quire.toml").write_text("")
    one = Api(folder)
    yield one
    one.close()


def _known(api: Api, name: str) -> list[str]:
    """Values of a parameter of a path that mean something here."""
    if name in ("run", "a", "b", "other"):
        return api.runs
    if name == "path":
        return ["1", "2", "1/say", "4/ask", "for_each[3]"]
    return ["incident-report.playbook.md", "ticket-triage.yaml", "incident-report", "nothing"]


STREAMS = [endpoint for endpoint in ENDPOINTS if endpoint.media == "text/event-stream"]
ASKED = [endpoint for endpoint in ENDPOINTS if endpoint not in STREAMS]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["right", "wrong"])
@pytest.mark.parametrize("endpoint", ASKED, ids=lambda endpoint: endpoint.name)
def test_made_up_requests_get_answers_that_fit(api: Api, endpoint: Endpoint, mode: GenerationMode) -> None:
    operation = schema()[endpoint.template][endpoint.method]
    try:
        strategy = operation.as_strategy(generation_mode=mode)
    except Exception as error:  # an operation without anything that could be wrong
        assert mode is GenerationMode.NEGATIVE, error
        return

    @settings(
        max_examples=depth(3, 100),
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy, data=st.data())
    def check(case: Any, data: st.DataObject) -> None:
        values = {name: str(value) for name, value in (case.path_parameters or {}).items()}
        for name in endpoint.path_names:
            if data.draw(st.booleans()):
                values[name] = data.draw(st.sampled_from(_known(api, name)))
        path = endpoint.template
        for name in endpoint.path_names:
            path = path.replace(
                f"{{{name}}}", quote(values.get(name, "x"), safe="/" if name == endpoint.path_names[-1] else "")
            )
        body = case.body
        if isinstance(body, dict) and "document" in body and data.draw(st.booleans()):
            body = {**body, "document": "incident-report.playbook.md"}
        headers = {"content-type": JSON} if endpoint.method not in ("GET", "HEAD") else {}
        content = b"" if endpoint.body is None or isinstance(body, NotSet) else _encoded(body)
        query = {str(name): value for name, value in (case.query or {}).items()}
        answer = api.request(endpoint.method, path, params=_flat(query), headers=headers, content=content)
        check_answer(endpoint, answer, api)

    check()


def _encoded(body: object) -> bytes:
    try:
        return json.dumps(body).encode()
    except (TypeError, ValueError):
        return repr(body).encode()


def _flat(query: dict[str, Any]) -> list[tuple[str, str]]:
    pairs = []
    for name, value in query.items():
        for one in value if isinstance(value, list) else [value]:
            text = one if isinstance(one, str) else json.dumps(one)
            pairs.append((name, text.encode("utf-8", "replace").decode()[:300]))
    return pairs[:20]


def check_answer(endpoint: Endpoint, answer: httpx2.Response, api: Api) -> None:
    """Fail if the answer is not one that the description of the API allows."""
    told = f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text[:300]} {api.reports[-1:]}"
    assert answer.status_code < 500 or answer.status_code == 503, told
    kind = answer.headers.get("content-type", "")
    if answer.status_code < 300:
        assert answer.status_code == endpoint.status or answer.status_code in (200, 204), told
        if endpoint.media == JSON and kind == JSON and endpoint.response:
            jsonschema_rs.validate(dict(endpoint.response), answer.json())
    elif answer.status_code != 304:
        assert kind == "application/problem+json", told
        problem = answer.json()
        schemas: Any = DESCRIPTION["components"]
        jsonschema_rs.validate(schemas["schemas"]["Problem"], problem)
        assert problem["code"] in KINDS and problem["help"], told
        assert "Traceback" not in answer.text


def test_the_description_is_openapi_3_1(api: Api) -> None:
    told = api.request("GET", "/openapi.json").json()
    assert told == json.loads(json.dumps(DESCRIPTION))
    assert told["openapi"] == "3.1.0"
    schema().validate()
    names = [endpoint.name for endpoint in ENDPOINTS]
    assert len(names) == len(set(names))
    for endpoint in ENDPOINTS:
        jsonschema_rs.meta.validate(dict(endpoint.response))
        if endpoint.body is not None:
            jsonschema_rs.meta.validate(dict(endpoint.body))


def test_every_endpoint_has_a_schema_of_its_answer() -> None:
    without = [one.name for one in ENDPOINTS if one.media == JSON and not one.response and one.status != 204]
    assert without == []


BAD_BODIES = [
    (b"", 422),
    (b"{", 400),
    (b"[]", 422),
    (b"nonsense", 400),
    (b"null", 422),
    (b'"text"', 422),
    (b"\xff\xfe", 400),
    (b'{"document": NaN}', 400),
    (b'{"document": 1}', 422),
    (b'{"document": "a", "document": "b"', 400),
    (b"[" * 100_000, 400),
    (b'{"document": "\\ud800"}', 404),
]


@pytest.mark.parametrize(("body", "status"), BAD_BODIES, ids=[repr(body[:20]) for body, _ in BAD_BODIES])
def test_bodies_that_are_not_what_they_should_be(api: Api, body: bytes, status: int) -> None:
    answer = api.request("POST", "/runs", content=body, headers={"content-type": JSON})
    assert answer.status_code == status, answer.text
    assert answer.json()["code"] in ("not-json", "unfit-body", "no-such-document")


def test_unknown_ids_name_the_nearest(calm: Api) -> None:
    unknown = calm.request("GET", f"/runs/{calm.runs[0][:-1]}zz")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "no-such-run")
    assert "did you mean" in unknown.json()["detail"]
    document = calm.request("POST", "/runs", json={"document": "incident-reprot.playbook.md"})
    assert (document.status_code, document.json()["code"]) == (404, "no-such-document")
    assert "incident-report.playbook.md" in document.json()["help"]
    for odd in (
        "x" * 300 + ".playbook.md",
        "a/" * 3000 + "b.md",
        "%00.md",
        "%ED%A0%80.md",
        "..%2f..%2fetc/passwd",
        "a//b.md",
    ):
        missing = calm.request("GET", f"/documents/{odd}")
        assert (missing.status_code, missing.json()["code"]) == (404, "no-such-document"), odd[:20]
    parameter = calm.request("GET", "/runs", params={"statsu": "failed"})
    assert "did you mean status" in parameter.json()["help"]
    path = calm.request("GET", "/run")
    assert (path.status_code, path.json()["code"]) == (404, "unknown-path")
    method = calm.request("DELETE", "/questions", headers={"content-type": JSON})
    assert (method.status_code, method.json()["code"]) == (405, "wrong-method")
    assert "GET" in method.headers["allow"]


def _printed(api: Api, *arguments: str) -> Any:
    """What a command of a terminal prints as JSON: a value, or a value for each line."""
    environ = {**os.environ, "QUIRE_HOME": str(api.folder.parent / "home")}
    done = run_quire([*arguments], cwd=api.folder, env=environ)
    assert done.returncode in (0, 1), done.stderr
    try:
        return json.loads(done.stdout)
    except ValueError:
        return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_api_and_the_command_line_print_the_same_json(calm: Api) -> None:
    listed = {row["id"]: row for row in calm.request("GET", "/runs", params={"limit": 500}).json()["items"]}
    printed = {row["id"]: row for row in _printed(calm, "runs", "--json", "--limit", "500")}
    for run in calm.runs:
        shared = printed.get(run)
        if shared is not None and run in listed:
            assert {key: listed[run].get(key, "missing") for key in shared} == shared
    assert printed.keys() == listed.keys()

    asked = {one["run"]: one for one in calm.request("GET", "/questions", params={"limit": 500}).json()["items"]}
    inbox = {one["run"]: one for one in _printed(calm, "inbox", "--json")}
    assert asked.keys() == inbox.keys() != set()
    for run, question in inbox.items():
        assert {key: asked[run].get(key, "missing") for key in question} == question

    text = "# Wrong\n\n## STEP 1: Say\n\nSay {{nothing}}.\n"
    (calm.folder / "wrong.playbook.md").write_text(text)
    told = calm.request("POST", "/documents/check", json={"text": text, "path": "wrong.playbook.md"}).json()
    assert told["diagnostics"] == _printed(calm, "check", "wrong.playbook.md", "--json") != []


def test_a_document_with_errors_is_refused_with_its_findings(calm: Api) -> None:
    (calm.folder / "broken.yaml").write_text("pipeline: broken\nsteps:\n  - for_each: {over: x}\n")
    answer = calm.request("POST", "/runs", json={"document": "broken.yaml"})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad-document")
    assert answer.json()["diagnostics"] == _printed(calm, "check", "broken.yaml", "--json") != []


def test_one_run_is_shown_as_the_command_line_shows_it(calm: Api) -> None:
    run = next(row["id"] for row in calm.request("GET", "/runs").json()["items"])
    told, printed = calm.request("GET", f"/runs/{run}").json(), _printed(calm, "runs", run, "--json")
    shared = set(told) & set(printed) - {"steps"}
    assert {"id", "status", "title", "document", "created_at", "cost"} <= shared
    assert {key: told[key] for key in shared} == {key: printed[key] for key in shared}
    for one, other in zip(told["steps"], printed["steps"], strict=True):
        assert {key: value for key, value in one.items() if key in other} == {
            key: value for key, value in other.items() if key in one
        }
