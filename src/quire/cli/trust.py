"""`quire trust`: agree to the requests of a workspace, and manage the keys of others (`add`, `remove`, `list`).

`quire trust keys`: manage the keys that the user signs with.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quire.cli.stdio import tell
from quire.display.text import one_line
from quire.display.visible import escaped
from quire.errors import CannotStart, Refused
from quire.workspace.locate import find_workspace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from quire.trust.keys import KeyNote
    from quire.trust.trusted_keys import Home, TrustedKey
    from quire.workspace.settings import Settings


# PEM text begins with hyphens but is not an option.
_TAKES_PEM = {"ignore_unknown_options": True}
_REQUESTED = ".ai/config/keys/trusted"


@click.command("add", context_settings=_TAKES_PEM)
@click.argument("key", metavar="FILE|KEYID|PEM", required=False)
@click.option(
    "--from", "signed", metavar="FILE", type=click.Path(path_type=Path), help="The key that signed this file."
)
@click.option("--name", default="", help="The name of its owner.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def add(context: click.Context, key: str | None, signed: Path | None, name: str, as_json: bool) -> None:
    """Trust the signatures of a key from now on. WRITES.

    A key is given as a file (TOML as quire trust keys export prints it, or PEM; - for standard input), as the PEM text
    itself, or as the id of a key that this project brings in .ai/config/keys/trusted/. --from FILE takes the one of
    the project's keys that has signed FILE, if its signature is valid. Ask the owner whether the id is right: Quire
    cannot tell.
    """
    from quire.trust.trusted_keys import add_trust

    if (key is None) == (signed is None):
        raise click.UsageError("name a key, or a file that it signed with --from", context)
    added = _signer(signed) if signed else _named(str(key))
    if name:
        from quire.trust.trusted_keys import TrustedKey

        added = TrustedKey(added.public, name)
    fresh = add_trust(home_of_user(), added)
    message = f"{added.name or 'the key'} is trusted" if fresh else "it was trusted already"
    _print_key({"key_id": added.key_id, "name": added.name, "added": fresh}, message, as_json)


@click.command("remove")
@click.argument("key", metavar="KEYID|NAME")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def remove(key: str, as_json: bool) -> None:
    """Take back the trust in another person's key. Your own are revoked: see quire trust keys revoke. WRITES."""
    from quire.trust.trusted_keys import TrustedKeys, meant, remove_trust

    home = home_of_user()
    keys = meant(TrustedKeys.load(home).keys.values(), key)
    added = [trusted for trusted in keys if trusted.origin == "added"]
    if len(added) > 1:
        raise _several(key, [trusted.key_id for trusted in added])
    if not added and keys:
        raise CannotStart(f"{key} is your own key; if it must not count any more: quire trust keys revoke {key}")
    if not added or not remove_trust(home, added[0].key_id):
        raise CannotStart(f"no trusted key is {key}; see quire trust list")
    if as_json:
        click.echo(json.dumps({"key_id": added[0].key_id, "removed": True}))
        return
    tell(f"{added[0].key_id} is not trusted any more")


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def list_trusted_keys(as_json: bool) -> None:
    """Show the keys that you trust, those that are revoked, and those that this project asks for. FREE."""
    from quire.display.text import table
    from quire.display.workspace_json import key_rows

    rows = key_rows(home_of_user(), find_workspace(Path.cwd()).folder)
    if as_json:
        click.echo(
            json.dumps([{"key_id": key_id, "state": state, "name": name} for key_id, state, name in rows], indent=2)
        )
        return
    for line in table(rows):
        click.echo(line)
    if not rows:
        tell("no key is trusted; make your own with: quire trust keys new")
    if any(state == "requested" for _, state, _ in rows):
        tell("requested keys count for nothing until you agree: quire trust add KEYID")


