"""Command line entry point: `quire VERB …`.

Each verb is a click command in a module of this folder, named `command`, or `VERB_command` where a module has more than
one. The module of a verb is imported only when that verb is invoked, so that short commands start quickly; `--version`
and the start of `lsp` by an editor do not even import click.
"""

from __future__ import annotations

import atexit
import gc
import sys

# Verb: module with the attribute unless it is `command`, and one line for the list. FREE costs nothing, PAID may call
# a model, WRITES changes something.
VERBS: dict[str, tuple[str, str]] = {
    "list": ("quire.cli.list", "List the documents here, your own, and those built in. FREE"),
    "check": ("quire.cli.check", "Find what is wrong with documents. FREE"),
    "test": ("quire.cli.test", "Run the tests of documents, without a model. FREE"),
    "parse": ("quire.cli.syntax:parse_command", "Print a document's syntax tree as JSON. FREE"),
    "eval": ("quire.cli.syntax:eval_command", "Print the value of an expression. FREE"),
    "show": ("quire.cli.show", "Outline a document: inputs, steps, tools, prompts. FREE"),
    "can": ("quire.cli.can", "Say whether a document may do something, and why. FREE"),
    "lock": ("quire.cli.lock", "Write down what documents may do and cost, and compare. WRITES"),
    "run": ("quire.cli.run", "Run a document. PAID, WRITES"),
    "runs": ("quire.cli.runs", "List runs, or show one. FREE"),
    "inbox": ("quire.cli.inbox", "List the questions that wait for an answer. FREE"),
    "answer": ("quire.cli.resume:answer_command", "Answer a question and go on with its run. PAID, WRITES"),
    "resume": ("quire.cli.resume:resume_command", "Go on with a run that stopped. PAID, WRITES"),
    "cancel": ("quire.cli.resume:cancel_command", "Cancel a run. WRITES"),
    "fork": ("quire.cli.fork:fork_command", "Go on from the middle of a run, in a new one. PAID, WRITES"),
    "replay": (
        "quire.cli.fork:replay_command",
        "Try stored runs with an edited document, or another model. FREE, PAID",
    ),
    "sign": ("quire.cli.sign:sign_command", "Sign documents with your key. WRITES"),
    "verify": ("quire.cli.sign:verify_command", "Say whether documents are as they were signed. FREE"),
    "keys": ("quire.cli.trust:keys_command", "Make, list, export and revoke your keys. WRITES"),
    "trust": (
        "quire.cli.trust:trust_command",
        "Agree to what this workspace asks for, and to the keys of others. WRITES",
    ),
    "model": ("quire.cli.model", "Fetch, list and remove local models. WRITES"),
    "new": ("quire.cli.new", "Begin a document from a template. WRITES"),
    "grammar": (
        "quire.cli.syntax:grammar_command",
        "Print how documents are written, for a model that writes one. FREE",
    ),
    "tools": ("quire.cli.tools", "List the tools that documents may name. FREE"),
    "serve": ("quire.cli.serve:serve_command", "Open the web page of this workspace, with its HTTP API. PAID, WRITES"),
    "mcp": ("quire.cli.serve:mcp_command", "Serve documents as tools to MCP clients. PAID, WRITES"),
    "lsp": ("quire.cli.serve:lsp_command", "Serve editors: findings, hover, completion and more. FREE"),
    "worker": ("quire.cli.cluster:worker_command", "Drive the runs of a cluster. PAID, WRITES"),
    "doctor": ("quire.cli.doctor", "Show what Quire finds here. FREE"),
    "docs": ("quire.cli.docs", "Print a page of the documentation, or search it. FREE"),
    "completion": ("quire.cli.shell_completion", "Print a script that completes commands in a shell. FREE"),
}

INTERRUPTED = 130
BROKEN_PIPE = 141

NEW_OBJECTS = 50_000
"""How many new objects start a search for garbage. Loading modules alone makes more than Python's 700 many times over,
and most commands end before there is any."""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status. Only a bug ends in a traceback."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and arguments[0] in ("--version", "-V"):
        from quire.versions import version_line

        print(version_line())
        return 0
    if argv is None:
        from quire.python_process import leave_current_folder

        leave_current_folder()
        gc.set_threshold(NEW_OBJECTS)
    if argv is None and arguments in (["lsp"], ["lsp", "--stdio"]) and not sys.stdin.isatty():
        from quire.lsp.transport import serve_stdio

        return serve_stdio()
    from quire.cli.app import enter

    code = enter(arguments)
    if argv is None and "temporalio" in sys.modules:
        _leave_at_once(code)
    if argv is None and arguments[:1] in (["check"], ["show"]):
        # They have nothing open by now, and taking all modules apart would be a tenth of their time.
        atexit._run_exitfuncs()
        _leave_at_once(code)
    return code


def _leave_at_once(code: int) -> None:
    """Flush the output streams and end the process without shutting the interpreter down.

    The threads of Temporal's core release Python objects a moment after the last call has returned. A thread that does
    so during interpreter shutdown aborts the process and replaces its exit code.
    """
    import contextlib
    import os

    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
