"""Read settings tables, and keep every problem instead of stopping at the first. Includes `[cluster]` and `[webhooks]`.

A Temporal server and the access to it are taken whole from one file. Otherwise a workspace could combine its own
address with the user's key, or switch off the encryption for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from msgspec import Struct, convert, field
from msgspec.structs import replace

from quire.models.choose import as_spec
from quire.patterns import late_pattern
from quire.values import InvalidValue, encode
from quire.wording import did_you_mean, nearest
from quire.workspace.settings import (
    HOOK_SCHEMES,
    NOTIFY_EVENTS,
    ROLES,
    TRIGGER_WORDS,
    WEBHOOK_EVENTS,
    WEBHOOK_TEXTS,
    BudgetSettings,
    ClusterSettings,
    HookSecret,
    NotifySettings,
    PipelineEntry,
    PlaybookSettings,
    SandboxSettings,
    ServerMark,
    ServeSettings,
    SpawnSettings,
    TelemetrySettings,
    TemporalAccess,
    TriggerSettings,
    WebhookSettings,
    table_in,
)

if TYPE_CHECKING:
    import datetime

    from quire.units import Size

T = TypeVar("T")
C = TypeVar("C", bound=str)
P = ParamSpec("P")

_TRIGGER = late_pattern(r"[A-Za-z0-9_-]{1,60}")
_WEBHOOK_URL = late_pattern(r"https?://[^/\s]+(/\S*)?")


class Table(Struct):
    """One table. `name` is its name in the file (`runs` for `[runs]`), empty for the top; `problems` is shared by all
    tables."""

    file: str
    name: str
    data: Mapping[str, object]
    problems: list[str]
    _known: list[str] = field(default_factory=list)

    def text(self, key: str) -> str | None:
        return self._take(key, "text", lambda value: value if isinstance(value, str) and value.strip() else None)

    def texts(self, key: str) -> tuple[str, ...]:
        return self._take(key, "a list of texts", _texts) or ()

    def count(self, key: str) -> int | None:
        return self._take(
            key, "a whole number, 0 or more", lambda value: value if type(value) is int and value >= 0 else None
        )

    def positive(self, key: str) -> int | None:
        return self._take(
            key, "a whole number, 1 or more", lambda value: value if type(value) is int and 0 < value < 1e9 else None
        )

    def number(self, key: str, most: float) -> float | None:
        """Return a number from 0 to `most`."""
        return self._take(
            key,
            f"a number from 0 to {most:g}",
            lambda value: number if (number := _amount(value)) is not None and number <= most else None,
        )

    def model(self, key: str, expected: str = "text or a list of texts") -> str | None:
        """Return a model, or several in their order as one text."""
        return self._take(key, expected, as_spec)

    def flag(self, key: str, default: bool) -> bool:
        flag = self._take(key, "true or false", lambda value: value if isinstance(value, bool) else None)
        return default if flag is None else flag

    def choice(self, key: str, options: tuple[C, ...]) -> C | None:
        expected = " or ".join(f'"{option}"' for option in options)
        return self._take(key, expected, lambda value: next((option for option in options if option == value), None))

    def duration(self, key: str) -> float | None:
        return self._take(key, 'a time like "30s", "30m", "24h" or "7d"', _duration)

    def date(self, key: str) -> datetime.date | None:
        return self._take(key, "a day like 2026-11-17", _date)

    def amount(self, key: str) -> float | None:
        return self._take(key, "a number, 0 or more", _amount)

    def table(self, key: str) -> Table:
        self._known.append(key)
        value = self.data.get(key, {})
        name = f"{self.name}.{key}" if self.name else key
        if isinstance(value, Mapping):
            return Table(self.file, name, value, self.problems)
        self._wrong(key, "a table", value)
        return Table(self.file, name, {}, self.problems)

    def values(self, key: str) -> Mapping[str, object] | None:
        return self._take(key, "a table of JSON values", _values)

    def tables(self, key: str) -> dict[str, Table]:
        """Return the tables of a table whose keys are chosen by the user."""
        outer = self.table(key)
        return {name: outer.table(name) for name in outer.data}

    def several(self, key: str) -> list[Table]:
        """Return a table, or the tables of a list."""
        several = self._take(key, "a table or a list of tables", _tables) or ()
        return [Table(self.file, f"{self.name}.{key}", data, self.problems) for data in several]

    def all_sizes(self) -> dict[str, Size]:
        """Return every key of this table, each with a size."""
        if not self.data:
            return {}
        from quire.units import size_of  # Few settings need it.

        sizes = {key: self._take(key, 'a whole number or a size like "40 KB"', size_of) for key in self.data}
        return {key: size for key, size in sizes.items() if size is not None}

    def wrong(self, problem: str) -> None:
        """Report a problem of the table."""
        self.problems.append(f"{self.file}: [{self.name}] {problem}")

    def end(self) -> None:
        """Report the keys that were not read as unknown. Call this after reading all known keys."""
        for key in self.data:
            if key not in self._known:
                close = nearest(key, self._known)
                meant = did_you_mean(close, f"known are: {', '.join(sorted(self._known))}", form='"{}"')
                self.problems.append(f"{self.file}: {self._place(key)} is not a setting; {meant}")

    def _take(self, key: str, expected: str, read: Callable[[object], T | None]) -> T | None:
        self._known.append(key)
        if key not in self.data:
            return None
        value = read(self.data[key])
        if value is None:
            self._wrong(key, expected, self.data[key])
        return value

    def _wrong(self, key: str, expected: str, value: object) -> None:
        self.problems.append(f"{self.file}: {self._place(key)} must be {expected}, not {value!r}")

    def _place(self, key: str) -> str:
        return f"[{self.name}] {key}" if self.name else f'"{key}"'


def _texts(value: object) -> tuple[str, ...] | None:
    if isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value):
        return tuple(value)
    return None


def _values(value: object) -> Mapping[str, object] | None:
    try:
        encode(value)  # type: ignore[arg-type]  # it says whether the value is JSON: a date is not
    except InvalidValue:
        return None
    return value if isinstance(value, Mapping) else None


def _tables(value: object) -> list[Mapping[str, object]] | None:
    several = value if isinstance(value, list) else [value]
    tables = [data for data in several if isinstance(data, Mapping)]
    return tables if tables and len(tables) == len(several) else None


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return float(value)


def _date(value: object) -> datetime.date | None:
    import datetime

    if isinstance(value, str):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            return None
    # A time of a day is a date as well for Python.
    return value if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) else None


def _duration(value: object) -> float | None:
    from quire.units import seconds_of  # Few settings need it.

    return seconds_of(value) if isinstance(value, str) else None


def whole_table(read: Callable[Concatenate[Table, P], T]) -> Callable[Concatenate[Table, P], T]:
    """Let a reader of a table report the keys that it has not read."""

    def read_whole(table: Table, /, *args: P.args, **kwargs: P.kwargs) -> T:
        settings = read(table, *args, **kwargs)
        table.end()
        return settings

    return read_whole


@whole_table
def read_playbook(table: Table) -> PlaybookSettings:
    """Read a table `[playbooks."NAME"]`."""
    steps: dict[str, str] = {}
    for label, step in table.tables("steps").items():
        if model := step.text("model"):
            steps[label] = model
        step.end()
    return PlaybookSettings(table.text("model") or "", table.text("agent") or "", steps)


@whole_table
def read_serve(table: Table) -> ServeSettings:
    """Read the table `[serve]`."""
    people = table.table("people")
    roles = {name: role for name in people.data if (role := people.choice(name, ROLES))}
    listeners = table.positive("listeners") or ServeSettings().listeners
    return ServeSettings(listeners, table.flag("different_approver", False), roles)


SERVER = ("temporal", "tls", "tls_ca", "tls_cert", "tls_key", "tls_server_name", "api_key_env", "api_key_file")
"""The keys that state the address of a server and the access to it."""


@whole_table
def read_cluster(table: Table, folder: Path) -> ClusterSettings:
    """Read the table `[cluster]`. Files are relative to `folder`; `~` is the home of the user."""
    default = ClusterSettings()
    settings = ClusterSettings(
        table.text("temporal"),
        table.text("namespace") or default.namespace,
        table.text("task_queue") or default.task_queue,
        table.duration("heartbeat") or default.heartbeat,
        _access(table, folder),
    )
    for problem in problems_of(settings.access):
        table.wrong(problem)
    return settings


def server_of_one_file(
    merged: ClusterSettings, theirs: Mapping[str, object], requested: ClusterSettings, own: ClusterSettings
) -> ClusterSettings:
    """Return `merged` with the server of the workspace if `theirs`, its file as written, has any key of one; else with
    the user's."""
    chosen = requested if table_in(theirs, "cluster").keys() & set(SERVER) else own
    return replace(merged, temporal=chosen.temporal, access=chosen.access)


