"""`quire show` for a directive: its outline, or the exact messages of its first call."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from quire.cli.inputs import given_inputs
from quire.cli.stdio import put_json, put_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quire.library.document import Document


def show_directive(document: Document, prompt_inputs: Sequence[str] | None, as_json: bool) -> None:
    """Print the outline, or the messages if `prompt_inputs`, the values of `-i`, is not None."""
    from quire.display.outline import foreseen_data
    from quire.display.outline_directive import directive_data, directive_outline
    from quire.library.foresight import foreseen
    from quire.library.survey import survey
    from quire.workspace.configuration import load_settings
    from quire.workspace.locate import find_workspace

    settings = load_settings(find_workspace(Path.cwd()))
    given = given_inputs(prompt_inputs or (), None)
    seen = survey(settings, os.environ, document, given)
    if prompt_inputs is None:
        if as_json:
            put_json(
                {"document": document.name, **directive_data(seen), **foreseen_data(*foreseen(document.runnable()))}
            )
        else:
            put_lines(directive_outline(seen))
        return
    from quire.cli.show_prompt import print_prompt
    from quire.engine.conversation import Message
    from quire.engine.interpreter.preview import Preview
    from quire.engine.requests import ModelRequest

    notes = [f"no value for {name}: its name in brackets stands for it (-i {name}=…)" for name in seen.missing]
    notes += seen.composed.warnings
    request = ModelRequest(
        "thread/turn[1]/model", "turn 1", seen.composed.system, (Message("user", seen.composed.message),)
    )
    print_prompt(Preview(request, tuple(notes)), as_json)
