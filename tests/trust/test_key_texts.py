"""Keys as texts: PEM, TOML, and everything that is neither."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from tests.trust.known_keys import known_key

from quire.trust.keys import BadKey, KeyNote, PublicKey, SigningKey, read_note

KEY = known_key(1, "me")
EC = ec.generate_private_key(ec.SECP256R1())
EC_PUBLIC = EC.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
EC_PRIVATE = EC.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
LOCKED = (
    ed25519.Ed25519PrivateKey.generate()
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))
    .decode()
)


def test_an_id_is_the_beginning_of_the_hash_of_the_pem() -> None:
    assert KEY.key_id == hashlib.sha256(KEY.public.pem.encode()).hexdigest()[:16]
    assert KEY.public.pem.startswith("-----BEGIN PUBLIC KEY-----\n")


@pytest.mark.parametrize(
    "change", [lambda pem: pem, lambda pem: pem.replace("\n", "\r\n"), lambda pem: f"\n {pem}\n\n"]
)
def test_one_key_has_one_id_however_it_is_written(change: object) -> None:
    assert callable(change)
    assert PublicKey.of(change(KEY.public.pem)) == KEY.public


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a public key"),
        ("hello", "not a public key"),
        (KEY.public.pem[:60], "not a public key"),
        (KEY.private_pem(), "is a private key; keep it to yourself"),
        (EC_PUBLIC, "of another kind"),
        ("\ud800", "not a public key"),
    ],
)
def test_what_is_no_public_key(text: str, words: str) -> None:
    with pytest.raises(BadKey, match=words):
        PublicKey.of(text, "x.pem")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "not a private key"),
        (KEY.public.pem, "is a public key; to trust it: quire trust add x.pem"),
        (EC_PRIVATE, "of another kind"),
        (LOCKED, "is encrypted"),
    ],
)
def test_what_is_no_private_key(text: str, words: str) -> None:
    with pytest.raises(BadKey, match=words):
        SigningKey.of("me", text, "x.pem")


def test_a_private_key_survives_and_is_never_shown() -> None:
    again = SigningKey.of("me", KEY.private_pem(), "x")
    assert again == KEY
    message = b"message"
    assert KEY.public.verifies(again.sign(message), message)
    assert not KEY.public.verifies(again.sign(message), b"another")
    secret = "".join(KEY.private_pem().splitlines()[1:-1])
    assert secret not in repr(KEY)


def test_a_note_is_read_as_it_was_written() -> None:
    note = KeyNote(KEY.public, 'Ada "the first" \\ \x07é', (("created", "2026-01-01"),))
    again = read_note(note.toml(), "x")
    assert (again.public, again.name) == (KEY.public, 'Ada "the first" \\ ??')
    assert again.fact("created") == "2026-01-01"
    assert again.fact("nothing") == ""


def test_a_note_may_be_bare_pem_or_keep_the_pem_in_a_table() -> None:
    assert read_note(KEY.public.pem, "x").public == KEY.public
    assert read_note(f'[public_key]\npem = """\n{KEY.public.pem}"""\n', "x").public == KEY.public


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = ", "neither PEM nor TOML"),
        ("a = 1", 'no text "public_key"'),
        ("public_key = 1", 'no text "public_key"'),
        ("public_key = 'x'", "not a public key"),
        (KeyNote(KEY.public).toml().replace(KEY.key_id, "0123456789abcdef"), "but it is " + KEY.key_id),
    ],
)
def test_what_is_no_note(text: str, words: str) -> None:
    with pytest.raises(BadKey, match=words):
        read_note(text, "x.toml")
