"""Trusted and revoked keys. Both lists belong to the user.

    USER/keys/NAME.toml        own keys, trusted: the public half, and where the private one is
    USER/trusted/KEYID.toml    keys of others that the user agreed to
    USER/revoked/KEYID.toml    revoked; this counts before the others

    USER/keys/NAME.pem         the private half of an own key, unless the keyring of the system has it

A project can put keys into `.ai/config/keys/trusted/`. That is a request: they count only after the user has accepted
them with `quire trust add`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from quire.errors import CannotStart, Refused
from quire.trust.keys import BadKey, KeyNote, PublicKey, SigningKey, read_note
from quire.trust.private_files import MAX_KEY_BYTES, NAME, make_folder, names_in, read_private, read_small, write_new

KEY_ID = re.compile(r"[0-9a-f]{16}")
REQUESTED = (".ai", "config", "keys", "trusted")
Origin = Literal["own", "added", "requested"]


class UserSpace(Protocol):
    """An object that knows the user's own folder, such as the settings."""

    @property
    def user(self) -> Path: ...


class Home(Struct, frozen=True):
    """A user folder for code that needs no other setting: broken files in a workspace do not get in its way."""

    user: Path


class TrustedKey(Struct, frozen=True):
    public: PublicKey
    name: str = ""
    origin: Origin = "added"

    @property
    def key_id(self) -> str:
        return self.public.key_id


class TrustedKeys(Struct, frozen=True):
    """The trusted and revoked keys. Read once, when a verb starts; verifying needs nothing else."""

    keys: Mapping[str, TrustedKey] = field(default_factory=dict)
    revoked: frozenset[str] = frozenset()
    project: Path | None = None
    """The workspace, whose own keys messages speak about; None if there is none."""

    @classmethod
    def of(cls, keys: Iterable[TrustedKey], revoked: Iterable[str] = ()) -> TrustedKeys:
        return cls({key.key_id: key for key in keys}, frozenset(revoked))

    @classmethod
    def load(cls, settings: UserSpace) -> TrustedKeys:
        """Read the keys of the user.

        Raises `BadKey` for a damaged file: continuing without it would only hide the problem.
        """
        user = settings.user
        added = _read_folder(user / "trusted", "added")
        own = _read_folder(user / "keys", "own")
        workspace = getattr(settings, "workspace", None)
        return replace(cls.of([*added, *own], revoked_ids(settings)), project=workspace and workspace.folder)

    def how_to_trust(self, key_id: str) -> str:
        """Return how the user can trust a key: a project may bring it, otherwise its owner has it."""
        if self.project is None or any(key.key_id == key_id for key in requested_keys(self.project)):
            return f"quire trust add {key_id}"
        return "this project brings no key: ask for what `quire trust keys export` prints, then quire trust add FILE"

    def find(self, key_id: str) -> TrustedKey | None:
        """Return the key, or None if it is unknown or revoked."""
        return None if key_id in self.revoked else self.keys.get(key_id)

    def also(self, key: TrustedKey) -> TrustedKeys:
        return replace(self, keys={**self.keys, key.key_id: key})


def meant(keys: Iterable[TrustedKey], word: str) -> list[TrustedKey]:
    """Return the keys that a word names. An id is only ever an id: a name is given by others and may look like one."""
    return [key for key in keys if word == (key.key_id if KEY_ID.fullmatch(word) else key.name)]


def revoked_ids(settings: UserSpace) -> frozenset[str]:
    """Return the ids of revoked keys.

    They come from the names of the files alone, so that damage to a file does not restore a key.
    """
    return frozenset(names_in(settings.user / "revoked", ".toml"))


def requested_keys(workspace: Path) -> list[TrustedKey]:
    """Return the keys that a project asks to be trusted.

    Broken files are skipped: the user has not agreed to any of them yet.
    """
    folder = workspace.joinpath(*REQUESTED)
    keys = []
    for suffix in (".toml", ".pem"):
        for name in names_in(folder, suffix):
            try:
                note = read_note(read_small(folder / f"{name}{suffix}"), name)
            except CannotStart:
                continue
            keys.append(TrustedKey(note.public, note.name or name, "requested"))
    return keys


