"""The user's own shelf: playbooks and pipelines in the user's space, which have a name in every workspace.

They lie in `playbooks/` and `pipelines/` of the user's space and are named as those of a workspace. A document on the
shelf calls documents on the shelf and takes library prompts of the user's space, never those of the workspace in which
it runs: a cloned folder must not put its own text in the place of the user's. A document of a workspace does not see
the shelf.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.workspace.locate import Workspace

if TYPE_CHECKING:
    from quire.library.items import Entry, ItemType, SpaceName
    from quire.workspace.settings import Settings

SHELF: SpaceName = "user"
"""The space in which the shelf is; `user:NAME` means a document of it alone."""

KINDS: tuple[ItemType, ...] = ("pipeline", "playbook")


def shelf_settings(settings: Settings) -> Settings:
    """Return the settings with which the names in a document of the shelf are looked up."""
    return replace(settings, workspace=Workspace(settings.user), pipelines={}, prompt_folders=())


def shelf_entries(settings: Settings) -> dict[ItemType, list[Entry]]:
    """Return the documents on the shelf by kind; none if the workspace is the user's space itself, which has them
    already."""
    from quire.library.spaces import Spaces

    if os.path.realpath(settings.user) == os.path.realpath(settings.workspace.folder):
        return {kind: [] for kind in KINDS}
    spaces = Spaces(shelf_settings(settings))
    return {kind: [replace(entry, space=SHELF) for entry in spaces.entries(kind)] for kind in KINDS}
