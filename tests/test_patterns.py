"""The source keeps to what every supported CPython does in the same way (finding G1)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quire.patterns import late_pattern

SOURCE = Path(__file__).parents[1] / "src" / "quire"

# CPython before 3.11.5 gives wrong matches for possessive groups, and later ones for atomic groups with captures.
# Possessive single characters and sets are right everywhere.
_POSSESSIVE_GROUP = re.compile(r"""(?<!\\)\)(?:[*+?]|\{[0-9]*,?[0-9]*\})\+|\(\?>""")


def test_no_pattern_has_possessive_or_atomic_groups() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    found = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path, text in texts.items()
        if ("re.compile" in text or "late_pattern" in text) and _POSSESSIVE_GROUP.search(text)
        for number, line in enumerate(text.splitlines(), 1)
        if _POSSESSIVE_GROUP.search(line)
    ]
    assert not found


def test_the_rule_sees_such_groups_and_no_others() -> None:
    assert all(_POSSESSIVE_GROUP.search(one) for one in (r"(?:a|b)*+", r"(a)++", r"(a)?+", r"(a){2,3}+", r"(?>a)"))
    assert not any(_POSSESSIVE_GROUP.search(one) for one in (r"[^)]*+", r"\)++", r"(a)+", r"a*+(b)"))


def test_statements_number_no_placeholders() -> None:
    """The sqlite3 of CPython 3.14 refuses `?1` with a sequence of values, and that of 3.12 warns."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((SOURCE / "stores").rglob("*.py"))]
    assert len(texts) > 10
    assert not [found for text in texts for found in re.findall(r"[ (=<]\?[0-9]\b", text)]


def test_a_late_pattern_does_what_the_compiled_one_does() -> None:
    late, compiled = late_pattern(r"(\d+)-(\d+)", re.ASCII), re.compile(r"(\d+)-(\d+)", re.ASCII)
    for text in ("1-2 and 3-4", "none", ""):
        assert late.findall(text) == compiled.findall(text)
        assert late.sub(r"\2", text) == compiled.sub(r"\2", text)
    assert (late.pattern, late.groups) == (compiled.pattern, compiled.groups)


def test_a_late_pattern_is_compiled_when_it_is_used() -> None:
    wrong = late_pattern("(")
    with pytest.raises(re.error):
        wrong.match("x")
