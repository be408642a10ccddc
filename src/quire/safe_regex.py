"""Match patterns from outside with RE2, which takes linear time for every pattern.

Patterns of schemas are also read by others: by services that force a reply, and by clients of tools, which follow the
rules of JavaScript. `portable` accepts patterns that mean the same everywhere, and rewrites others where that is
possible: `.`, `\\d`, `\\w` and `\\s` mean different characters elsewhere.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import Protocol, cast

from quire.patterns import late_pattern
from quire.values import clean

MAX_PATTERN = 1000
MAX_PROGRAM = 2000
"""Instructions of RE2 that a portable pattern may take: the time for a text is at most this often its length."""
LONGEST_MATCHED = 20_000
"""Characters of a text that a portable pattern is matched with."""


class Pattern(Protocol):
    def search(self, text: str) -> object | None: ...


class BadPattern(ValueError):
    """A pattern that is not valid or not portable; the text says why."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Pattern | None:
    """Compile a pattern. Return None if it is too long, if RE2 does not support it, or if RE2 is not installed."""
    if len(pattern) > MAX_PATTERN:
        return None
    try:
        re2 = import_module("re2")
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        return cast("Pattern", re2.compile(clean(pattern), options))
    except re2.error:
        return None


def can_match(pattern: str) -> bool:
    """Tell whether a pattern can be used.

    Without RE2 this is not known, and every pattern that is short enough counts as usable.
    """
    return compiled(pattern) is not None or (len(pattern) <= MAX_PATTERN and compiled("") is None)


@lru_cache(maxsize=256)
def portable(pattern: str) -> str:
    """Return a pattern with the same meaning for RE2, JavaScript and Rust. Raises `BadPattern`."""
    if len(pattern) > MAX_PATTERN:
        raise BadPattern(f"it is longer than {MAX_PATTERN:,} characters")
    written = _Rewriting(clean(pattern)).whole()
    program = compiled(written) if len(written) <= MAX_PATTERN else None
    if program is None and compiled("") is not None:
        raise BadPattern(_INVALID if len(written) <= MAX_PATTERN else "it is too long")
    if getattr(program, "programsize", 0) > MAX_PROGRAM:
        raise BadPattern("its repetitions are too large")
    return written


def program_size(pattern: str) -> int:
    """Return the number of instructions of a portable pattern; 0 for a pattern that cannot be used."""
    try:
        return int(getattr(compiled(portable(pattern)), "programsize", 0))
    except BadPattern:
        return 0


def matches(pattern: str, text: str) -> bool:
    """Tell whether a portable pattern occurs in a text. Raises `BadPattern` for a pattern that is not, or if RE2 is not
    installed."""
    program = compiled(portable(pattern))
    if program is None:
        raise BadPattern("RE2 is not installed")
    return program.search(text) is not None


_DIGITS, _WORD, _SPACE = "0-9", "0-9A-Za-z_", r"\t\n\f\r "
_SETS = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS = "nrtfv"
_SYNTAX = "^$\\.*+?()[]{}|"
_LONGER_ESCAPE = late_pattern(r"x[0-9A-Fa-f]{2}|[pP]\{[A-Z][a-z]?\}")
_REPETITION = late_pattern(r"\{[0-9]{1,4}(?:,[0-9]{0,4})?\}", re.ASCII)
_INVALID = "it is not a valid pattern, or its repetitions are too large"
_OPERATORS = ("&&", "--", "~~")
"""Inside of brackets Rust reads these as operators on sets."""


class _Rewriting:
    """One pass over a pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def whole(self) -> str:
        written: list[str] = []
        repeatable = False
        """True if a repetition may follow: not at the beginning, and not after another repetition or an anchor."""
        takes = [False]
        """True if the groups around this place take a character: an empty group is not repeated either."""
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if char in "*+?{":
                if not repeatable:
                    raise BadPattern(f"{char} has nothing to repeat" + self._place(self._at))
                written.append(self._repetition())
                repeatable = False
                continue
            written.append(self._piece(char))
            if char == "(":
                takes.append(False)
            repeatable = takes.pop() if char == ")" and len(takes) > 1 else char not in "^$(|)"
            takes[-1] = takes[-1] or repeatable
        return "".join(written)

    def _piece(self, char: str) -> str:
        if char == "\\":
            return self._escape(inside=False)
        if char == "[":
            return self._brackets()
        if char in "]}":
            raise BadPattern(f"a plain {char} is written \\{char}" + self._place(self._at))
        if char == "(" and self._pattern.startswith("(?", self._at):
            if not self._pattern.startswith("(?:", self._at):
                raise BadPattern("the only group with ? is (?:…)" + self._place(self._at))
            self._at += 3
            return "(?:"
        self._at += 1
        return r"[^\n]" if char == "." else char

    def _repetition(self) -> str:
        begin = self._at
        counted = _REPETITION.match(self._pattern, begin)
        if self._pattern[begin] == "{" and counted is None:
            raise BadPattern("a plain { is written \\{" + self._place(begin))
        self._at = counted.end() if counted else begin + 1
        if self._pattern.startswith("?", self._at):
            self._at += 1
        return self._pattern[begin : self._at]

    def _escape(self, *, inside: bool) -> str:
        """Read an escape; `inside` of brackets a set of characters is returned without brackets of its own."""
        begin = self._at
        kind = self._pattern[begin + 1 : begin + 2]
        self._at += 2
        if kind in _SETS:
            return _SETS[kind] if inside else f"[{_SETS[kind]}]"
        if kind and kind.lower() in _SETS and not inside:
            return f"[^{_SETS[kind.lower()]}]"
        if kind == "/":
            return kind
        if kind and (kind in _CONTROLS or kind in _SYNTAX or (kind == "-" and inside)):
            return f"\\{kind}"
        if longer := _LONGER_ESCAPE.match(self._pattern, begin + 1):
            self._at = longer.end()
            return self._pattern[begin : self._at]
        raise BadPattern(f"\\{kind} is not an escape that all readers of patterns know" + self._place(begin))

    def _brackets(self) -> str:
        begin = self._at
        self._at += 2 if self._pattern.startswith("[^", begin) else 1
        written = [self._pattern[begin : self._at]]
        first = self._at
        while (char := self._pattern[self._at : self._at + 1]) != "]" or self._at == first:
            if not char:
                raise BadPattern("the [ is not closed" + self._place(begin))
            if char in "[]":
                raise BadPattern(f"in brackets a plain {char} is written \\{char}" + self._place(self._at))
            if self._pattern.startswith(_OPERATORS, self._at):
                raise BadPattern(f"{char}{char} in brackets is an operator for some readers" + self._place(self._at))
            if char == "-" and self._at != first and not self._pattern.startswith("-]", self._at):
                written.append(self._range_end(written[-1]))
            elif char == "\\":
                written.append(self._escape(inside=True))
            else:
                self._at += 1
                written.append(rf"\{char}" if char == "-" else char)
        self._at += 1
        return "".join([*written, "]"])

    def _range_end(self, before: str) -> str:
        at = self._at
        self._at += 1
        char = self._pattern[self._at : self._at + 1]
        if char == "\\":
            end = self._escape(inside=True)
        else:
            self._at += 1
            end = char
        if _is_set(end) or _is_set(before) or before.startswith("-"):
            raise BadPattern("a range goes from one character to another; a plain - is written \\-" + self._place(at))
        return f"-{end}"

    def _place(self, at: int) -> str:
        return f" (character {at + 1})"


def _is_set(part: str) -> bool:
    return part in _SETS.values() or part[:2].lower() == r"\p"
