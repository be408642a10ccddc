"""Grammars for authors that are programs: the rules that a model needs to write a document of a format.

Each is one Markdown text that stands by itself: the grammar, the rules that it does not show, and examples that
check and run. `quire grammar`, the resources and prompts of `quire mcp` and the launch tools all give these texts.
"""

from __future__ import annotations

import re
from importlib.resources import files
from textwrap import fill
from typing import Any

from msgspec import Struct

from quire.plan.built_in_tools import BUILT_IN_TOOLS, BuiltInTool

_TOOLS = "<!-- tools -->"
"""Stands in a text where the built-in tools are listed."""
_LAST = "Then run `quire check - --json` with the text on stdin, and correct it until nothing is found."
_EXAMPLE = re.compile(r"^(`{3,})(?:yaml|markdown)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


class Grammar(Struct, frozen=True):
    """One grammar."""

    name: str
    """The name of the format."""
    about: str
    """One line, for lists."""
    text: str
    dialect: str = ""
    """The dialect of the format, if it is not the one that all implementations share."""

    @property
    def key(self) -> str:
        """The last part of its address: `pipeline`, or `pipeline/quire` for a dialect."""
        return f"{self.name}/{self.dialect}" if self.dialect else self.name

    @property
    def examples(self) -> tuple[str, ...]:
        """The documents in the text, without their fences."""
        return tuple(match[2] for match in _EXAMPLE.finditer(self.text))


def _read(name: str) -> str:
    text = files("quire.formats.grammars").joinpath(f"{name}.md").read_text(encoding="utf-8")
    if _TOOLS in text:
        called = (
            _call(tool, tool.id.replace("/", ".") if name == "directive" else tool.name) for tool in BUILT_IN_TOOLS
        )
        text = text.replace(_TOOLS, fill(f"{', '.join(called)}.", 120, break_long_words=False, break_on_hyphens=False))
    return text


def _text(name: str) -> str:
    return f"{_read(name)}\n{_LAST}\n"


def _call(tool: BuiltInTool, name: str) -> str:
    """Return a tool with its arguments: those that may be left out in brackets, the words that one takes behind it."""
    schema: Any = tool.schema
    forms = {key: "|".join(form.get("enum", ())) for key, form in schema["properties"].items()}
    told = {key: f"{key}: {words}" if words else key for key, words in forms.items()}
    needed = schema.get("required") or schema.get("else", {}).get("required", [])
    more = ", ".join(words for key, words in told.items() if key not in needed)
    return f"`{name}({', '.join([*(told[key] for key in needed), *([f'[{more}]'] if more else [])])})`"


PIPELINE = Grammar("pipeline", "How to write a pipeline: fixed control flow in YAML.", _text("pipeline"))
GRAMMARS = (
    PIPELINE,
    Grammar(
        "pipeline", "How to write one with loops, blocks, conditions and inputs.", _text("pipeline_quire"), "quire"
    ),
    Grammar("playbook", "How to write a playbook: prompts in Markdown.", _text("playbook")),
    Grammar("directive", "How to write a directive: an agent with permissions and limits.", _text("directive")),
    Grammar("test", "How to write a test of a document: cases without a model.", _text("test")),
)
NAMES = tuple(dict.fromkeys(grammar.name for grammar in GRAMMARS))


def find(name: str, dialect: str = "") -> Grammar | None:
    return next((grammar for grammar in GRAMMARS if (grammar.name, grammar.dialect) == (name, dialect)), None)


def agents_text() -> str:
    """Return what every agent has to know in a folder with documents: a section of AGENTS.md."""
    return _read("agents")


def skill_text(name: str) -> str:
    """Return the SKILL.md of a skill that writes, checks and runs documents. The grammars stand beside it."""
    return _read("skill").replace("<!-- name -->", name).replace("<!-- pipeline -->\n", PIPELINE.examples[0])
