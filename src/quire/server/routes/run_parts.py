"""Endpoints: the parts of one run."""

from __future__ import annotations

from quire.server.endpoints import Endpoint, Parameter
from quire.server.handlers import run_parts
from quire.server.schemas import FLAG, MOST_ITEMS, NAME, SEQ, TEXT, page_of

_OBJECT = {"type": "object"}
_STATE = {"type": "string", "enum": ["intent", "ok", "failed"]}
_MOST_EFFECTS = Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 20_000}, "The most effects to return.")


def _part(path: str, name: str, summary: str, handler: object, *parameters: Parameter, **more: object) -> Endpoint:
    return Endpoint("GET", f"/runs/{{run}}{path}", name, summary, "FREE", handler, parameters, **more)  # type: ignore[arg-type]


ENDPOINTS: tuple[Endpoint, ...] = (
    _part(
        "/steps",
        "list_steps",
        "One level of the tree of steps.",
        run_parts.list_steps,
        Parameter("parent", TEXT, "The path of the step above; without it the top level."),
        Parameter("after", NAME, "The path of the last step that is known."),
        MOST_ITEMS,
        response=page_of(_OBJECT),
    ),
    _part(
        "/steps/{path:path}",
        "show_step",
        "One step, item or effect: prompts as sent, replies, calls, values and who wrote them.",
        run_parts.show_step,
        Parameter("after", SEQ, "The number of effects that are known already."),
        response=_OBJECT,
    ),
    _part(
        "/effects",
        "list_effects",
        "The journal without values, as objects or as columns.",
        run_parts.list_effects,
        Parameter("after", SEQ, "The number of the first effect to return."),
        Parameter("before", SEQ, "Return the last effects before this number."),
        Parameter("columns", FLAG, "Return one list for each column."),
        Parameter("kind", NAME, "Only effects of this kind.", many=True),
        Parameter("state", _STATE, "Only effects in this state.", many=True),
        Parameter("under", NAME, "Only effects at this path and below."),
        _MOST_EFFECTS,
        response=_OBJECT,
    ),
    _part("/effects/{path:path}", "show_effect", "One effect with its value.", run_parts.show_effect, response=_OBJECT),
    _part(
        "/why/{path:path}",
        "show_why",
        "The values that a step read, and who wrote them.",
        run_parts.show_why,
        response=_OBJECT,
    ),
    _part(
        "/prompt/{path:path}",
        "show_prompt",
        "The messages that the model of a step was sent, or would be sent.",
        run_parts.show_prompt,
        response=_OBJECT,
    ),
    _part(
        "/transcript",
        "show_transcript",
        "The conversations of the threads of a run.",
        run_parts.show_transcript,
        response=_OBJECT,
    ),
    _part(
        "/values",
        "show_values",
        "Inputs, named results and stores as they are now, and who wrote them.",
        run_parts.show_values,
        response=_OBJECT,
    ),
    _part(
        "/state",
        "show_state",
        "The state of a playbook's execution, as its specification has it.",
        run_parts.show_state,
        response=_OBJECT,
    ),
    _part(
        "/document",
        "show_pinned",
        "The document as the run has it, and as its file is now.",
        run_parts.show_pinned,
        response=_OBJECT,
    ),
    _part(
        "/artifact",
        "show_artifact",
        "The result of a completed run.",
        run_parts.show_artifact,
        Parameter("as", {"type": "string", "enum": ["text", "html", "download"]}, "How to return it."),
        response=_OBJECT,
    ),
)
