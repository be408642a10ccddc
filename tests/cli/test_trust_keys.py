from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.cli.signed_project import write_project
from tests.given import given
from tests.trust.known_keys import known_key

from quire.cli.sign import verify_command as verify
from quire.cli.trust import keys_command as keys
from quire.cli.trust import trust_command
from quire.trust.keys import KeyNote
from quire.trust.sign_file import sign_file, signable

ADA = known_key(3, "ada")
PAGE = "page.playbook.md"


@pytest.fixture(autouse=True)
def project(workspace: Path) -> Path:
    """Ada has signed the playbook; nobody here knows her."""
    write_project(workspace)
    assert sign_file(signable(Path(PAGE), workspace), ADA, datetime(2026, 2, 10, tzinfo=UTC)) == []
    return workspace


def bring(project: Path, key: str = KeyNote(ADA.public, "ada").toml()) -> None:
    folder = project / ".ai" / "config" / "keys" / "trusted"
    given({"ada.toml": key}, folder)


def states(invoke: Invoke) -> dict[str, str]:
    return {row["key_id"]: row["state"] for row in json.loads(invoke(trust_command, "list", "--json").stdout)}


def test_a_key_from_a_file_and_back(invoke: Invoke, tmp_path: Path) -> None:
    assert invoke(verify, PAGE).exit_code == 6
    file = tmp_path / "ada.toml"
    file.write_text(KeyNote(ADA.public, "ada").toml())
    done = invoke(trust_command, "add", str(file))
    assert (done.exit_code, done.stdout.strip()) == (0, ADA.key_id)
    assert invoke(verify, PAGE).exit_code == 0
    assert "already" in invoke(trust_command, "add", str(file)).stderr
    assert invoke(trust_command, "list").stdout.split() == [ADA.key_id, "trusted", "ada"]
    assert json.loads(invoke(trust_command, "remove", "ada", "--json").stdout) == {
        "key_id": ADA.key_id,
        "removed": True,
    }
    assert invoke(verify, PAGE).exit_code == 6
    assert invoke(trust_command, "remove", "ada").exit_code == 2


def test_a_key_that_the_project_does_not_bring_is_not_named_as_if_it_did(invoke: Invoke) -> None:
    """newcomer M6: `quire trust add KEYID` would fail."""
    refusal = invoke(verify, PAGE).stderr
    assert "this project brings no key" in refusal and "quire trust add FILE" in refusal
    assert f"quire trust add {ADA.key_id}" not in refusal


def test_a_key_as_text(invoke: Invoke) -> None:
    done = invoke(trust_command, "add", ADA.public.pem, "--name", "Ada", "--json")
    assert json.loads(done.stdout) == {"key_id": ADA.key_id, "name": "Ada", "added": True}
    assert invoke(verify, PAGE).exit_code == 0


def test_a_project_asks_and_the_user_agrees(invoke: Invoke, project: Path) -> None:
    bring(project)
    assert states(invoke) == {ADA.key_id: "requested"}
    assert invoke(verify, PAGE).exit_code == 6, "asking is not trust"
    refusal = invoke(verify, PAGE).stderr
    assert f"quire trust add {ADA.key_id}" in refusal
    assert invoke(trust_command, "add", ADA.key_id).exit_code == 0
    assert states(invoke) == {ADA.key_id: "trusted"}
    assert invoke(verify, PAGE).exit_code == 0


