"""Prompt files that a playbook names and that are not there: a run of it would not start."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from quire.diagnostics import Diagnostic
from quire.formats.playbook.codes import lints
from quire.formats.playbook.facts import family
from quire.formats.playbook.lint import leaves_folder
from quire.formats.playbook.syntax import Playbook

HasFile = Callable[[str], bool]


def missing_prompt_files(playbook: Playbook, has_file: HasFile) -> Iterator[Diagnostic]:
    """A path with `{{name}}` is known only when its step is reached; one that leads out is found by the other lints."""
    for parent in playbook.steps:
        for step in family(parent):
            if step.prompt is None or not step.prompt.ref.startswith("file:"):
                continue
            path = step.prompt.ref.removeprefix("file:")
            if "{{" not in path and not leaves_folder(path) and not has_file(path.replace("\\", "/")):
                message = f"there is no file {path} beside the playbook"
                yield Diagnostic(lints.PROMPT_FILE, message, step.prompt.span, "refused when the run starts")
