"""`quire eval`: print the value of one expression, to try it out before using it in a pipeline."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from quire.cli.stdio import wants_colour
from quire.display.diagnostics import Findings, printer
from quire.display.visible import escaped
from quire.errors import CannotStart
from quire.expr import RESERVED, ExpressionError, ExprSyntaxError, NeedsDialect, compile, parse
from quire.expr.errors import diagnostic
from quire.source import Source, read_bytes, read_to_end
from quire.values import InvalidValue, Value, decode, encode


@click.command("eval")
@click.argument("expression", metavar="EXPR")
@click.option("--context", "given", metavar="JSON|@FILE", help="What the expression can read, as a JSON object.")
@click.option(
    "--dialect", type=click.Choice(["quire"]), help="Allow the functions of the Quire dialect, such as lower and sort."
)
@click.option("--json", "as_json", is_flag=True, help="JSON is the only form there is; accepted for scripts.")
@click.pass_context
def command(context: click.Context, expression: str, given: str | None, dialect: str | None, as_json: bool) -> None:
    """Print the value of EXPR, an expression of the R1 language of pipelines, as JSON.

    The context holds ctx, pipe, item and acc as a step would see them. Other names are bindings too; if the context
    has no ctx, they are also the content of ctx. @FILE reads a file, @- standard input. Write -- before an EXPR that
    begins with a minus.

    A pipeline has the functions of the dialect if it says "dialect: quire"; here --dialect quire says it.

    FREE. Exit 1 when the expression is malformed or has no value, 2 when the context is not a JSON object.

    \b
      quire eval 'sum(map(ctx.rows, r -> r.n))' --context '{"ctx": {"rows": [{"n": 1}, {"n": 2}]}}'
      quire eval 'rows' --context '{"rows": [1, 2]}'
      quire eval --dialect quire 'upper(name)' --context '{"name": "Ada"}'
    """
    bindings = _bindings(given)
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


def _bindings(given: str | None) -> dict[str, Value]:
    found: Value = {} if given is None else _decoded(given)
    if not isinstance(found, dict):
        raise CannotStart("--context is not a JSON object of names and values")
    own: dict[str, Value] = {name: value for name, value in found.items() if name not in RESERVED}
    return {"ctx": own, "pipe": None, **found}


def _decoded(given: str) -> Value:
    text = _read(given[1:]) if given.startswith("@") else given
    try:
        return decode(text)
    except InvalidValue as error:
        raise CannotStart(f"--context is not JSON: {error}") from None


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
