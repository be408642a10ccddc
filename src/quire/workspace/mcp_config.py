"""The servers of `.mcp.json`, in the shape that most clients share.

References to the environment (`${VAR}`, `${VAR:-default}`) are kept as they are written: `expanded` fills in the values
when a server is started, below the gate, so that no setting and no display ever holds a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import Struct, ValidationError, convert, field
from msgspec.structs import replace

from quire.engine.premises import MCP_SECONDS
from quire.patterns import late_pattern
from quire.wording import did_you_mean, nearest

T = TypeVar("T")

PYTHON = "python"
BUILT_IN = "quire"
ITEMS = "rye"

_TAKEN = {PYTHON: "Python functions", BUILT_IN: "the built-in tools", ITEMS: "directives and knowledge"}
_HTTP = ("http", "streamable-http", "streamable_http", "streamableHttp")
_KEYS = ("type", "command", "args", "env", "cwd", "url", "headers", "timeout", "disabled")


class McpServer(Struct, frozen=True):
    """One server: either a command to start or a URL to connect to."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = MCP_SECONDS

    @property
    def line(self) -> str:
        """The address, or the command with its arguments, as written."""
        return self.url or " ".join((self.command, *self.args))

    def texts(self) -> Iterator[str]:
        """Yield all texts that may contain references to the environment."""
        yield from (self.command, *self.args, *self.env.values(), self.cwd, self.url, *self.headers.values())

    def variables(self) -> dict[str, str | None]:
        """Return the variables that are referred to, with their defaults; None if there is no default."""
        return variables_in(self.texts())

    def missing(self, environ: Mapping[str, str]) -> list[str]:
        return [name for name, default in self.variables().items() if default is None and name not in environ]

    def expanded(self, environ: Mapping[str, str]) -> McpServer:
        """Return the server with the values of the environment; a missing variable without a default becomes empty."""

        def fill(text: str) -> str:
            return filled_in(text, environ)

        return replace(
            self,
            command=fill(self.command),
            args=tuple(fill(argument) for argument in self.args),
            env={name: fill(value) for name, value in self.env.items()},
            cwd=fill(self.cwd),
            url=fill(self.url),
            headers={name: fill(value) for name, value in self.headers.items()},
        )


def read_servers(
    file: Path, text: bytes | None, problems: list[str], warnings: list[str], disabled: list[str] | None = None
) -> dict[str, McpServer]:
    """Read the servers of a file from its text; none without one. Adds errors to `problems`, oddities to `warnings`,
    and the names of disabled servers to `disabled`."""
    if text is None:
        return {}
    import json  # most folders have no such file

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems.append(f"{file}: is not JSON: {error}")
        return {}
    entries = data.get("mcpServers", {}) if isinstance(data, dict) else None
    if not isinstance(entries, dict):
        problems.append(f'{file}: must be {{"mcpServers": {{NAME: {{"command": …}}}}}}')
        return {}
    if "mcpServers" not in data:
        # The file may be written for another client; its servers must not be skipped silently.
        close = [key for key in data if nearest(key, ("mcpServers",)) or key.lower() == "servers"]
        problems.extend(f'{file}: "{key}" is not known: the servers stand under "mcpServers"' for key in close)
    warnings.extend(f'{file}: "{key}" is not known and ignored' for key in data if key != "mcpServers")
    servers: dict[str, McpServer] = {}
    for name, entry in entries.items():
        server = _Entry(file, name, entry, problems, warnings).read()
        if server is not None:
            servers[name] = server
        elif disabled is not None and isinstance(entry, dict) and entry.get("disabled") is True:
            disabled.append(name)
    return servers


class _Entry(Struct, frozen=True):
    file: Path
    name: str
    data: object
    problems: list[str]
    warnings: list[str]

    def read(self) -> McpServer | None:
        before = len(self.problems)
        data = self.data
        if not isinstance(data, dict):
            self._problem("must be an object")
            return None
        if not self.name.strip():
            self._problem("a server needs a name")
        if self.name in _TAKEN:
            self._problem(f'"{self.name}" stands for {_TAKEN[self.name]}; give the server another name')
        for key in data:
            if key not in _KEYS:
                hint = did_you_mean(nearest(key, _KEYS), lead="; ", form='"{}"')
                self.warnings.append(f'{self.file}: server "{self.name}": "{key}" is not known and ignored{hint}')
        server = McpServer(
            name=self.name,
            command=self._take(data, "command", str, "", "text"),
            args=self._take(data, "args", tuple[str, ...], (), "a list of texts"),
            env=self._take(data, "env", dict[str, str], {}, "an object of texts"),
            cwd=self._take(data, "cwd", str, "", "text"),
            url=self._take(data, "url", str, "", "text"),
            headers=self._take(data, "headers", dict[str, str], {}, "an object of texts"),
            timeout=self._timeout(data),
        )
        self._check_kind(data.get("type"), server)
        return None if len(self.problems) > before or data.get("disabled") is True else server

    def _check_kind(self, kind: object, server: McpServer) -> None:
        if kind is not None and kind != "stdio" and kind not in _HTTP:
            import json

            self._problem(f'type {json.dumps(kind)} is not supported; use "stdio" or "http"')
        elif bool(server.command) == bool(server.url):
            self._problem('needs either "command" or "url"')
        elif server.url and (kind == "stdio" or not re.match(r"https?://|\$\{", server.url)):
            self._problem('needs a "command" for stdio, or a "url" that begins with http:// or https://')
        elif server.command and kind in _HTTP:
            self._problem('is of type http and needs a "url"')

    def _take(self, data: Mapping[str, object], key: str, kind: type[T], default: T, expected: str) -> T:
        try:
            return convert(data.get(key, default), kind)
        except ValidationError:
            self._problem(f'"{key}" must be {expected}')
            return default

    def _timeout(self, data: Mapping[str, object]) -> float:
        value = data.get("timeout", MCP_SECONDS)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 86_400:
            return float(value)
        self._problem('"timeout" must be a number of seconds, more than 0')
        return MCP_SECONDS

    def _problem(self, message: str) -> None:
        self.problems.append(f'{self.file}: server "{self.name}": {message}')


_REFERENCE = late_pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def variables_in(texts: Iterable[str]) -> dict[str, str | None]:
    """Return the variables that texts refer to, with their defaults; None if there is no default."""
    variables: dict[str, str | None] = {}
    for text in texts:
        for reference in _REFERENCE.finditer(text):
            name, default = reference[1], reference[2]
            # A variable that one place needs without a default is needed, even if another place gives a default.
            variables[name] = default if variables.get(name, "") is not None else None
    return variables


def filled_in(text: str, environ: Mapping[str, str]) -> str:
    """Return a text with the values of the environment; a missing variable without a default becomes empty."""
    return _REFERENCE.sub(lambda match: environ.get(match[1]) or match[2] or "", text)


def without_references(text: str) -> str:
    return _REFERENCE.sub("", text)
