"""The line that a signature stands on: recognised here, so that it belongs to no text; what it says is for `trust`."""

from __future__ import annotations

import re

_LINE = re.compile(r"<!--[ \t]*+rye:signed:[^\n]*+")
_YAML_LINE = re.compile(r"#[ \t]*+rye:signed:[^\n]*+")


def signature_line(text: str, *, yaml: bool = False) -> str:
    """The first line of a text, without its end, where that is a signature; else nothing."""
    match = (_YAML_LINE if yaml else _LINE).match(text)
    return match[0].rstrip() if match and (yaml or match[0].rstrip().endswith("-->")) else ""
