"""Facts about a plan are found out once for each plan, and a changed copy of it has its own."""

from __future__ import annotations

from msgspec.structs import replace

from quire.plan.nodes import Plan, Sequence, remembered


def test_a_fact_is_found_out_once_for_each_plan() -> None:
    asked: list[str] = []

    @remembered
    def loud_title(plan: Plan) -> str:
        """Return the title in capitals."""
        asked.append(plan.title)
        return plan.title.upper()

    plan = Plan("one", "playbook", (), Sequence(()))
    assert [loud_title(plan), loud_title(plan)] == ["ONE", "ONE"]
    assert loud_title(replace(plan, title="two")) == "TWO"
    assert asked == ["one", "two"]
    assert loud_title.__doc__ == "Return the title in capitals."


def test_functions_of_one_name_have_facts_of_their_own() -> None:
    def fact(value: int) -> object:
        def size(plan: Plan) -> int:
            return value

        size.__module__ = f"module{value}"
        return remembered(size)

    plan = Plan("one", "playbook", (), Sequence(()))
    first, second = fact(1), fact(2)
    assert callable(first) and callable(second)
    assert (first(plan), second(plan)) == (1, 2)
