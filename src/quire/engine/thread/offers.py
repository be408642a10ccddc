"""The tools of threads that the engine itself answers for, as a model is told of them."""

from __future__ import annotations

from quire.engine.requests import Offered
from quire.engine.thread.setup import FORK, ORCHESTRATE
from quire.trust.capabilities import flat_name

FORKING = Offered(
    flat_name(FORK),
    "Runs a directive as a thread of its own and gives its outputs; with async it goes on beside this one and is "
    "waited for with the orchestrator. It never may do more than this thread may.",
    {
        "type": "object",
        "properties": {
            "directive_id": {"type": "string", "description": "such as project/deploy/deploy_staging"},
            "inputs": {"type": "object", "description": "the inputs of the directive by name"},
            "async": {"type": "boolean"},
            "limit_overrides": {"type": "object", "description": 'such as {"turns": 10, "spend": 0.2}'},
        },
        "required": ["directive_id"],
    },
    FORK,
)

ORCHESTRATING = Offered(
    flat_name(ORCHESTRATE),
    "Looks after the threads that this one has started with async: waits for them, says how they are, stops them.",
    {
        "type": "object",
        "properties": {
            "operation": {
                "enum": ["wait_threads", "get_status", "list_active", "aggregate_results", "cancel_thread"],
            },
            "thread_ids": {"type": "array", "items": {"type": "string"}, "description": "all of them by default"},
            "thread_id": {"type": "string"},
            "timeout": {"type": "number", "description": "seconds to wait at most; 600 by default"},
        },
        "required": ["operation"],
    },
    ORCHESTRATE,
)
