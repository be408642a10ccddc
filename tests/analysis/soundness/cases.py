"""One case for each seed and each kind of document."""

from __future__ import annotations

from dataclasses import dataclass

from tests.analysis.soundness.oracle import unsound
from tests.documents.draw import Draw
from tests.documents.marked_pipelines import ANY, Pipelines
from tests.documents.marked_playbooks import playbook

from quire.library.document import read
from quire.plan.nodes import Plan
from quire.source import Source

KINDS = ("pipeline", "playbook")


@dataclass
class Case:
    """The texts of a document and its callees."""

    seed: int
    kind: str
    texts: dict[str, str]
    outcome: str = ""

    def plans(self) -> dict[str, Plan] | None:
        """Return the plans by name; None if one of the texts cannot be read."""
        found: dict[str, Plan] = {}
        for name, text in self.texts.items():
            ending = "playbook.md" if text.startswith("#") else "yaml"
            plan = read(Source.of(text, f"{name}.{ending}")).plan
            if plan is None:
                return None
            found[name] = plan
        return found


def case_of(kind: str, seed: int) -> Case:
    draw = Draw.seeded(f"{kind}-{seed}")
    made = Pipelines(draw)
    if kind == "pipeline":
        text = made.document("first", draw.between(0, 3), {"ctx.topic": "text"}, least=3)
    else:
        text = playbook(draw, made)
    return Case(seed, kind, {"first": text, **made.files})


def problems_of(case: Case) -> list[str]:
    """Return every place that a mark reached although the analysis calls it clean."""
    plans = case.plans()
    if plans is None:
        case.outcome = "unreadable"
        return []
    case.outcome = "run"
    return list(dict.fromkeys(unsound(plans["first"], plans, {"topic": "tea"}, case.seed)))


__all__ = ["ANY", "KINDS", "Case", "case_of", "problems_of"]
