"""The key that seals runs: where it comes from, and that nobody else gets at it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.security.test_sealed_runs import person

from quire.errors import CannotStart, QuireError, Refused
from quire.trust.seal import MIN_KEY_LETTERS, Seal, key_file, key_place, move_key, seal_key, user_seal

KEY = "a key that is long enough for a seal"


def test_it_is_made_once_and_for_the_user_alone(tmp_path: Path) -> None:
    user = tmp_path / "home"
    first = seal_key(user, {})
    assert len(first) >= MIN_KEY_LETTERS and seal_key(user, {}) == first
    file = key_file(user)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert seal_key(tmp_path / "another", {}) != first


def test_processes_that_make_it_at_once_have_the_same(tmp_path: Path) -> None:
    code = "import sys, pathlib, quire.trust.seal as seal; print(seal.seal_key(pathlib.Path(sys.argv[1]), {}))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    assert len({process.communicate(timeout=60)[0] for process in started}) == 1
    assert [path.name for path in key_file(tmp_path).parent.iterdir()] == ["seal.key"]


def test_a_cluster_gives_it_by_the_environment_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{KEY}\n")
    by_value = user_seal(tmp_path, {"QUIRE_SEAL_KEY": KEY})
    by_file = user_seal(tmp_path, {"QUIRE_SEAL_KEY_FILE": str(file)})
    assert by_value.facts("run", "r1") == by_file.facts("run", "r1")
    assert not key_file(tmp_path).exists()
    assert key_place(tmp_path, {"QUIRE_SEAL_KEY": KEY}) == "the variable QUIRE_SEAL_KEY"


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"QUIRE_SEAL_KEY": "short"}, "QUIRE_SEAL_KEY is too short"),
        ({"QUIRE_SEAL_KEY_FILE": "/nowhere"}, "/nowhere"),
    ],
)
def test_a_key_that_is_none_is_refused(tmp_path: Path, environ: dict[str, str], said: str) -> None:
    with pytest.raises(CannotStart, match=said):
        seal_key(tmp_path, environ)


def test_a_key_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    seal_key(tmp_path, {})
    key_file(tmp_path).chmod(0o644)
    with pytest.raises(Refused, match="others can read the seal key"):
        seal_key(tmp_path, {})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_space_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(QuireError, match="QUIRE_SEAL_KEY"):
        seal_key(tmp_path / "home", {})


def test_a_seal_stands_for_its_kind_its_facts_and_its_key() -> None:
    seal = Seal.of(KEY)
    made = seal.facts("answer", "r1", "2/ask", "yes")
    assert seal.fits(made, "answer", "r1", "2/ask", "yes")
    assert not seal.fits(made, "letter", "r1", "2/ask", "yes")
    assert not seal.fits(made, "answer", "r1", "2/askyes", "")
    assert not seal.fits(made, "answer", "r1", "2/ask", "yes", None)
    assert not seal.fits(None, "answer") and not seal.fits("é", "answer")
    assert not Seal.of(KEY + "!").fits(made, "answer", "r1", "2/ask", "yes")


def test_it_moves_into_the_keyring_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: dict[str, str] = {}
    monkeypatch.setattr("quire.trust.keys.put", lambda name, text: held.update({name: text}))
    monkeypatch.setattr("quire.trust.keys.get", lambda name: held[name])
    before = seal_key(tmp_path, {})
    move_key(tmp_path, keyring=True)
    assert before not in key_file(tmp_path).read_text() and list(held.values()) == [before]
    assert key_place(tmp_path, {}) == "the keyring of the system"
    assert seal_key(tmp_path, {}) == before
    move_key(tmp_path, keyring=False)
    assert seal_key(tmp_path, {}) == before and key_place(tmp_path, {}) == str(key_file(tmp_path))


def test_the_verb_says_where_it_is_and_prints_it(tmp_path: Path) -> None:
    me = person(tmp_path, "me")
    shown = me.quire("keys", "seal")
    assert shown.returncode == 0 and str(key_file(me.home)) in shown.stderr
    printed = me.quire("keys", "seal", "--print")
    assert printed.stdout.strip() == seal_key(me.home, {})
    assert shown.stdout.strip() == Seal.of(printed.stdout.strip()).key_id
