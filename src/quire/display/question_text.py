"""Questions to people as Markdown, on terminals and pages.

A person decides by what a question says, and a part of it may come from a model: so a question is rendered only if
every letter of it remains afterwards, in the same order. Markdown can hide text, in definitions of links and in
deep nesting.
"""

from __future__ import annotations

import re
import sys

from quire.display.text import markdown_text, terminal_columns, visible, wrapped
from quire.display.visible import in_encoding
from quire.patterns import late_pattern

_MARKED = late_pattern(r"[*_`#>|~\[\]]|https?:|^[ \t]*(?:[-+]|\d{1,9}[.)]) ", re.MULTILINE)
_SINGLE_BREAK = late_pattern(r"(?<=\S)\n(?=[^\n])")
_NUMBER = late_pattern(r"^[ \t>]*\d{1,9}[.)](?= )", re.MULTILINE)
_FENCE = late_pattern(r"^([ \t>]*(?:`{3,}|~{3,}))[ \t]*([a-z]*)[ \t]*$", re.MULTILINE)
_STYLE = late_pattern(r"\x1b\[[0-9;]*m")
_LANGUAGES = frozenset(
    re.findall(
        r"\w+",
        """bash c cpp css diff go html ini java javascript js json kotlin markdown md php python py ruby rust sh shell
        sql swift toml ts tsx typescript xml yaml yml""",
    )
)
LONGEST = 20_000
"""Longest question that is rendered on a terminal: rendering takes time."""


def is_markdown(prompt: str) -> bool:
    """Tell whether a question has anything that Markdown would show in another way."""
    return _MARKED.search(prompt) is not None


def hard_breaks(prompt: str) -> str:
    """Return a question as Markdown in which every line break is one: people who write questions mean it so."""
    return _SINGLE_BREAK.sub("  \n", prompt)


def loses_nothing(prompt: str, shown: str) -> bool:
    """Tell whether all letters and digits of a question are in the shown text, in their order.

    The numbers of lists and the language of a code block may be missing.
    """
    prompt = _FENCE.sub(lambda match: match[1] if match[2] in _LANGUAGES else match[0], _NUMBER.sub("", prompt))
    letters = iter(shown)
    return all(character in letters for character in prompt if character.isalnum())


def question_block(prompt: str) -> str | None:
    """Return a question as Markdown for a terminal; None if it is plain, or cannot be rendered whole."""
    prompt = visible(prompt.strip())
    if not is_markdown(prompt) or len(prompt) > LONGEST:
        return None
    block = markdown_text(hard_breaks(prompt), terminal_columns()).strip("\n")
    if not loses_nothing(prompt, _STYLE.sub("", block)):
        return None
    return in_encoding(block, getattr(sys.stderr, "encoding", None) or "utf-8")


def question_lines(head: str, prompt: str, *, styled: bool) -> str:
    """Return a question for people, after a head such as `step 3 asks:`. It is Markdown only if the terminal is
    `styled`."""
    block = question_block(prompt) if styled else None
    return f"{wrapped(head)}\n{block}" if block is not None else wrapped(f"{head} {prompt.strip()}")
