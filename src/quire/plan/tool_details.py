"""Find how far a call of a built-in tool goes, from the arguments that its document writes out: hosts, paths, commands.

A detail is `KIND=VALUE`. In a value `*` stands for any text, where something is inserted that only a run knows: the
path `reports/{{name}}` is `reports/*`. Characters that a pattern would misread, and those that are not printed, are
written as `%XX`, so that a value is one word.

A value is left wide rather than guessed: a host counts only if its end is written out too, because an inserted text may
hold the rest of its name; and a text for a shell is known by its digest, because its first word says little. So are the
words after a program that runs what it is given: `sh -c` alone says nothing. All other programs have their words as a
pattern, except those that never run or write anything.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from quire.patterns import late_pattern
from quire.plan.built_in_tools import ALIASES, FETCH, SEND, SHELL
from quire.plan.nodes import Reference, Template, ValueSlot
from quire.values import percent_encoded, sha256

_Text: TypeAlias = "tuple[str | None, ...]"
"""A text in parts; None stands for a part that is inserted."""

ANYTHING: _Text = (None,)
ALL_VARIABLES, NO_VARIABLE = "env=*", "env="
"""Details of a command that gets all variables that the user has granted, and of one that gets none of them."""
ANY_METHOD, PLAIN_HTTP = "method=*", "host=http://"
"""The detail of a request whose method is decided in a run, and the beginning of one to a host without TLS."""
TERMS = ("env=", "method=")
"""The beginnings of details that say how a command or a host is used, and not which."""
_FILES = "rye/file-system/"
_GLOB, _GREP = f"{_FILES}glob", f"{_FILES}grep"
_ODD = frozenset('%*?[]!"\\#')
_HOST = late_pattern(r"(https?)://([A-Za-z0-9_.-]+(?::[0-9]{1,5})?)(?:[/?#]|$)")
_PLAIN_COMMAND = late_pattern(r"[A-Za-z0-9_./-]+(?: +[A-Za-z0-9_./:,@%+-]+)*")
_WILD = late_pattern(r"[*?\[{]")
_HERE = late_pattern(r"^(?:\./+)+")
"""The beginning of a path that leads nowhere else."""
CODE_RUNNERS = frozenset(
    (
        *("sh", "bash", "zsh", "dash", "ksh", "fish", "python", "python3", "node", "deno", "bun", "ruby", "perl"),
        *("php", "lua", "osascript", "pwsh", "powershell", "psql", "sqlite3", "mysql", "bc", "R", "Rscript", "make"),
        *("xargs", "ssh", "env", "sudo", "nohup", "time", "timeout", "nice", "parallel", "watch", "eval", "docker"),
        *("ash", "busybox", "awk", "gawk", "mawk", "doas", "setsid", "stdbuf", "podman", "npx", "uv", "uvx"),
    )
)
"""Programs that run what they are given: as their arguments, or on their standard input."""
HARMLESS = frozenset(
    (
        *("true", "false", "echo", "printf", "cat", "head", "tail", "wc", "ls", "pwd", "basename", "dirname", "uname"),
        *("whoami", "id", "seq", "sleep", "cut", "tr", "cmp", "stat", "du", "df", "test", "grep", "sha256sum"),
        "md5sum",
    )
)
"""Programs that run and write nothing with any arguments: these are not written down."""
_SYSTEM = ("", "/bin", "/usr/bin")
_LONGEST_WORDS = 200


def details_of(tool: str, arguments: object, *, piped: bool = False) -> tuple[str, ...]:
    """Return the details of a call with the arguments of a playbook or a pipeline. `piped` tells that a command without
    an input of its own gets the value of the step before it."""
    identity = ALIASES.get(tool, tool)
    given = arguments if isinstance(arguments, Mapping) else {}
    if identity in (FETCH, SEND):
        host = f"host={_host(_text(given.get('url')))}"
        return (host,) if identity == FETCH else (host, f"method={_method(_text(given.get('method')))}")
    if identity == SHELL:
        command = _command(given.get("command", arguments if not given else None), given, piped)
        return (*command, *_variables(given.get("env")))
    if identity.startswith(_FILES):
        return tuple(sorted({f"path={_path(identity, path)}" for path in _paths(identity, given)}))
    return ()


def together(details: Iterable[str]) -> tuple[str, ...]:
    """Return the details of all calls of a tool. If all commands get all variables, that is left out."""
    several = set(details)
    if {detail for detail in several if detail.startswith("env=")} == {ALL_VARIABLES}:
        several.discard(ALL_VARIABLES)
    return tuple(sorted(several))


def apart(calls: Mapping[tuple[str, ...], Iterable[str]]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the details of the calls of a tool, each with its steps: all together if every command gets the same
    variables and every host is asked with the same methods, else those that do."""
    several: dict[tuple[str, ...], dict[str, None]] = {}
    steps: dict[tuple[str, ...], dict[str, None]] = {}
    for details, labels in calls.items():
        terms = tuple(detail for detail in details if detail.startswith(TERMS))
        several.setdefault(terms, {}).update(dict.fromkeys(details))
        steps.setdefault(terms, {}).update(dict.fromkeys(labels))
    if len({frozenset(one for one in details if not one.startswith(TERMS)) for details in several.values()}) < 2:
        labels = dict.fromkeys(label for labels in calls.values() for label in labels)
        return [(together(detail for details in calls for detail in details), tuple(labels))]
    return [(tuple(sorted(details)), tuple(steps[terms])) for terms, details in several.items()]


