"""What a model should not have to count."""

from __future__ import annotations

from typing import TypedDict

import quire


class Statistics(TypedDict):
    sections: int
    words: int
    long: bool


@quire.tool(effect="read")
def text_statistics(text: str, long_from: int = 800) -> Statistics:
    """Counts the sections and words of a Markdown document."""
    sections = sum(line.startswith("#") for line in text.splitlines())
    words = len(text.split())
    return {"sections": sections, "words": words, "long": words >= long_from}