def test_the_key_that_signed_a_file(invoke: Invoke, project: Path) -> None:
    missing = invoke(trust_command, "add", "--from", PAGE)
    assert (missing.exit_code, states(invoke)) == (2, {})
    assert "brings no key" in missing.stderr and "quire trust keys export" in missing.stderr
    bring(project)
    assert invoke(trust_command, "add", "--from", PAGE).stdout.strip() == ADA.key_id
    assert states(invoke) == {ADA.key_id: "trusted"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text + "more\n", "modified"),
        (lambda text: text.partition("\n")[2], "unsigned"),
        (lambda text: _with_another_signature(text), "forged"),
    ],
)
def test_a_file_whose_signature_does_not_hold_brings_no_trust(
    invoke: Invoke, project: Path, change: object, words: str
) -> None:
    bring(project)
    assert callable(change)
    page = project / PAGE
    page.write_text(change(page.read_text()))
    done = invoke(trust_command, "add", "--from", PAGE)
    assert (done.exit_code, states(invoke)) == (6, {ADA.key_id: "requested"})
    assert words in done.stderr


def _with_another_signature(text: str) -> str:
    at = text.index("Z:") + len("Z:") + 64 + len(":")
    return f"{text[:at]}{'B' if text[at] == 'A' else 'A'}{text[at + 1 :]}"


def test_a_project_cannot_pass_a_key_off_as_another(invoke: Invoke, project: Path) -> None:
    mallory = known_key(4)
    bring(project, KeyNote(mallory.public, "ada").toml().replace(mallory.key_id, ADA.key_id))
    assert states(invoke) == {}
    assert invoke(trust_command, "add", ADA.key_id).exit_code == 2


def test_a_revoked_key_cannot_be_trusted_again(invoke: Invoke, project: Path) -> None:
    bring(project)
    invoke(trust_command, "add", ADA.key_id)
    invoke(keys, "revoke", "ada")
    assert states(invoke) == {ADA.key_id: "revoked"}
    invoke(trust_command, "remove", ADA.key_id)
    done = invoke(trust_command, "add", ADA.key_id)
    assert done.exit_code == 6
    assert "revoked" in done.stderr


def test_own_keys_are_not_removed_here(invoke: Invoke) -> None:
    invoke(keys, "new")
    done = invoke(trust_command, "remove", "default")
    assert done.exit_code == 2
    assert "quire trust keys revoke default" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a key"),
        (["x", "--from", PAGE], "name a key"),
        (["nothing.toml"], "not a file with a key"),
        ([PAGE], "neither PEM nor TOML"),
        (["0123456789abcdef"], "brings no key"),
        (["-----BEGIN nonsense"], "not a public key"),
        (["--nmae", "x", "y"], "unexpected extra argument"),
        ([ADA.private_pem()], "keep it to yourself"),
    ],
)
def test_what_is_no_key(invoke: Invoke, arguments: list[str], words: str) -> None:
    done = invoke(trust_command, "add", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr


def test_an_empty_list_says_what_to_do(invoke: Invoke) -> None:
    done = invoke(trust_command, "list")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "quire trust keys new" in done.stderr


def test_a_file_that_is_named_like_a_key_is_not_that_key(invoke: Invoke, project: Path) -> None:
    (project / ADA.key_id).write_text(KeyNote(known_key(4).public).toml())
    assert invoke(trust_command, "add", ADA.key_id).exit_code == 2
    assert states(invoke) == {}


def test_a_key_that_is_named_like_another_stands_in_nobodys_way(invoke: Invoke, tmp_path: Path) -> None:
    mallory = known_key(4)
    for key, name in ((ADA, "ada"), (mallory, ADA.key_id)):
        file = tmp_path / "key.toml"
        file.write_text(KeyNote(key.public, name).toml())
        assert invoke(trust_command, "add", str(file)).exit_code == 0
    assert invoke(keys, "revoke", ADA.key_id).exit_code == 0
    assert invoke(trust_command, "remove", ADA.key_id).exit_code == 0
    assert states(invoke) == {ADA.key_id: "revoked", mallory.key_id: "trusted"}


def test_a_damaged_file_does_not_keep_a_key_from_being_revoked(invoke: Invoke, tmp_path: Path) -> None:
    given({"home/trusted/broken.toml": "x"}, tmp_path)
    assert invoke(verify, PAGE).exit_code == 2
    assert invoke(keys, "revoke", ADA.key_id).exit_code == 0
