"""Whose signatures count: agreements, requests of a project, revocations."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given
from tests.trust.known_keys import known_key

from quire.errors import CannotStart, Refused
from quire.trust.keys import BadKey, KeyNote, SigningKey
from quire.trust.trusted_keys import (
    Home,
    TrustedKey,
    TrustedKeys,
    add_trust,
    remove_trust,
    requested_keys,
    revoke,
    revoked_ids,
)

KEY = known_key(1, "ada")
ADA = TrustedKey(KEY.public, "ada")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_nothing_is_trusted_at_first_and_looking_writes_nothing(home: Home) -> None:
    assert TrustedKeys.load(home) == TrustedKeys()
    assert not home.user.exists()


def test_trust_is_given_and_taken_back(home: Home) -> None:
    assert add_trust(home, ADA)
    assert not add_trust(home, ADA)
    assert TrustedKeys.load(home).find(KEY.key_id) == ADA
    assert remove_trust(home, KEY.key_id)
    assert not remove_trust(home, KEY.key_id)
    assert TrustedKeys.load(home).find(KEY.key_id) is None


def test_revoking_beats_trust_before_and_after(home: Home) -> None:
    add_trust(home, ADA)
    assert revoke(home, KEY.key_id, {"reason": "it's lost"})
    assert TrustedKeys.load(home).find(KEY.key_id) is None
    remove_trust(home, KEY.key_id)
    with pytest.raises(Refused, match="revoked"):
        add_trust(home, ADA)


def test_damage_does_not_bring_a_revoked_key_back(home: Home) -> None:
    revoke(home, KEY.key_id, {})
    (home.user / "revoked" / f"{KEY.key_id}.toml").write_bytes(b"\xff\0")
    assert revoked_ids(home) == {KEY.key_id}


@pytest.mark.parametrize("key_id", ["", "x", "../../x", KEY.key_id.upper() + "G", KEY.key_id[:-1]])
def test_only_ids_are_revoked(home: Home, key_id: str) -> None:
    with pytest.raises(CannotStart, match="16 hex digits"):
        revoke(home, key_id, {})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (KEY.key_id, "broken"),
        (KEY.key_id, ""),
        ("0123456789abcdef", KeyNote(KEY.public).toml()),
    ],
)
def test_a_damaged_agreement_is_an_error_that_names_the_file(home: Home, name: str, text: str) -> None:
    folder = home.user / "trusted"
    given({f"{name}.toml": text}, folder)
    with pytest.raises(BadKey, match=f"{name}.toml"):
        TrustedKeys.load(home)


def test_what_a_project_brings_is_only_a_request(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "work" / ".ai" / "config" / "keys" / "trusted"
    given({"ada.toml": KeyNote(KEY.public, "ada").toml()}, folder)
    other = SigningKey.generate("x")
    given({"bare.pem": other.public.pem, "broken.toml": "x", "private.pem": other.private_pem()}, folder)
    found = requested_keys(tmp_path / "work")
    assert [(one.key_id, one.name, one.origin) for one in found] == [
        (KEY.key_id, "ada", "requested"),
        (other.key_id, "bare", "requested"),
    ]
    assert TrustedKeys.load(home) == TrustedKeys()


def test_settings_are_a_users_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from quire.workspace.configuration import load_settings
    from quire.workspace.locate import Workspace

    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "home"))
    settings = load_settings(Workspace(tmp_path))
    add_trust(settings, ADA)
    assert TrustedKeys.load(settings).find(KEY.key_id) == ADA
