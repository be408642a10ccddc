"""Files that tell AI agents how Quire documents are written, checked and run: `quire new agents`, `quire new skill`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from quire.cli.new import inside, is_there, write
from quire.errors import CannotStart
from quire.formats.grammars import GRAMMARS, agents_text, skill_text
from quire.source import file_identity, read_bytes, replace_file

AGENTS = Path("AGENTS.md")
BEGIN, END = b"<!-- quire -->", b"<!-- /quire -->"
"""Lines around the block of Quire. The text outside of them belongs to the user."""
MOST_BYTES = 1_000_000

_SKILL_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_NAME = 64


def new_agents(name: str | None, *, to_stdout: bool) -> None:
    """Write the block into AGENTS.md of the current folder, or replace it there."""
    if name is not None:
        raise click.UsageError("agents takes no NAME: the block goes into AGENTS.md of this folder")
    block = b"%s\n%s%s\n" % (BEGIN, agents_text().encode(), END)
    if to_stdout:
        click.echo(block, nl=False)
        return
    file = inside(AGENTS, str(AGENTS)).resolve()
    if not file.exists():
        write(file, block.decode(), force=False)
    else:
        before = file_identity(file)
        try:
            text = read_bytes(file)
        except OSError as error:
            raise CannotStart(f"{AGENTS} cannot be read: {error.strerror or error}") from None
        replace_file(file, with_block(text, block), before, "edited")
    click.echo(str(AGENTS))
    click.echo("for agents that need more: quire new skill", err=True)


def with_block(text: bytes, block: bytes) -> bytes:
    """Return a text with the block in place of the one between its marks, else at its end. All other bytes stay.
    Raises `CannotStart` for marks that are not one pair."""
    lines = text.splitlines(keepends=True)
    begins, ends = ([at for at, line in enumerate(lines) if line.strip() == mark] for mark in (BEGIN, END))
    newline = b"\r\n" if b"\r\n" in text else b"\n"
    block = block.replace(b"\n", newline)
    if not begins and not ends:
        gap = newline if text.endswith(b"\n") else 2 * newline
        return b"%s%s%s" % (text, gap if text else b"", block)
    if len(begins) != 1 or len(ends) != 1 or begins > ends:
        several = ", ".join(str(at + 1) for at in sorted((*begins, *ends)))
        wanted = f"one line {BEGIN.decode()} and one line {END.decode()} after it"
        raise CannotStart(f"{AGENTS} needs {wanted}; it has such marks on line {several}: mend or remove them")
    return b"".join((*lines[: begins[0]], block, *lines[ends[0] + 1 :]))


def new_skill(name: str | None, folder: str | None, *, force: bool, to_stdout: bool) -> None:
    """Write a skill: SKILL.md, and the grammars beside it. Nothing is written if a file of it exists."""
    name = name or "quire"
    if not _SKILL_NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        rule = "use small letters, digits and single - between them, or leave NAME out"
        raise CannotStart(f"{name!r} is not a name for a skill, which is for all documents of a folder: {rule}")
    if to_stdout:
        click.echo(skill_text(name), nl=False)
        return
    if folder is None:
        place = inside(Path(".claude" if Path(".claude").is_dir() else ".agents", "skills", name), name)
    else:
        place = Path(folder, name)
    texts = {f"references/{grammar.key.replace('/', '-')}.md": grammar.text for grammar in GRAMMARS}
    texts = {"SKILL.md": skill_text(name), **texts}
    files = {place / path: text for path, text in texts.items()}
    for file in files:
        if file.exists() and not force:
            raise is_there(file)
        if folder is None:
            inside(file, str(file))
    for file, text in files.items():
        write(file, text, force=force)
    click.echo(str(place / "SKILL.md"))
    click.echo("for agents that read no skills: quire new agents", err=True)
