"""What a thread spends, its parent has spent: once, and however it ended."""

from __future__ import annotations

import math

import pytest

from quire.engine.interpreter.thread.budgets import Purse, SharedPurse


def test_what_is_set_aside_comes_back() -> None:
    parent = Purse(1.0)
    child = Purse(5.0, parent, 0.5)
    assert (child.limit, parent.left) == (0.5, 0.5)
    child.pay(0.2)
    child.close()
    child.close()
    assert (parent.spent, parent.left) == (0.2, 0.8)


def test_a_thread_that_was_stopped_before_it_began_gives_its_money_back() -> None:
    parent = Purse(1.0)
    Purse(5.0, parent, 0.5).settle(0.0)
    assert (parent.spent, parent.left) == (0.0, 1.0)


@pytest.mark.parametrize("closed", [True, False])
def test_records_tell_what_a_replay_has_not_walked_through(closed: bool) -> None:
    parent = Purse(1.0)
    child = Purse(0.5, parent)
    child.pay(0.1)
    if closed:
        child.close()
    child.settle(0.3)
    child.settle(0.3)
    assert parent.spent == pytest.approx(0.3)
    assert parent.left == pytest.approx(0.7)


def test_a_child_that_is_stopped_after_its_parent() -> None:
    """It pays into a purse that is closed; only the records know of it."""
    root = Purse(1.0)
    middle = Purse(0.5, root)
    inner = Purse(0.2, middle)
    middle.close()
    inner.pay(0.1)
    inner.close()
    assert root.spent == 0.0
    middle.settle(0.1)
    assert root.spent == pytest.approx(0.1)


def test_a_document_pays_from_the_purse_of_its_thread() -> None:
    owner = Purse(1.0)
    first, second = SharedPurse(owner), SharedPurse(owner)
    first.pay(0.1)
    second.pay(0.2)
    first.settle(0.15)
    second.settle(0.2)
    assert first.spent == pytest.approx(0.15)
    assert second.spent == pytest.approx(0.2)
    assert owner.spent == pytest.approx(0.35)


def test_a_child_that_spends_more_than_it_has_leaves_its_parents_less() -> None:
    """The limit of a child that is walked again can be lower than the one under which it spent."""
    root = Purse(1.0)
    middle = Purse(0.5, root)
    inner = Purse(0.2, middle)
    inner.pay(0.7)
    assert inner.left == pytest.approx(-0.5)
    assert middle.left == pytest.approx(-0.2)
    assert root.left == pytest.approx(0.3)
    inner.close()
    middle.close()
    assert root.spent == pytest.approx(0.7)
    assert root.left == pytest.approx(0.3)


def test_a_limit_that_a_person_raises_is_held_back_too() -> None:
    root = Purse(1.0)
    child = Purse(0.5, root)
    child.pay(0.6)
    child.raise_to(0.8)
    assert child.left == pytest.approx(0.2)
    assert root.left == pytest.approx(0.2)
    child.close()
    assert root.left == pytest.approx(0.4)


def test_purses_without_a_limit_hold_nothing_back() -> None:
    root = Purse(math.inf)
    child = Purse(math.inf, root)
    child.pay(3.0)
    child.close()
    assert (root.spent, root.left) == (3.0, math.inf)


def test_what_a_launched_run_may_spend_stays_held_back_after_its_thread() -> None:
    parent = Purse(1.0)
    child = Purse(0.6, parent)
    child.hold(0.3)
    child.close()
    assert parent.left == pytest.approx(0.7)
    child.hold(-0.2)
    assert parent.left == pytest.approx(0.9)
