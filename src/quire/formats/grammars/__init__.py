"""Grammars for authors that are programs: what a model has to know to write a document of a format.

Each is one Markdown text that stands by itself: the grammar, the rules that it does not show, and an example that
checks and runs. `quire grammar`, the resources and prompts of `quire mcp` and the launch tools all give these texts.
"""

from __future__ import annotations

import re

from msgspec import Struct

from quire.formats.grammars import directive, pipeline, playbook

_EXAMPLE = re.compile(r"^(`{3,})(?:yaml|markdown)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


class Grammar(Struct, frozen=True):
    """One grammar."""

    name: str
    """The name of the format."""
    about: str
    """One line, for lists."""
    text: str
    file_name: str
    """A name under which the example is found and checked as a document of the format."""
    dialect: str = ""
    """The dialect of the format, if it is not the one that all implementations share."""

    @property
    def key(self) -> str:
        """The last part of its address: `pipeline`, or `pipeline/quire` for a dialect."""
        return f"{self.name}/{self.dialect}" if self.dialect else self.name

    @property
    def example(self) -> str:
        """The document in the text, without its fence."""
        found = _EXAMPLE.search(self.text)
        return found[2] if found else ""


PIPELINE = Grammar(
    "pipeline", "How to write a pipeline: fixed control flow in YAML.", pipeline.TEXT, "pipelines/review_drafts.yaml"
)
GRAMMARS = (
    PIPELINE,
    Grammar("playbook", "How to write a playbook: prompts in Markdown.", playbook.TEXT, "playbooks/answer.playbook.md"),
    Grammar(
        "directive",
        "How to write a directive: an agent with permissions and limits.",
        directive.TEXT,
        ".ai/directives/team/summarise_file.md",
    ),
)
NAMES = tuple(dict.fromkeys(one.name for one in GRAMMARS))


def find(name: str, dialect: str = "") -> Grammar | None:
    return next((one for one in GRAMMARS if (one.name, one.dialect) == (name, dialect)), None)
