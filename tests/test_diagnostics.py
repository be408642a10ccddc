"""A finding has a fix that expects a text, and the places on the path of a flow."""

from __future__ import annotations

import pytest

from quire.diagnostics import Diagnostic, Edit, Fix, Related, edits_of, fix_of, replacing
from quire.formats.playbook.codes import reader
from quire.source import Source, Span

SOURCE = Source.of("steps: [transfrom]\n")
WORD = Span(8, 17)


@pytest.mark.parametrize(
    ("fix", "usable", "certain"),
    [
        (replacing(WORD, "transfrom", "transform"), True, True),
        (Fix("drop it", (Edit(WORD, "transfrom", ""),), safe=False), True, False),
        (replacing(WORD, "another", "transform"), False, False),
        (Fix("two edits", (Edit(WORD, "transfrom", "x"), Edit(Span(0, 1), "t", "u"))), False, False),
        (Fix("nothing", ()), False, False),
        (None, False, False),
    ],
)
def test_a_fix_is_used_only_on_the_text_that_it_expects(fix: Fix | None, usable: bool, certain: bool) -> None:
    found = Diagnostic(reader.DIRECTIVE, "wrong", WORD, "", "", fix)
    assert fix_of(SOURCE, found) == (fix if usable else None)
    assert edits_of(SOURCE, found) == (fix.edits if fix and certain else ())


def test_the_title_of_a_replacement_quotes_both_texts_in_short() -> None:
    assert replacing(WORD, " transfrom", "transform").title == "replace transfrom with transform"
    assert len(replacing(WORD, "x" * 500, "y" * 500).title) < 150


def test_a_flow_has_only_the_places_that_have_a_node() -> None:
    source, sink = Related(WORD, "read here", node="1 http__get"), Related(WORD, "run here", node="5 shell argv[2]")
    found = Diagnostic(reader.DIRECTIVE, "x", WORD, related=(source, Related(WORD, "asked here"), sink))
    assert found.flow == (source, sink)
    assert found.confidence == "proven"
