"""Find the secrets that tools of a workspace may return, so that they are redacted before anything is recorded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from quire.trust.secrets import Redactor, looks_secret, secrets_of

if TYPE_CHECKING:
    from quire.workspace.mcp_config import McpServer

__all__ = ["PUBLIC", "Redactor", "find_secrets", "looks_secret"]

_SCHEME = re.compile(r"^(Bearer|Basic|Token) +", re.IGNORECASE)
PUBLIC = frozenset({"HOME", "PATH", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR", "HOSTNAME"})


def find_secrets(
    environ: Mapping[str, str], servers: Iterable[McpServer] = (), named: Iterable[str] = ()
) -> dict[str, str]:
    """Return the secrets by name: of the environment, of the servers' settings, and the variables that are `named`."""
    secrets = secrets_of(environ, named)
    for server in servers:
        for name in server.variables():
            if name in environ and name not in PUBLIC:
                secrets[name] = environ[name]
        for name, value in (*server.env.items(), *server.headers.items()):
            if looks_secret(name) and "${" not in value:
                # The part after the scheme of a header is the secret; tools quote it without the scheme too.
                secrets[name] = _SCHEME.sub("", value)
    return secrets