def problems_of(access: TemporalAccess) -> list[str]:
    """Return the contradictions between the settings, in the words of the settings."""
    problems = []
    if (access.certificate is None) != (access.key is None):
        key, missing = ("tls_cert", "tls_key") if access.key is None else ("tls_key", "tls_cert")
        problems.append(f"{key} needs {missing} beside it")
    if access.api_key_env and access.api_key_file:
        problems.append("api_key_env and api_key_file are both set: which one?")
    if access.tls is False and access != TemporalAccess(tls=False):
        problems.append("tls = false does not go with the rest: certificates and API keys are for TLS")
    return problems


def _access(table: Table, folder: Path) -> TemporalAccess:
    tls = table.flag("tls", False)
    return TemporalAccess(
        tls=tls if "tls" in table.data else None,
        ca=_file(table, "tls_ca", folder),
        certificate=_file(table, "tls_cert", folder),
        key=_file(table, "tls_key", folder),
        server_name=table.text("tls_server_name"),
        api_key_env=table.text("api_key_env"),
        api_key_file=_file(table, "api_key_file", folder),
    )


def _file(table: Table, key: str, folder: Path) -> Path | None:
    text = table.text(key)
    return folder / Path(text).expanduser() if text else None


def _some_of(table: Table, key: str, options: tuple[str, ...]) -> tuple[str, ...]:
    words = table.texts(key)
    for word in words:
        if word not in options:
            table.wrong(f"{key}: {word!r} is unknown; there are {', '.join(options)}")
    return words


