"""Find the places at which a tool acts on its arguments: commands, paths, addresses, and everything that leaves.

Built-in tools are known exactly. Of other tools only the names of arguments are known, so their places are possible
ones.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from quire.analysis.abstract_values import literal
from quire.patterns import late_pattern
from quire.plan.nodes import UseTool
from quire.plan.pipeline_work import Invoke
from quire.plan.thread import Thread
from quire.plan.tool_details import CODE_RUNNERS, details_of

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import EffectFact

SinkKind = Literal["command", "path", "address", "item"]

_COMMANDS = frozenset(("command", "cmd", "script", "shell", "code", "argv", "args", "program", "sql", "statement"))
_PATHS = frozenset(("path", "file", "filename", "file_path", "filepath", "folder", "directory", "dir", "cwd", "dest"))
_ADDRESSES = frozenset(("url", "uri", "host", "hostname", "endpoint", "address", "webhook", "domain"))
_NAMES = late_pattern(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_ON_INPUT = frozenset(("xargs", "parallel"))
"""Programs that make commands of what they read."""
_WORDS = late_pattern(r"[\s|&;<>$`(){}]+")
_FILTERS = frozenset(
    (
        *("cat", "wc", "head", "tail", "sort", "uniq", "grep", "egrep", "fgrep", "rg", "cut", "tr", "jq", "sed", "nl"),
        *("rev", "fold", "fmt", "column", "paste", "join", "comm", "diff", "cmp", "od", "xxd", "hexdump", "base64"),
        *("md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "shasum", "gzip", "gunzip", "iconv", "strings"),
        *("pandoc", "tac", "expand", "unexpand", "yq", "mlr", "shuf", "true", "false", "echo", "printf"),
    )
)
"""Programs that take their standard input for data."""


class Sink(Struct, frozen=True):
    """A place at which a tool acts on a value."""

    kind: SinkKind
    name: str
    """As it is shown: `command`, `argv[2]`, `stdin`, `url`."""
    value: AbstractValue
    confined: str = ""
    """The limit of a value that is inserted: the pattern of its path, or the host of its address."""
    certain: bool = True
    """False if only the name of the argument speaks for it."""


def sinks(effect: EffectFact) -> Iterator[Sink]:
    """Yield the places at which a call of a step acts on values that are not written in the document."""
    if effect.by_model:
        return
    if isinstance(effect.place.step.work, Thread) and "item_id" in effect.arguments:
        # Of an action of a hook whose item is not written out.
        yield Sink("item", "item_id", effect.arguments["item_id"])
    match effect.tool.kind:
        case "shell":
            yield from _shell(effect)
        case "http":
            yield from _http(effect)
        case "built-in":
            yield from _files(effect)
        case "mcp" | "python":
            yield from _by_name(effect)
        case "item" | "own":
            pass


def _details(effect: EffectFact) -> tuple[str, ...]:
    work = effect.place.step.work
    if isinstance(work, Invoke):
        return details_of(work.tool, dict(work.arguments))
    return details_of(work.tool, work.arguments) if isinstance(work, UseTool) else ()


def _shell(effect: EffectFact) -> Iterator[Sink]:
    command = effect.arguments.get("command")
    words: list[str] = []
    if command is not None:
        if parts := argv(command):
            words = [str(part.constant) if part.is_constant else "" for part in parts]
            program, is_data = _program(words), False
            for at, part in enumerate(parts):
                if not is_data or program in CODE_RUNNERS or not program:
                    yield Sink("command", f"argv[{at}]", part)
                # Words after a bare `--` are never taken for options.
                is_data = is_data or (at > 0 and part.is_constant and part.constant == "--")
            if command.label.integrity > max(part.label.integrity for part in parts):
                yield Sink("command", "argv", command)
        else:
            words = _WORDS.split(str(command.constant)) if command.is_constant else []
            yield Sink("command", "command", command)
    if "stdin" in effect.arguments:
        runs, is_plain = _runs_input(words), command is None or not command.is_constant or _is_plain(command)
        if runs or (_says_stdin(effect) and _program(words) not in _FILTERS):
            yield Sink("command", "stdin", effect.arguments["stdin"], certain=runs and is_plain)
    if "working_dir" in effect.arguments:
        yield Sink("path", "working_dir", effect.arguments["working_dir"])


def argv(command: AbstractValue) -> list[AbstractValue]:
    """Return the words of a command that is a list; none for a text, or for a list whose items are not known."""
    if command.is_constant and isinstance(command.constant, list | tuple):
        return [literal(word) for word in command.constant]
    found: list[AbstractValue] = []
    while (part := command.fields.get(str(len(found)))) is not None:
        found.append(part)
    return found


def _program(words: list[str]) -> str:
    return posixpath.basename(words[0]) if words else ""


def _runs_input(words: list[str]) -> bool:
    """Tell whether a command takes its standard input for code, or for arguments of another command."""
    names = [posixpath.basename(word) for word in words]
    return any(name in _ON_INPUT for name in names) or any(
        name in CODE_RUNNERS and not (names[at + 1 : at + 2] and _is_script(names[at + 1]))
        for at, name in enumerate(names)
    )


def _is_script(word: str) -> bool:
    return word not in ("-", "-s", "stdin", "-i", "")


def _says_stdin(effect: EffectFact) -> bool:
    """Tell whether the document itself passes something on as input. Otherwise a command gets the incoming pipe, which
    most do not read."""
    work = effect.place.step.work
    return not isinstance(work, Invoke) or any(name == "stdin" for name, _ in work.arguments)


def _is_plain(command: AbstractValue) -> bool:
    """Tell whether a text for a shell is one command: all its input goes to its first word."""
    return not set(str(command.constant)) & set("|&;<>$`(){}\n")


def _http(effect: EffectFact) -> Iterator[Sink]:
    if "url" not in effect.arguments:
        return
    host = next((one.removeprefix("host=") for one in _details(effect) if one.startswith("host=")), "*")
    yield Sink("address", "url", effect.arguments["url"], "" if "*" in host else host)


def _files(effect: EffectFact) -> Iterator[Sink]:
    patterns = [one.removeprefix("path=") for one in _details(effect) if one.startswith("path=")]
    confined = patterns[0] if len(patterns) == 1 and patterns[0] != "*" else ""
    for name in ("path", "files"):
        if name in effect.arguments:
            yield Sink("path", name, effect.arguments[name], confined)


def _by_name(effect: EffectFact) -> Iterator[Sink]:
    for name, value in effect.arguments.items():
        words = {name.lower(), *(one.lower() for one in _NAMES.findall(name))}
        if words & _COMMANDS:
            yield Sink("command", name, value, certain=False)
        elif words & _ADDRESSES:
            yield Sink("address", name, value, certain=False)
        elif words & _PATHS:
            yield Sink("path", name, value, certain=False)
