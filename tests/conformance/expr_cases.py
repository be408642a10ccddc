"""Expression cases of the kit: parsed, compiled and evaluated as a step of a pipeline does it."""

from __future__ import annotations

from typing import Any

from quire.expr import EvalError, ExprSyntaxError, compile, parse


def run_expr(given: dict[str, Any]) -> dict[str, Any]:
    context: dict[str, Any] = given["context"]
    stores = context.get("ctx")
    try:
        compiled = compile(parse(given["expr"]))
        return {"value": compiled.evaluate(context, stores if isinstance(stores, dict) else {})}
    except ExprSyntaxError as error:
        return {"error": {"class": "parse", "message": error.message}}
    except EvalError as error:
        return {"error": {"class": "eval", "message": error.message}}