@whole_table
def read_webhook(table: Table, folder: Path) -> WebhookSettings:
    """Read a table `[webhooks.NAME]`. The path of a file is relative to the settings file in `folder`."""
    url, variable, file = table.text("url"), table.text("secret_env"), _file(table, "secret_file", folder)
    if url is None and "url" not in table.data:
        table.wrong("needs a url")
    elif url is not None and (not _WEBHOOK_URL.fullmatch(url) or "?" in url or "@" in url):
        table.wrong("url has to be an http or https address without a query, a user or a password: no secret is in it")
    if (variable is None) == (file is None):
        table.wrong("needs the secret that signs: either secret_env or secret_file")
    events, include = _some_of(table, "events", WEBHOOK_EVENTS), _some_of(table, "include", WEBHOOK_TEXTS)
    return WebhookSettings(url or "", variable, file, events or WEBHOOK_EVENTS, include)


@whole_table
def read_private_files(table: Table) -> tuple[str, ...]:
    """Read the table `[privacy]`."""
    return table.texts("files")


@whole_table
def read_pipelines(table: Table) -> dict[str, PipelineEntry]:
    """Read the table `[pipelines]`."""
    entries: dict[str, PipelineEntry] = {}
    for key, entry in table.tables("entries").items():
        path = entry.text("path")
        if path is None and "path" not in entry.data:
            entry.wrong("needs a path")
        entries[key] = PipelineEntry(path or "", entry.text("description") or "", entry.flag("enabled", True))
        entry.end()
    return entries


