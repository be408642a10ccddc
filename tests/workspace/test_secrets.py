from __future__ import annotations

import json
from pathlib import Path

import pytest

from quire.cli import main
from quire.workspace.secrets import masked, masked_command, masked_value


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("LD_PRELOAD", "/x.so", "/x.so"),
        ("PYTHONPATH", "lib:/opt/other", "lib:/opt/other"),
        ("NODE_OPTIONS", "--require ./evil.js", "--require ./evil.js"),
        ("PATH", "./bin:/usr/bin", "./bin:/usr/bin"),
        ("ZONE", "Europe/Berlin", "Europe/Berlin"),
        ("API_KEY", "abc", "***"),
        ("apiKey", "abc", "***"),
        ("X-Api-Key", "abc", "***"),
        ("GITHUB_PAT", "abc", "***"),
        ("API_KEY_PROD", "abc", "***"),
        ("SENTRY_DSN", "abc", "***"),
        ("PASSPHRASE", "abc", "***"),
        ("Authorization", "Bearer abc", "Bearer ***"),
        ("Authorization", "Bearer ${TOKEN}", "Bearer ${TOKEN}"),
        ("Authorization", "Bearer ${TOKEN:-abc}", "Bearer ${TOKEN:-***}"),
        ("TOKEN", "${A}abc${B}", "${A}***${B}"),
        ("DATABASE_URL", "postgresql://me:pw@host/db?sslpassword=x", "postgresql://***@host/db?sslpassword=***"),
        ("OTHER", "ghp_abcdefghij0123456789", "***"),
        ("OTHER", "Zm9vYmFyMTIzNDU2Nzg5MGFiY2RlZg", "***"),
    ],
)
def test_values(name: str, value: str, shown: str) -> None:
    assert masked_value(name, value) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://user:pw@host/mcp", "https://***@host/mcp"),
        ("https://token@host/mcp?key=abc&x=1#part", "https://***@host/mcp?key=***&x=***#part"),
        ("https://host/v1#gpt", "https://host/v1#gpt"),
        ("a = b?c=d", "a = b?c=d"),
        ("/opt/some_long_package_name_1234567890/x", "/opt/some_long_package_name_1234567890/x"),
    ],
)  # fmt: skip
def test_texts(text: str, shown: str) -> None:
    assert masked(text) == shown


def test_commands() -> None:
    words = ["serve", "--api-key", "abc", "--token=abc", "-e", "DB_PASSWORD=abc", "--zone", "UTC", "--key", "${KEY}"]
    shown = ["serve", "--api-key", "***", "--token=***", "-e", "DB_PASSWORD=***", "--zone", "UTC", "--key", "${KEY}"]
    assert list(masked_command(words)) == shown


@pytest.mark.parametrize("verb", [["trust", "workspace", "--show"], ["trust", "workspace", "--json"], ["mcp"]])
def test_no_list_of_requests_shows_a_secret(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quire.toml").write_text('[store]\nurl = "postgresql://me:PWNED@h/d"\n[tools]\nallow = ["shell"]\n')
    servers = {
        "a": {"command": "x", "args": ["--token", "PWNED"], "env": {"A_KEY": "PWNED", "LD_PRELOAD": "/x.so"}},
        "b": {"url": "https://me:PWNED@h/mcp?k=PWNED", "headers": {"Authorization": "Bearer PWNED"}},
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    main(verb)
    out, err = capsys.readouterr()
    assert "PWNED" not in out + err
    assert "given A_KEY=***, LD_PRELOAD=/x.so" in out + err, "what changes a program has to be seen"
