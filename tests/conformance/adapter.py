"""Speaks the protocol of the conformance kit: a case a line on standard input, a result a line on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.conformance import directive_pure
from tests.conformance.directive_items import resolve
from tests.conformance.directive_static import parse_directive, parse_knowledge, validate_directive
from tests.conformance.directive_threads import run_thread, start_extends
from tests.conformance.directive_trust import check_permission, check_risk, check_signature
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
    ("directive", "parse"): parse_directive,
    ("directive", "corpus"): parse_directive,
    ("directive", "knowledge"): parse_knowledge,
    ("directive", "validate"): validate_directive,
    ("directive", "permission"): check_permission,
    ("directive", "risk"): check_risk,
    ("directive", "signature"): check_signature,
    ("directive", "resolve"): resolve,
    ("directive", "interpolate"): directive_pure.interpolate,
    ("directive", "inputs"): directive_pure.inputs,
    ("directive", "returns"): directive_pure.returns,
    ("directive", "hook_condition"): directive_pure.hook_condition,
    ("directive", "hook_params"): directive_pure.hook_params,
    ("directive", "limits"): directive_pure.limits,
    ("directive", "limit_check"): directive_pure.limit_check,
    ("directive", "model"): directive_pure.model,
    ("directive", "thread"): run_thread,
    ("directive", "extends"): start_extends,
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