@whole_table
def read_mark(table: Table) -> ServerMark:
    """Read a table `[servers.NAME]`. A name alone is not trusted: a workspace may give it to a server of its own."""
    mark = ServerMark(table.text("at") or "", table.flag("trusted", False), table.flag("private", False))
    if mark.trusted and not mark.at and "at" not in table.data:
        needs = 'at = "…", the address of the server or its command with the arguments, as in .mcp.json'
        table.wrong(f"trusted needs {needs}")
    return mark


@whole_table
def read_notify(table: Table) -> NotifySettings | None:
    """Read the table `[notify]`."""
    command = table.texts("command")
    if not command and table.data.get("command", []) == []:
        table.wrong("needs a command: a list with a program and its arguments")
    events = _some_of(table, "events", NOTIFY_EVENTS)
    return NotifySettings(command, events or NOTIFY_EVENTS) if command else None


@whole_table
def read_telemetry(table: Table) -> TelemetrySettings:
    return TelemetrySettings(table.text("endpoint"), table.flag("content", False))


SOURCES = ("cron", "every", "webhook", "files")
"""The keys of a trigger that say when it fires."""


@whole_table
def _read_hook(table: Table) -> HookSecret:
    scheme, variable, file = table.choice("scheme", HOOK_SCHEMES), table.text("secret_env"), table.text("secret_file")
    if "scheme" not in table.data or len({"secret_env", "secret_file"} & table.data.keys()) != 1:
        table.wrong("needs scheme, and either secret_env or secret_file")
    elif file and not file.startswith(("/", "~")):
        table.wrong("secret_file has to begin with / or ~")
    return HookSecret(scheme or "", variable or "", file or "")


@whole_table
def read_trigger(table: Table) -> TriggerSettings:
    """Read a table `[triggers.NAME]`."""
    if not _TRIGGER.fullmatch(table.name.rpartition(".")[2]):
        table.wrong("a name has at most 60 letters, digits, - and _")
    if "run" not in table.data or len([key for key in SOURCES if key in table.data]) != 1:
        table.wrong(f"needs run, the document, and one of {', '.join(SOURCES)}")
    given = {
        **{key: table.text(key) for key in ("run", "cron", "files", "key", "zone", "when", "model")},
        **{key: table.duration(key) for key in ("every", "window")},
        **{key: table.amount(key) for key in ("budget", "day_budget")},
        "overlap": "queue" if {"webhook", "files"} & table.data.keys() else None,
        **{key: word for key, words in TRIGGER_WORDS.items() if (word := table.choice(key, words))},
        "webhook": [_read_hook(hook) for hook in table.several("webhook")],
        "rate": table.positive("rate"),
        "existing": table.flag("existing", False),
        "inputs": table.values("inputs"),
        "allow": table.texts("allow"),
    }
    trigger = convert({key: value for key, value in given.items() if value is not None}, TriggerSettings)
    if trigger.every is not None and trigger.every % 1:
        table.wrong("every: whole seconds, 1 s or more")
    return trigger


@whole_table
def read_budgets(table: Table) -> BudgetSettings:
    """Read the table `[budgets]`."""
    return BudgetSettings(table.amount("run"), table.amount("day"), table.amount("month"))


@whole_table
def read_spawn(table: Table) -> SpawnSettings:
    """Read the table `[safety]`."""
    spawn, default = table.table("spawn"), SpawnSettings()
    depth, spawns = spawn.count("max_pipeline_fan_out_depth"), spawn.count("max_pipeline_spawns")
    spawn.end()
    return SpawnSettings(
        default.max_pipeline_fan_out_depth if depth is None else depth,
        default.max_pipeline_spawns if spawns is None else spawns,
        spawns is not None,
    )


@whole_table
def read_sandbox(table: Table) -> SandboxSettings:
    """Read the table `[sandbox]`."""
    default = SandboxSettings()
    return SandboxSettings(
        table.count("memory") or default.memory,
        table.count("processes") or default.processes,
        table.count("file") or default.file,
    )
