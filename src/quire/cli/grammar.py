"""`quire grammar`: print how documents of a format are written, for a model that is to write one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from quire.cli.options import require_text
from quire.cli.stdio import write_json, write_lines, write_text
from quire.errors import CannotStart
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.formats.grammars import Grammar
    from quire.values import Value


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    from quire.formats.grammars import NAMES

    return [CompletionItem(name) for name in NAMES if name.startswith(incomplete)]


@click.command("grammar")
@click.argument("name", metavar="[FORMAT]", required=False, callback=require_text, shell_complete=_complete)
@click.option("--dialect", metavar="NAME", callback=require_text, help="The dialect that a document names in its text.")
@click.option("--json", "as_json", is_flag=True, help="For machines: the text, and the examples in it by themselves.")
def command(name: str | None, dialect: str | None, as_json: bool) -> None:
    """Print how a document of FORMAT (pipeline, playbook, directive or test) is written: the grammar, the rules that it
    does not show, and examples that check and run. The text is Markdown, short enough for the prompt of a model.

    Without FORMAT, list the grammars. MCP clients read the same texts as resources of `quire mcp`. FREE.

    \b
      quire grammar pipeline
      quire grammar pipeline --dialect quire
    """
    from quire.formats.grammars import GRAMMARS

    if name is None:
        if dialect is not None:
            raise click.UsageError("--dialect needs a FORMAT")
        if as_json:
            write_json([_as_json(one) for one in GRAMMARS])
        else:
            write_lines(f"{_command(one):<40} {one.about}" for one in GRAMMARS)
        return
    found = _find(name, dialect or "")
    if as_json:
        write_json(_as_json(found))
    else:
        write_text(found.text)


def _find(name: str, dialect: str) -> Grammar:
    from quire.formats.grammars import GRAMMARS, NAMES, find

    if found := find(name, dialect):
        return found
    if name not in NAMES:
        hint = did_you_mean(nearest(name, NAMES, cutoff=0.6), f"there are {', '.join(NAMES)}")
        raise CannotStart(f"there is no grammar for {name!r}: {hint}")
    dialects = [one.dialect for one in GRAMMARS if one.name == name and one.dialect]
    hint = did_you_mean(nearest(dialect, dialects), f"there is {', '.join(dialects)}" if dialects else "it has none")
    raise CannotStart(f"a {name} has no dialect {dialect!r}: {hint}")


def _command(one: Grammar) -> str:
    return f"quire grammar {one.name}" + (f" --dialect {one.dialect}" if one.dialect else "")


def _as_json(one: Grammar) -> Value:
    return {
        "format": one.name,
        "dialect": one.dialect or None,
        "about": one.about,
        "text": one.text,
        "examples": list(one.examples),
    }
