"""Secrets of a workspace: find them, so that results are recorded without them, and mask them in what users read.

Requests of a workspace are shown in lists, in JSON and on terminals that others may see. A value that changes the
behaviour of a program (`LD_PRELOAD`, `PYTHONPATH`) must be shown, so that the user can agree to it; one that only gives
access is masked. References (`${VAR}`) are shown as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.patterns import late_pattern
from quire.trust.secrets import looks_secret, secrets_of

if TYPE_CHECKING:
    from quire.workspace.host_headers import HostHeaders
    from quire.workspace.mcp_config import McpServer

MASK = "***"
PUBLIC = frozenset({"HOME", "PATH", "PWD", "OLDPWD", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "TMPDIR", "HOSTNAME"})
"""Variables that are not secrets, although a server's settings refer to them."""

_NAME = late_pattern(
    r"(?:^|_)(?:api_?)?(?:keys?|tokens?|secrets?|passw(?:or)?d|pass|passphrase|pwd|creds?|credentials?|auth|"
    r"authorization|cookies?|pat|dsn|webhook|pem|signature|bearer)(?:_|\d|$)",
    re.IGNORECASE,
)
_CAMEL = late_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_REFERENCE = late_pattern(r"(\$\{[A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_USER = late_pattern(r"(\b[a-z][a-z0-9+.-]*://)[^/?#\s@]*@", re.IGNORECASE)
_QUERY = late_pattern(r"([?&;][^=&;#\s]*)=[^&;#\s]*")
_SCHEME = late_pattern(r"\s*(?:Bearer|Basic|Token|ApiKey)?\s*", re.IGNORECASE)
_GIVEN_SCHEME = late_pattern(r"^(Bearer|Basic|Token) +", re.IGNORECASE)
_KEY = late_pattern(
    r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[a-z]|hf|npm|pypi)[-_][\w-]{8,}|\bAKIA[A-Z0-9]{12,}|\beyJ[\w-]{8,}[\w.-]*"
)
_RANDOM = late_pattern(r"(?<![\w/.@-])(?=[\w+-]*\d)(?=[\w+-]*[A-Za-z])[A-Za-z0-9_+-]{28,}={0,2}(?![\w/.@-])")


def find_secrets(
    environ: Mapping[str, str],
    servers: Iterable[McpServer] = (),
    named: Iterable[str] = (),
    hosts: Iterable[HostHeaders] = (),
) -> dict[str, str]:
    """Return the secrets by name: of the environment, of the settings of servers and hosts, and the variables that are
    `named`."""
    secrets = secrets_of(environ, named)
    for host in hosts:
        for name in host.variables():
            if environ.get(name) and name not in PUBLIC:
                secrets[name] = environ[name]
        for name, value in host.filled(environ).items():
            if looks_secret(name):
                secrets[f"{name} for {host.name}"] = _GIVEN_SCHEME.sub("", value)
    for server in servers:
        for name in server.variables():
            if name in environ and name not in PUBLIC:
                secrets[name] = environ[name]
        for name, value in (*server.env.items(), *server.headers.items()):
            if looks_secret(name) and "${" not in value:
                # The part after the scheme of a header is the secret; tools quote it without the scheme too.
                secrets[name] = _GIVEN_SCHEME.sub("", value)
    return secrets


def masked(text: str) -> str:
    """Mask the passwords and query values of addresses in a text, and words that look like keys."""
    text = _USER.sub(rf"\1{MASK}@", text)
    if "://" in text:
        text = _QUERY.sub(rf"\1={MASK}", text)
    return _RANDOM.sub(MASK, _KEY.sub(MASK, text))


def shown_model(spec: str) -> str:
    """Return a model as it may be shown: an address without its password and its query."""
    return masked(spec) if "://" in spec else spec


def masked_value(name: str, value: str) -> str:
    """Mask the value of a variable or a header. If its name sounds like a secret, only references are shown."""
    if not _sounds_secret(name):
        return masked(value)
    shown, at = [], 0
    for reference in _REFERENCE.finditer(value):
        default = f":-{MASK}" if reference[2] else ""
        shown += [_without(value[at : reference.start()]), f"{reference[1]}{default}}}"]
        at = reference.end()
    return "".join([*shown, _without(value[at:])])


def masked_command(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command line, with values masked that follow an option or a name that sounds like a
    secret."""
    before = ""
    for word in words:
        name, equals, value = word.partition("=")
        if before.startswith("-") and _sounds_secret(before.lstrip("-")):
            yield masked_value("secret", word)
        elif equals and "://" not in name and _sounds_secret(name.lstrip("-")):
            yield f"{name}={masked_value('secret', value)}"
        else:
            yield masked(word)
        before = word


def _sounds_secret(name: str) -> bool:
    """Tell whether the value of a name is masked. Narrower than `looks_secret`: a hidden value cannot be agreed to."""
    return _NAME.search(_CAMEL.sub("_", name).replace("-", "_")) is not None


def _without(text: str) -> str:
    """Mask a text, but keep the scheme of a header, which is not secret."""
    scheme = _SCHEME.match(text)
    start = scheme.end() if scheme else 0
    return text[:start] + (MASK if text[start:] else "")
