"""Takes secrets out of what tools return and complain about, before anything is recorded.

A secret is a value, not a shape: what a `${VAR}` of `.mcp.json` stood for, and what the environment holds under
a name that looks like a key. Only the exact value is found; one that a tool encoded first is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from quire.values import Value
from quire.workspace.mcp_config import McpServer

MIN_LENGTH = 8

_SECRET_NAME = re.compile(r"key(_id)?$|token|secret|passw(or)?d|credential|authorization|cookie", re.IGNORECASE)
_SCHEME = re.compile(r"^(Bearer|Basic|Token) +", re.IGNORECASE)
_PUBLIC = frozenset({"HOME", "PATH", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR", "HOSTNAME"})


def looks_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


class Redactor:
    """Puts `[redacted:NAME]` where a secret stood."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names = {value: name for name, value in secrets.items() if len(value) >= MIN_LENGTH}
        # The longest first: a secret that begins with another one must not leave its tail behind.
        values = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, values))) if values else None

    def text(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: f"[redacted:{self._names[found.group()]}]", text)

    def value(self, value: Value) -> Value:
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value


def find_secrets(
    environ: Mapping[str, str], servers: Iterable[McpServer] = (), named: Iterable[str] = ()
) -> dict[str, str]:
    """The secrets by name: of the environment, those that the servers are given, and the variables that are `named`."""
    known = frozenset(named)
    secrets = {name: value for name, value in environ.items() if looks_secret(name) or name in known}
    for server in servers:
        for name in server.variables():
            if name in environ and name not in _PUBLIC:
                secrets[name] = environ[name]
        for name, value in (*server.env.items(), *server.headers.items()):
            if looks_secret(name) and "${" not in value:
                # What follows the scheme of a header is the secret; tools quote it without the scheme too.
                secrets[name] = _SCHEME.sub("", value)
    return secrets
