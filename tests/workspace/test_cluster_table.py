"""`[cluster]` in two files: which server, how to get in, and that the two are never mixed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.workspace.test_configuration import load

from quire.errors import BadConfiguration
from quire.workspace.consent import requests
from quire.workspace.settings import ClusterSettings, TemporalAccess


def test_every_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    settings = load(
        tmp_path,
        """
        [cluster]
        temporal = "t.example:7233"
        namespace = "n"
        tls = true
        tls_ca = "papers/ca.pem"
        tls_cert = "~/me.pem"
        tls_key = "/secret/me.key"
        tls_server_name = "inner.example"
        api_key_env = "T_KEY"
        """,
    )
    access = TemporalAccess(
        True,
        tmp_path / "work" / "papers" / "ca.pem",
        tmp_path / "me" / "me.pem",
        Path("/secret/me.key"),
        "inner.example",
        "T_KEY",
    )
    assert settings.cluster == ClusterSettings("t.example:7233", "n", access=access)
    (line,) = requests(settings)
    assert "api_key_env = T_KEY" in line and "tls_key = /secret/me.key" in line


MINE = '[cluster]\ntemporal = "mine:1"\nnamespace = "mine"\nheartbeat = "5s"\ntls_ca = "ca.pem"\napi_key_env = "K"\n'


@pytest.mark.parametrize(
    ("theirs", "server", "namespace", "key"),
    [
        ("", "mine:1", "mine", "K"),
        ('[cluster]\nnamespace = "theirs"\ntask_queue = "q"\n', "mine:1", "theirs", "K"),
        ('[cluster]\ntemporal = "theirs:1"\n', "theirs:1", "mine", None),
        ('[cluster]\ntemporal = "theirs:1"\napi_key_env = "OTHER"\n', "theirs:1", "mine", "OTHER"),
        ("[cluster]\ntls = false\n", None, "mine", None),
        ('[cluster]\napi_key_env = "OTHER"\n', None, "mine", "OTHER"),
    ],
)
def test_a_server_and_the_way_into_it_come_from_one_file(
    tmp_path: Path, theirs: str, server: str | None, namespace: str, key: str | None
) -> None:
    cluster = load(tmp_path, theirs, MINE).cluster
    assert (cluster.temporal, cluster.namespace, cluster.access.api_key_env) == (server, namespace, key)
    assert cluster.heartbeat == 5.0
    assert cluster.access.ca == (tmp_path / "home" / "ca.pem" if server == "mine:1" else None)


@pytest.mark.parametrize(
    ("access", "encrypted"),
    [
        (TemporalAccess(), False),
        (TemporalAccess(tls=False), False),
        (TemporalAccess(tls=True), True),
        (TemporalAccess(api_key_env="K"), True),
        (TemporalAccess(ca=Path("ca.pem")), True),
    ],
)
def test_what_needs_encryption_has_it(access: TemporalAccess, encrypted: bool) -> None:
    assert access.encrypted is encrypted


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('tls = "yes"', "[cluster] tls must be true or false"),
        ('tls_cert = "a.pem"', "[cluster] tls_cert needs tls_key beside it"),
        ('tls_key = "a.key"', "[cluster] tls_key needs tls_cert beside it"),
        ('api_key_env = "K"\napi_key_file = "k"', "[cluster] api_key_env and api_key_file are both set"),
        ('tls = false\napi_key_env = "K"', "[cluster] tls = false does not go with the rest"),
        ('api_key = "secret"', '[cluster] api_key is not a setting; did you mean "api_key_'),
        ("tls_ca = 1", "[cluster] tls_ca must be text"),
    ],
)
def test_what_does_not_go_together(tmp_path: Path, written: str, said: str) -> None:
    for workspace, user in ((written, ""), ("", written)):
        with pytest.raises(BadConfiguration) as wrong:
            load(tmp_path, *(f"[cluster]\n{text}\n" if text else "" for text in (workspace, user)))
        assert said in str(wrong.value)
        assert "secret" not in str(wrong.value)
