"""Which item a file is, and how a signature gets onto it without the file ever being lost."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.trust.known_keys import known_key

import quire
from quire.errors import CannotStart, Refused, Unreadable
from quire.source import MAX_DOCUMENT_BYTES, read_source
from quire.trust import sign_file as module
from quire.trust.sign_file import Signable, sign_file, signable
from quire.trust.trusted_keys import TrustedKey, TrustedKeys

KEY = known_key(1)
NOW = datetime(2026, 2, 10, tzinfo=UTC)
TRUSTED = TrustedKeys.of([TrustedKey(KEY.public)])
PAGE = "# T\n\n## STEP 1: A\n\nx\n"


@pytest.mark.parametrize(
    ("path", "kind", "id", "syntax"),
    [
        (".ai/directives/demo/d.md", "directive", "demo/d", "markdown"),
        (".ai/directives/d.md", "directive", "d", "markdown"),
        (".ai/directives/a/../b/d.v2.md", "directive", "b/d.v2", "markdown"),
        (".ai/knowledge/demo/k.md", "knowledge", "demo/k", "markdown"),
        (".ai/knowledge/demo/k.yaml", "knowledge", "demo/k", "yaml"),
        ("sub/.ai/directives/demo/d.md", "directive", "demo/d", "markdown"),
        (".ai/directives/.ai/knowledge/k.md", "knowledge", "k", "markdown"),
        ("notes/a.playbook.md", "playbook", "notes/a.playbook.md", "markdown"),
        ("a.md", "playbook", "a.md", "markdown"),
        ("pipelines/p.yaml", "pipeline", "pipelines/p.yaml", "yaml"),
        ("p.YML", "pipeline", "p.YML", "yaml"),
    ],
)
def test_what_a_file_is(tmp_path: Path, path: str, kind: str, id: str, syntax: str) -> None:
    found = signable(tmp_path / path, tmp_path)
    assert (found.kind, found.id, found.syntax) == (kind, id, syntax)
    assert found.required == (kind in ("directive", "knowledge"))


@pytest.mark.parametrize(
    "path", ["a.txt", "a", ".ai/config/x.yaml", ".ai/d.md", ".ai/directives/x.yaml", ".ai/tools/x.md"]
)
def test_what_is_not_signed(tmp_path: Path, path: str) -> None:
    with pytest.raises(CannotStart):
        signable(tmp_path / path, tmp_path)


def test_a_playbook_has_one_name_however_its_workspace_is_reached(tmp_path: Path) -> None:
    (tmp_path / "real" / "notes").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    there = signable(tmp_path / "link" / "notes" / "a.md", tmp_path / "real")
    assert there.id == "notes/a.md"


def item(tmp_path: Path, text: str | bytes = PAGE, name: str = "a.playbook.md") -> Signable:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return signable(path, tmp_path)


def verified(one: Signable) -> bool:
    return one.verify(read_source(one.path).text, TRUSTED).ok


@pytest.mark.parametrize("text", [PAGE, "\ufeff" + PAGE, PAGE.replace("\n", "\r\n"), PAGE.rstrip("\n")])
def test_signing_adds_a_line_and_keeps_every_other_byte(tmp_path: Path, text: str) -> None:
    one = item(tmp_path, text)
    assert sign_file(one, KEY, NOW) == []
    first, _, rest = one.path.read_bytes().partition(b"\n")
    assert text.encode() == first[:3].replace(b"<!-", b"") + rest
    assert verified(one)
    once = one.path.read_bytes()
    assert sign_file(one, KEY, NOW) == []
    assert one.path.read_bytes() == once


@pytest.mark.skipif(os.name != "posix", reason="modes are a matter of POSIX")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_the_mode_stays_and_nothing_else_is_left(tmp_path: Path, mode: int) -> None:
    one = item(tmp_path)
    one.path.chmod(mode)
    sign_file(one, KEY, NOW)
    assert stat.S_IMODE(one.path.stat().st_mode) == mode
    assert [file.name for file in tmp_path.iterdir()] == ["a.playbook.md"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.playbook.md", "## STEP 1: A\n\nx\n", "line 1"),
        ("p.yaml", "pipeline: p\nsteps: nothing\n", "line 2"),
        ("p.yaml", "a: [\n", "line"),
        (".ai/directives/demo/d.md", "# no fence\n", "xml"),
        (".ai/knowledge/demo/k.md", "no metadata\n", "missing required field: name"),
        (".ai/knowledge/demo/k.yaml", "name: other\ntitle: T\nversion: 1.0.0\nentry_type: note\n", "must equal"),
    ],
)
def test_what_is_wrong_is_not_signed(tmp_path: Path, name: str, text: str, words: str) -> None:
    one = item(tmp_path, text, name)
    issues = sign_file(one, KEY, NOW)
    assert any(words in issue for issue in issues), issues
    assert one.path.read_text() == text


def test_a_file_that_would_become_too_large_is_left_alone(tmp_path: Path) -> None:
    text = PAGE + "y" * (MAX_DOCUMENT_BYTES - len(PAGE) - 1) + "\n"
    one = item(tmp_path, text)
    assert sign_file(one, KEY, NOW) == ["with a signature it is larger than 200,000 bytes"]
    assert one.path.read_text() == text


@pytest.mark.parametrize(
    ("data", "words"), [(b"\xff\xfe", "UTF-8"), (b"a\0b", "binary"), (b"", "empty"), (None, "does not exist")]
)
def test_what_cannot_be_read(tmp_path: Path, data: bytes | None, words: str) -> None:
    one = item(tmp_path, data or b"")
    if data is None:
        one.path.unlink()
    with pytest.raises(Unreadable, match=words):
        sign_file(one, KEY, NOW)


def test_links_and_the_parts_of_quire_are_refused(tmp_path: Path) -> None:
    one = item(tmp_path)
    link = tmp_path / "b.playbook.md"
    link.symlink_to(one.path)
    with pytest.raises(Refused, match="is a link"):
        sign_file(signable(link, tmp_path), KEY, NOW)
    package = Path(quire.__file__).parent
    with pytest.raises(Refused, match="a part of Quire"):
        sign_file(signable(package / "space" / ".ai" / "directives" / "x.md", package), KEY, NOW)
    way_in = tmp_path / "way-in"
    way_in.symlink_to(package)
    with pytest.raises(Refused, match="a part of Quire"):
        sign_file(signable(way_in / "x.md", tmp_path), KEY, NOW)


def test_an_edit_in_between_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = item(tmp_path)

    def edited_meanwhile(*_: object) -> list[str]:
        one.path.write_text(PAGE + "an edit of somebody\n")
        return []

    monkeypatch.setattr(module, "issues", edited_meanwhile)
    with pytest.raises(Unreadable, match="changed while it was signed"):
        sign_file(one, KEY, NOW)
    assert one.path.read_text() == PAGE + "an edit of somebody\n"
    assert [file.name for file in tmp_path.iterdir()] == ["a.playbook.md"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = item(tmp_path)

    def no_room(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_room)
    with pytest.raises(Unreadable, match="cannot be written: No space left"):
        sign_file(one, KEY, NOW)
    assert one.path.read_text() == PAGE
    assert [file.name for file in tmp_path.iterdir()] == ["a.playbook.md"]
