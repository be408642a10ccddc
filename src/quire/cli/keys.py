"""`quire keys`: manage the keys that the user signs with."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.errors import CannotStart

if TYPE_CHECKING:
    from quire.trust.trusted_keys import Home

DEFAULT = "default"


@click.group("keys")
def command() -> None:
    """Manage your own keys, which quire sign signs with. They stay in your own space. WRITES that space only; FREE."""


@command.command("new")
@click.argument("name", default=DEFAULT)
@click.option("--keyring", is_flag=True, help="Keep the private key in the keyring of the system, not in a file.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def new(name: str, keyring: bool, as_json: bool) -> None:
    """Make a key and print its id. NAME is "default" unless you say otherwise. WRITES.

    The private key is in a file that only you can read, without a password. Documents that you sign are trusted here
    from now on; other people trust them once they have the text that quire keys export prints.
    """
    from quire.trust.keys import SigningKey
    from quire.trust.own_keys import keep

    note = keep(home_of_user(), SigningKey.generate(name), datetime.now(UTC), keyring=keyring)
    if as_json:
        click.echo(json.dumps({"name": note.name, "key_id": note.public.key_id, "private": note.fact("private")}))
        return
    click.echo(note.public.key_id)
    click.echo(f"made the key {note.name}; its private half is in {_where(note.fact('private'))}", err=True)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def list_(as_json: bool) -> None:
    """Show your keys. FREE."""
    from quire.display.tables import table
    from quire.display.trust_json import own_keys_data

    rows = own_keys_data(home_of_user())
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    cells = [
        [
            str(row["name"]),
            str(row["key_id"]),
            str(row["created"]),
            "revoked" if row["revoked"] else str(row["private"]),
        ]
        for row in rows
    ]
    for line in table(cells):
        click.echo(line)
    if not rows:
        click.echo("you have no key; make one with: quire keys new", err=True)


@command.command("export")
@click.argument("name", required=False)
@click.option("--pem", is_flag=True, help="Only the PEM text, without its name and id.")
@click.option("--private", is_flag=True, help="The private key. Everyone who has it can sign in your name.")
def export(name: str | None, pem: bool, private: bool) -> None:
    """Print a key: the public half, for others to trust. FREE.

    Other people add it with quire trust add FILE. A project requests it with a file in .ai/config/keys/trusted/.
    """
    from quire.trust.keys import KeyNote
    from quire.trust.own_keys import own_key, own_notes

    home = home_of_user()
    if private:
        click.echo("this is your private key: everyone who has it can sign in your name", err=True)
        click.echo(own_key(home, name).private_pem(), nl=False)
        return
    notes = own_notes(home)
    chosen = [note for note in notes if name in (note.name, note.public.key_id)] if name else notes
    if not name and len(notes) > 1:
        chosen = [note for note in notes if note.name == DEFAULT]
    if len(chosen) != 1:
        names = ", ".join(note.name for note in notes)
        if not names:
            raise CannotStart("you have no key; make one with: quire keys new")
        raise CannotStart(f"you have no key {name}; there are: {names}" if name else f"say which key: {names}")
    note = chosen[0]
    click.echo(note.public.pem if pem else KeyNote(note.public, note.name).toml(), nl=False)


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("name", default=DEFAULT)
@click.option("--keyring", is_flag=True, help="Keep it in the keyring of the system, not in a file.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def import_(file: Path, name: str, keyring: bool, as_json: bool) -> None:
    """Import a private Ed25519 key in PEM form, under a name. FILE is not removed. WRITES."""
    from quire.trust.keys import SigningKey
    from quire.trust.own_keys import keep
    from quire.trust.private_files import read_small

    key = SigningKey.of(name, read_small(file), str(file))
    note = keep(home_of_user(), key, datetime.now(UTC), keyring=keyring)
    if as_json:
        click.echo(json.dumps({"name": note.name, "key_id": note.public.key_id, "private": note.fact("private")}))
        return
    click.echo(note.public.key_id)
    click.echo(f"took in the key {note.name}; delete {file} if nothing else needs it", err=True)


@command.command("revoke")
@click.argument("key", metavar="NAME|KEYID")
@click.option("--reason", default="", metavar="TEXT", help="Written down beside it.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def revoke(key: str, reason: str, as_json: bool) -> None:
    """Never again accept a signature of a key: one of yours, or any key by its id. WRITES.

    This overrides all trust in the key and cannot be undone. Documents that it has signed need another signature.
    """
    from quire.trust import trusted_keys

    home = home_of_user()
    # An id needs no other file: a key can be revoked by its id even if those are damaged.
    ids = [key] if trusted_keys.KEY_ID.fullmatch(key) else _ids_of(home, key)
    if len(ids) > 1:
        raise CannotStart(f"several keys are named {key}: {', '.join(ids)}; name one by its id")
    key_id = ids[0] if ids else key
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    fresh = trusted_keys.revoke(home, key_id, {"revoked": stamp, "reason": reason})
    if as_json:
        click.echo(json.dumps({"key_id": key_id, "revoked": fresh}))
        return
    click.echo(f"the key {key_id} is revoked" if fresh else f"the key {key_id} was revoked already", err=True)


@command.command("seal")
@click.option("--keyring", "place", flag_value="keyring", help="Move it into the keyring of the system.")
@click.option("--file", "place", flag_value="file", help="Move it back into its file.")
@click.option("--print", "printed", is_flag=True, help="Print it, for the workers of a cluster.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def seal(place: str | None, printed: bool, as_json: bool) -> None:
    """Show the key that seals your runs: its id, and where it is. Made on first use. WRITES your own space only.

    A run goes on only under a seal of this key. Workers of a cluster, and all users who answer their runs, need the
    same one: print it here, and pass it to them as QUIRE_SEAL_KEY or in a file that QUIRE_SEAL_KEY_FILE names.
    """
    from quire.trust.seal import Seal, key_place, move_key, seal_key

    user = home_of_user().user
    if place:
        move_key(user, keyring=place == "keyring")
    text = seal_key(user)
    if printed:
        click.echo("this is the key that seals your runs: everyone who has it can forge them", err=True)
        click.echo(text)
        return
    found = {"key_id": Seal.of(text).key_id, "place": key_place(user)}
    if as_json:
        click.echo(json.dumps(found))
        return
    click.echo(found["key_id"])
    click.echo(f"your runs are sealed with the key in {found['place']}", err=True)


def _ids_of(home: Home, name: str) -> list[str]:
    from quire.trust.trusted_keys import TrustedKeys, meant

    return [one.key_id for one in meant(TrustedKeys.load(home).keys.values(), name)]


def home_of_user() -> Home:
    from quire.trust.trusted_keys import Home
    from quire.workspace.locate import user_space

    return Home(user_space())


def _where(private: str) -> str:
    return "the keyring" if private == "keyring" else "a file that only you can read"
