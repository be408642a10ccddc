"""The route table: every operation that has an endpoint, below `/api/v1`.

Routing, validation, the OpenAPI document, the page of the API and the tests are made from `ENDPOINTS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from msgspec.structs import replace
from starlette.responses import Response

from quire.display.run_json import row_data
from quire.operations import OPERATIONS, Operation
from quire.operations.field_types import File, schema_of
from quire.operations.host import Host, Job
from quire.server.endpoints import KEY_HEADER, Call, Endpoint, Handler, Parameter, Reply, names_in

if TYPE_CHECKING:
    from starlette.requests import Request

    from quire.runs.drives import Given
    from quire.server.access import Access
    from quire.server.site import Site
    from quire.values import Value

LONGEST_WAIT = 600
_WITH_BODY = ("POST", "PUT", "PATCH")


class RequestHost(Host):
    """A site, for one request. The headers of the answer are collected in `headers`."""

    def __init__(self, site: Site, request: Request) -> None:
        self.access: Access = request.user
        name = self.access.source.partition(":")[2] or site.caller.by
        edits = site.caller.edits and self.access.role == "administer"
        trace, key = request.headers.get("traceparent", ""), request.headers.get(KEY_HEADER, "")
        caller = replace(site.caller, by=name, source=self.access.source, edits=edits, trace=trace, key=key)
        super().__init__(site.runtime, caller, site.views, site.shelf)
        self.site = site
        self.request = request
        self.headers: dict[str, str] = {}
        self.unchanged = False
        self.kept = site.hub.kept

    def drives(self, run: str) -> bool:
        return run in self.site.runs

    async def go_on(
        self,
        run: str,
        *,
        given: Given | None = None,
        overrides: Mapping[str, Value] | None = None,
        goes_on: bool = False,
    ) -> None:
        await self.site.runs.go_on(run, given=given, overrides=overrides, goes_on=goes_on)

    def written(self, run: str, path: str) -> tuple[int, str] | None:
        return self.site.hub.replies.text(run, path)

    def pause(self, run: str) -> bool:
        return self.site.runs.pause(run)

    def detach(self, run: str) -> None:
        self.site.runs.hand_over(run)

    def touch(self, run: str) -> None:
        self.site.hub.touch(run)

    def created(self, run: str) -> None:
        super().created(run)
        self.request.state.begun = True
        self.headers["Location"] = self._address(run)

    async def shown(self, run: str) -> dict[str, Value]:
        """Return the run, after waiting for its rest if the client prefers that."""
        if seconds := _preferred_wait(self.request.headers.get("prefer", "")):
            await self.site.runs.ended(run, seconds)
        row = await self.runtime.row(run)
        self.headers |= {"Location": self._address(run), "ETag": f'"{row.epoch}.{row.updated_at!r}.{row.status}"'}
        return row_data(row)

    def has(self, tag: str) -> bool:
        self.headers["ETag"] = tag
        self.unchanged = self.request.headers.get("if-none-match") == tag
        return self.unchanged

    def list_goes_on(self, at: str | None) -> None:
        if at is not None:
            filters = [(name, value) for name, value in self.request.query_params.multi_items() if name != "after"]
            query = urlencode([*filters, ("after", at)])
            self.headers["Link"] = f'<{self.site.options.base}/api/v1/runs?{query}>; rel="next"'

    async def heads(self, runs: Sequence[str]) -> Mapping[str, str]:
        return await self.site.indexer.heads(runs)

    async def render(self, jobs: Iterable[Job]) -> Mapping[Job, str | None]:
        return await self.site.renderer.render(jobs)

    def _address(self, run: str) -> str:
        return f"{self.site.options.base}/api/v1/runs/{run}"


def _preferred_wait(header: str) -> float:
    for preference in header.split(","):
        name, _, value = preference.strip().partition("=")
        if name.strip().lower() == "wait" and (value := value.strip()).isdecimal():
            return float(min(int(value[:9]), LONGEST_WAIT))  # Python reads no number of thousands of digits
    return 0.0


def endpoint_of(operation: Operation) -> Endpoint:
    """Return the endpoint of an operation. Fields that its path does not name are in the query, or in the body."""
    method, path = operation.http.split(" ")
    work = operation.work
    schema = schema_of(work.input)
    members = {name: member for name, member in schema["properties"].items() if name not in names_in(path)}
    parameters: tuple[Parameter, ...] = ()
    body = None
    if method in _WITH_BODY:
        body = {**schema, "properties": members, "required": [name for name in schema["required"] if name in members]}
    else:
        parameters = tuple(Parameter.of(name, member) for name, member in members.items())
    response = {} if work.result is None else schema_of(work.result)
    return Endpoint(
        method,
        path,
        operation.name,
        work.summary,
        operation.cost,
        _handler(operation),
        parameters,
        body,
        operation.status,
        response,
        operation.media,
        operation.role,
    )


def _handler(operation: Operation) -> Handler:
    work = operation.work

    async def handle(site: Site, call: Call) -> Reply | Response:
        host = RequestHost(site, call.request)
        answer = await work.run(host, work.read({**call.path, **call.query, **call.body}))
        if isinstance(answer, Response):
            return answer
        if isinstance(answer, File):
            return Response(answer.data, 200, dict(answer.headers), answer.media)
        return Reply(answer, 304 if host.unchanged else operation.status, host.headers)

    return handle


ENDPOINTS = tuple(endpoint_of(operation) for operation in OPERATIONS if operation.http)
