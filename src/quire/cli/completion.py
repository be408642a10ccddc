"""`quire completion`: what a shell needs to complete verbs, options and run ids."""

from __future__ import annotations

import contextlib

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

COMPLETE_VARIABLE = "_QUIRE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete quire's verbs, options and run ids.

    \b
    bash   eval "$(quire completion bash)"       in ~/.bashrc
    zsh    eval "$(quire completion zsh)"        in ~/.zshrc
    fish   quire completion fish | source        in ~/.config/fish/config.fish

    FREE.
    """
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101  # click has all of SHELLS
    completer = found(context.find_root().command, {}, "quire", COMPLETE_VARIABLE)
    # The method of the base: bash's own starts a bash to ask for its version.
    click.echo(ShellComplete.source(completer), nl=False)


def complete_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """The newest runs whose id begins so. Whatever is wrong with the workspace is not said in the middle of a line."""
    from quire.errors import QuireError

    items = [CompletionItem("last", help="the newest run")] if "last".startswith(incomplete) else []
    with contextlib.suppress(QuireError, OSError):
        items += _runs(incomplete)
    return items


def _runs(incomplete: str) -> list[CompletionItem[str]]:
    from quire.cli.looking import look
    from quire.render.text import one_line
    from quire.runtime import Runtime

    async def newest(runtime: Runtime) -> list[CompletionItem[str]]:
        rows = await runtime.store.list(limit=200)
        return [
            CompletionItem(row.id, help=f"{row.status.words}, {one_line(row.title)}")
            for row in rows
            if row.id.startswith(incomplete)
        ][:30]

    return look(newest)
