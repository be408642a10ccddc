"""The table of verbs: the module, group and line in the lists of each, and its own help."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """One entry of the table."""

    place: str
    """Its module, and its attribute there unless that is `command`; in `RUNS` the attribute follows from the name."""
    group: str
    """`Write`, `Run` and `Share` are on the first page, `More` is in `quire help all`. `Older` is another spelling,
    which works as before."""
    line: str
    """At most 58 characters; for an older spelling the command to use instead."""
    page: str
    """The page of the documentation about it."""
    cost: str = ""
    """One of `COSTS`. Options that cost something else say so themselves."""


COSTS = {
    "FREE": "FREE: calls no model and changes nothing.",
    "WRITES": "WRITES: changes files or the database of runs, calls no model.",
    "PAID, WRITES": "PAID: calls a model, unless that is a local one. WRITES the journals of runs.",
}

VERBS: dict[str, Verb] = {
    "new": Verb("quire.cli.new", "Write", "Create a document, a test or an agent skill", "which-format", "WRITES"),
    "check": Verb("quire.cli.check", "Write", "Find mistakes before a run", "checking", "FREE"),
    "test": Verb("quire.cli.test", "Write", "Run document tests: no model, no key, no network", "testing", "WRITES"),
    "show": Verb(
        "quire.cli.show", "Write", "Outline, prompts, cost limits, permissions, flowchart", "checking", "FREE"
    ),
    "list": Verb("quire.cli.list", "Write", "Documents in this folder", "running", "FREE"),
    "run": Verb("quire.cli.run", "Run", "Run a document", "running", "PAID, WRITES"),
    "runs": Verb("quire.cli.runs", "Run", "List, explain, compare, fork, cancel, export runs", "runs", "FREE"),
    "inbox": Verb("quire.cli.inbox", "Run", "Questions waiting for an answer", "running", "FREE"),
    "answer": Verb(
        "quire.cli.resume:answer_command", "Run", "Answer a question and continue its run", "running", "PAID, WRITES"
    ),
    "resume": Verb(
        "quire.cli.resume:resume_command", "Run", "Continue a stopped or failed run", "runs", "PAID, WRITES"
    ),
    "triggers": Verb("quire.cli.triggers", "Run", "Start documents at times, unattended", "running", "PAID, WRITES"),
    "serve": Verb("quire.cli.serve:serve_command", "Share", "Web page and HTTP API", "serve", "PAID, WRITES"),
    "mcp": Verb(
        "quire.cli.serve:mcp_command", "Share", "Offer documents as tools to AI agents", "ai-agents", "PAID, WRITES"
    ),
    "lock": Verb("quire.cli.lock", "Share", "Record and compare what documents may do and cost", "lock", "WRITES"),
    "sign": Verb(
        "quire.cli.sign:sign_command", "Share", "Sign documents; --check verifies signatures", "permissions", "WRITES"
    ),
    "trust": Verb(
        "quire.cli.trust:trust_command", "Share", "Approve a folder's requests, manage keys", "permissions", "WRITES"
    ),
    "model": Verb("quire.cli.model", "More", "Download, list and remove local models", "models", "WRITES"),
    "doctor": Verb("quire.cli.doctor", "More", "Show what Quire finds on this machine", "models", "FREE"),
    "docs": Verb("quire.cli.docs", "More", "Print or search the documentation", "cli", "FREE"),
    "grammar": Verb(
        "quire.cli.syntax:grammar_command",
        "More",
        "Print how documents are written, for AI agents",
        "ai-agents",
        "FREE",
    ),
    "tools": Verb("quire.cli.tools", "More", "List the tools that documents may name", "tools-list", "FREE"),
    "eval": Verb("quire.cli.syntax:eval_command", "More", "Print the value of an expression", "expressions", "FREE"),
    "lsp": Verb("quire.cli.serve:lsp_command", "More", "Language server for editors", "editors", "FREE"),
    "worker": Verb(
        "quire.cli.cluster:worker_command", "More", "Run the documents of a cluster", "deployment", "PAID, WRITES"
    ),
    "completion": Verb("quire.cli.shell_completion", "More", "Print a completion script for a shell", "cli", "FREE"),
    "parse": Verb("quire.cli.syntax:parse_command", "Older", "quire show --tree", "checking"),
    "can": Verb("quire.cli.can", "Older", "quire show --can", "permissions"),
    "verify": Verb("quire.cli.sign:verify_command", "Older", "quire sign --check", "permissions"),
    "cancel": Verb("quire.cli.resume:cancel_command", "Older", "quire runs cancel", "runs"),
    "fork": Verb("quire.cli.fork:fork_command", "Older", "quire runs fork", "runs"),
    "replay": Verb("quire.cli.fork:replay_command", "Older", "quire runs replay", "runs"),
    "keys": Verb("quire.cli.trust:keys_command", "Older", "quire trust keys", "permissions"),
}

RUNS: dict[str, Verb] = {
    "why": Verb(
        "quire.cli.runs.transfer", "Verbs", "Explain a step: values, prompt, reply, time and cost", "runs", "FREE"
    ),
    "diff": Verb("quire.cli.runs.transfer", "Verbs", "Compare two runs step by step", "runs", "FREE"),
    "cancel": Verb("quire.cli.resume", "Verbs", "Stop a run; quire resume continues it", "runs", "WRITES"),
    "fork": Verb("quire.cli.fork", "Verbs", "Continue from the middle of a run, in a new run", "runs", "PAID, WRITES"),
    "replay": Verb("quire.cli.fork", "Verbs", "Try old runs with an edited document or another model", "runs", "FREE"),
    "try": Verb(
        "quire.cli.runs.try_verbs", "Verbs", "Ask the model of one step again, beside the run", "runs", "PAID, WRITES"
    ),
    "test": Verb("quire.cli.runs.try_verbs", "Verbs", "Make a test case of a run", "testing", "WRITES"),
    "label": Verb("quire.cli.runs.maintenance", "Verbs", "Give a run a name and a note", "runs", "WRITES"),
    "export": Verb("quire.cli.runs.transfer", "Verbs", "Write a run to one file", "runs", "WRITES"),
    "share": Verb("quire.cli.runs.transfer", "Verbs", "Link to one run for another person", "runs", "WRITES"),
    "import": Verb("quire.cli.runs.transfer", "Verbs", "Read an exported run, to show or to fork it", "runs", "WRITES"),
    "verify": Verb("quire.cli.runs.transfer", "Verbs", "Check that a run or its file was not changed", "runs", "FREE"),
    "seal": Verb("quire.cli.runs.maintenance", "Verbs", "Adopt unsealed runs as your own", "runs", "WRITES"),
    "prune": Verb("quire.cli.runs.maintenance", "Verbs", "Remove runs that ended long ago", "runs", "WRITES"),
    "backup": Verb("quire.cli.runs.transfer", "Verbs", "Copy the database of runs while it is used", "runs", "WRITES"),
}
"""Verbs below `quire runs`."""

EXAMPLES = r"""
quire new playbook hello
quire new pipeline tickets
quire new test hello.playbook.md
quire new agents
quire check
quire check hello.playbook.md --strict
quire check --fix pipelines
quire check --explain PB106
quire test
quire test hello.test.yaml -k short
quire test --cov
quire test --mutate
quire show hello.playbook.md
quire show hello.playbook.md --prompt 1 -i question='Why is tea hot?'
quire show hello.playbook.md --graph svg
quire show tickets --can 'execute tool shell'
quire list
quire list hello --json
quire run hello.playbook.md 'Why is tea hot?'
quire run hello.playbook.md -i question=@question.txt --out answer.md
quire run hello.playbook.md 'Why is tea hot?' --unattended --budget 0.50
quire run tickets --inputs tickets.json --json
quire runs
quire runs --sort cost
quire runs last
quire runs last --prompt 1
quire inbox
quire inbox --json
quire answer last short
quire answer last 2 thorough
quire answer last short --hold
quire resume last
quire resume last --limit calls=200
quire resume last --document
quire resume --all --dry-run
quire triggers
quire triggers fires --state missed
quire serve
quire serve --no-open --edit --budget 1
quire mcp
quire mcp hello.playbook.md --budget 1
quire lock
quire lock --diff quire.lock
quire lock tickets
quire sign hello.playbook.md
quire sign --check hello.playbook.md
quire trust workspace --show
quire trust list
quire trust keys new work
quire model list
quire model pull smollm2
quire doctor
quire doctor --json
quire docs
quire docs test-files
quire docs exit code
quire grammar playbook
quire grammar pipeline --dialect quire
quire grammar settings --schema
quire tools
quire tools --json
quire eval 'sum(map(rows, r -> r.n))' --context '{"rows": [{"n": 3}]}'
quire eval --dialect quire 'upper(name)' --context '{"name": "Ada"}'
quire lsp
quire lsp --tcp 0
quire worker
quire worker list
quire worker list --json
quire worker --temporal 127.0.0.1:7233 --concurrency 50
quire completion bash
quire completion zsh
quire completion fish
quire runs why last 1
quire runs why last 1 --json
quire runs diff RUN last
quire runs diff RUN last --json
quire runs cancel last
quire runs cancel last --json
quire runs fork last --from 2 --dry-run
quire runs fork last --from 3 --set depth=thorough
quire runs fork last --document
quire runs replay last --document
quire runs replay last --script script.json
quire runs try last 1 --prompt 'Say it in one word.' --dry-run
quire runs try last 1 -n 3
quire runs test last
quire runs test last --write
quire runs label last --name 'the one we sent'
quire runs label last --note 'checked by Ada' --seen
quire runs export last --out run.jsonl
quire runs export last --out run.jsonl --force
quire runs export last --html run.html
quire runs share last --days 3
quire runs share last --list
quire runs import run.jsonl --json
quire runs import run.jsonl
quire runs verify last
quire runs verify last --json
quire runs seal last --yes
quire runs seal --all --yes
quire runs prune --dry-run
quire runs prune --older-than 90d --vacuum
quire runs backup copy.db
quire runs backup copy-2.db --json
"""
"""Commands that the help of their verbs shows, two to four for each. A test runs them."""


def examples_of(verb: str) -> list[str]:
    """Return the examples of a verb; those of `runs` without the ones of the verbs below it."""
    below = tuple(f"quire runs {name} " for name in RUNS) if verb == "runs" else ()
    lines = EXAMPLES.strip().split("\n")
    return [line for line in lines if f"{line} ".startswith(f"quire {verb} ") and not f"{line} ".startswith(below)]
