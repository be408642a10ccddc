"""`quire show --can`: tell whether a document may do something, and why."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct
from msgspec.structs import replace

from quire.cli.completers import complete_document
from quire.cli.options import require_known
from quire.cli.stdio import tell, write_json
from quire.errors import Denied, Refused
from quire.trust.capabilities import ACTIONS, ITEM_TYPES, Grants, Primary, capability, grant_for, pattern_for

if TYPE_CHECKING:
    from quire.library.document import Document
    from quire.workspace.settings import Settings


class Permission(Struct, frozen=True):
    """The permission that the user asks about. An id with `*` asks about everything that it matches, as a whole."""

    action: Primary
    item_type: str
    item_id: str

    @property
    def whole(self) -> bool:
        return "*" in self.item_id

    @property
    def needed(self) -> str:
        if self.whole:
            return pattern_for(self.action, self.item_type, self.item_id)
        return capability(self.action, self.item_type, self.item_id)

    def allowed_by(self, grants: Grants) -> bool:
        if not self.whole:
            return grants.allows(self.action, self.item_type, self.item_id)
        any_of_it = self.item_id.replace("*", "x")
        return grants.includes(self.needed) or Grants().allows(self.action, self.item_type, any_of_it)

    def touched_by(self, denied: Grants) -> bool:
        """Return True if any part of it is denied."""
        return bool(denied.narrow(Grants.of([self.needed])).patterns) if self.whole else denied.covers(self.needed)

    def granted_of(self, grants: Grants) -> str:
        """Describe the part of a pattern that is granted."""
        patterns = sorted(grants.narrow(Grants.of([self.needed])).patterns) if self.whole else []
        return f"; granted of it: {', '.join(patterns)}" if patterns else ""


class Ruling(Struct, frozen=True):
    """The answer to a question about a permission."""

    allowed: bool
    why: str
    grant: str = ""
    """The grant that covers it; empty if none does."""
    origin: str = ""
    """Where that grant is written; empty if there is none."""
    notes: tuple[str, ...] = ()


@click.command("can")
@click.argument("document", metavar="DOC", shell_complete=complete_document)
@click.argument("action", type=click.Choice(ACTIONS))
@click.argument("item_type", metavar="TYPE", type=click.Choice(ITEM_TYPES))
@click.argument("item_id", metavar="[ID]", default="")
@click.option("--allow", metavar="TOOL", multiple=True, help="As if this were granted to a playbook or a pipeline.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def command(
    context: click.Context,
    document: str,
    action: Primary,
    item_type: str,
    item_id: str,
    allow: tuple[str, ...],
    as_json: bool,
) -> None:
    """Tell whether a document may do something, and why.

    TYPE is tool, directive, knowledge, pipeline, playbook or prompt. Without an ID the question is about a search among
    all items of that type. Exit 0 when it may, 6 when it may not.
    """
    from quire.display.text import one_line
    from quire.library.lookup import document_of
    from quire.workspace.configuration import settings_here
    from quire.workspace.grants import denied_tools

    read = document_of(document)
    plan = read.runnable()
    settings = settings_here()
    if item_type == "tool" and item_id.startswith("rye."):
        item_id = item_id.replace(".", "/")  # as permissions spell it
    permission = Permission(action, item_type, item_id)
    if plan.thread:
        if allow:
            raise click.UsageError(
                "--allow is for playbooks and pipelines: a directive is granted what it is signed with"
            )
        ruling = _directive(read, settings, permission)
    else:
        require_known(allow, settings)
        ruling = _by_default(settings, allow, permission)
    if ruling.allowed and permission.touched_by(denied_tools(settings)):
        taken = "[tools] deny in your own quire.toml, or in that of the workspace, takes it away from everybody"
        taken = taken.replace("takes it", "takes some of it") if permission.whole else taken
        ruling = replace(ruling, allowed=False, why=f"{ruling.why}, but {taken}")
    if as_json:
        write_json(
            {
                "document": read.name,
                "capability": permission.needed,
                "allowed": ruling.allowed,
                "covered_by": ruling.grant or None,
                "from": ruling.origin or None,
                "why": ruling.why,
                "notes": list(ruling.notes),
            }
        )
    else:
        tell(f"{'allow' if ruling.allowed else 'deny'}: {one_line(ruling.why)}", sys.stdout)
        for note in ruling.notes:
            tell(f"note: {one_line(note)}")
    context.exit(0 if ruling.allowed else Refused.exit_code)


def _directive(document: Document, settings: Settings, permission: Permission) -> Ruling:
    from quire.display.turns import element_for
    from quire.library.library import Library
    from quire.library.survey import survey
    from quire.trust.sign_file import typed_path

    surveyed = survey(Library(settings), os.environ, document, {})
    needed = permission.needed
    # Problems that keep the directive from starting with any grants.
    unsigned = surveyed.files if settings.trust.mode == "require" else ()
    notes = tuple(file.message for file in unsigned if file.message)
    if permission.allowed_by(Grants()):
        return Ruling(True, f"{needed} is always allowed to a thread", notes=notes)
    for granted in surveyed.capabilities:
        if permission.allowed_by(Grants.of([granted.capability])):
            origin = f"{typed_path(Path(granted.path))}:{granted.line}"
            ruling = Ruling(
                True, f"{needed} is covered by {granted.capability} at {origin}", granted.capability, origin, notes
            )
            if granted.tier == "unrestricted" and not granted.acknowledged:
                why = f"{ruling.why}, but that risk is not acknowledged, so the directive does not start"
                return replace(ruling, allowed=False, why=why)
            return ruling
    file = typed_path(Path(document.name))
    place = f"{file}, which has no permissions"
    if surveyed.capabilities:
        first = surveyed.capabilities[0]
        file = typed_path(Path(first.path))
        place = f"the permissions at {file}:{first.line}"
    place += permission.granted_of(Grants.of(granted.capability for granted in surveyed.capabilities))
    how = f"write {element_for(needed)} there and sign it: quire sign {file}"
    return Ruling(False, f"{needed} is not covered by {place}; to grant it, {how}", notes=notes)


def _by_default(settings: Settings, allow: tuple[str, ...], permission: Permission) -> Ruling:
    from quire.workspace.grants import default_grants

    grants, needed = default_grants(settings, allow), permission.needed
    for pattern in sorted(grants.patterns):
        if permission.allowed_by(Grants.of([pattern])):
            origin = _granted_by(pattern, settings, allow)
            return Ruling(True, f"{needed} is covered by {pattern} ({origin})", pattern, origin)
    if permission.whole:
        how = f"grant it with --allow {needed}, or under [tools] allow in the quire.toml of your user folder"
        return Ruling(False, f"{needed} is not granted as a whole{permission.granted_of(grants)}; {how}")
    try:
        grants.require(permission.action, permission.item_type, permission.item_id)
    except Denied as error:
        return Ruling(False, str(error).removeprefix("permission denied: "))
    return Ruling(True, f"{needed} is always allowed")


def _granted_by(pattern: str, settings: Settings, allow: tuple[str, ...]) -> str:
    for names, whose in (
        (allow, "--allow"),
        (settings.granted, f"[tools] allow in {settings.user / 'quire.toml'}"),
        (settings.tools.allow, "[tools] allow of the workspace, which you have agreed to"),
    ):
        if any(grant_for(name) == pattern for name in names):
            return whose
    if pattern.startswith(("rye.execute.tool.mcp.", "rye.fetch.prompt.mcp.", "rye.execute.tool.python.")):
        return "the workspace, which you have agreed to"
    return "on by default"
