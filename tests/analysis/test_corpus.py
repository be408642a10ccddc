"""Rules on documents that people wrote: none of them is wrong about many, and the examples are clean."""

from __future__ import annotations

from collections import Counter

from tests.analysis.corpus_table import findings

from quire.diagnostics import Severity

MOST = 5
"""Documents of 100 that a rule may be wrong about and still be on by default."""
WARNS_OF_ITSELF = "checking-0.yaml"
"""The example of the docs that shows a flow."""


def test_rules_are_seldom_wrong() -> None:
    counted, found = findings()
    shown = {(one.code.id, source.name) for _, source, one in found if one.severity is not Severity.NOTE}
    documents = Counter(code for code, _ in shown)
    assert not {code for code, count in documents.items() if 100 * count > MOST * sum(counted.values())}


def test_the_examples_pass_on_nothing_from_outside() -> None:
    _, found = findings()
    ours = [
        (one.code.id, source.name)
        for group, source, one in found
        if group in ("examples", "docs", "space") and not source.name.endswith(WARNS_OF_ITSELF)
    ]
    assert [one for one in ours if one[0][:2] in ("TA", "SE")] == []
