"""Find the places at which a tool acts on its arguments: commands, paths, addresses, and everything that leaves; and
tell whether what it reads is private.

Built-in tools are known exactly. Of other tools only the names of arguments are known, so their places are possible
ones.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from quire.analysis.abstract_values import literal
from quire.analysis.labels import PRIVATE, Privacy
from quire.patterns import late_pattern
from quire.plan.nodes import UseTool
from quire.plan.pipeline_work import Invoke
from quire.plan.tool_details import CODE_RUNNERS, details_of

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import EffectFact
    from quire.analysis.world import ToolFact, World


SinkKind = Literal["command", "path", "address", "item"]

_COMMANDS = frozenset(("command", "cmd", "script", "shell", "code", "argv", "args", "program", "sql", "statement"))
_PATHS = frozenset(("path", "file", "filename", "file_path", "filepath", "folder", "directory", "dir", "cwd", "dest"))
_ADDRESSES = frozenset(("url", "uri", "host", "hostname", "endpoint", "address", "webhook", "domain"))
_NAMES = late_pattern(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_ON_INPUT = frozenset(("xargs", "parallel"))
"""Programs that make commands of their input."""
_SHELLS = ("sh", "bash", "zsh", "dash", "ksh", "ash", "fish")
_CODE_OPTIONS = {
    **dict.fromkeys(_SHELLS, "c"),
    **dict.fromkeys(("python", "python3"), "cm"),
    **dict.fromkeys(("psql", "mysql", "sqlite3"), "cef"),
    **dict.fromkeys(("node", "bun"), "ep"),
    **dict.fromkeys(("ssh", "sudo", "doas", "env", "nohup", "time", "timeout", "nice", "setsid", "stdbuf"), ""),
}
"""The letters of options that code follows, by program."""
_WITH_VALUE = frozenset(
    (
        *("-o", "+o", "-O", "--rcfile", "--init-file", "-W", "-X", "-I", "-M", "--require", "-u", "-n", "-i", "-p"),
        *("-l", "-F", "-J", "-L", "-R", "-d", "-h", "-U", "-P", "-D", "-k", "-s"),
    )
)
"""Options whose next word is a value of theirs, in one of the programs. To take one too many for a value is safe: a
program then seems to read its input."""
_WITH_TARGET = frozenset(("ssh", "psql", "mysql", "sqlite3", "bc"))
"""Programs whose first word is a host, a database or a library: they still read their input."""
_FROM_INPUT = frozenset(("", "-", "stdin", "/dev/stdin", "-s"))
"""Words that stand for the standard input, or that only a run knows."""
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
    """The limit of a value that is inserted: the pattern of its path, or the host of its address. A path whose value is
    a plain word is not one of the places."""
    certain: bool = True
    """False if only the name of the argument speaks for it."""


def sinks(effect: EffectFact) -> Iterator[Sink]:
    """Yield the places at which a call of a step acts on values that are not written in the document."""
    if effect.by_model:
        return
    if effect.place.is_thread and "item_id" in effect.arguments:
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


def _values(kind: str, details: Iterable[str]) -> tuple[str, ...]:
    return tuple(detail.removeprefix(kind) for detail in details if detail.startswith(kind))


def _shell(effect: EffectFact) -> Iterator[Sink]:
    command = effect.arguments.get("command")
    words: list[str] = []
    if command is not None:
        if parts := argv(command):
            words = [str(part.constant) if part.is_constant else "" for part in parts]
            program, is_data = _program(words), False
            for at, part in enumerate(parts):
                runs_code = program in CODE_RUNNERS or not program
                if runs_code or not (is_data or (part.is_word and at > 0)):
                    yield Sink("command", f"argv[{at}]", part)
                # Words after a bare `--` are never taken for options.
                is_data = is_data or (at > 0 and part.is_constant and part.constant == "--")
            if command.label.integrity > max(part.label.integrity for part in parts):
                yield Sink("command", "argv", command)
        else:
            words = _pieces(str(command.constant)) if command.is_constant else []
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
    values: list[AbstractValue] = []
    while (part := command.fields.get(str(len(values)))) is not None:
        values.append(part)
    return values


def _program(words: list[str]) -> str:
    return _name(words[0]) if words else ""


def _name(word: str) -> str:
    """Return the name of a program without its folder and its version: `python` for `/usr/bin/python3.11`."""
    name = posixpath.basename(word)
    return name if name in CODE_RUNNERS else name.rstrip("0123456789.") or name


def _pieces(text: str) -> list[str]:
    """Return the words of a text for a shell."""
    return [piece for piece in _WORDS.split(text) if piece]


def _runs_input(words: list[str]) -> bool:
    """Tell whether a command takes its standard input for code, or for arguments of another command."""
    # A word may be a script for a shell itself.
    pieces = [piece for word in words for piece in _pieces(word) or [word]]
    names = [_name(piece) for piece in pieces]
    return any(
        name in _ON_INPUT or (name in CODE_RUNNERS and _reads_code(name, pieces[at + 1 :]))
        for at, name in enumerate(names)
    )


def _reads_code(program: str, words: list[str]) -> bool:
    """Tell whether a program that runs code reads it from its standard input: unless its words name a file of code, or
    have code themselves. A word that only a run knows is empty."""
    files = 2 if program in _WITH_TARGET else 1
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word in _FROM_INPUT:
            return True
        elif word[0] in "-+":
            if _has_code(program, word):
                return False
            is_value = word in _WITH_VALUE
        elif not (program == "env" and "=" in word):
            files -= 1
            if not files:
                return False
    return True


def _has_code(program: str, option: str) -> bool:
    """Tell whether code follows an option: `-c` of a shell, also as `-ec`."""
    if option.startswith("--"):
        return option.partition("=")[0] in ("--eval", "--command", "--execute", "--print", "--file")
    return any(letter in option for letter in _CODE_OPTIONS.get(program, "eErf"))


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
    host = next(iter(_values("host=", _details(effect))), "*")
    yield Sink("address", "url", effect.arguments["url"], "" if "*" in host else host.removeprefix("http://"))


def _files(effect: EffectFact) -> Iterator[Sink]:
    patterns = _values("path=", _details(effect))
    confined = patterns[0] if len(patterns) == 1 and patterns[0] != "*" else ""
    for name in ("path", "files"):
        if name in effect.arguments and not (confined and effect.arguments[name].is_word):
            yield Sink("path", name, effect.arguments[name], confined)


def _by_name(effect: EffectFact) -> Iterator[Sink]:
    for name, value in effect.arguments.items():
        words = {name.lower(), *(word.lower() for word in _NAMES.findall(name))}
        if words & _COMMANDS:
            yield Sink("command", name, value, certain=False)
        elif words & _ADDRESSES:
            yield Sink("address", name, value, certain=False)
        elif words & _PATHS:
            yield Sink("path", name, value, certain=False)


def reading(tool: ToolFact, name: str, arguments: object, world: World) -> ToolFact:
    """Return a tool as one call of a step uses it: the results are private only if the file may be a private one.
    `arguments` are those of the plan."""
    if tool.kind != "built-in" or tool.gives_privacy < PRIVATE:
        return tool
    paths = _values("path=", details_of(name, arguments))
    if not paths or world.reads_private(paths):
        return tool
    return replace(tool, gives_privacy=Privacy.WORKSPACE)
