"""The outline of a directive's single node."""

from __future__ import annotations

from quire.display.outline import outline, outline_data
from quire.plan.nodes import Plan, Sequence, Step
from quire.plan.thread import Permission, Thread


def test_a_thread() -> None:
    thread = Thread(
        "tidy", extends="core/base", limits={"turns": 5, "spend": 0.5}, permissions=(Permission("rye.fetch.*"),)
    )
    plan = Plan("tidy", "directive", (), Sequence((Step(1, "thread", "tidy", work=thread),)))
    assert "\n".join(outline(plan)).endswith(
        "  thread  tidy\n"
        "      runs as a thread under 1 permission\n"
        "      continues from core/base\n"
        "      at most turns 5, spend 0.5"
    )
    assert outline_data(plan)["steps"] == [
        {
            "label": "thread",
            "title": "tidy",
            "thread": {
                "name": "tidy",
                "extends": "core/base",
                "limits": {"turns": 5, "spend": 0.5},
                "permissions": ["rye.fetch.*"],
            },
        }
    ]
