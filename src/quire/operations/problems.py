"""Problems: errors of the API as RFC 9457 describes them, with a stable code, help, and the exit code of the CLI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.display.diagnostics import finding_data
from quire.errors import BadInputs, NearMisses, QuireError, StepFailed, StoreError

if TYPE_CHECKING:
    from quire.values import Value

RETRY_SECONDS = 2


class Kind(Struct, frozen=True):
    """One kind of problem: its status, and the sentences of its page."""

    status: int
    title: str
    meaning: str


KINDS: Mapping[str, Kind] = {
    "wrong-token": Kind(401, "The token is missing or wrong", "Send `Authorization: Bearer TOKEN`."),
    "wrong-signature": Kind(401, "The delivery is not signed", "Compare scheme, secret and clock with the trigger."),
    "not-started": Kind(503, "Nothing was started", "Send the delivery again."),
    "no-role": Kind(403, "Your role does not allow this", "Ask the user who runs the server for another role."),
    "unknown-person": Kind(403, "This person has no role here", "Add the name under `[serve.people]` in quire.toml."),
    "wrong-host": Kind(421, "This server has another name", "Start `quire serve` with --allow-host NAME."),
    "foreign-origin": Kind(403, "Another site sent this request", "Only the page of this server may send requests."),
    "not-json": Kind(400, "The body is not JSON", "Send a JSON object."),
    "two-lengths": Kind(400, "The end of the body is not clear", "Send `Content-Length` or `Transfer-Encoding`."),
    "wrong-media-type": Kind(415, "The body has the wrong media type", "Send `Content-Type: application/json`."),
    "too-large": Kind(413, "The body is too large", "A body may have 10 MB, a delivery 1 MB."),
    "unknown-path": Kind(404, "This path does not exist", "`/api/v1/openapi.json` lists all paths."),
    "wrong-method": Kind(405, "The path has no such method", "The header `Allow` lists its methods."),
    "unknown-parameter": Kind(422, "The query has an unknown parameter", "`/api/v1/docs` lists the parameters."),
    "unfit-parameters": Kind(422, "A parameter does not fit", "`fields` lists what is wrong, by JSON Pointer."),
    "unfit-body": Kind(422, "The body does not fit", "`fields` lists what is wrong, by JSON Pointer."),
    "bad-inputs": Kind(422, "The inputs do not fit the document", "`problems` lists every wrong or missing input."),
    "bad-document": Kind(422, "The document has errors", "`diagnostics` lists them."),
    "near-misses": Kind(422, "The document has near misses", "Correct what `diagnostics` lists, or send `force`."),
    "no-model": Kind(422, "No model is configured", "The detail lists ways to get one."),
    "bad-configuration": Kind(422, "The configuration is wrong", "Fix the file that the detail names."),
    "cannot-start": Kind(422, "Nothing was started", "The detail says why. Nothing was written."),
    "no-such-run": Kind(404, "The run does not exist", "`GET /runs` lists the runs."),
    "no-such-document": Kind(404, "The document does not exist", "`GET /documents` lists the documents."),
    "no-session": Kind(409, "The language session has ended", "Open the document again: `textDocument/didOpen`."),
    "no-such-code": Kind(404, "The code does not exist", "`quire docs codes` lists the codes of findings."),
    "no-such-step": Kind(404, "The step does not exist in this run", "`GET /runs/{run}` lists its steps."),
    "no-such-question": Kind(404, "The question does not exist", "`GET /questions` lists the open ones."),
    "no-such-share": Kind(404, "The link shows nothing", "It is wrong, has expired or was revoked."),
    "no-artifact": Kind(404, "The run has no artifact", "Only a completed run has one."),
    "already-answered": Kind(409, "The question has been answered", "The first answer counts."),
    "question-changed": Kind(409, "The question is worded differently now", "Read it again, then answer."),
    "same-user": Kind(403, "Another person has to answer this", "You started the run; the owner can use a terminal."),
    "unfit-answer": Kind(422, "The answer does not fit the question", "The detail says what is expected."),
    "run-busy": Kind(409, "Another process drives the run", "Try again when it has stopped, or cancel it."),
    "run-state": Kind(409, "The run is not in a state for this", "The detail says what it is, and what can be done."),
    "fenced": Kind(409, "Another process has taken the run over", "Look at the run again."),
    "limit-reached": Kind(409, "A limit is reached", "Give the run more, then resume it."),
    "stale": Kind(412, "The document has changed since you read it", "Read it again, then save."),
    "no-etag": Kind(428, "The version that you read is needed", "Send `If-Match` with the ETag of the document."),
    "denied": Kind(403, "A permission is missing", "The page grants nothing: the detail has the command."),
    "untrusted": Kind(403, "The workspace is not confirmed", "Run `quire trust workspace` in a terminal."),
    "broken-seal": Kind(403, "The run was changed outside of Quire", "It can be looked at and forked, not driven."),
    "refused": Kind(403, "This is refused", "The detail says why."),
    "editing-off": Kind(403, "Editing is off", "Start the server with `quire serve --edit`."),
    "webhooks-off": Kind(403, "Webhooks are off", "Start the server with `quire serve --webhooks`."),
    "no-such-webhook": Kind(404, "The webhook does not exist", "`GET /webhooks` lists them."),
    "key-reused": Kind(422, "The idempotency key belongs to another request", "Use a new key for a new request."),
    "in-progress": Kind(409, "The same request is still being worked on", "Try again in a moment."),
    "store-locked": Kind(503, "The store is locked", "Another process writes to it: try again in a moment."),
    "store": Kind(503, "The store cannot be used", "The detail says why."),
    "journal": Kind(409, "The journal does not belong to this run", "Fork the run."),
    "step-failed": Kind(409, "A step failed", "Look at the run."),
    "too-many": Kind(429, "Too much at once", "Try again in a moment."),
    "bug": Kind(500, "Quire made a mistake", "Please report it, with what the terminal of the server shows."),
    "error": Kind(409, "This did not work", "The detail says why."),
}
"""Every kind of problem by its stable code. `docs/reference/http.md` and `/problems/CODE` are made from it."""


class Problem(Exception):
    """A request that cannot be fulfilled. `more` are further members of the answer."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        help: str = "",
        exit_code: int = 2,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Value] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.help = help or KINDS[code].meaning
        self.exit_code = exit_code
        self.headers = headers or {}
        self.more = more or {}

    @classmethod
    def of(cls, code: str, detail: str, **rest: object) -> Problem:
        """Return a problem with the status of its kind."""
        return cls(KINDS[code].status, code, detail, **rest)  # type: ignore[arg-type]

    def data(self, base: str = "", instance: str = "") -> dict[str, Value]:
        return {
            "type": f"{base}/problems/{self.code}",
            "title": KINDS[self.code].title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "code": self.code,
            "help": self.help,
            "exit_code": self.exit_code,
            **self.more,
        }


def problem_of(error: QuireError | Problem) -> Problem:
    """Return an error of Quire as a problem."""
    if isinstance(error, Problem):
        return error
    codes = (kind.__dict__.get("code", "").replace("_", "-") for kind in type(error).__mro__)
    code = next(code for code in codes if code in KINDS)
    more: dict[str, Value] = {}
    headers: dict[str, str] = {}
    match error:
        case BadInputs():
            more["problems"] = list(error.problems)
            more["fields"] = [
                {"pointer": f"/inputs/{name}", "message": message} for name, message in error.inputs.items()
            ]
        case NearMisses(documents=documents):
            more["diagnostics"] = [
                finding_data(source, finding) for source, findings in documents for finding in findings
            ]
        case StepFailed() if error.path:
            more["path"] = error.path
        case StoreError():
            headers["Retry-After"] = str(RETRY_SECONDS)
    return Problem(KINDS[code].status, code, str(error), exit_code=type(error).exit_code, headers=headers, more=more)
