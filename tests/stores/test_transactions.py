"""Transactions are generators without I/O, and their statements are there in the SQL of each store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from quire.errors import NoSuchRun, RunState
from quire.stores.postgres.statements import PostgresStatements
from quire.stores.sqlite.statements import SqliteStatements
from quire.stores.statements import Statements
from quire.stores.transactions import Query, Transactions, drive
from quire.trust.seal import PUBLIC_SEAL

STORES: Sequence[type[Statements]] = (SqliteStatements, PostgresStatements)


@pytest.mark.parametrize("sql", STORES)
@pytest.mark.parametrize(
    ("rows", "failure", "said"),
    [
        ({}, NoSuchRun, "unknown run r1"),
        ({"STATE_OF_RUN": ("completed", None)}, RunState, "takes no answers"),
        ({"STATE_OF_RUN": ("awaiting_input", 9.0)}, RunState, "is expired and takes no answers"),
        ({"STATE_OF_RUN": ("running", None)}, RunState, "asks nothing at 1/ask"),
        (
            {"STATE_OF_RUN": ("running", None), "STATE_OF_QUESTION": ("answered", "h", "no", None)},
            RunState,
            "has been answered already",
        ),
        (
            {"STATE_OF_RUN": ("running", None), "STATE_OF_QUESTION": ("open", "other", None, None)},
            RunState,
            "is worded differently now",
        ),
    ],
)
def test_a_transaction_needs_no_database(
    sql: type[Statements], rows: dict[str, tuple[Any, ...]], failure: type[Exception], said: str
) -> None:
    answers = {getattr(sql, name): [row] for name, row in rows.items()}

    def perform(step: Any) -> Sequence[tuple[Any, ...]]:
        statement, _ = step
        return answers.get(statement, [])

    transactions = Transactions(sql, "nowhere", PUBLIC_SEAL, lambda: 10.0)
    with pytest.raises(failure, match=said):
        drive(transactions.answer("r1", "1/ask", "h", "yes", "", again=False), perform)


@pytest.mark.parametrize("sql", STORES)
@pytest.mark.parametrize("again", [False, True])
def test_an_answer_that_arrived_is_known_again(sql: type[Statements], again: bool) -> None:
    """A second attempt finds the answer of the first one, whose outcome never came back."""
    answers: dict[str, Sequence[tuple[Any, ...]]] = {
        sql.STATE_OF_RUN: [("running", None)],
        sql.STATE_OF_QUESTION: [("answered", "h", "yes", None)],
    }
    seen: list[str] = []

    def perform(step: Any) -> Sequence[tuple[Any, ...]]:
        query: Query = step
        seen.append(query[0])
        return answers[query[0]]

    steps = Transactions(sql, "nowhere", PUBLIC_SEAL, lambda: 10.0).answer("r1", "p", "h", "yes", "", again=again)
    if again:
        drive(steps, perform)
    else:
        with pytest.raises(RunState, match="answered already"):
            drive(steps, perform)
    assert seen == [sql.STATE_OF_RUN, sql.STATE_OF_QUESTION]


@pytest.mark.parametrize("sql", STORES)
def test_every_statement_is_written(sql: type[Statements]) -> None:
    names = {name for name in (*Statements.__annotations__, *vars(Statements)) if name.isupper()}
    assert {name for name in names if not isinstance(getattr(sql, name, None), str)} == set()


def test_shared_statements_are_translated() -> None:
    texts = [text for name in dir(PostgresStatements) if isinstance(text := getattr(PostgresStatements, name), str)]
    plain = re.compile(r"\?|\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:runs|pins|blobs|journal|questions|letters)\b")
    assert [text for text in texts if plain.search(text)] == []
