"""`quire eval`, `quire grammar` and `quire show --tree`: print the value of an expression, how documents of a format
are written, and the syntax tree of a document.

The tree of a playbook has the shape of the format's published test vectors. Directives and knowledge files are printed
as fields, with names and values as in the file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from quire import formats
from quire.cli.options import require_text
from quire.cli.stdio import wants_colour, write_json, write_lines, write_text
from quire.display.diagnostics import Findings, printer
from quire.display.visible import escaped
from quire.errors import CannotStart, Unreadable
from quire.expr import RESERVED, ExpressionError, ExprSyntaxError, NeedsDialect, compile, parse
from quire.expr.errors import diagnostic
from quire.source import Source, read_bytes, read_source, read_to_end
from quire.values import InvalidValue, Value, decode, encode
from quire.wording import did_you_mean, nearest

if TYPE_CHECKING:
    from quire.formats.grammars import Grammar


@click.command("eval")
@click.argument("expression", metavar="EXPR")
@click.option("--context", "names", metavar="JSON|@FILE", help="Values that the expression reads, a JSON object.")
@click.option(
    "--dialect", type=click.Choice(["quire"]), help="Allow the functions of the Quire dialect, such as lower and sort."
)
@click.option("--json", "as_json", is_flag=True, help="JSON is the only form; accepted for scripts.")
@click.pass_context
def eval_command(
    context: click.Context, expression: str, names: str | None, dialect: str | None, as_json: bool
) -> None:
    """Print the value of EXPR, an expression of pipelines, as JSON.

    The context holds ctx, pipe, item and acc as a step would see them; other names are bindings too. @FILE reads a
    file, @- stdin. Write -- before an EXPR that begins with a minus. Exit 1 when EXPR is malformed or has no value.
    """
    bindings = _bindings("{}" if names is None else names)
    stores = bindings["ctx"]
    source = Source.of(expression, "<expression>")
    try:
        compiled = compile(parse(source.text, dialect=dialect is not None))
        value = compiled.evaluate(bindings, stores if isinstance(stores, dict) else {})
        click.echo(escaped(encode(value)))
    except ExpressionError as error:
        if isinstance(error, NeedsDialect):
            error.help = "add --dialect quire to use it"
        elif isinstance(error, ExprSyntaxError):
            from quire.expr.suggestions import meant  # Only a wrong expression needs it.

            error.help = meant(source.text, dialect=dialect is not None) or error.help
        findings = Findings(source, (diagnostic(error),))
        click.echo(printer("full")([findings], wants_colour(sys.stderr)), nl=False, err=True)
        context.exit(1)


def _bindings(names: str) -> dict[str, Value]:
    """Return the bindings of JSON text, or of the file after `@`."""
    try:
        bindings = decode(_read(names[1:]) if names.startswith("@") else names)
    except InvalidValue as error:
        raise CannotStart(f"--context is not JSON: {error}") from None
    if not isinstance(bindings, dict):
        raise CannotStart("--context is not a JSON object of names and values")
    own: dict[str, Value] = {name: value for name, value in bindings.items() if name not in RESERVED}
    return {"ctx": own, "pipe": None, **bindings}


def _read(path: str) -> str:
    where = f"--context @{path}"
    try:
        data = read_to_end(sys.stdin.buffer) if path == "-" else read_bytes(Path(path), pipes=True)
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CannotStart(f"{where} is not UTF-8 text (byte {error.start})") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotStart(f"{where} cannot be read: {reason}") from None


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    from quire.formats.grammars import NAMES

    return [CompletionItem(name) for name in NAMES if name.startswith(incomplete)]


@click.command("grammar")
@click.argument("name", metavar="[FORMAT]", required=False, callback=require_text, shell_complete=_complete)
@click.option("--dialect", metavar="NAME", callback=require_text, help="The dialect that a document names in its text.")
@click.option("--schema", is_flag=True, help="Print a JSON Schema instead, for an editor.")
@click.option("--json", "as_json", is_flag=True, help="For machines: the text, and the examples in it by themselves.")
def grammar_command(name: str | None, dialect: str | None, schema: bool, as_json: bool) -> None:
    """Print how documents are written: grammar, rules and examples, for the prompt of a model.

    FORMAT is pipeline, playbook, directive or test; without one, list the grammars. With --schema, FORMAT is pipeline,
    test, settings (quire.toml) or lock (quire.lock).
    """
    from quire.formats.grammars import GRAMMARS

    if schema:
        from quire.display.json_schemas import SCHEMAS, json_schema

        if name is None or dialect is not None:
            raise click.UsageError("--schema needs a FORMAT, and no --dialect: it covers both")
        if name not in SCHEMAS:
            hint = did_you_mean(nearest(name, SCHEMAS), f"there are {', '.join(SCHEMAS)}")
            raise CannotStart(f"{name!r} has no JSON Schema: {hint}")
        write_json(json_schema(name))
        return
    if name is None:
        if dialect is not None:
            raise click.UsageError("--dialect needs a FORMAT")
        if as_json:
            write_json([_as_json(grammar) for grammar in GRAMMARS])
        else:
            write_lines(f"{_command(grammar):<40} {grammar.about}" for grammar in GRAMMARS)
        return
    grammar = _find(name, dialect or "")
    if as_json:
        write_json(_as_json(grammar))
    else:
        write_text(grammar.text)


def _find(name: str, dialect: str) -> Grammar:
    from quire.formats.grammars import GRAMMARS, NAMES, find

    if grammar := find(name, dialect):
        return grammar
    if name not in NAMES:
        hint = did_you_mean(nearest(name, NAMES, cutoff=0.6), f"there are {', '.join(NAMES)}")
        raise CannotStart(f"unknown grammar {name!r}: {hint}")
    dialects = [grammar.dialect for grammar in GRAMMARS if grammar.name == name and grammar.dialect]
    hint = did_you_mean(nearest(dialect, dialects), f"there is {', '.join(dialects)}" if dialects else "it has none")
    raise CannotStart(f"a {name} has no dialect {dialect!r}: {hint}")


def _command(grammar: Grammar) -> str:
    return f"quire grammar {grammar.name}" + (f" --dialect {grammar.dialect}" if grammar.dialect else "")


def _as_json(grammar: Grammar) -> Value:
    return {
        "format": grammar.name,
        "dialect": grammar.dialect or None,
        "about": grammar.about,
        "text": grammar.text,
        "examples": list(grammar.examples),
    }


@click.command("parse")
@click.argument("file", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="JSON is the only form; accepted for scripts.")
@click.pass_context
def parse_command(context: click.Context, file: str, as_json: bool) -> None:
    """Print the syntax tree of FILE as JSON, with the findings of the reader.

    Exit 1 when the document is not valid, 2 when it cannot be read.
    """
    try:
        tree = _tree(read_source(Path(file)))
    except Unreadable as error:
        if reading := formats.unread(error):
            from quire.formats.playbook.write import as_vector

            write_json(as_vector(reading))
            error.is_printed = True
        raise
    write_json(tree)
    context.exit(0 if tree["valid"] else 1)


def _tree(source: Source) -> dict[str, Value]:
    format = formats.format_of(source)
    if format == "pipeline":
        from quire.formats.pipeline.parse import parse
        from quire.formats.pipeline.write import pipeline_tree

        return pipeline_tree(parse(source, registered=True))
    if format in ("directive", "knowledge"):
        from quire.formats.directive.write import directive_tree, knowledge_tree

        return directive_tree(source) if format == "directive" else knowledge_tree(source)
    from quire.formats.playbook.write import as_vector

    return as_vector(formats.read(source))
