from __future__ import annotations

import pytest

from quire.trust.secrets import Redactor, looks_secret
from quire.values import Value
from quire.workspace.mcp_config import McpServer
from quire.workspace.secrets import find_secrets


@pytest.mark.parametrize(
    ("value", "redacted"),
    [
        ("the key is sk-123456789!", "the key is [redacted:A_KEY]!"),
        ("sk-12345", "sk-12345"),
        ("sk-123456789-long", "[redacted:B_KEY]"),
        ({"sk-123456789": ["a", {"b": "sk-123456789"}]}, {"[redacted:A_KEY]": ["a", {"b": "[redacted:A_KEY]"}]}),
        ([1, 2.5, True, None], [1, 2.5, True, None]),
        ("short", "short"),
        ("a.b+c(d)e", "[redacted:ODD]"),
    ],
)
def test_values(value: Value, redacted: Value) -> None:
    secrets = {"A_KEY": "sk-123456789", "B_KEY": "sk-123456789-long", "SHORT": "short", "ODD": "a.b+c(d)e"}
    assert Redactor(secrets).value(value) == redacted


def test_without_secrets_nothing_is_touched() -> None:
    value: Value = {"a": ["b"]}
    assert Redactor({"A_KEY": "short"}).value(value) is value


@pytest.mark.parametrize(
    "name", ["OPENAI_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "Authorization"]
)
def test_names_that_look_secret(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["HOME", "PATH", "KEYBOARD", "LANG", "TERM_PROGRAM"])
def test_names_that_do_not(name: str) -> None:
    assert not looks_secret(name)


def test_secrets_come_from_the_environment_and_what_servers_are_given() -> None:
    environ = {"X_TOKEN": "in the environment", "ZONE": "handed over", "HOME": "/home/somebody", "LANG": "de_DE.UTF-8"}
    server = McpServer(
        "s",
        command="${HOME}/run",
        args=("--zone=${ZONE}", "${NOT_SET:-default value}"),
        env={"APP_PASSWORD": "written down", "MODE": "written down too"},
        headers={"Authorization": "Bearer abcdefghijk", "X-Key": "${X_TOKEN}"},
    )
    assert find_secrets(environ, [server]) == {
        "X_TOKEN": "in the environment",
        "ZONE": "handed over",
        "APP_PASSWORD": "written down",
        "Authorization": "abcdefghijk",
    }
