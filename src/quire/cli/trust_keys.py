"""`quire trust add|remove|list`: whose signatures count besides your own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.keys import home_of_user
from quire.errors import CannotStart, Refused

if TYPE_CHECKING:
    from quire.trust.trusted import TrustedKey

# PEM begins with hyphens, and is no option all the same.
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
    """Trust what a key has signed, from now on. WRITES.

    A key is a file with it (TOML as quire keys export prints it, or PEM; - for standard input), the PEM text itself, or
    the id of a key that this project brings in .ai/config/keys/trusted/. --from FILE takes the one of the project's
    keys that has signed FILE, if its signature holds. Ask the owner whether the id is right: nothing here can tell.
    """
    from quire.trust.trusted import add_trust

    if (key is None) == (signed is None):
        raise click.UsageError("name a key, or a file that it signed with --from", context)
    found = _signer(signed) if signed else _named(str(key))
    if name:
        from quire.trust.trusted import TrustedKey

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
    """Take back the trust in a key of somebody else's. Your own are revoked: see quire keys revoke. WRITES."""
    from quire.trust.trusted import TrustedKeys, meant, remove_trust

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
    from quire.render.tables import table
    from quire.trust.trusted import TrustedKeys

    trusted = TrustedKeys.load(home_of_user())
    rows = [(one.key_id, _state(one, trusted.revoked), one.name) for one in trusted.keys.values()]
    rows += [(key_id, "revoked", "") for key_id in sorted(trusted.revoked) if key_id not in trusted.keys]
    rows += [
        (one.key_id, "requested", one.name)
        for one in _requested()
        if one.key_id not in trusted.keys and one.key_id not in trusted.revoked
    ]
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
    from quire.trust.files import MAX_KEY_BYTES, read_small
    from quire.trust.keys import read_note
    from quire.trust.trusted import KEY_ID, TrustedKey

    if key.lstrip().startswith("-----BEGIN"):
        note = read_note(key, "the text")
    elif key == "-":
        note = read_note(sys.stdin.read(MAX_KEY_BYTES), "what was given")
    elif KEY_ID.fullmatch(key):
        # Never a file of that name, which anybody could have put here: a file is written ./NAME then.
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
    """The key that signed a file, out of those that the project brings: a signature line only has the id of its key."""
    from quire.source import read_source
    from quire.trust.signable import signable
    from quire.trust.signing import key_of
    from quire.trust.trusted import TrustedKeys
    from quire.workspace.find import find_workspace

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
    from quire.trust.trusted import requested_keys
    from quire.workspace.find import find_workspace

    return requested_keys(find_workspace(Path.cwd()).folder)


def _state(key: TrustedKey, revoked: frozenset[str]) -> str:
    return "revoked" if key.key_id in revoked else "own" if key.origin == "own" else "trusted"
