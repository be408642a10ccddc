"""`quire trust`: agree to the requests of a workspace, and manage the keys of others (`add`, `remove`, `list`)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.keys import home_of_user
from quire.display.text import one_line
from quire.display.visible import escaped
from quire.errors import CannotStart, Refused
from quire.workspace.locate import find_workspace

if TYPE_CHECKING:
    from quire.trust.trusted_keys import TrustedKey
    from quire.workspace.settings import Settings


# PEM text begins with hyphens but is not an option.
_TAKES_PEM = {"ignore_unknown_options": True}
_REQUESTED = ".ai/config/keys/trusted"


@click.command("add", context_settings=_TAKES_PEM)
@click.argument("key", metavar="FILE|KEYID|PEM", required=False)
@click.option(
    "--from", "signed", metavar="FILE", type=click.Path(path_type=Path), help="The key that signed this file."
)
@click.option("--name", default="", help="What you call its owner.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def add(context: click.Context, key: str | None, signed: Path | None, name: str, as_json: bool) -> None:
    """Trust the signatures of a key from now on. WRITES.

    A key is given as a file (TOML as quire keys export prints it, or PEM; - for standard input), as the PEM text
    itself, or as the id of a key that this project brings in .ai/config/keys/trusted/. --from FILE takes the one of
    the project's keys that has signed FILE, if its signature is valid. Ask the owner whether the id is right: Quire
    cannot tell.
    """
    from quire.trust.trusted_keys import add_trust

    if (key is None) == (signed is None):
        raise click.UsageError("name a key, or a file that it signed with --from", context)
    found = _signer(signed) if signed else _named(str(key))
    if name:
        from quire.trust.trusted_keys import TrustedKey

        found = TrustedKey(found.public, name)
    fresh = add_trust(home_of_user(), found)
    if as_json:
        click.echo(json.dumps({"key_id": found.key_id, "name": found.name, "added": fresh}))
        return
    click.echo(found.key_id)
    click.echo(f"{found.name or 'the key'} is trusted" if fresh else "it was trusted already", err=True)


@click.command("remove")
@click.argument("key", metavar="KEYID|NAME")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def remove(key: str, as_json: bool) -> None:
    """Take back the trust in another person's key. Your own are revoked: see quire keys revoke. WRITES."""
    from quire.trust.trusted_keys import TrustedKeys, meant, remove_trust

    home = home_of_user()
    known = meant(TrustedKeys.load(home).keys.values(), key)
    added = [one for one in known if one.origin == "added"]
    if len(added) > 1:
        raise CannotStart(f"several keys are named {key}: {', '.join(one.key_id for one in added)}; name one by its id")
    if not added and known:
        raise CannotStart(f"{key} is your own key; if it must not count any more: quire keys revoke {key}")
    if not added or not remove_trust(home, added[0].key_id):
        raise CannotStart(f"no trusted key is {key}; see quire trust list")
    if as_json:
        click.echo(json.dumps({"key_id": added[0].key_id, "removed": True}))
        return
    click.echo(f"{added[0].key_id} is not trusted any more", err=True)


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def list_(as_json: bool) -> None:
    """Show the keys that you trust, those that are revoked, and those that this project asks for. FREE."""
    from quire.display.tables import table
    from quire.display.trust_json import key_rows

    rows = key_rows(home_of_user(), find_workspace(Path.cwd()).folder)
    if as_json:
        click.echo(
            json.dumps([{"key_id": key_id, "state": state, "name": name} for key_id, state, name in rows], indent=2)
        )
        return
    for line in table(rows):
        click.echo(line)
    if not rows:
        click.echo("no key is trusted; make your own with: quire keys new", err=True)
    if any(state == "requested" for _, state, _ in rows):
        click.echo("requested keys count for nothing until you agree: quire trust add KEYID", err=True)


def _named(key: str) -> TrustedKey:
    from quire.trust.keys import read_note
    from quire.trust.private_files import MAX_KEY_BYTES, read_small
    from quire.trust.trusted_keys import KEY_ID, TrustedKey

    if key.lstrip().startswith("-----BEGIN"):
        note = read_note(key, "the text")
    elif key == "-":
        note = read_note(sys.stdin.read(MAX_KEY_BYTES), "what was given")
    elif KEY_ID.fullmatch(key):
        # Never read a file of that name, which anybody could have put here: such a file is written ./NAME.
        found = next((one for one in _requested() if one.key_id == key), None)
        if found is None:
            raise CannotStart(
                f"this project brings no key {key} in {_REQUESTED}/; ask its owner for the file that `quire keys "
                "export` prints, then: quire trust add FILE"
            )
        return TrustedKey(found.public, found.name)
    else:
        note = read_note(read_small(Path(key)), key)
    return TrustedKey(note.public, note.name)


