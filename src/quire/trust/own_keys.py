"""The user's own keys: store, list and load them, and select the one that signs.

USER/keys/NAME.toml    the public half, and where the private one is
USER/keys/NAME.pem     the private half, unless the keyring of the system has it
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from quire.errors import CannotStart, Refused
from quire.trust.keys import BadKey, KeyNote, SigningKey, read_note
from quire.trust.private_files import NAME, make_folder, names_in, read_private, read_small, write_new
from quire.trust.trusted_keys import UserSpace, revoked_ids

DEFAULT = "default"
_NO_KEY = "you have no key to sign with; make one with: quire keys new"


def own_notes(settings: UserSpace) -> list[KeyNote]:
    """Return all own keys by name, revoked ones too."""
    folder = _folder(settings)
    return [_note(folder / f"{name}.toml", name) for name in names_in(folder, ".toml")]


def own_key(settings: UserSpace, name: str | None = None) -> SigningKey:
    """Return the key that signs: the named one, else `default`, else the only one there is. Never creates one.

    Raises `CannotStart` if there is none or the choice is ambiguous, `Refused` for a key that must not be used.
    """
    revoked = revoked_ids(settings)
    notes = own_notes(settings)
    if name is not None:
        named = next((note for note in notes if name in (note.name, note.public.key_id)), None)
        if named is None:
            known = ", ".join(note.name for note in notes)
            raise CannotStart(f"you have no key named {name}; " + (f"there are: {known}" if known else _NO_KEY))
        if named.public.key_id in revoked:
            raise Refused(f"the key {named.name} ({named.public.key_id}) is revoked and signs nothing any more")
        return _load(settings, named)
    usable = [note for note in notes if note.public.key_id not in revoked]
    if not usable:
        why = "all your keys are revoked; make a new one with: quire keys new NAME" if notes else _NO_KEY
        raise CannotStart(why)
    chosen = usable[0] if len(usable) == 1 else next((note for note in usable if note.name == DEFAULT), None)
    if chosen is None:
        names = ", ".join(note.name for note in usable)
        raise CannotStart(f"you have several keys ({names}); say which one signs: --key NAME")
    return _load(settings, chosen)


def keep(settings: UserSpace, key: SigningKey, now: datetime, *, keyring: bool = False) -> KeyNote:
    """Store a key under its name. An existing key is never overwritten."""
    folder = _folder(settings)
    if not NAME.fullmatch(key.name):
        raise CannotStart(
            f"{key.name!r} is not a name for a key: letters, digits, dots, hyphens and underscores, at most 64"
        )
    if same := next((note for note in own_notes(settings) if note.public == key.public), None):
        raise CannotStart(f"you have that key already, as {same.name}")
    if key.key_id in revoked_ids(settings):
        raise Refused(f"the key {key.key_id} is revoked; make a new one with: quire keys new NAME")
    note = KeyNote(key.public, key.name, (("created", _stamp(now)), ("private", "keyring" if keyring else "file")))
    public, private = folder / f"{key.name}.toml", folder / f"{key.name}.pem"
    if public.exists() or private.exists():
        raise CannotStart(f"there is a key named {key.name}; give the new one another name: quire keys new NAME")
    try:
        if keyring:
            from quire.trust.keys import put

            make_folder(folder)
            put(key.key_id, key.private_pem())
        else:
            write_new(private, key.private_pem())
        # Written last, because a key exists once its public half does.
        _write_or_undo(public, note.toml(), private)
    except FileExistsError:
        raise CannotStart(
            f"there is a key named {key.name}; give the new one another name: quire keys new NAME"
        ) from None
    return note


def _write_or_undo(public: Path, text: str, private: Path) -> None:
    try:
        write_new(public, text)
    except (CannotStart, OSError):
        private.unlink(missing_ok=True)
        raise


def _load(settings: UserSpace, note: KeyNote) -> SigningKey:
    if note.fact("private") == "keyring":
        from quire.trust.keys import get

        where, text = f"what the keyring holds for {note.public.key_id}", get(note.public.key_id)
    else:
        file = _folder(settings) / f"{note.name}.pem"
        where, text = str(file), read_private(file)
    key = SigningKey.of(note.name, text, where)
    if key.public != note.public:
        raise BadKey(f"{where} is not the private half of the key {note.public.key_id}")
    return key


def _note(file: Path, name: str) -> KeyNote:
    note = read_note(read_small(file), str(file))
    if note.name != name:
        raise BadKey(f"{file} holds a key named {note.name or 'nothing'}; a key stands in a file of its own name")
    return note


def _folder(settings: UserSpace) -> Path:
    return settings.user / "keys"


def _stamp(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