def _named(key: str) -> TrustedKey:
    from quire.trust.keys import read_note
    from quire.trust.private_files import MAX_KEY_BYTES, read_small
    from quire.trust.trusted_keys import KEY_ID, TrustedKey, requested_keys

    if key.lstrip().startswith("-----BEGIN"):
        note = read_note(key, "the text")
    elif key == "-":
        note = read_note(sys.stdin.read(MAX_KEY_BYTES), "standard input")
    elif KEY_ID.fullmatch(key):
        # Never read a file of that name, which anybody could have put here: such a file is written ./NAME.
        requested = requested_keys(find_workspace(Path.cwd()).folder)
        meant = next((trusted for trusted in requested if trusted.key_id == key), None)
        if meant is None:
            raise CannotStart(
                f"this project brings no key {key} in {_REQUESTED}/; ask its owner for the file that `quire trust keys "
                "export` prints, then: quire trust add FILE"
            )
        return TrustedKey(meant.public, meant.name)
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


@click.group("trust")
def trust_command() -> None:
    """Approve the requests of a folder's files, and manage keys. WRITES your user folder only."""


for verb in (add, remove, list_trusted_keys):
    trust_command.add_command(verb)


@trust_command.command("workspace")
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
    from quire.workspace import consent
    from quire.workspace.configuration import load_settings

    if yes + show + revoke > 1:
        raise click.UsageError("--yes, --show and --revoke exclude each other")
    settings = load_settings(find_workspace(Path.cwd()))
    if revoke:
        consent.revoke(settings)
    elif yes and consent.requests(settings):
        consent.confirm(settings)
    if as_json:
        from quire.display.workspace_json import workspace_requests

        click.echo(escaped(json.dumps(workspace_requests(settings), indent=2, ensure_ascii=False)))
    else:
        _print_requests(settings)
    if revoke or show or consent.is_trusted(settings):
        return
    if not as_json and ask_to_trust(settings):
        tell("agreed; any change asks again")
        return
    if not as_json:
        tell("not agreed: `quire trust workspace --yes` agrees without asking")
    context.exit(Refused.exit_code)


def ask_to_trust(settings: Settings) -> bool:
    """Ask the user at the terminal whether the requests may be granted; return False if there is no terminal.

    The caller has shown the requests. An agreement is stored.
    """
    from quire.cli.terminal import yes_or_no
    from quire.workspace.consent import changes, confirm

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    if changed := changes(settings):
        tell("since you agreed:")
        for line in changed:
            tell(f"  {one_line(line)}")
    if not yes_or_no("Do you trust this workspace with all of that? yes or no [no]: "):
        return False
    confirm(settings)
    return True


def _print_requests(settings: Settings) -> None:
    from quire.workspace.consent import is_trusted, requests

    lines = requests(settings)
    for line in lines:
        click.echo(one_line(line))
    if not lines:
        tell(f"{settings.workspace.folder} asks for nothing that needs trust")
    else:
        state = "you agreed to this" if is_trusted(settings) else "asks for the above"
        tell(f"{settings.workspace.folder}: {state}")


DEFAULT = "default"


@click.group("keys")
def keys_command() -> None:
    """Manage your own keys, which `quire sign` signs with. WRITES your user folder only."""


