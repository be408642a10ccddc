"""The table of verbs: where each is, its group and line in the lists, and what its own help says."""

from __future__ import annotations

from typing import NamedTuple

FREE = "FREE: calls no model and changes nothing."


class Verb(NamedTuple):
    """One entry of the table."""

    place: str
    """Its module, and its attribute there unless that is `command`; in `RUNS` the attribute follows from the name."""
    group: str
    """`Write`, `Run` and `Share` are on the first page, `More` is in `quire help all`. `Older` is another spelling,
    which works as before."""
    line: str
    """At most 58 characters; for an older spelling the command to use instead."""
    page: str = ""
    """The page of the documentation about it."""
    cost: str = FREE
    examples: tuple[str, ...] = ()
    """Two to four commands. A test runs them."""


_RUN_COST = "PAID: calls a model, if it is not a local one. WRITES the journal of the run."

VERBS: dict[str, Verb] = {
    "new": Verb(
        "quire.cli.new",
        "Write",
        "Create a document, a test or an agent skill",
        "which-format",
        "WRITES the document.",
        (
            "quire new playbook hello",
            "quire new pipeline tickets",
            "quire new test hello.playbook.md",
            "quire new agents",
        ),
    ),
    "check": Verb(
        "quire.cli.check",
        "Write",
        "Find mistakes before a run",
        "checking",
        "FREE: runs nothing, sends nothing. With --fix it WRITES the documents.",
        (
            "quire check",
            "quire check hello.playbook.md --strict",
            "quire check --fix pipelines",
            "quire check --explain PB106",
        ),
    ),
    "test": Verb(
        "quire.cli.test",
        "Write",
        "Run document tests: no model, no key, no network",
        "testing",
        "FREE; --live, --calibrate and --record are PAID. WRITES snapshots.",
        ("quire test", "quire test hello.test.yaml -k short", "quire test --cov", "quire test --mutate"),
    ),
    "show": Verb(
        "quire.cli.show",
        "Write",
        "Outline, prompts, cost limits, permissions, flowchart",
        "checking",
        "FREE: starts no process, opens no connection, changes nothing.",
        (
            "quire show hello.playbook.md",
            "quire show hello.playbook.md --prompt 1 -i question='Why is tea hot?'",
            "quire show hello.playbook.md --graph svg",
            "quire show tickets --can 'execute tool shell'",
        ),
    ),
    "list": Verb(
        "quire.cli.list",
        "Write",
        "Documents in this folder",
        "running",
        examples=("quire list", "quire list hello --json"),
    ),
    "run": Verb(
        "quire.cli.run",
        "Run",
        "Run a document",
        "running",
        _RUN_COST,
        (
            "quire run hello.playbook.md 'Why is tea hot?'",
            "quire run hello.playbook.md -i question=@question.txt --out answer.md",
            "quire run hello.playbook.md 'Why is tea hot?' --unattended --budget 0.50",
            "quire run tickets --inputs tickets.json --json",
        ),
    ),
    "runs": Verb(
        "quire.cli.runs",
        "Run",
        "List, explain, compare, fork, cancel, export runs",
        "runs",
        "FREE: reads the database of runs.",
        ("quire runs", "quire runs last", "quire runs last --prompt 1", "quire runs why last 1"),
    ),
    "inbox": Verb(
        "quire.cli.inbox",
        "Run",
        "Questions waiting for an answer",
        "running",
        examples=("quire inbox", "quire inbox --json"),
    ),
    "answer": Verb(
        "quire.cli.resume:answer_command",
        "Run",
        "Answer a question and continue its run",
        "running",
        _RUN_COST,
        ("quire answer last short", "quire answer last 2 thorough", "quire answer last short --hold"),
    ),
    "resume": Verb(
        "quire.cli.resume:resume_command",
        "Run",
        "Continue a stopped or failed run",
        "runs",
        _RUN_COST,
        ("quire resume last", "quire resume last --limit calls=200", "quire resume last --document"),
    ),
    "serve": Verb(
        "quire.cli.serve:serve_command",
        "Share",
        "Web page and HTTP API",
        "serve",
        "PAID: runs that the page starts call a model. WRITES their journals.",
        ("quire serve", "quire serve --no-open --edit --budget 1"),
    ),
    "mcp": Verb(
        "quire.cli.serve:mcp_command",
        "Share",
        "Offer documents as tools to AI agents",
        "ai-agents",
        "PAID: runs call a model. WRITES their journals.",
        ("quire mcp", "quire mcp hello.playbook.md --budget 1"),
    ),
    "lock": Verb(
        "quire.cli.lock",
        "Share",
        "Record and compare what documents may do and cost",
        "lock",
        "WRITES quire.lock; FREE with --diff.",
        ("quire lock", "quire lock --diff quire.lock", "quire check --locked"),
    ),
    "sign": Verb(
        "quire.cli.sign:sign_command",
        "Share",
        "Sign documents; --check verifies signatures",
        "permissions",
        "WRITES the signed files; FREE with --check.",
        ("quire sign hello.playbook.md", "quire sign --check hello.playbook.md"),
    ),
    "trust": Verb(
        "quire.cli.trust:trust_command",
        "Share",
        "Approve a folder's requests, manage keys",
        "permissions",
        "WRITES your user folder only.",
        ("quire trust workspace --show", "quire trust list", "quire trust keys new work"),
    ),
    "model": Verb(
        "quire.cli.model",
        "More",
        "Download, list and remove local models",
        "models",
        "WRITES the folder of model files only.",
        ("quire model list", "quire model pull smollm2"),
    ),
    "doctor": Verb(
        "quire.cli.doctor",
        "More",
        "Show what Quire finds on this machine",
        "models",
        "FREE; --check is PAID: one token, and it starts the servers that you have agreed to.",
        ("quire doctor", "quire doctor --json"),
    ),
    "docs": Verb(
        "quire.cli.docs",
        "More",
        "Print or search the documentation",
        "cli",
        examples=("quire docs", "quire docs test-files", "quire docs exit code"),
    ),
    "grammar": Verb(
        "quire.cli.syntax:grammar_command",
        "More",
        "Print how documents are written, for AI agents",
        "ai-agents",
        examples=(
            "quire grammar playbook",
            "quire grammar pipeline --dialect quire",
            "quire grammar settings --schema",
        ),
    ),
    "tools": Verb(
        "quire.cli.tools",
        "More",
        "List the tools that documents may name",
        "tools-list",
        "FREE: starts no server without --connect.",
        ("quire tools", "quire tools --json"),
    ),
    "eval": Verb(
        "quire.cli.syntax:eval_command",
        "More",
        "Print the value of an expression",
        "expressions",
        examples=(
            "quire eval 'sum(map(rows, r -> r.n))' --context '{\"rows\": [{\"n\": 3}]}'",
            "quire eval --dialect quire 'upper(name)' --context '{\"name\": \"Ada\"}'",
        ),
    ),
    "lsp": Verb(
        "quire.cli.serve:lsp_command",
        "More",
        "Language server for editors",
        "editors",
        examples=("quire lsp", "quire lsp --tcp 0"),
    ),
    "worker": Verb(
        "quire.cli.cluster:worker_command",
        "More",
        "Run the documents of a cluster",
        "deployment",
        "PAID: runs call a model. WRITES their journals.",
        ("quire worker", "quire worker --temporal 127.0.0.1:7233 --concurrency 50"),
    ),
    "completion": Verb(
        "quire.cli.shell_completion",
        "More",
        "Print a completion script for a shell",
        "cli",
        examples=("quire completion bash", "quire completion zsh", "quire completion fish"),
    ),
    "parse": Verb("quire.cli.syntax:parse_command", "Older", "quire show --tree", "checking"),
    "can": Verb("quire.cli.can", "Older", "quire show --can", "permissions"),
    "verify": Verb("quire.cli.sign:verify_command", "Older", "quire sign --check", "permissions"),
    "cancel": Verb("quire.cli.resume:cancel_command", "Older", "quire runs cancel"),
    "fork": Verb("quire.cli.fork:fork_command", "Older", "quire runs fork"),
    "replay": Verb("quire.cli.fork:replay_command", "Older", "quire runs replay"),
    "keys": Verb("quire.cli.trust:keys_command", "Older", "quire trust keys"),
}

