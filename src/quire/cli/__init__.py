"""Command line entry point: `quire VERB …`.

Each verb is a click command in a module of this folder, named `command`, or `VERB_command` where a module has more than
one. The module of a verb is imported only when that verb is invoked, so that short commands start quickly; `--version`
and the start of `lsp` by an editor do not even import click. The table of verbs is in `verbs`: the operations table has
what a server offers, and loading it takes longer than the whole of `--help`.
"""

from __future__ import annotations

import atexit
import gc
import sys

INTERRUPTED = 130
BROKEN_PIPE = 141

NEW_OBJECTS = 50_000
"""How many new objects start a search for garbage. Loading modules alone makes more than Python's 700 many times over,
and most commands end before there is any."""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status. Only a bug ends in a traceback."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments and arguments[0] in ("--version", "-V", "version"):
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
