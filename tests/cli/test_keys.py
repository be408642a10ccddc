from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.trust.known_keys import known_key

from quire.cli.trust import keys_command


def test_new_list_and_revoke(invoke: Invoke, tmp_path: Path) -> None:
    empty = invoke(keys_command, "list")
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert "quire trust keys new" in empty.stderr
    made = invoke(keys_command, "new")
    key_id = made.stdout.strip()
    assert (made.exit_code, len(key_id)) == (0, 16)
    assert "only you can read" in made.stderr
    listed = json.loads(invoke(keys_command, "list", "--json").stdout)
    assert [(row["name"], row["key_id"], row["private"], row["revoked"]) for row in listed] == [
        ("default", key_id, "file", False)
    ]
    assert invoke(keys_command, "list").stdout.split()[:2] == ["default", key_id]
    assert invoke(keys_command, "revoke", "default", "--reason", "it's gone").exit_code == 0
    assert invoke(keys_command, "list").stdout.rstrip().endswith("revoked")
    assert "already" in invoke(keys_command, "revoke", key_id).stderr


def test_a_second_key_needs_a_name(invoke: Invoke) -> None:
    invoke(keys_command, "new")
    again = invoke(keys_command, "new")
    assert (again.exit_code, again.stdout) == (2, "")
    assert "there is a key named default" in again.stderr
    assert json.loads(invoke(keys_command, "new", "work", "--json").stdout)["name"] == "work"


def test_a_broken_workspace_does_not_get_in_the_way(invoke: Invoke, workspace: Path) -> None:
    (workspace / "quire.toml").write_text("nonsense = [")
    assert invoke(keys_command, "new").exit_code == 0


def test_the_private_key_is_printed_only_when_asked_for(invoke: Invoke) -> None:
    invoke(keys_command, "new")
    plain = invoke(keys_command, "export")
    assert plain.exit_code == 0
    assert 'name = "default"' in plain.stdout and "BEGIN PUBLIC KEY" in plain.stdout
    pem = invoke(keys_command, "export", "--pem")
    assert pem.stdout.startswith("-----BEGIN PUBLIC KEY-----\n")
    assert "PRIVATE" not in plain.stdout + pem.stdout
    private = invoke(keys_command, "export", "--private")
    assert private.stdout.startswith("-----BEGIN PRIVATE KEY-----\n")
    assert "sign in your name" in private.stderr


def test_which_key_is_exported(invoke: Invoke) -> None:
    assert "quire trust keys new" in invoke(keys_command, "export").stderr
    one = invoke(keys_command, "new", "one").stdout.strip()
    two = invoke(keys_command, "new", "two").stdout.strip()
    unclear = invoke(keys_command, "export")
    assert (unclear.exit_code, unclear.stdout) == (2, "")
    assert "one, two" in unclear.stderr
    assert one in invoke(keys_command, "export", "one").stdout
    assert "you have no key three; there are: one, two" in invoke(keys_command, "export", "three").stderr
    assert two in invoke(keys_command, "export", two).stdout


def test_import(invoke: Invoke, tmp_path: Path) -> None:
    key = known_key(7)
    file = tmp_path / "key.pem"
    file.write_text(key.private_pem())
    taken = invoke(keys_command, "import", str(file), "old")
    assert (taken.exit_code, taken.stdout.strip()) == (0, key.key_id)
    file.write_text(known_key(8).private_pem())
    assert json.loads(invoke(keys_command, "import", str(file), "new", "--json").stdout) == {
        "name": "new",
        "key_id": known_key(8).key_id,
        "private": "file",
    }
    assert invoke(keys_command, "export", "old", "--private").stdout == key.private_pem()
    file.write_text(key.public.pem)
    refused = invoke(keys_command, "import", str(file), "other")
    assert refused.exit_code == 2
    assert "is a public key; to trust it: quire trust add" in refused.stderr


@pytest.mark.skipif(os.name != "posix", reason="modes are a matter of POSIX")
def test_a_key_that_others_can_read_is_refused(invoke: Invoke, tmp_path: Path) -> None:
    invoke(keys_command, "new")
    (tmp_path / "home" / "keys" / "default.pem").chmod(0o644)
    refused = invoke(keys_command, "export", "--private")
    assert (refused.exit_code, refused.stdout) == (6, "")
    assert "chmod 600" in refused.stderr


@pytest.mark.parametrize("key", ["nobody", "../x", "0123"])
def test_only_a_key_is_revoked(invoke: Invoke, key: str) -> None:
    refused = invoke(keys_command, "revoke", key)
    assert refused.exit_code == 2
    assert "16 hex digits" in refused.stderr


def test_a_key_of_anybody_is_revoked_by_its_id(invoke: Invoke) -> None:
    key_id = known_key(9).key_id
    assert json.loads(invoke(keys_command, "revoke", key_id, "--json").stdout) == {"key_id": key_id, "revoked": True}
    assert json.loads(invoke(keys_command, "revoke", key_id, "--json").stdout) == {"key_id": key_id, "revoked": False}