def any_details(capability: str) -> tuple[str, ...]:
    """Return the details of a capability whose calls a model decides."""
    identity = capability.removeprefix("rye.execute.tool.").replace(".", "/")
    if identity in (FETCH, SEND):
        return ("host=*",) if identity == FETCH else ("host=*", ANY_METHOD)
    if identity == SHELL:
        return ("command=*", ALL_VARIABLES)
    return ("path=*",) if identity.startswith(_FILES) and "*" not in identity else ()


def as_word(text: str) -> str:
    """Return a text as one word in which nothing is a wildcard."""
    return "".join(
        letter if letter.isprintable() and not letter.isspace() and letter not in _ODD else percent_encoded(letter)
        for letter in text
    )


def _pattern(text: _Text) -> str:
    pattern = "".join("*" if part is None else as_word(part) for part in text)
    while "**" in pattern:
        pattern = pattern.replace("**", "*")
    return pattern


def _host(url: _Text) -> str:
    """Return the host with its port, and with `http://` before it if it is not asked by TLS. Only a host whose end is
    written out is known."""
    head = url[0] if url else None
    if head is None:
        return "*"
    match = _HOST.match(head)
    if match is None or (match.end() == len(head) and head[-1] not in "/?#" and len(url) > 1):
        return "*"
    host = as_word(match[2].lower())
    return f"http://{host}" if match[1] == "http" else host


def _method(text: _Text) -> str:
    whole = "".join(part for part in text if part is not None)
    return "*" if None in text or not whole else as_word(whole)


def _paths(identity: str, given: Mapping[object, object]) -> list[_Text]:
    """Return the paths of a call. A tool that is given none goes through the whole workspace."""
    several = _unwrapped(given.get("files"))
    if isinstance(several, list | tuple):
        return [_text(file.get("path")) if isinstance(file, Mapping) else ANYTHING for file in several] or [ANYTHING]
    if identity == _GLOB and "path" not in given:
        return [_text(given.get("pattern"))]
    return [_text(given.get("path"))]


def _path(identity: str, text: _Text) -> str:
    if None in text:
        head = text[0]
        return _pattern(text if head is None else (_HERE.sub("", head), *text[1:]))
    whole = "".join(part for part in text if part is not None)
    if identity in (_GLOB, _GREP):
        # Both go through folders: of a pattern only the part before its first wildcard is known.
        wild = _WILD.search(whole)
        fixed = _HERE.sub("", whole[: wild.start()]) if wild else posixpath.normpath(whole or ".")
        if fixed == "." or (wild and ".." in fixed):
            return "*"
        return f"{as_word(fixed)}*"
    return as_word(posixpath.normpath(whole)) if whole else "*"