_TRANSFER, _MAINTENANCE = "quire.cli.runs.transfer", "quire.cli.runs.maintenance"
_STORE = "WRITES the database of runs."

RUNS: dict[str, Verb] = {
    "why": Verb(
        _TRANSFER,
        "Verbs",
        "Explain a step: values, prompt, reply, time and cost",
        "runs",
        examples=("quire runs why last 1", "quire runs why last 1 --json"),
    ),
    "diff": Verb(
        _TRANSFER,
        "Verbs",
        "Compare two runs step by step",
        "runs",
        examples=("quire runs diff RUN last", "quire runs diff RUN last --json"),
    ),
    "cancel": Verb(
        "quire.cli.resume",
        "Verbs",
        "Stop a run; quire resume continues it",
        "runs",
        _STORE,
        ("quire runs cancel last", "quire runs cancel last --json"),
    ),
    "fork": Verb(
        "quire.cli.fork",
        "Verbs",
        "Continue from the middle of a run, in a new run",
        "runs",
        "PAID: calls a model, if it is not a local one. WRITES the new run's journal, nothing of the other.",
        (
            "quire runs fork last --from 2 --dry-run",
            "quire runs fork last --from 3 --set depth=thorough",
            "quire runs fork last --document",
        ),
    ),
    "replay": Verb(
        "quire.cli.fork",
        "Verbs",
        "Try old runs with an edited document or another model",
        "runs",
        "FREE with --document, PAID with --model. Changes nothing: no tool is called, no person is asked.",
        ("quire runs replay last --document", "quire runs replay last --script script.json"),
    ),
    "export": Verb(
        _TRANSFER,
        "Verbs",
        "Write a run to one file",
        "runs",
        "WRITES the file.",
        ("quire runs export last --out run.jsonl", "quire runs verify run.jsonl"),
    ),
    "import": Verb(
        _TRANSFER,
        "Verbs",
        "Read an exported run, to show or to fork it",
        "runs",
        _STORE,
        ("quire runs export last --out run.jsonl", "quire runs import run.jsonl"),
    ),
    "verify": Verb(
        _TRANSFER,
        "Verbs",
        "Check that a run or its file was not changed",
        "runs",
        examples=("quire runs verify last", "quire runs verify last --json"),
    ),
    "seal": Verb(
        _MAINTENANCE,
        "Verbs",
        "Adopt unsealed runs as your own",
        "runs",
        _STORE,
        ("quire runs seal last --yes", "quire runs seal --all --yes"),
    ),
    "prune": Verb(
        _MAINTENANCE,
        "Verbs",
        "Remove runs that ended long ago",
        "runs",
        _STORE,
        ("quire runs prune --dry-run", "quire runs prune --older-than 90d --vacuum"),
    ),
    "backup": Verb(
        _TRANSFER,
        "Verbs",
        "Copy the database of runs while it is used",
        "runs",
        "WRITES the copy.",
        ("quire runs backup copy.db", "quire runs backup copy-2.db --json"),
    ),
}
"""Verbs below `quire runs`."""