def add_trust(settings: UserSpace, key: TrustedKey) -> bool:
    """Store that the user trusts this key; return False if it is trusted already.

    Raises `Refused` for a revoked key.
    """
    if key.key_id in revoked_ids(settings):
        raise Refused(f"the key {key.key_id} is revoked, so it cannot be trusted again; ask its owner for a new one")
    if key.key_id in TrustedKeys.load(settings).keys:
        return False
    note = KeyNote(key.public, key.name)
    try:
        write_new(settings.user / "trusted" / f"{key.key_id}.toml", note.toml())
    except FileExistsError:
        return False
    return True


def remove_trust(settings: UserSpace, key_id: str) -> bool:
    """Withdraw the user's agreement to a key; return False without such an agreement."""
    try:
        (settings.user / "trusted" / f"{key_id}.toml").unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CannotStart(f"the trust in {key_id} cannot be taken back: {error.strerror or error}") from None
    return True


def revoke(settings: UserSpace, key_id: str, facts: Mapping[str, str]) -> bool:
    """Revoke a key: from now on its signatures do not count. Return False if it is revoked already."""
    if not KEY_ID.fullmatch(key_id):
        raise CannotStart(f"{key_id} is not a key id: that is 16 hex digits, as `quire trust list` shows them")
    text = "".join(f"{key} = '{_plain(value)}'\n" for key, value in {"key_id": key_id, **facts}.items() if value)
    try:
        write_new(settings.user / "revoked" / f"{key_id}.toml", text)
    except FileExistsError:
        return False
    return True


def _read_folder(folder: Path, origin: Origin) -> list[TrustedKey]:
    keys = []
    for name in names_in(folder, ".toml"):
        file = folder / f"{name}.toml"
        note = read_note(read_small(file), str(file))
        if origin == "added" and note.public.key_id != name:
            raise BadKey(f"{file} holds the key {note.public.key_id}; its name should be that, so it is not read")
        keys.append(TrustedKey(note.public, note.name or name, origin))
    return keys


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isascii() and letter.isprintable() and letter != "'")[
        :MAX_KEY_BYTES
    ]


DEFAULT = "default"
_NO_KEY = "you have no key to sign with; make one with: quire trust keys new"


def own_notes(settings: UserSpace) -> list[KeyNote]:
    """Return all own keys by name, revoked ones too."""
    folder = _folder(settings)
    return [_note(folder / f"{name}.toml", name) for name in names_in(folder, ".toml")]


def own_key(settings: UserSpace, name: str | None = None) -> SigningKey:
    """Return the key that signs: the named one, else `default`, else the only one. Never creates one.

    Raises `CannotStart` if there is none or the choice is ambiguous, `Refused` for a key that must not be used.
    """
    revoked = revoked_ids(settings)
    notes = own_notes(settings)
    if name is not None:
        named = next((note for note in notes if name in (note.name, note.public.key_id)), None)
        if named is None:
            names = ", ".join(note.name for note in notes)
            raise CannotStart(f"you have no key named {name}; " + (f"there are: {names}" if names else _NO_KEY))
        if named.public.key_id in revoked:
            raise Refused(f"the key {named.name} ({named.public.key_id}) is revoked and signs nothing any more")
        return _load(settings, named)
    usable = [note for note in notes if note.public.key_id not in revoked]
    if not usable:
        why = "all your keys are revoked; make a new one with: quire trust keys new NAME" if notes else _NO_KEY
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
        raise Refused(f"the key {key.key_id} is revoked; make a new one with: quire trust keys new NAME")
    created = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    note = KeyNote(key.public, key.name, (("created", created), ("private", "keyring" if keyring else "file")))
    public, private = folder / f"{key.name}.toml", folder / f"{key.name}.pem"
    taken = CannotStart(f"there is a key named {key.name}; give the new one another name: quire trust keys new NAME")
    if public.exists() or private.exists():
        raise taken
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
        raise taken from None
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

        where, text = f"the entry of the keyring for {note.public.key_id}", get(note.public.key_id)
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
