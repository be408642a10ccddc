"""The output of a run on a terminal: Markdown is rendered, other texts are broken between words.

Files and pipes get the output itself.
"""

from __future__ import annotations

import io
import os
import re
import shutil

from quire.render.text import visible, wrapped_to

_MARKDOWN = re.compile(r"^(?:#{1,6} \S|[-*] \S|\d{1,3}\. \S|```|> \S|\|.*\|[ \t]*$)|\*\*\S[^*\n]*\*\*", re.MULTILINE)
"""What makes a text without a type Markdown: a heading, a list, a fence, a quotation, a table or bold words."""
LONGEST = 200_000
"""Rendering takes time; a longer text is shown as it is."""


def rendered(text: str, artifact_type: str, columns: int | None = None) -> str:
    """The text for a terminal, its control characters made visible. Ends with a newline."""
    columns = columns or max(20, shutil.get_terminal_size().columns)
    if artifact_type not in ("", "markdown", "text") or len(text) > LONGEST:
        return visible(text)
    if artifact_type == "markdown" or (artifact_type == "" and _MARKDOWN.search(text)):
        return _markdown(visible(text), columns)
    return wrapped_to(text, columns)


def _markdown(text: str, columns: int) -> str:
    from rich.console import Console
    from rich.markdown import Markdown

    written = io.StringIO()
    console = Console(file=written, width=columns, force_terminal=True, no_color=bool(os.environ.get("NO_COLOR")))
    console.print(Markdown(text, hyperlinks=False))
    return "\n".join(line.rstrip() for line in written.getvalue().split("\n"))
