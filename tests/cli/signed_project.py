"""A small project with one file of each kind that can be signed."""

from __future__ import annotations

from pathlib import Path

from tests.directives import directive
from tests.given import given

DIRECTIVE = directive(
    "greet",
    "<execute><tool>rye.file-system.*</tool></execute>",
    '<process><step name="one">Say hello.</step></process>',
)
FILES = {
    ".ai/directives/demo/greet.md": DIRECTIVE,
    ".ai/knowledge/demo/terms.md": "```yaml\nname: terms\ntitle: T\nversion: 1.0.0\nentry_type: note\n```\nBody\n",
    "page.playbook.md": "# T\n\n## STEP 1: A\n\nx\n",
    "pipelines/p.yaml": 'pipeline: p\nsteps:\n  - transform: {value: "1"}\n',
}


def write_project(folder: Path) -> None:
    given(FILES, folder)
    given({"notes.md": "# Not a document\n", ".ai/config/x.yaml": "a: 1\n"}, folder)
