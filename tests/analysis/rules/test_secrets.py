"""SE101 to SE103: each with documents that it finds, and twins that it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.formats.pipeline.reading import dialect as pipeline
from tests.given import given

from quire.diagnostics import Diagnostic
from quire.library.check import DocumentCheck
from quire.source import Source


def findings_of_file(folder: Path, text: str, name: str, family: str) -> list[Diagnostic]:
    """Write a document without mistakes, and return its findings whose codes begin so."""
    findings = DocumentCheck().of(Source.of(text, str(given({name: text}, folder) / name)))
    assert not [one for one in findings if one.severity == "error"]
    return [one for one in findings if one.code.id.startswith(family)]


def found(folder: Path, text: str, name: str = "p.yaml") -> list[Diagnostic]:
    return findings_of_file(folder, text, name, "SE")


@pytest.fixture(autouse=True)
def own_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "user"))
    (tmp_path / "quire.toml").write_text('[privacy]\nfiles = ["secrets/*"]\n')
    (tmp_path / "user").mkdir()
    return tmp_path


TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ2" * 2
GET = '{{tool: {{name: http__get, args: {{url: "https://example.org", headers: {{{}}}}}}}}}'


@pytest.mark.parametrize(
    "step",
    [
        GET.format(f'X-Thing: "{TOKEN}"'),
        GET.format('X-Api-Key: "8f4bd61c9e2a47d3"'),
        GET.format('Authorization: "Bearer q8f4bd61c9e2a47d3"'),
        '{tool: {name: http__get, args: {url: "https://ada:hunter2secret@intranet.local/x"}}}',
        "{transform: {value: \"'-----BEGIN RSA PRIVATE KEY-----'\"}}",
    ],
)
def test_a_secret_of_the_document_is_found_and_never_shown(tmp_path: Path, step: str) -> None:
    (one,) = found(tmp_path, pipeline(step))
    assert one.code.id == "SE101"
    for secret in (TOKEN, "8f4bd61c9e2a47d3", "hunter2secret"):
        assert secret not in f"{one.message} {one.help} {one.label}"


@pytest.mark.parametrize(
    "step",
    [
        GET.format('X-Api-Key: "YOUR_API_KEY_123456"'),
        GET.format('X-Api-Key: "xxxxxxxxxxxxxxxx1"'),
        GET.format('X-Request-Id: "8f4bd61c9e2a47d3"'),
        "{transform: {value: \"'AKIAIOSFODNN7EXAMPLE'\"}}",
        '{tool: {name: http__get, args: {url: "https://example.org/a:b@c"}}}',
    ],
)
def test_a_placeholder_is_not_a_secret(tmp_path: Path, step: str) -> None:
    assert not found(tmp_path, pipeline(step))


def test_a_secret_in_the_prose_of_a_playbook_is_found(tmp_path: Path) -> None:
    text = f"# P\n\n## STEP 1: A\n\nUse the key {TOKEN} to log in.\n"
    (one,) = found(tmp_path, text, "p.playbook.md")
    assert text[one.span.start : one.span.end] == TOKEN


SEND = '{tool: {name: http__send, args: {method: POST, url: "https://example.org", json: !expr rates}}}'


def read(path: str) -> str:
    return f"{{tool: {{name: file__read, args: {{path: {path}}}, output: rates}}}}"


def test_a_private_file_that_is_sent_is_found_with_its_path(tmp_path: Path) -> None:
    (one,) = found(tmp_path, pipeline(read("secrets/rates.csv"), SEND))
    assert one.code.id == "SE102"
    assert [place.node for place in one.flow] == ["1 file__read", "rates", "2 http__send sends out"]


@pytest.mark.parametrize("path", ["", ", path: .", ", path: ./secrets", ", path: reports/../secrets"])
def test_a_search_through_private_files_is_found(tmp_path: Path, path: str) -> None:
    search = f"{{tool: {{name: file__grep, args: {{pattern: KEY{path}}}, output: rates}}}}"
    (one,) = found(tmp_path, pipeline(search, SEND))
    assert one.code.id == "SE102"


def test_a_model_does_not_make_a_private_value_public(tmp_path: Path) -> None:
    think = '{agent: {prompt: "Sum up {rates}", capabilities: {tools: []}, output: rates}}'
    (one,) = found(tmp_path, pipeline(read("secrets/rates.csv"), think, SEND))
    assert one.code.id == "SE102"


@pytest.mark.parametrize("path", ["reports/rates.csv", "secret/rates.csv"])
def test_another_file_may_leave(tmp_path: Path, path: str) -> None:
    assert not found(tmp_path, pipeline(read(path), SEND))


def test_a_path_that_a_run_decides_may_be_a_private_one(tmp_path: Path) -> None:
    assert found(tmp_path, pipeline(read("!expr ctx.file"), SEND))
    assert found(tmp_path, pipeline(read("!expr \"'secrets/' + ctx.file\""), SEND))
    assert not found(tmp_path, pipeline(read("!expr \"'reports/' + ctx.file\""), SEND))
    assert not found(tmp_path, pipeline(read("!expr \"'./reports/' + ctx.file\""), SEND))


@pytest.mark.parametrize(
    "path", ["!expr \"'./' + ctx.file\"", "!expr \"'.//./secrets/' + ctx.file\"", "!expr \"'/' + ctx.file\""]
)
def test_other_spellings_of_a_path_may_be_a_private_one(tmp_path: Path, path: str) -> None:
    assert found(tmp_path, pipeline(read(path), SEND))
    assert found(tmp_path, pipeline(read(f"{tmp_path}/secrets/rates.csv"), SEND))


def test_a_person_may_let_it_leave(tmp_path: Path) -> None:
    ask = "{tool: {name: ask, args: {prompt: Send?, type: confirm, show: !expr rates}, output: ok}}"
    guarded = SEND.replace("{name:", "{when: \"ok == 'yes'\", name:")
    assert not found(tmp_path, pipeline(read("secrets/rates.csv"), ask, guarded))


def test_a_server_that_the_user_marks_as_private(own_space: Path) -> None:
    server = {"mcpServers": {"crm": {"command": "crm"}}}
    (own_space / ".mcp.json").write_text(json.dumps(server))
    mark = '[servers.crm]\nat = "crm"\ntrusted = true\nprivate = {}\n'
    ask = "{tool: {name: crm__list, output: rates}}"
    for private, fires in (("true", True), ("false", False)):
        (own_space / "user" / "quire.toml").write_text(mark.format(private))
        assert bool(found(own_space, pipeline(ask, SEND))) is fires


@pytest.mark.parametrize(
    ("step", "fires"),
    [
        ("{tool: {name: file__read, args: {path: .env}}}", True),
        ("{tool: {name: file__read, args: {path: keys/id_rsa}}}", True),
        ("{tool: {name: shell, args: {command: cat .aws/credentials}}}", True),
        ('{tool: {name: shell, args: {command: ["cat", "server.pem"]}}}', True),
        ("{tool: {name: file__read, args: {path: .env.example}}}", False),
        ("{tool: {name: file__read, args: {path: id_rsa.pub}}}", False),
        ("{tool: {name: file__write, args: {path: .env, content: x}}}", False),
        ("{tool: {name: shell, args: {command: make environment}}}", False),
    ],
)
def test_files_of_keys(tmp_path: Path, step: str, *, fires: bool) -> None:
    assert [one.code.id for one in found(tmp_path, pipeline(step))] == ["SE103"] * fires
