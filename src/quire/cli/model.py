"""`quire model`: manage model files that run on this machine."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec

import click

from quire.cli.stdio import tell
from quire.models.downloads import (
    KNOWN,
    Report,
    models_folder,
    preferred_model,
    pull_model,
    pulled_models,
    remove_model,
)


@click.group("model")
def command() -> None:
    """Models that run on this machine, without a key."""


@command.command("pull")
@click.argument("name", metavar="NAME|URL")
@click.option("--sha256", metavar="HEX", help="The sha256 of the file of a URL.")
def pull(name: str, sha256: str | None) -> None:
    """Download a model file and print its path. WRITES.

    NAME is smollm2 or qwen2.5-coder-1.5b; a URL of any GGUF file needs --sha256.
    """
    path = pull_model(name, sha256=sha256, report=_progress(name))
    if sys.stderr.isatty():
        click.echo(err=True)
    click.echo(str(path))
    tell(f"use it with --model local:{path.stem}")


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def list_(as_json: bool) -> None:
    """Show the downloaded models. FREE."""
    first = preferred_model()
    rows = [
        {
            "name": model.name,
            "size": model.size,
            "path": str(model.path),
            "used_by": f"--model local:{model.name}"
            + (", and runs that find no other model" if first is not None and model.name == first.name else ""),
        }
        for model in pulled_models()
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        click.echo(f"{row['name']}\t{_megabytes(row['size'])}\t{row['path']}\t{row['used_by']}")
    if not rows:
        names = ", ".join(KNOWN)
        tell(f"no model in {models_folder()}: `quire model pull NAME` fetches one of {names}")


@command.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Delete a downloaded model. WRITES."""
    tell(f"removed {remove_model(name)}")


_NOTES = {"qwen2.5-coder-1.5b": "follows instructions", "smollm2": "a toy"}


def offer_models() -> bool:
    """Ask on the terminal which model to download, and download it. Return False if the user chooses a provider's key,
    or if this installation cannot run a local model."""
    if find_spec("xllamacpp") is None:
        return False
    import asyncio

    from quire.cli.terminal import typed_line
    from quire.display.keyboard import drop_typed

    names = list(KNOWN)
    tell("no model is configured. Download one, or use the key of a provider?")
    for number, name in enumerate(names, 1):
        size = KNOWN[name].size
        shown = f"{size / 1e9:.1f} GB" if size >= 1e9 else _megabytes(size)
        tell(f"  {number}. {name}, {shown}, {_NOTES.get(name, KNOWN[name].about)}")
    last = len(names) + 1
    tell(f"  {last}. a provider's key")
    numbers = [str(number) for number in range(1, last + 1)]
    answer = None
    while answer not in numbers:
        if answer:
            tell(f"answer one of {', '.join(numbers)}")
        drop_typed()
        answer = (asyncio.run(typed_line(f"a number [{last}]: ", tuple(numbers))) or "").strip() or str(last)
    if answer == str(last):
        return False
    name = names[int(answer) - 1]
    pull_model(name, report=_progress(name))
    click.echo(err=True)
    return True


def _progress(name: str) -> Report:
    """Return a progress reporter: one rewritten line on a terminal, otherwise one line per quarter."""
    from quire.display.text import terminal_columns

    last = -1
    live = sys.stderr.isatty()

    def report(so_far: int, total: int | None) -> None:
        nonlocal last
        step = (so_far * (100 if live else 4) // total) if total else so_far // (1 << 24)
        if step == last:
            return
        last = step
        of = f" of {_megabytes(total)}" if total else ""
        line = f"{name}: {_megabytes(so_far)}{of}"
        shown = f"\r{line[1 - terminal_columns(sys.stderr) :]}" if live else f"fetching {line}"
        click.echo(shown, nl=not live, err=True)

    return report


def _megabytes(size: object) -> str:
    return f"{size / 1e6:.0f} MB" if isinstance(size, int) else "?"
