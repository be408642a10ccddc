"""`quire runs [RUN]` and the verbs below it, `quire runs why …`: what is no verb is a run.

A verb's module is imported only when that verb is invoked, as at the front door.
"""

from __future__ import annotations

from importlib import import_module

import click
from click.shell_completion import CompletionItem

VERBS: dict[str, tuple[str, str]] = {
    "why": ("quire.cli.runs_why", "Why a step came out as it did. FREE"),
    "diff": ("quire.cli.runs_diff", "Two runs side by side. FREE"),
    "export": ("quire.cli.runs_export", "A run as one file. FREE"),
    "verify": ("quire.cli.runs_verify", "Whether a run, or the file of one, is as it was written. FREE"),
    "seal": ("quire.cli.runs_seal", "Say that runs without a seal are yours. WRITES"),
    "import": ("quire.cli.runs_import", "Take in a run from a file, to look at. WRITES"),
    "prune": ("quire.cli.runs_prune", "Remove runs that ended long ago. WRITES"),
    "backup": ("quire.cli.runs_backup", "Copy the store while runs go on. WRITES"),
}
_LIST = ""


class _Unnamed(click.Context):
    """The list is what `quire runs` itself does: it has no word of its own."""

    @property
    def command_path(self) -> str:
        return self.parent.command_path if self.parent else super().command_path


class Listing(click.Command):
    context_class = _Unnamed

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        verbs = [] if ctx.params.get("run") else [name for name in VERBS if incomplete and name.startswith(incomplete)]
        return [*(CompletionItem(name) for name in verbs), *super().shell_complete(ctx, incomplete)]


class RunsGroup(click.Group):
    def __init__(self, name: str, listing: click.Command) -> None:
        super().__init__(name)
        self._listing = listing

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Nothing here is the group's own, and without any word click would print the help.
        return super().parse_args(ctx, ["--", *(args if args and args[0] in VERBS else [_LIST, *args])])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in VERBS:
            return args[0], self.get_command(ctx, args[0]), args[1:]
        return self.name, self._listing, args[1:] if args[:1] == [_LIST] else args

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found: object = import_module(VERBS[cmd_name][0]).command if cmd_name in VERBS else None
        return found if isinstance(found, click.Command) else None

    def get_help(self, ctx: click.Context) -> str:
        return self._listing.get_help(ctx)
