"""Print the messages that a model gets at a step: `show --prompt` and `runs --prompt`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quire.cli.stdio import write_json, write_text

if TYPE_CHECKING:
    from quire.engine.interpreter.preview import Preview


def print_prompt(preview: Preview, as_json: bool) -> None:
    from quire.display.text import one_line
    from quire.display.transcript import prompt_data, prompt_text

    for note in preview.notes:
        click.echo(f"note: {one_line(note)}", err=True)
    if as_json:
        write_json(prompt_data(preview.request))
    else:
        write_text(prompt_text(preview.request))