def _command(command: object, given: Mapping[object, object], piped: bool) -> tuple[str, ...]:
    """Return the program and the words of a list, or of a plain text; the digest of any other text for a shell. A
    program that runs what it is given has the digest of its words and of its input instead."""
    value = _unwrapped(command)
    if isinstance(value, list | tuple):
        words = [_text(word) for word in value] or [ANYTHING]
    else:
        text = _text(command)
        if None in text:
            return ("command=*",)
        whole = "".join(part for part in text if part is not None).strip()
        if not _PLAIN_COMMAND.fullmatch(whole):
            return (_digest(whole),)
        words = [(word,) for word in whole.split()]
    program = _pattern(words[0])
    name = posixpath.basename(program)
    if name in CODE_RUNNERS or name.rstrip("0123456789.") in CODE_RUNNERS:
        return f"command={program}", _code(words[1:], given, piped)
    if program == "*" or (name in HARMLESS and posixpath.dirname(program) in _SYSTEM):
        return (f"command={program}",)
    # The number comes first, because an inserted word is one word, and `*` would cover several.
    line = f"{len(words)}:{','.join(_pattern(word).replace(',', '%2C') for word in words)}"
    return f"command={program}", f"words={line if len(line) <= _LONGEST_WORDS else _hash(line)}"


def _code(words: list[_Text], given: Mapping[object, object], piped: bool) -> str:
    """Return the digest of the words after a program that runs them. A value that may be code itself, as the first
    word and the one after an option may, makes it any script; other values are data of that script. So does the value
    of the step before it, if nothing but options follows the program."""
    if "stdin" in given:
        words = [*words, _text(given["stdin"])]
    before, is_script = "-", True
    for word in words:
        if None in word and (is_script or before.startswith("-")):
            return "script=*"
        before = _pattern(word)
        is_script = is_script and (before.startswith("-") or "=" in before)
    if is_script and piped and "stdin" not in given:
        return "script=*"
    return _digest("\0".join(_pattern(word) for word in words))


def _digest(text: str) -> str:
    return f"script={_hash(text)}"


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass"))[:16]


def _variables(names: object) -> list[str]:
    """Return the variables of the environment that a command is given. A command that names none gets all that the user
    has granted."""
    value = _unwrapped(names)
    if not isinstance(value, list | tuple):
        return [ALL_VARIABLES]
    return sorted({f"env={_pattern(_text(name))}" for name in value}) or [NO_VARIABLE]


def _unwrapped(value: object) -> object:
    """Return the list that an argument is, as far as it is written out; other values as they are."""
    from quire.plan.pipeline_work import Formula, Literal

    if isinstance(value, Literal):
        return value.value
    if isinstance(value, Formula):
        from quire.expr.syntax import ListOf

        root = value.compiled.expression.root
        return root.items if isinstance(root, ListOf) else value
    return value


def _text(value: object) -> _Text:
    from quire.plan.pipeline_work import Formula, Literal

    match value:
        case str():
            return (value,)
        case Template(parts=parts):
            return tuple(None if isinstance(part, Reference) else part for part in parts)
        case Literal(value=inner):
            return _text(inner)
        case Formula(compiled=compiled):
            return _of_expression(compiled.expression.root)
        case None | ValueSlot():
            return ANYTHING
        case _:
            return _of_expression(value) if type(value).__module__ == "quire.expr.syntax" else ANYTHING


def _of_expression(node: object) -> _Text:
    """Return the texts of a sum such as `"reports/" + item.name`; any other expression may be any text."""
    from quire.expr.syntax import Arithmetic, Constant

    match node:
        case Constant(value=str() as value):
            return (value,)
        case Arithmetic(first=first, rest=rest) if all(operator == "+" for operator, _ in rest):
            operands = (first, *(operand for _, operand in rest))
            return tuple(part for operand in operands for part in _of_expression(operand))
        case _:
            return ANYTHING
