"""The operators of mutation: the changes that are made to documents, by the name that begins the id of a mutant."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Operator(Struct, frozen=True):
    """One kind of change."""

    change: str
    """The changed document, in words."""
    case: str = "in which {step} runs"
    """The kind of case that would notice it, as far as that can be said of all of them."""


OPERATORS: Mapping[str, Operator] = {
    "drop_step": Operator("a step is not there"),
    "drop_question": Operator("a question is not asked"),
    "drop_option": Operator("an option of a question, or a value of a capture, is not there", "that gives that answer"),
    "drop_capture": Operator("a result is not kept under its name"),
    "drop_reference": Operator("a value is missing from a prompt, a question or an argument"),
    "drop_preamble": Operator("the prompt before a step's own text is missing"),
    "drop_context": Operator(
        "a step sees all earlier results, not only those that it names",
        "in which an earlier step has a result that {step} must not see",
    ),
    "drop_system": Operator("the system text is missing"),
    "drop_artifact": Operator("the artifact is the last result, not the one that is named"),
    "drop_arm": Operator("an arm, or a case of a `match`, is not there", "that takes the arm"),
    "swap_arms": Operator("two arms have changed places", "that takes the arm"),
    "drop_branch": Operator("a branch of a `parallel` is not there"),
    "negate_condition": Operator("a condition, or that of a hook, is negated", "in which the condition holds"),
    "change_condition": Operator("a condition compares with another text", "in which the condition holds"),
    "drop_condition": Operator("a `when` is not there", "in which {step} is skipped"),
    "change_argument": Operator("an argument of a tool has another value"),
    "drop_pass": Operator("a value is not passed to a callee"),
    "change_on_error": Operator(
        "a failure is dropped, ends the run, or is tried less often", "in which {step} fails every time"
    ),
    "drop_default": Operator(
        "the value in place of a failure, or of a missing key, is not there", "in which the default is used"
    ),
    "drop_timeout": Operator("a step may take any time", "in which {step} takes too long (`delay_ms`)"),
    "drop_max_items": Operator("a list may have any length", "with too many items"),
    "change_max_items": Operator("a list may have one item less", "with as many items as are allowed"),
    "change_max": Operator("a `repeat` goes one round less", "in which {step} needs its last round"),
    "change_on_max": Operator(
        "a `repeat` fails after its last round, or does not", "in which {step} never comes to its end"
    ),
    "change_comparison": Operator("`<` is `<=`, `==` is `!=`, and so on", "in which both sides are equal"),
    "change_logic": Operator("`and` is `or`, and the other way round", "in which only one of the parts is true"),
    "change_quantifier": Operator(
        "`all` is `any`, and the other way round", "in which some items fit, and some do not"
    ),
    "change_arithmetic": Operator("`+` is `-`, `*` is `/`, and the other way round"),
    "change_constant": Operator("a literal of an expression is another one"),
    "drop_not": Operator("a `not` is not there", "in which {step} comes to the other decision"),
    "drop_filter": Operator("a `filter` keeps everything", "in which an item is left out"),
    "drop_schema": Operator("a result or a reply may have any shape", "in which the result does not fit its schema"),
    "make_optional": Operator(
        "a field of a schema, or an output of a directive, may be missing", "in which that is missing"
    ),
    "drop_enum_value": Operator("a value of an enum does not fit", "with that value"),
    "drop_schema_limit": Operator("a field has no limit or pattern", "in which the limit is exceeded"),
    "drop_permission": Operator("a permission is not there", "in which the permission is used"),
    "widen_permission": Operator("a permission is `*`", "that calls a tool which is not allowed"),
    "drop_limit": Operator("a limit of a thread is the default", "in which the limit is reached"),
    "drop_hook": Operator("a hook is not there", "in which the hook acts"),
    "drop_knowledge": Operator("a text of the context is missing"),
}