def _signer(path: Path) -> TrustedKey:
    """Return the key that signed a file, from the keys that the project brings: a signature line contains only the
    key's id."""
    from quire.source import read_source
    from quire.trust.sign_file import signable
    from quire.trust.signatures import key_of
    from quire.trust.trusted_keys import TrustedKeys
    from quire.workspace.locate import find_workspace

    item = signable(path, find_workspace(path).folder)
    text = read_source(path).text
    key_id = key_of(text, item.syntax)
    if key_id is None:
        raise Refused(item.verify(text, TrustedKeys()).message)
    key = _named(key_id)
    verdict = item.verify(text, TrustedKeys.of([key]))
    if not verdict.ok:
        raise Refused(verdict.message)
    return key


def _requested() -> list[TrustedKey]:
    from quire.trust.trusted_keys import requested_keys
    from quire.workspace.locate import find_workspace

    return requested_keys(find_workspace(Path.cwd()).folder)


@click.group("trust")
def command() -> None:
    """Agree to the requests of a workspace's files, and to the keys of others. WRITES your own space only."""


for one in (add, remove, list_):
    command.add_command(one)


@command.command("workspace")
@click.option("--yes", is_flag=True, help="Agree without being asked.")
@click.option("--show", is_flag=True, help="Only show what is asked for.")
@click.option("--revoke", is_flag=True, help="Take an agreement back.")
@click.option("--json", "as_json", is_flag=True, help="For machines; asks nothing.")
@click.pass_context
def workspace(context: click.Context, yes: bool, show: bool, revoke: bool, as_json: bool) -> None:
    """Show what this workspace requests, and agree to it or not.

    Commands of .mcp.json, tools, Python modules, addresses of models: none of these is used before you agree, and
    after any change you are asked again. FREE: starts nothing, opens no connection.
    """
    from quire.workspace import consent as asked
    from quire.workspace.configuration import load_settings

    if yes + show + revoke > 1:
        raise click.UsageError("--yes, --show and --revoke exclude each other")
    settings = load_settings(find_workspace(Path.cwd()))
    if revoke:
        asked.revoke(settings)
    elif yes and asked.requests(settings):
        asked.confirm(settings)
    if as_json:
        _print_json(settings)
    else:
        _print_requests(settings)
    if revoke or show or asked.is_trusted(settings):
        return
    if not as_json and ask_to_trust(settings):
        click.echo("agreed; any change asks again", err=True)
        return
    if not as_json:
        click.echo("not agreed: `quire trust workspace --yes` agrees without asking", err=True)
    context.exit(Refused.exit_code)


def ask_to_trust(settings: Settings) -> bool:
    """Ask the user at the terminal whether the requests may be granted; return False if there is no terminal.

    The caller has shown the requests. An agreement is stored.
    """
    import asyncio

    from quire.cli.trust_prompt import yes_or_no
    from quire.workspace.consent import changes, confirm

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    if changed := changes(settings):
        click.echo("since you agreed:", err=True)
        for line in changed:
            click.echo(f"  {one_line(line)}", err=True)
    if not asyncio.run(yes_or_no("Do you trust this workspace with all of that? yes or no [no]: ")):
        return False
    confirm(settings)
    return True


def _print_requests(settings: Settings) -> None:
    from quire.workspace.consent import is_trusted, requests

    lines = requests(settings)
    for line in lines:
        click.echo(one_line(line))
    if not lines:
        click.echo(f"{settings.workspace.folder} asks for nothing that needs trust", err=True)
    else:
        state = "you agreed to this" if is_trusted(settings) else "asks for the above"
        click.echo(f"{settings.workspace.folder}: {state}", err=True)


def _print_json(settings: Settings) -> None:
    from quire.display.trust_json import workspace_requests

    state = workspace_requests(settings)
    click.echo(escaped(json.dumps(state, indent=2, ensure_ascii=False)))
