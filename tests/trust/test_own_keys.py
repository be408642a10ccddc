"""The user's keys on disk and in the keyring: who may read them, and which one signs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quire.errors import CannotStart, Refused
from quire.trust.keys import BadKey, SigningKey
from quire.trust.trusted_keys import Home, TrustedKeys, keep, own_key, own_notes, revoke

NOW = datetime(2026, 2, 10, tzinfo=UTC)
posix = pytest.mark.skipif(os.name != "posix", reason="modes are a matter of POSIX")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def make(home: Home, name: str = "default", *, keyring: bool = False) -> SigningKey:
    key = SigningKey.generate(name)
    keep(home, key, NOW, keyring=keyring)
    return key


@posix
def test_a_new_key_is_the_users_alone(home: Home) -> None:
    old = os.umask(0)
    try:
        key = make(home)
    finally:
        os.umask(old)
    file = home.user / "keys" / "default.pem"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert own_key(home) == key
    assert [(note.name, note.fact("private")) for note in own_notes(home)] == [("default", "file")]
    assert TrustedKeys.load(home).find(key.key_id) is not None, "own keys are trusted"


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o602, 0o620, 0o610])
def test_a_key_that_others_could_have_read_is_not_used(home: Home, mode: int) -> None:
    make(home)
    file = home.user / "keys" / "default.pem"
    file.chmod(mode)
    with pytest.raises(Refused, match=r"chmod 600 .*quire trust keys revoke default"):
        own_key(home)
    file.chmod(0o600)
    own_key(home)


@posix
def test_a_folder_that_others_may_write_to_is_not_used(home: Home) -> None:
    make(home)
    (home.user / "keys").chmod(0o770)
    with pytest.raises(Refused, match="chmod 700"):
        own_key(home)


@posix
def test_a_link_in_place_of_a_key_is_not_followed(home: Home, tmp_path: Path) -> None:
    make(home)
    file = home.user / "keys" / "default.pem"
    file.rename(tmp_path / "elsewhere.pem")
    file.symlink_to(tmp_path / "elsewhere.pem")
    with pytest.raises(CannotStart, match="cannot be read"):
        own_key(home)


@posix
def test_a_pipe_in_place_of_a_key_does_not_hang(home: Home) -> None:
    make(home)
    file = home.user / "keys" / "default.pem"
    file.unlink()
    os.mkfifo(file, 0o600)
    with pytest.raises(Refused, match="not a regular file"):
        own_key(home)


def test_nothing_is_overwritten(home: Home) -> None:
    key = make(home)
    with pytest.raises(CannotStart, match="there is a key named default"):
        make(home)
    with pytest.raises(CannotStart, match="you have that key already, as default"):
        keep(home, SigningKey.of("again", key.private_pem(), "x"), NOW)
    (home.user / "keys" / "half.pem").write_text("")
    with pytest.raises(CannotStart, match="there is a key named half"):
        make(home, "half")
    assert own_key(home) == key


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a b", "-x", "ä", "x" * 65])
def test_names_stay_in_the_folder(home: Home, name: str) -> None:
    with pytest.raises(CannotStart, match="not a name for a key"):
        make(home, name)
    assert not home.user.exists()


def test_which_key_signs(home: Home) -> None:
    with pytest.raises(CannotStart, match="make one with: quire trust keys new"):
        own_key(home)
    assert not home.user.exists(), "looking for a key never makes one"
    work = make(home, "work")
    assert own_key(home) == work
    make(home, "spare")
    with pytest.raises(CannotStart, match=r"several keys \(spare, work\).*--key"):
        own_key(home)
    assert own_key(home, "work") == work == own_key(home, work.key_id)
    default = make(home)
    assert own_key(home) == default
    with pytest.raises(CannotStart, match="no key named nope; there are: default, spare, work"):
        own_key(home, "nope")


def test_a_revoked_key_signs_nothing(home: Home) -> None:
    old = make(home)
    assert revoke(home, old.key_id, {"reason": "lost"})
    assert not revoke(home, old.key_id, {})
    with pytest.raises(CannotStart, match="all your keys are revoked"):
        own_key(home)
    with pytest.raises(Refused, match="revoked"):
        own_key(home, "default")
    with pytest.raises(Refused, match="revoked"):
        keep(Home(home.user), _renamed(home, old), NOW)
    fresh = make(home, "new")
    assert own_key(home) == fresh
    trusted = TrustedKeys.load(home)
    assert trusted.find(old.key_id) is None
    assert trusted.find(fresh.key_id) is not None


def _renamed(home: Home, key: SigningKey) -> SigningKey:
    """The same key as if it came from outside: its files are gone, the revocation stays."""
    for suffix in (".pem", ".toml"):
        (home.user / "keys" / f"{key.name}{suffix}").unlink()
    return SigningKey.of("back", key.private_pem(), "x")


def test_halves_that_do_not_belong_together_are_noticed(home: Home) -> None:
    make(home)
    other = SigningKey.generate("other")
    (home.user / "keys" / "default.pem").write_text(other.private_pem())
    with pytest.raises(BadKey, match="not the private half"):
        own_key(home)


@pytest.fixture
def keyring() -> Iterator[dict[tuple[str, str], str]]:
    """A keyring of the real library that keeps everything in memory."""
    library = pytest.importorskip("keyring", reason="the package keyring is not installed")
    from keyring.backend import KeyringBackend

    held: dict[tuple[str, str], str] = {}

    class InMemory(KeyringBackend):
        priority = 1

        def set_password(self, service: str, username: str, password: str) -> None:
            held[service, username] = password

        def get_password(self, service: str, username: str) -> str | None:
            return held.get((service, username))

        def delete_password(self, service: str, username: str) -> None:
            del held[service, username]

    before = library.get_keyring()
    library.set_keyring(InMemory())  # type: ignore[no-untyped-call]
    yield held
    library.set_keyring(before)


def test_a_key_in_the_keyring_is_in_no_file(home: Home, keyring: dict[tuple[str, str], str]) -> None:
    key = make(home, keyring=True)
    assert list(keyring) == [("quire", key.key_id)]
    assert own_key(home) == key
    assert [file.name for file in (home.user / "keys").iterdir()] == ["default.toml"]
    keyring.clear()
    with pytest.raises(CannotStart, match="does not hold the key"):
        own_key(home)


def test_a_machine_without_a_keyring_says_so(home: Home) -> None:
    library = pytest.importorskip("keyring", reason="the package keyring is not installed")
    from keyring.backends.fail import Keyring

    before = library.get_keyring()
    library.set_keyring(Keyring())  # type: ignore[no-untyped-call]
    try:
        with pytest.raises(CannotStart, match="leave out --keyring"):
            make(home, keyring=True)
    finally:
        library.set_keyring(before)
    assert own_notes(home) == []