@keys_command.command("new")
@click.argument("name", default=DEFAULT)
@click.option("--keyring", is_flag=True, help="Keep the private key in the keyring of the system, not in a file.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def new(name: str, keyring: bool, as_json: bool) -> None:
    """Make a key and print its id. NAME is "default" unless you say otherwise. WRITES.

    The private key is in a file that only you can read, without a password. Documents that you sign are trusted here
    from now on; other people trust them once they have the text that quire trust keys export prints.
    """
    from quire.trust.keys import SigningKey
    from quire.trust.trusted_keys import keep

    note = keep(home_of_user(), SigningKey.generate(name), datetime.now(UTC), keyring=keyring)
    place = "the keyring" if note.fact("private") == "keyring" else "a file that only you can read"
    _print_key(_data(note), f"made the key {note.name}; its private half is in {place}", as_json)


@keys_command.command("list")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def list_own_keys(as_json: bool) -> None:
    """Show your keys. FREE."""
    from quire.display.text import table
    from quire.display.workspace_json import own_keys_data

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
        tell("you have no key; make one with: quire trust keys new")


@keys_command.command("export")
@click.argument("name", required=False)
@click.option("--pem", is_flag=True, help="Only the PEM text, without its name and id.")
@click.option("--private", is_flag=True, help="The private key. Everyone who has it can sign in your name.")
def export(name: str | None, pem: bool, private: bool) -> None:
    """Print a key: the public half, for others to trust. FREE.

    Other people add it with quire trust add FILE. A project requests it with a file in .ai/config/keys/trusted/.
    """
    from quire.trust.keys import KeyNote
    from quire.trust.trusted_keys import own_key, own_notes

    home = home_of_user()
    if private:
        tell("this is your private key: everyone who has it can sign in your name")
        click.echo(own_key(home, name).private_pem(), nl=False)
        return
    notes = own_notes(home)
    chosen = [note for note in notes if name in (note.name, note.public.key_id)] if name else notes
    if not name and len(notes) > 1:
        chosen = [note for note in notes if note.name == DEFAULT]
    if len(chosen) != 1:
        names = ", ".join(note.name for note in notes)
        if not names:
            raise CannotStart("you have no key; make one with: quire trust keys new")
        raise CannotStart(f"you have no key {name}; there are: {names}" if name else f"say which key: {names}")
    note = chosen[0]
    click.echo(note.public.pem if pem else KeyNote(note.public, note.name).toml(), nl=False)


@keys_command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("name", default=DEFAULT)
@click.option("--keyring", is_flag=True, help="Keep it in the keyring of the system, not in a file.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def import_(file: Path, name: str, keyring: bool, as_json: bool) -> None:
    """Import a private Ed25519 key in PEM form, under a name. FILE is not removed. WRITES."""
    from quire.trust.keys import SigningKey
    from quire.trust.private_files import read_small
    from quire.trust.trusted_keys import keep

    key = SigningKey.of(name, read_small(file), str(file))
    note = keep(home_of_user(), key, datetime.now(UTC), keyring=keyring)
    _print_key(_data(note), f"took in the key {note.name}; delete {file} if nothing else needs it", as_json)


@keys_command.command("revoke")
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
    key_id = key
    if not trusted_keys.KEY_ID.fullmatch(key):
        named = trusted_keys.meant(trusted_keys.TrustedKeys.load(home).keys.values(), key)
        if len(named) > 1:
            raise _several(key, [trusted.key_id for trusted in named])
        key_id = named[0].key_id if named else key
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    fresh = trusted_keys.revoke(home, key_id, {"revoked": stamp, "reason": reason})
    if as_json:
        click.echo(json.dumps({"key_id": key_id, "revoked": fresh}))
        return
    tell(f"the key {key_id} is revoked" if fresh else f"the key {key_id} was revoked already")


@keys_command.command("seal")
@click.option("--keyring", "place", flag_value="keyring", help="Move it into the keyring of the system.")
@click.option("--file", "place", flag_value="file", help="Move it back into its file.")
@click.option("--print", "printed", is_flag=True, help="Print it, for the workers of a cluster.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def seal(place: str | None, printed: bool, as_json: bool) -> None:
    """Show the key that seals your runs: its id, and where it is. Made on first use. WRITES your user folder only.

    A run continues only under a seal of this key. Workers of a cluster, and all users who answer their runs, need the
    same one: print it here, and pass it to them as QUIRE_SEAL_KEY or in a file that QUIRE_SEAL_KEY_FILE names.
    """
    from quire.trust.seal import Seal, key_place, move_key, seal_key

    user = home_of_user().user
    if place:
        move_key(user, keyring=place == "keyring")
    text = seal_key(user)
    if printed:
        tell("this is the key that seals your runs: everyone who has it can forge them")
        click.echo(text)
        return
    data: dict[str, object] = {"key_id": Seal.of(text).key_id, "place": key_place(user)}
    _print_key(data, f"your runs are sealed with the key in {data['place']}", as_json)


def _data(note: KeyNote) -> dict[str, object]:
    return {"name": note.name, "key_id": note.public.key_id, "private": note.fact("private")}


def _print_key(data: Mapping[str, object], message: str, as_json: bool) -> None:
    """Print the id of a key, and on stderr the change that was made; or the data, for machines."""
    if as_json:
        click.echo(json.dumps(data))
        return
    click.echo(data["key_id"])
    tell(message)


def _several(name: str, ids: Sequence[str]) -> CannotStart:
    return CannotStart(f"several keys are named {name}: {', '.join(ids)}; name one by its id")


def home_of_user() -> Home:
    from quire.trust.trusted_keys import Home
    from quire.workspace.locate import user_space

    return Home(user_space())


trust_command.add_command(keys_command)
