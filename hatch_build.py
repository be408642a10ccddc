"""What the build adds: the commit and its day, and the line by which the MCP registry recognises the package.

Both come from outside the sources: from git, and from the repository that a release is made in.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

BUILD = "src/quire/_build.py"


class CustomBuildHook(BuildHookInterface[Any]):
    """Write `quire/_build.py` into wheel and sdist. A wheel that is built from an sdist takes over its file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or Path(self.root, BUILD).exists():
            return
        shown = subprocess.run(
            ["git", "show", "--no-patch", "--format=%H %cs", "HEAD"],  # noqa: S607
            cwd=self.root,
            capture_output=True,
            text=True,
        )
        if shown.returncode:
            return
        commit, date = shown.stdout.split()
        written = Path(tempfile.mkdtemp(prefix="quire-build-"), "_build.py")
        written.write_text(f'COMMIT = "{commit}"\nDATE = "{date}"\n', encoding="utf-8")
        build_data["force_include"][str(written)] = BUILD if self.target_name == "sdist" else "quire/_build.py"


class CustomMetadataHook(MetadataHookInterface):
    """Set the readme: the README, and in a release the name under which the registry lists the MCP server."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        repository = os.environ.get("GITHUB_REPOSITORY", "")
        if repository:
            text += f"\n<!-- mcp-name: io.github.{repository} -->\n"
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
