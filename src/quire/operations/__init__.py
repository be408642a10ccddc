"""Operations: one entry for each thing that a user can do.

HTTP endpoints, the OpenAPI document and MCP tools are made from this table. The module that an entry names as its room
has a coroutine of the entry's name, with a summary and the types of what it takes and returns. It is imported when it
is first used. The doors decide who may call.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from quire.operations.field_types import Work
    from quire.workspace.settings import Role

Cost: TypeAlias = Literal["FREE", "PAID", "WRITES"]
_ROLES: dict[Cost, Role] = {"FREE": "look", "PAID": "run", "WRITES": "administer"}
JSON = "application/json"


class Operation(Struct, frozen=True):
    """One entry of the table."""

    name: str
    """The `operationId` of its endpoint, and the name of its coroutine."""
    cost: Cost
    room: str
    """The module below `quire` with its coroutine. Rooms of the server need the site that serves the page."""
    http: str = ""
    """The method and the path below `/api/v1`; `{name:path}` may contain slashes. Empty without an endpoint."""
    status: int = 200
    media: str = JSON
    """The media type of the response."""
    mcp: str = ""
    """The name of its tool; empty without one."""
    shared: bool = False
    """True if the link of a share may read it, of its own run. Prompts, documents and other runs are never shared."""

    needs: Role | None = None
    """The role of users of a server who may call it, if its cost does not tell."""

    @property
    def role(self) -> Role:
        return self.needs or _ROLES[self.cost]

    @property
    def work(self) -> Work[Any]:
        work: Work[Any] = getattr(import_module(f"quire.{self.room}"), self.name)
        return work


_RUNS = "operations.runs"
_LIST = "operations.run_list"
_PARTS = "operations.run_parts"
_COPIES = "operations.run_copies"
_TRIES = "operations.run_tries"
_QUESTIONS = "operations.questions"
_TRIGGERS = "operations.triggers"
_DOCUMENTS = "operations.documents"
_FORECASTS = "operations.forecasts"
_PAGE_DOCUMENTS = "server.handlers.documents"
_LANGUAGE = "server.handlers.language_sessions"
_PICTURES = "server.handlers.pictures"
_SEARCH = "server.handlers.search"
_STREAMS = "server.handlers.streams"
_WORKSPACE = "server.handlers.workspace"
_LAUNCHED = "mcp_server.launch_tools"

OPERATIONS: tuple[Operation, ...] = (
    Operation("root", "FREE", _WORKSPACE, "GET /"),
    Operation("openapi", "FREE", _WORKSPACE, "GET /openapi.json"),
    Operation("docs", "FREE", _WORKSPACE, "GET /docs", media="text/html"),
    Operation("now", "FREE", _WORKSPACE, "GET /now"),
    Operation("list_letters", "FREE", _WORKSPACE, "GET /letters"),
    Operation("list_documents", "FREE", _DOCUMENTS, "GET /documents", mcp="list_documents"),
    Operation("check_text", "FREE", _DOCUMENTS, "POST /documents/check", mcp="check_document"),
    Operation("show_document", "FREE", _DOCUMENTS, "GET /documents/{id:path}"),
    Operation("save_document", "WRITES", _PAGE_DOCUMENTS, "PUT /documents/{id:path}"),
    Operation("language", "FREE", _LANGUAGE, "POST /documents/{id:path}/language"),
    Operation("preview_prompt", "FREE", _FORECASTS, "POST /documents/{id:path}/preview", needs="run"),
    Operation("preflight", "FREE", _FORECASTS, "POST /documents/{id:path}/preflight", needs="run"),
    Operation("list_cases", "FREE", _DOCUMENTS, "GET /documents/{id:path}/tests"),
    Operation("run_cases", "FREE", _DOCUMENTS, "POST /documents/{id:path}/tests", mcp="test_document", needs="run"),
    Operation("list_tools", "FREE", "operations.tools", "GET /tools", mcp="list_tools"),
    Operation("explain_code", "FREE", _DOCUMENTS, "GET /codes/{code}"),
    Operation("list_runs", "FREE", _LIST, "GET /runs"),
    Operation("group_runs", "FREE", _LIST, "GET /runs/groups"),
    Operation("pulse", "FREE", _LIST, "GET /pulse"),
    Operation("count_runs", "FREE", _LIST, "GET /runs/counts"),
    Operation("list_actions", "FREE", _RUNS, "POST /runs/actions"),
    Operation("prune_runs", "WRITES", _RUNS, "POST /runs/prune"),
    Operation("label_run", "WRITES", _LIST, "PATCH /runs/{run}", needs="run"),
    Operation("delete_run", "WRITES", _RUNS, "DELETE /runs/{run}"),
    Operation("import_run", "WRITES", _COPIES, "POST /runs/import", status=201),
    Operation("verify_export", "FREE", _COPIES, "POST /runs/verify"),
    Operation("verify_run", "FREE", _COPIES, "GET /runs/{run}/verify"),
    Operation("export_run", "FREE", _COPIES, "GET /runs/{run}/export", media="application/jsonl"),
    Operation("share_run", "WRITES", _COPIES, "POST /runs/{run}/shares", status=201),
    Operation("list_shares", "FREE", _COPIES, "GET /runs/{run}/shares", needs="administer"),
    Operation("revoke_share", "WRITES", _COPIES, "DELETE /shares/{share}"),
    Operation("diff_runs", "FREE", _COPIES, "GET /runs/{a}/diff/{b}"),
    Operation("show_fork", "FREE", _COPIES, "GET /runs/{run}/fork"),
    Operation("preview_fork", "FREE", _COPIES, "POST /runs/{run}/fork/preview", needs="run"),
    Operation("fork_run", "PAID", _COPIES, "POST /runs/{run}/fork", status=201),
    Operation("try_step", "PAID", _TRIES, "POST /runs/{run}/tries"),
    Operation("draft_test", "WRITES", _TRIES, "POST /runs/{run}/test"),
    Operation("start_run", "PAID", _RUNS, "POST /runs", status=201),
    Operation("show_run", "FREE", _RUNS, "GET /runs/{run}", shared=True),
    Operation("resume_run", "PAID", _RUNS, "POST /runs/{run}/resume", status=202),
    Operation("resume_runs", "PAID", _RUNS, "POST /runs/resume", status=202),
    Operation("pause_run", "WRITES", _RUNS, "POST /runs/{run}/pause", status=202, needs="run"),
    Operation("cancel_run", "WRITES", _RUNS, "POST /runs/{run}/cancel", status=202, needs="run"),
    Operation("run_graph", "FREE", _PICTURES, "GET /runs/{run}/graph"),
    Operation("document_graph", "FREE", _PICTURES, "GET /documents/{id:path}/graph"),
    Operation("document_svg", "FREE", _PICTURES, "GET /documents/{id:path}/graph.svg", media="image/svg+xml"),
    Operation("document_history", "FREE", _PICTURES, "GET /documents/{id:path}/history"),
    Operation("show_tree", "FREE", _PARTS, "GET /runs/{run}/tree", shared=True),
    Operation("read_text", "FREE", _PARTS, "GET /runs/{run}/text/{path:path}", shared=True),
    Operation("show_step", "FREE", _PARTS, "GET /runs/{run}/steps/{path:path}"),
    Operation("list_effects", "FREE", _PARTS, "GET /runs/{run}/effects"),
    Operation("show_effect", "FREE", _PARTS, "GET /runs/{run}/effects/{path:path}"),
    Operation("show_why", "FREE", _PARTS, "GET /runs/{run}/why/{path:path}"),
    Operation("show_prompt", "FREE", _PARTS, "GET /runs/{run}/prompt/{path:path}"),
    Operation("show_transcript", "FREE", _PARTS, "GET /runs/{run}/transcript"),
    Operation("show_values", "FREE", _PARTS, "GET /runs/{run}/values"),
    Operation("show_state", "FREE", _PARTS, "GET /runs/{run}/state"),
    Operation("show_pinned", "FREE", _PARTS, "GET /runs/{run}/document"),
    Operation("show_artifact", "FREE", _PARTS, "GET /runs/{run}/artifact", shared=True),
    Operation("list_questions", "FREE", _QUESTIONS, "GET /questions"),
    Operation("show_question", "FREE", _QUESTIONS, "GET /questions/{run}/{path:path}"),
    Operation("answer_questions", "PAID", _QUESTIONS, "POST /questions/answers", needs="answer"),
    Operation("answer_question", "PAID", _QUESTIONS, "POST /questions/{run}/{path:path}/answer", needs="answer"),
    Operation("list_triggers", "FREE", _TRIGGERS, "GET /triggers", mcp="list_triggers"),
    Operation("check_trigger", "FREE", _TRIGGERS, "POST /triggers/{name}/check"),
    Operation("enable_trigger", "WRITES", _TRIGGERS, "POST /triggers/{name}/enable"),
    Operation("disable_trigger", "WRITES", _TRIGGERS, "POST /triggers/{name}/disable"),
    Operation("fire_trigger", "PAID", _TRIGGERS, "POST /triggers/{name}/fire", status=201, needs="administer"),
    Operation("tick_triggers", "PAID", _TRIGGERS, "POST /triggers/tick", needs="administer"),
    Operation("list_fires", "FREE", _TRIGGERS, "GET /fires"),
    Operation("search", "FREE", _SEARCH, "GET /search"),
    Operation("list_artifacts", "FREE", _SEARCH, "GET /artifacts"),
    Operation("health", "FREE", _WORKSPACE, "GET /health"),
    Operation("metrics", "FREE", _WORKSPACE, "GET /metrics", media="text/plain"),
    Operation("doctor", "FREE", _WORKSPACE, "GET /doctor"),
    Operation("list_models", "FREE", _WORKSPACE, "GET /models"),
    Operation("show_trust", "FREE", _WORKSPACE, "GET /trust"),
    Operation("list_webhooks", "FREE", _WORKSPACE, "GET /webhooks"),
    Operation("test_webhook", "WRITES", _WORKSPACE, "POST /webhooks/{name}/test", status=202),
    Operation("drop_messages", "WRITES", _WORKSPACE, "DELETE /webhooks/{name}/messages"),
    Operation("pipeline_result", "FREE", _LAUNCHED, mcp="pipeline_result"),
    Operation("pipeline_resume", "PAID", _LAUNCHED, mcp="pipeline_resume"),
    Operation("pipeline_answer", "PAID", _LAUNCHED, mcp="pipeline_answer"),
    Operation("pipeline_inbox", "FREE", _LAUNCHED, mcp="pipeline_inbox"),
    Operation("run_events", "FREE", _STREAMS, "GET /runs/{run}/events", shared=True),
    Operation("page_events", "FREE", _STREAMS, "GET /events", media="text/event-stream"),
)
