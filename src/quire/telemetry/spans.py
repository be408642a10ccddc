"""Make spans of the written events of a run. All names of attributes stand here: the conventions for generative AI
still change.

Ids of spans are hashes of run and path, so each export has the same. Work that is done again after a failure is another
span, and so is the run: its second part stands below the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.engine.conversation import uses_of
from quire.engine.driver.perform import effect_id
from quire.engine.requests import HumanRequest, ModelRequest, ToolRequest
from quire.telemetry import trace_of

if TYPE_CHECKING:
    from quire.engine.records import EffectRecord, Event, RunRow
    from quire.engine.requests import Effect
    from quire.values import Value

_SUBJECTS = {
    "invoke_workflow": "gen_ai.workflow.name",
    "invoke_agent": "gen_ai.agent.name",
    "execute_tool": "gen_ai.tool.name",
    "chat": "gen_ai.request.model",
}
"""The attribute with the subject of each operation that the conventions know."""
_ARGUMENTS, _RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
_SYSTEM, _INPUT, _OUTPUT = "gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages"
_CONTENT = {"quire.inputs", "quire.prompt", "quire.answer", _ARGUMENTS, _RESULT, _SYSTEM, _INPUT, _OUTPUT}


class Span(Struct):
    name: str
    trace: str
    id: str
    parent: str
    start: float
    end: float
    attributes: dict[str, Value]


class RunSpans:
    """Turn the events of one run, in their order, into spans. `request_of` returns the request at a path, if it is
    known; `content` writes a text of the run as an attribute, and None leaves all of them out."""

    def __init__(self, row: RunRow, content: Callable[[Value], str] | None) -> None:
        self.request_of: Callable[[str], Effect | None] = lambda path: None
        self.trace, self._above = trace_of(row.id, row.pins.get("trace"))
        self._row = row
        self._content = content
        self._open: dict[str, Span] = {}
        self._begun = Counter[str]()
        self._switches: dict[str, list[Value]] = {}

    def add(self, event: Event) -> list[Span]:
        """Take the next event, and return the spans that end with it."""
        path, at, data = event.path, event.at, event.data
        kind = str(data.get("kind", ""))
        match event.type:
            case "run_started" | "run_resumed" | "run_forked":
                if event.type == "run_forked":  # earlier events are those of another run
                    self._open, self._begun = {}, Counter()
                about = {"quire.document": self._row.document, "quire.inputs": self._row.pins.get("inputs")}
                self._begin("", "invoke_workflow", self._row.title, at, about)
            case "step_started":
                self._begin(path, "step", event.way, at, {"quire.title": data.get("title")})
            case "thread_started":
                self._begin(path, "invoke_agent", str(data.get("thread")), at)
            case "tool_called":
                self._begin(path, "execute_tool", str(data.get("tool")), at)
            case "question":
                self._begin(path, "ask", event.way, at)
            case "model_switched":
                self._switches.setdefault(path, []).append(f"{data.get('from')} > {data.get('to')}")
            case "effect" if event.record and event.record.state != "intent":
                return self._effect(event.record, event.way)
            case "step_completed" | "step_failed":
                # A step that failed in an earlier drive has no other beginning.
                self._begin(path, "step", event.way, self._open[""].start if "" in self._open else at)
                return self._end(path, at, kind)
            case "thread_ended":
                return self._end(path, at, "" if data.get("success") else str(data.get("status")))
            case "run_completed" | "run_failed" | "run_cancelled":
                return self._end("", at, kind)
        return []

    def _effect(self, record: EffectRecord, way: str) -> list[Span]:
        path, request, value = record.path, self.request_of(record.path), record.value
        if record.kind == "model":
            asked = request.model if isinstance(request, ModelRequest) else ""
            about = self._about_model(record, asked or str(self._row.pins.get("model")), request)
            self._begin(path, "chat", str(about.pop(_SUBJECTS["chat"])), record.at, about)
        elif record.kind == "tool":
            tool, arguments = (request.tool, request.arguments) if isinstance(request, ToolRequest) else ("", None)
            self._begin(path, "execute_tool", tool, record.at, {_ARGUMENTS: arguments, _RESULT: value})
        elif record.kind == "ask":
            prompt = request.prompt if isinstance(request, HumanRequest) else None
            self._begin(path, "ask", way, record.at, {"quire.prompt": prompt, "quire.answer": value})
        else:
            return []
        return self._end(path, record.ended_at, record.failure.kind if record.failure else "")

    def _about_model(self, record: EffectRecord, asked: str, request: Effect | None) -> dict[str, Value]:
        reply, usage = record.value if isinstance(record.value, Mapping) else {}, record.usage
        replied = str(reply.get("model") or asked)
        about: dict[str, Value] = {
            "gen_ai.provider.name": replied.partition(":")[0],
            "gen_ai.request.model": asked.partition(":")[2] or asked,
            "gen_ai.response.model": replied.partition(":")[2] or replied,
            "quire.retries": len(record.delays),
            "quire.retry_delays": record.delays or None,
            "quire.model_switches": self._switches.pop(record.path, None),
            "quire.reused_from": record.reused_from or None,
        }
        if usage is not None:
            about["gen_ai.usage.input_tokens"] = usage.input_tokens
            about["gen_ai.usage.output_tokens"] = usage.output_tokens
            about["quire.cost"] = usage.cost
        if self._content is None:
            return about
        if isinstance(request, ModelRequest):
            about[_SYSTEM] = [_text(request.system)]
            about[_INPUT] = [{"role": each.role, "parts": [_text(each.content)]} for each in request.messages]
        if reply:
            parts = [_text(str(reply.get("text")))]
            parts += [{"type": "tool_call", "name": use.name, "arguments": use.arguments} for use in uses_of(reply)]
            about[_OUTPUT] = [{"role": "assistant", "parts": parts, "finish_reason": reply.get("finish_reason")}]
        return about

    def _begin(
        self, path: str, operation: str, subject: str, at: float, about: Mapping[str, Value] | None = None
    ) -> None:
        if path not in self._open:
            number, above = self._begun[path], path
            self._begun[path] += 1
            while above and above not in self._open:
                above = above.rpartition("/")[0]
            parent = self._open[above].id if above in self._open else self._id("", 0) if number else self._above
            attributes: dict[str, Value] = {
                "quire.run": self._row.id,
                "quire.path": path,
                "gen_ai.operation.name": operation,
                _SUBJECTS.get(operation, "quire.step"): subject,
            }
            name = f"{operation} {subject}".strip()
            self._open[path] = Span(name, self.trace, self._id(path, number), parent, at, at, attributes)
        for name, value in (about or {}).items():
            if value is not None and (self._content is not None or name not in _CONTENT):
                shown = self._content(value) if self._content is not None and name in _CONTENT else value
                self._open[path].attributes[name] = shown

    def _end(self, path: str, at: float, failure: str) -> list[Span]:
        """End a span, and before it those that are still open below it."""
        if failure and path in self._open:  # its message may quote texts
            self._open[path].attributes["error.type"] = failure
        ended = [below for below in self._open if not path or below == path or below.startswith(f"{path}/")]
        spans = [self._open.pop(below) for below in reversed(ended)]
        for span in spans:
            span.end = at
        return spans

    def _id(self, path: str, number: int) -> str:
        return effect_id(self._row.id, f"{path}#{number}" if number else path)[:16]


def _text(content: str) -> Value:
    return {"type": "text", "content": content}
