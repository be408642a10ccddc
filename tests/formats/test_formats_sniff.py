"""Which format a document is in."""

from __future__ import annotations

import pytest

from quire.errors import CannotStart
from quire.formats import check, read, sniff
from quire.source import Source

PLAYBOOK = "# T\n\n## STEP 1: A\n\nx\n"


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.playbook.md", "playbook"),
        ("docs/any.md", "playbook"),
        ("A.MD", "playbook"),
        (".ai/directives/x/y.md", "directive"),
        ("/w/.ai/directives/y.md", "directive"),
        (".ai/knowledge/y.md", "playbook"),
        ("p.yaml", "pipeline"),
        ("p.yml", "pipeline"),
        ("p.txt", None),
        ("<text>", "playbook"),
    ],
)
def test_sniff(name: str, format: str | None) -> None:
    assert sniff(name, PLAYBOOK) == format


def test_read_and_check_a_playbook() -> None:
    assert read(Source.of(PLAYBOOK)).playbook is not None
    assert [found.code.id for found in check(Source.of(PLAYBOOK + "{{x}}"))] == ["PB201"]


def test_check_a_pipeline() -> None:
    text = "pipeline: p\nsteps: [{transform: {valeu: '1'}}]\n"
    assert [found.code.id for found in check(Source.of(text, "p.yaml"))] == ["PL012", "PL011"]


@pytest.mark.parametrize(("name", "words"), [(".ai/directives/d.md", "directive"), ("x.txt", "no document")])
def test_what_has_not_landed_is_said_in_one_line(name: str, words: str) -> None:
    source = Source.of(PLAYBOOK, name)
    for verb in (read, check):
        with pytest.raises(CannotStart, match=words) as caught:
            verb(source)
        assert "\n" not in str(caught.value) and name in str(caught.value)
