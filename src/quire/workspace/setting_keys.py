"""Every key of `quire.toml`: its default, its meaning, and the words that it takes, for editors and for the docs.

`docs/reference/configuration.md` shows the same table; a test compares both with each other and with the
readers of settings.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from quire.plan.vocabulary import REASONING
from quire.workspace.settings import NOTIFY_EVENTS, ROLES, TRIGGER_WORDS, WEBHOOK_EVENTS, WEBHOOK_TEXTS

_FLAG = ("true", "false")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
CHOSEN = frozenset(("NAME", "PROVIDER", "KEY", "STEP"))
"""Parts of keys that the user chooses."""
_FORMS = {
    "texts": "allow deny modules shell_env files tools events include command folders safe_folders",
    "count": "context_budget pure_work max_pipeline_spawns max_pipeline_fan_out_depth memory processes file",
    "positive": "max_tokens at_once calls_per_minute tokens_per_minute window reply_tokens turns listeners rate",
    "flag": "cache trusted private enabled tls documents locked different_approver existing content",
    "duration": "timeout expiry heartbeat every keep keep_failed",
    "amount": "input output budget day_budget",
    "temperature": "temperature",
    "date": "date",
    "headers": "headers",
}
"""The forms of values that are not text, with the last parts of the keys that take them."""
_OTHER_FORMS = {
    "assume.NAME": "size",
    "triggers.NAME.window": "duration",
    "triggers.NAME.inputs": "values",
    "triggers.NAME.files": "text",
    "triggers.NAME.webhook": "tables",
    **dict.fromkeys(("budgets.run", "budgets.day", "budgets.month"), "amount"),
}


class SettingKey(Struct, frozen=True):
    """One key."""

    key: str
    """Dotted. A part in capitals stands for a name that the user chooses."""
    default: str
    """As people read it; empty if the key is needed together with others."""
    meaning: str
    """Markdown, with links to other pages of the documentation."""
    words: tuple[str, ...] = ()
    """The words that it takes; those of a list for its entries."""
    names: Literal["", "model", "agent", "tool", "folder", "pipeline"] = ""
    """The kind of things that its value names."""

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.key.split("."))

    @property
    def form(self) -> str:
        """How its value is written: `text`, `size`, `model` or one of `_FORMS`."""
        if self.names == "model" and self.parts[0] == "models":
            return "model"
        return _OTHER_FORMS.get(self.key) or next(
            (form for form, names in _FORMS.items() if self.parts[-1] in names.split()), "text"
        )

    @property
    def text(self) -> str:
        """The meaning without links."""
        return _LINK.sub(r"\1", self.meaning)


SETTING_KEYS = (
    SettingKey("models.default", "none", "the model, list or tier of runs that name none", names="model"),
    SettingKey(
        "models.tiers.NAME",
        "none",
        "a name that stands for a model; a text, a list (if one fails, the next is asked) or a table of these keys",
        names="model",
    ),
    SettingKey("models.tiers.NAME.model", "needed", "the model, or a list", names="model"),
    SettingKey(
        "models.tiers.NAME.temperature",
        "that of the service",
        "[settings of its calls](../guides/models.md#settings-of-calls): a number from 0 to 2",
    ),
    SettingKey("models.tiers.NAME.max_tokens", "`runs.reply_tokens`", "the longest reply, in tokens"),
    SettingKey(
        "models.tiers.NAME.reasoning",
        "that of the service",
        'how much it thinks: `"none"`, `"minimal"`, `"low"`, `"medium"`, `"high"`',
        words=REASONING,
    ),
    SettingKey("models.tiers.NAME.timeout", "`models.timeout`", "how long the service may be silent"),
    SettingKey("models.tiers.NAME.at_once", "no limit", "how many calls of the model run side by side in a process"),
    SettingKey(
        "models.limits.PROVIDER.at_once",
        "no limit",
        "[limits of a provider](../guides/models.md#limits-of-a-provider): calls side by side",
    ),
    SettingKey("models.limits.PROVIDER.calls_per_minute", "no limit", "calls a minute"),
    SettingKey("models.limits.PROVIDER.tokens_per_minute", "no limit", "tokens a minute, read and written"),
    SettingKey(
        "models.timeout",
        '`"2m"`',
        (
            "how long a service may be silent, before its reply and in the middle of it, until the call counts as "
            "failed and is tried again"
        ),
    ),
    SettingKey("models.cache", "true", "services may cache what calls of threads, loops and agents with tools share"),
    SettingKey("models.providers.NAME.base_url", "needed", "the address of an OpenAI-compatible service"),
    SettingKey(
        "models.providers.NAME.api_key_env", "none", "the variable that holds its key; without it no key is sent"
    ),
    SettingKey("models.providers.NAME.timeout", "`models.timeout`", "the same for this service alone"),
    SettingKey(
        "models.prices.NAME.input",
        "",
        'dollars per million tokens that a model reads, by its name as in `"house:small"`; in your own file only',
    ),
    SettingKey("models.prices.NAME.output", "", "the same for those that it writes"),
    SettingKey(
        "models.prices.NAME.from",
        "none",
        'where you have the price from, as in `"contract"`; it is [shown with amounts](../guides/models.md#prices)',
    ),
    SettingKey("models.prices.NAME.date", "none", "the day on which you last looked at it, as in `2026-11-17`"),
    SettingKey(
        "models.prices.NAME.window",
        "that of the price list",
        "the most tokens that a call reads: without it, and without a list that has it, the input has no bound",
    ),
    SettingKey(
        "tools.allow",
        "`[]`",
        (
            "tools to grant, with [how far they may go](../guides/tools.md#how-far-they-may-go); in the "
            "workspace a request, in your user folder a grant"
        ),
        names="tool",
    ),
    SettingKey(
        "tools.deny",
        "`[]`",
        (
            "tools that nothing may use here, even with a grant: not a document, not a signature, not `--allow`; in "
            "either file"
        ),
        names="tool",
    ),
    SettingKey(
        "tools.modules",
        "`[]`",
        ("Python modules with [`@quire.tool`](../guides/tools.md#python-functions) functions; in a workspace only"),
    ),
    SettingKey(
        "tools.shell_env", "`[]`", "variables of the environment that commands get, by name; in your own file only"
    ),
    SettingKey(
        "http.NAME.headers",
        "none",
        (
            "headers that `http__get` and `http__send` "
            "[add to requests](../guides/tools.md#how-far-they-may-go) "
            'to a host, as in `[http."api.github.com"]`, with `${VAR}` for values of the environment; in your own file '
            "only"
        ),
    ),
    SettingKey(
        "servers.NAME.at",
        "none",
        (
            "the [server](#servers-that-you-trust) of `.mcp.json` that the other two keys are about: its address, or "
            "its command with the arguments; in your own file only"
        ),
    ),
    SettingKey(
        "servers.NAME.trusted",
        "`false`",
        "`true`: its results and prompts do not count as text from outside",
        words=_FLAG,
    ),
    SettingKey(
        "servers.NAME.private",
        "`false`",
        "`true`: its results are private, so `check` warns where they leave",
        words=_FLAG,
    ),
    SettingKey(
        "privacy.files",
        "`[]`",
        'patterns of files whose contents are private, as in `"secrets/*"`; of both files together',
    ),
    SettingKey(
        "runs.expiry", '`"30d"`', 'how long a run may wait for a person: `"90s"`, `"30m"`, `"24h"`, `"7d"`, `"never"`'
    ),
    SettingKey(
        "runs.on_uncertain",
        '`"rerun"`',
        'the policy for a writing tool that was interrupted by a crash: `"rerun"`, `"ask"`, `"fail"`',
        words=("rerun", "ask", "fail"),
    ),
    SettingKey(
        "runs.durability",
        '`"power"`',
        'a recorded step survives: `"power"`, a power cut; `"process"`, a crash of the process, and faster',
        words=("power", "process"),
    ),
    SettingKey(
        "runs.context_budget",
        "the model's window without a reply, 3 characters a token; else 400000; 12000 for `local:` models",
        (
            "how many characters of earlier results go into a prompt; the oldest are left out first, with a warning; "
            "playbooks that a document calls keep to it too; a run keeps what held when it started"
        ),
    ),
    SettingKey(
        "runs.reply_tokens",
        "`16384`; `4096` for a turn of a directive",
        (
            "the longest reply of a model, in tokens, [sent with every call](../guides/models.md#the-longest-reply) "
            "whose agent, step or tier sets no `max_tokens`; a reply that is cut is a warning"
        ),
    ),
    SettingKey(
        "runs.pure_work",
        "100000000",
        (
            "how much a run may [compute](pipelines.md#limits) without asking anybody, in units of about 0.1 µs; a "
            "workspace can lower it, only your own file can raise it"
        ),
    ),
    SettingKey(
        "runs.keep",
        "for ever",
        "how long servers and workers keep runs that completed, expired or were cancelled",
    ),
    SettingKey("runs.keep_failed", "for ever", "the same for failed runs"),
    SettingKey(
        "assume.NAME",
        "none",
        'the [size of an input](#assumed-sizes) for which bounds are shown as well: a number, or a text like `"40 KB"`',
    ),
    SettingKey("agents.NAME.model", "that of the run", "the model of an [agent](#agents), or a tier", names="model"),
    SettingKey("agents.NAME.system", '`""`', "its system prompt"),
    SettingKey("agents.NAME.tools", "`[]`", "the tools that it may use; `*` stands for any text", names="tool"),
    SettingKey("agents.NAME.turns", "25; 8 under `dialect: quire`", "for how many turns it may use tools"),
    SettingKey(
        "agents.NAME.temperature",
        "that of the model",
        "[settings of its calls](../guides/models.md#settings-of-calls), as for a tier",
    ),
    SettingKey("agents.NAME.max_tokens", "that of the model", "the longest reply, in tokens"),
    SettingKey("agents.NAME.reasoning", "that of the model", "how much it thinks, as for a tier", words=REASONING),
    SettingKey("agents.NAME.timeout", "that of the model", "how long the service may be silent"),
    SettingKey("agents.NAME.at_once", "no limit", "how many of its calls run side by side in a process"),
    SettingKey(
        "playbooks.NAME.model",
        "that of the run",
        (
            "the model of the steps of a [playbook](playbooks.md#which-model-does-a-step-model), as in "
            '`[playbooks."release-notes"]`: a tier, an agent, or a model'
        ),
        names="model",
    ),
    SettingKey(
        "playbooks.NAME.agent", "none", "the [agent](#agents) whose read-only tools its steps may use", names="agent"
    ),
    SettingKey(
        "playbooks.NAME.steps.STEP.model",
        "that of the playbook",
        "the model of one step, before what the document asks for",
        names="model",
    ),
    SettingKey(
        "pipelines.entries.KEY.path",
        "needed",
        "the file of a [registered pipeline](pipelines.md#registered-pipelines), relative to the workspace",
        names="pipeline",
    ),
    SettingKey("pipelines.entries.KEY.description", "that of the file", "for lists and tools"),
    SettingKey("pipelines.entries.KEY.enabled", "`true`", "`false` leaves it out", words=_FLAG),
    SettingKey(
        "safety.spawn.max_pipeline_spawns", "`100`", "how many model calls a run of a pipeline may make; 0 for no limit"
    ),
    SettingKey(
        "safety.spawn.max_pipeline_fan_out_depth", "`5`", "how deeply for_each and parallel may nest; 0 for no limit"
    ),
    SettingKey("budgets.run", "none", "dollars that a run without `--budget` may cost"),
    SettingKey("budgets.day", "none", "dollars for all runs of a store that are started on one day, in UTC"),
    SettingKey("budgets.month", "none", "the same for a month"),
    SettingKey(
        "sandbox.memory",
        "`4096`",
        (
            "MB that all processes of a [command](../guides/tools.md#the-sandbox) may use together; only in "
            "your own file"
        ),
    ),
    SettingKey("sandbox.processes", "`2048`", "how many processes and threads it may have; only in your own file"),
    SettingKey("sandbox.file", "`4096`", "MB of one file that it may write; only in your own file"),
    SettingKey(
        "webhooks.NAME.url",
        "–",
        (
            "where `quire serve --webhooks` [sends events](#webhooks): http or https, without a query; only in your "
            "own file"
        ),
    ),
    SettingKey("webhooks.NAME.secret_env", "–", "the variable with the secret that signs the messages"),
    SettingKey("webhooks.NAME.secret_file", "–", "a file with that secret, in place of the variable"),
    SettingKey(
        "webhooks.NAME.events",
        "all",
        "`question.opened`, `question.answered`, `run.completed`, `run.failed`, `run.expiring`",
        words=WEBHOOK_EVENTS,
    ),
    SettingKey("webhooks.NAME.include", "none", "texts that are sent along: `prompt`, `artifact`", words=WEBHOOK_TEXTS),
    SettingKey("serve.listeners", "`256`", "event streams that [`quire serve`](http.md#streams) keeps open at once"),
    SettingKey("serve.different_approver", "`false`", "confirms need another user; in your own file only", words=_FLAG),
    SettingKey("serve.people.NAME", "none", "the role of a person; in your own file only", words=ROLES),
    SettingKey(
        "notify.command",
        "–",
        "a program and its arguments that are [told](#notify) when a run waits or ends; only in your own file",
    ),
    SettingKey("notify.events", "all", "`run.waiting`, `run.completed`, `run.failed`", words=NOTIFY_EVENTS),
    SettingKey("telemetry.endpoint", "–", "the receiver of [traces](../guides/operations.md#traces); own file only"),
    SettingKey("telemetry.content", "`false`", "send prompts, replies and arguments along", words=_FLAG),
    SettingKey("triggers.NAME.run", "needed", "the document of a trigger, as `quire run` takes it; in either file"),
    SettingKey("triggers.NAME.cron", "–", 'its times, as in `"0 6 * * 1-5"`; or `every`, `webhook`, `files`'),
    SettingKey("triggers.NAME.every", "–", "or an interval: it fires at the multiples since 1970"),
    SettingKey(
        "triggers.NAME.webhook",
        "–",
        "or [signed requests](../guides/triggers.md#webhooks): a table or a list of tables with `scheme` (`standard`, "
        "`github`, `stripe`, `hmac`) and either `secret_env` or `secret_file`",
    ),
    SettingKey("triggers.NAME.key", "that of the scheme", "an expression over `body` that tells deliveries apart"),
    SettingKey("triggers.NAME.rate", "`60`", "deliveries a minute"),
    SettingKey("triggers.NAME.files", "–", 'or a pattern of files in the workspace, as in `"inbox/*.csv"`'),
    SettingKey("triggers.NAME.existing", "`false`", "start runs for the files that it finds when it is enabled"),
    SettingKey("triggers.NAME.zone", '`"UTC"`', 'the time zone of `cron`, as in `"Europe/Berlin"`'),
    SettingKey("triggers.NAME.inputs", "none", 'values, or `{expr = "…"}` over `due` and what the source gives'),
    SettingKey("triggers.NAME.when", "always", "an expression over the same names: false skips the run"),
    SettingKey("triggers.NAME.budget", "none", "dollars of one run; needed where a model has a price"),
    SettingKey("triggers.NAME.day_budget", "none", "dollars of all its runs of a day, in UTC"),
    *(
        SettingKey(f"triggers.NAME.{name}", f'`"{TRIGGER_WORDS[name][0]}"`', meaning, words=TRIGGER_WORDS[name])
        for name, meaning in {
            "catch_up": "runs after an outage: for the last occurrence, for `all` or for `none`",
            "overlap": "the rule while an earlier run of it is under way",
            "questions": "wait for a person, or take their `default` as under `--unattended`",
        }.items()
    ),
    SettingKey("triggers.NAME.window", '`"24h"`', "the delay with which an occurrence may still start"),
    SettingKey("triggers.NAME.allow", "`[]`", "tools to grant to its runs", names="tool"),
    SettingKey("triggers.NAME.model", "that of the document or the settings", "the model of its runs", names="model"),
    SettingKey(
        "prompts.folders",
        "`[]`",
        "more folders for `@prompt(library:…)`, relative to the file's folder",
        names="folder",
    ),
    SettingKey(
        "store.url",
        "`.quire/quire.db`",
        "where runs are kept: a path, `sqlite:///PATH`, or `postgresql://USER@HOST/DATABASE` ([stores](stores.md))",
    ),
    SettingKey(
        "cluster.temporal", "none", "`HOST:PORT` of the Temporal server of a [cluster](../guides/deployment.md)"
    ),
    SettingKey("cluster.namespace", '`"default"`', "its namespace"),
    SettingKey("cluster.task_queue", '`"quire"`', "the task queue that the workers serve"),
    SettingKey("cluster.heartbeat", '`"10s"`', "after how much silence a worker counts as dead"),
    SettingKey(
        "cluster.tls",
        "`true` where one of the next is set",
        "encrypt the connection to [Temporal](../guides/deployment.md#a-temporal-server-that-is-locked)",
        words=_FLAG,
    ),
    SettingKey("cluster.tls_ca", "those of the system", "a file with the CAs that may have signed its certificate"),
    SettingKey("cluster.tls_cert", "none", "a file with the certificate to show it"),
    SettingKey("cluster.tls_key", "none", "a file with the private key of that certificate"),
    SettingKey("cluster.tls_server_name", "the host", "the name that its certificate is for"),
    SettingKey("cluster.api_key_env", "none", "the variable that holds the API key"),
    SettingKey("cluster.api_key_file", "none", "the file that holds it instead"),
    SettingKey(
        "trust.safe_folders",
        "`[]`",
        "[workspaces of other accounts](../guides/permissions.md#trust) that may be used; in your user folder only",
    ),
    SettingKey(
        "trust.mode",
        '`"require"`',
        'unsigned directives are [refused or warned about](../guides/permissions.md#signing): `"require"`, `"warn"`',
        words=("require", "warn"),
    ),
    SettingKey(
        "trust.documents",
        "`false`",
        "playbooks and pipelines must be [signed](../guides/permissions.md#signing) too",
        words=_FLAG,
    ),
    SettingKey(
        "trust.locked",
        "`false`",
        ("refuse a run that may do or cost more than [`quire.lock`](../guides/lock.md#holding-runs-to-the-lock) says"),
        words=_FLAG,
    ),
    SettingKey("knowledge.folders", "`[]`", "folders of knowledge items", names="folder"),
)


@lru_cache(maxsize=1)
def tables() -> tuple[str, ...]:
    """Return the names of the top-level tables, in the order of the docs."""
    return tuple(dict.fromkeys(key.parts[0] for key in SETTING_KEYS))


def key_at(path: tuple[str, ...]) -> SettingKey | None:
    """Return the key with a path, in which the user has chosen the names."""
    return next((key for key in SETTING_KEYS if _fits(key.parts, path)), None)


def below(path: tuple[str, ...]) -> dict[str, SettingKey | None]:
    """Return the keys and tables that can stand in the table at a path; None for a table. Names that the user
    chooses are left out."""
    keys: dict[str, SettingKey | None] = {}
    for key in SETTING_KEYS:
        parts = key.parts
        if len(parts) > len(path) and _fits(parts[: len(path)], path) and parts[len(path)] not in CHOSEN:
            keys.setdefault(parts[len(path)], key if len(parts) == len(path) + 1 else None)
    return keys


def takes_names(path: tuple[str, ...]) -> bool:
    """Tell whether the user chooses the names of the keys in the table at a path: `[agents]`, `[models.tiers]`."""
    return any(
        len(key.parts) > len(path) and _fits(key.parts[: len(path)], path) and key.parts[len(path)] in CHOSEN
        for key in SETTING_KEYS
    )


def _fits(parts: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return len(parts) == len(path) and all(
        part == other or part in CHOSEN for part, other in zip(parts, path, strict=True)
    )
