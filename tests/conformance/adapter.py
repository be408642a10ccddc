"""Speaks the protocol of the conformance kit: a case a line on standard input, a result a line on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.conformance.expr_cases import run_expr
from tests.conformance.launch_cases import launch
from tests.conformance.pipeline_cases import resume_pipeline, run_pipeline
from tests.conformance.pipeline_static import check_gate, infer_inputs, parse_pipelines
from tests.conformance.playbook_cases import parse_playbook, run_playbook

HANDLERS: dict[tuple[str, str], Callable[[dict[str, Any]], dict[str, Any]]] = {
    ("playbook", "parse"): parse_playbook,
    ("playbook", "vector"): parse_playbook,
    ("playbook", "corpus"): parse_playbook,
    ("playbook", "exec"): run_playbook,
    ("pipeline", "expr"): run_expr,
    ("pipeline", "parse"): parse_pipelines,
    ("pipeline", "inputs"): infer_inputs,
    ("pipeline", "gate"): check_gate,
    ("pipeline", "run"): run_pipeline,
    ("pipeline", "resume"): resume_pipeline,
    ("pipeline", "launch"): launch,
}


def main() -> None:
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        if not line.strip():
            continue
        case = json.loads(line)
        handler = HANDLERS.get((case["system"], case["kind"]))
        answer: dict[str, Any] = {"id": case["id"]}
        if handler is None:
            answer["unsupported"] = f"no {case['system']}/{case['kind']} yet"
        else:
            answer["result"] = handler(case["given"])
        out.write(json.dumps(answer, ensure_ascii=False) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
