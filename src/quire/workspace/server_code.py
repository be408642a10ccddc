"""The code of a workspace that runs once it is confirmed, of tool modules and of servers, and how stdio servers are
started.

A server starts in an empty folder unless its entry has a `cwd`, and with `PYTHONSAFEPATH`: a file that appears in the
workspace later is not loaded as code. Paths of the workspace in its command are made absolute, so that they still work.
A Python script or module of the workspace is started through `quire.tools.confirmed_imports`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.models.choose import members_of
from quire.patterns import late_pattern
from quire.workspace.code import Code, read_hashed
from quire.workspace.settings import model_file

if TYPE_CHECKING:
    from quire.workspace.mcp_config import McpServer
    from quire.workspace.settings import Settings

SAFE = {"PYTHONSAFEPATH": "1"}

_PYTHON = late_pattern(r"(python|pypy)w?[\d.]*(\.exe)?", re.IGNORECASE)
_RUNNERS = ("uv", "poetry", "pipenv", "pdm", "hatch", "rye")
_ELSEWHERE = ("docker", "podman", "nerdctl", "ssh", "kubectl", "wsl", "wsl.exe")
"""Commands whose arguments name files of another machine."""

_DATA = (".db", ".db3", ".sqlite", ".sqlite3", ".duckdb", ".csv", ".tsv", ".parquet", ".jsonl", ".log")
"""Endings of files that a server writes itself: a change of them must not ask the user again. Tools do not write those
that a command names, because any ending can hold a program."""

_MENTIONED = late_pattern(rb"[\w@./-]*\.(?:py|js|mjs|cjs|ts|mts|cts|tsx|json|sh|rb|pl|php|lua)\b|\.{1,2}/[\w@./-]+")
_GUESSED = ("", ".js", ".mjs", ".cjs", ".ts", ".json", "/index.js", "/package.json")
_PATHS = ("PYTHONPATH", "NODE_PATH")


class ServerCode(Struct, frozen=True):
    """The start of one server, and the code it loads."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    """Additional variables of the process."""
    folder: Path | None = None
    """The folder in which it starts; None for an empty one."""
    files: dict[str, str] = field(default_factory=dict)
    """The files of the workspace that are loaded, with their hashes."""
    closed: frozenset[str] = frozenset()
    """Files that the command names and that are not hashed, and folders from which more is loaded."""
    runs: tuple[str, ...] = ()
    """Folders of which it may build or run any file; `.` for the workspace. They are not hashed, so no tool writes
    source files there."""
    script: str = ""
    """Set if the start goes through `confirmed_imports`."""
    module: str = ""
    """Set if the start goes through `confirmed_imports`."""
    imports: tuple[Path, ...] = ()
    """The folders in which `confirmed_imports` looks."""
    python: _Python | None = None

    def command(self, runner: str) -> list[str]:
        """Return the command line. `runner` is the program that runs confirmed Python."""
        argv = list(self.argv)
        if self.python is None or not (self.script or self.module):
            return argv
        return [*argv[: self.python.at], runner, *argv[self.python.rest if self.module else self.python.at :]]

    def order(self, workspace: Path) -> dict[str, object]:
        """Return the instructions for that program; empty if it is not needed."""
        if not (self.script or self.module):
            return {}
        folders = [str(folder) for folder in self.imports]
        named = {"script": self.script, "module": self.module}
        return {"root": str(workspace), "folders": folders, "files": self.files, **named}


class _Python(Struct, frozen=True):
    """A Python in a command: `at` is the index of the script or of the option `-m`."""

    at: int
    script: str = ""
    module: str = ""
    rest: int = 0


def server_code(server: McpServer, workspace: Path) -> ServerCode:
    """Return the start and the code of a server whose references to the environment are filled in."""
    from quire.workspace.run_folders import CODE_PATHS, READERS, named_paths, run_folders

    base = workspace / server.cwd
    command = [server.command, *server.args]
    argv = command if server.cwd else _absolute(command, workspace)
    env = {**SAFE, **_absolute_env(server.env, base)}
    code, closed = Code(workspace), set()
    argv = _unshebanged(argv, base)
    python = _python(argv)
    paths = [Path(entry) for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    inside = [path for path in paths if path.is_relative_to(workspace)]
    for folder in inside:
        code.add_folder(folder, inside)
    script = module = ""
    imports: tuple[Path, ...] = ()
    if python is not None and python.module:
        folders = tuple(dict.fromkeys([*inside, base, workspace / "src"]))
        folders = tuple(folder for folder in folders if folder.is_relative_to(workspace))
        if code.add_import(python.module, folders):
            module, imports = python.module, folders
    elif python is not None and (main := _script(base / python.script, workspace)):
        imports = tuple(dict.fromkeys([*_upward(main.parent, workspace), *inside]))
        code.add_file(main, imports)
        script = str(main)
    # Folders after a script of Python, or after the name of a reader, are its data.
    end = python.rest if python is not None and python.script else len(argv)
    end = next((at + 1 for at, word in enumerate(argv[:end]) if (word.rpartition("@")[0] or word) in READERS), end)
    # In an empty folder a bare word is not a path; `_absolute` has made those of files absolute.
    words = [word if server.cwd or "/" in word else "" for word in argv]
    code_paths = [env[name] for name in CODE_PATHS if name in env]
    paths = [*named_paths([*words[:end], *code_paths], base, workspace)]
    paths += filter(Path.is_file, named_paths(words[end:], base, workspace))
    if python is not None and script:
        paths = [path for path in paths if path != Path(os.path.normpath(base / python.script))]
    start = base if server.cwd else None
    runs = run_folders(argv, start, paths, workspace)
    paths += [path / name for path in paths for name in ("__main__.py", "package.json", "index.js")]
    for file in (path for path in paths if path.is_file() and path.is_relative_to(workspace)):
        if file.suffix.lower() in _DATA:
            closed.add(file.relative_to(workspace).as_posix())
            continue
        _add_mentioned(code, file, workspace)
        closed |= _loads_from(file, workspace)
        if file.suffix == ".py" and not script:
            # Not started by Python itself but by another program, which puts the folder of the script on the path.
            env = {name: value for name, value in env.items() if name not in SAFE or name in server.env}
            code.add_folder(file.parent, _upward(file.parent, workspace), deep=file.parent != workspace)
            closed |= {file.parent.relative_to(workspace).as_posix()} - {"."}
    loads = code.files, frozenset(closed), runs
    return ServerCode(tuple(argv), env, start, *loads, script, module, imports, python)


def _absolute(argv: Sequence[str], workspace: Path) -> list[str]:
    """Make the paths absolute that mean a file of the workspace, as if it were the current folder."""
    elsewhere = Path(argv[0]).name in _ELSEWHERE
    words = [_path(argv[0], workspace, bare=False)]
    for argument in argv[1:]:
        option, equals, value = argument.partition("=")
        if equals and option.startswith("-") and value:
            words.append(f"{option}={_path(value, workspace, bare=not elsewhere)}")
        else:
            words.append(_path(argument, workspace, bare=not elsewhere))
    return words


def _path(text: str, workspace: Path, *, bare: bool) -> str:
    """Make one path absolute. A bare name counts as a path only if it is that of a file: a folder may have the name of
    a subcommand."""
    if text in (".", "..") or text.startswith(("./", "../")):
        return os.path.normpath(workspace / text)
    if not text or text.startswith(("-", "/", "@")) or "://" in text or "\0" in text:
        return text
    try:
        is_path = (workspace / text).is_file() if bare else "/" in text and (workspace / text).exists()
        is_path = is_path or (bare and "/" in text and (workspace / text).exists())
    except OSError:
        return text
    return str(workspace / text) if is_path else text


def _absolute_env(env: Mapping[str, str], base: Path) -> dict[str, str]:
    absolute = dict(env)
    for name in _PATHS:
        if name in absolute:
            entries = [entry for entry in absolute[name].split(os.pathsep) if entry]
            absolute[name] = os.pathsep.join(os.path.normpath(base / entry) for entry in entries)
    return absolute


def _unshebanged(argv: list[str], base: Path) -> list[str]:
    """Rewrite a command that starts a Python script by its first line to Python and the script."""
    if "/" not in argv[0]:
        return argv
    try:
        with (base / argv[0]).open("rb") as file:
            first = file.readline(256)
    except OSError:
        return argv
    if not first.startswith(b"#!"):
        return argv
    import shlex

    try:
        words = shlex.split(first[2:].decode())
    except ValueError:
        return argv
    if words and Path(words[0]).name == "env":
        words = words[2:] if words[1:2] == ["-S"] else words[1:]
    if not words or not _PYTHON.fullmatch(Path(words[0]).name):
        return argv
    return [*words, *argv]


def _python(argv: Sequence[str]) -> _Python | None:
    start = 0
    if Path(argv[0]).name == "env":
        start = 1
    elif Path(argv[0]).name in _RUNNERS and list(argv[1:2]) == ["run"]:
        start = 2
    if start >= len(argv) or not _PYTHON.fullmatch(Path(argv[start]).name):
        return None
    at = start + 1
    while at < len(argv):
        word = argv[at]
        if not word.startswith("-") or word == "-":
            return _Python(at, script=word, rest=at + 1) if word != "-" else None
        letters = word[1:] if not word.startswith("--") else ""
        taking = next((index for index, letter in enumerate(letters) if letter in "cmWX"), None)
        if taking is None:
            at += 2 if word == "--check-hash-based-pycs" else 1
            continue
        value = letters[taking + 1 :]
        if letters[taking] == "c":
            return None
        if letters[taking] == "m":
            name = value or next(iter(argv[at + 1 : at + 2]), "")
            return _Python(at, module=name, rest=at + (1 if value else 2)) if name else None
        at += 1 if value else 2
    return None


def _script(path: Path, workspace: Path) -> Path | None:
    """Return the file of the workspace that `python PATH` runs, or None."""
    file = Path(os.path.normpath(path))
    try:
        if file.is_dir():
            file /= "__main__.py"
        return file if file.is_file() and file.is_relative_to(workspace) else None
    except OSError:
        return None


def _add_mentioned(code: Code, file: Path, workspace: Path) -> None:
    """Add a file and all files that its text mentions, however it loads them."""
    pending = [file]
    while pending:
        path = pending.pop()
        name = path.relative_to(workspace).as_posix()
        if name in code.files:
            continue
        if path.suffix == ".py":
            code.add_file(path, _upward(path.parent, workspace))
            continue
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(workspace)):
            code.files[name] = f"a link to {os.path.realpath(path)}"
            continue
        code.files[name], text = read_hashed(path)
        for mention in {match[0].decode("utf-8", "replace") for match in _MENTIONED.finditer(text[:1_000_000])}:
            pending += _mentioned(mention, path.parent, workspace)


def _mentioned(mention: str, folder: Path, workspace: Path) -> list[Path]:
    paths = []
    for ending in _GUESSED if mention.startswith(".") else ("",):
        path = Path(os.path.normpath(folder / (mention + ending)))
        try:
            if path.is_relative_to(workspace) and path.is_file() and path.suffix.lower() not in (*_DATA, ".txt", ".md"):
                paths.append(path)
        except OSError:
            continue
    return paths


def _loads_from(file: Path, workspace: Path) -> set[str]:
    """Return folders from which a program loads more: its virtual environment, and the packages of Node."""
    folders = set()
    if file.parent.name in ("bin", "Scripts") and (file.parent.parent / "pyvenv.cfg").is_file():
        folders.add(file.parent.parent)
    folders |= {above / "node_modules" for above in _upward(file.parent, workspace) if file.suffix not in (".py", "")}
    below = {folder.relative_to(workspace).as_posix() for folder in folders if folder.is_relative_to(workspace)}
    return below - {"."}


def _upward(folder: Path, workspace: Path) -> tuple[Path, ...]:
    above = (folder, *folder.parents)
    return tuple(path for path in above if path.is_relative_to(workspace))


class LoadedCode(Struct, frozen=True):
    """The code of a workspace at one moment."""

    modules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The files of `[tools] modules` by module, each with its hash."""
    missing: frozenset[str] = frozenset()
    """Names that the modules import and that are not found anywhere yet."""
    servers: Mapping[str, ServerCode] = field(default_factory=dict)

    @property
    def module_files(self) -> dict[str, str]:
        return {name: digest for files in self.modules.values() for name, digest in files.items()}


def read_code(settings: Settings) -> LoadedCode:
    """Read and hash the files as they are now. Starts and imports nothing."""
    folder = settings.workspace.folder
    modules, missing = read_modules(folder, settings.tools.modules)
    servers = {
        name: server_code(server.expanded(os.environ), folder)
        for name, server in settings.servers.items()
        if server.command
    }
    return LoadedCode(modules, missing, servers)


def read_modules(folder: Path, names: tuple[str, ...]) -> tuple[dict[str, dict[str, str]], frozenset[str]]:
    """Return the files that each module loads from a folder, and the names that are not found anywhere."""
    modules: dict[str, dict[str, str]] = {}
    missing: set[str] = set()
    for name in names:
        code = Code(folder, here=True)
        code.add_import(name, [folder])
        modules[name] = code.files
        missing |= code.missing
    return modules, frozenset(missing)


def loaded_files(settings: Settings, code: LoadedCode | None = None) -> frozenset[str]:
    """Return the paths, relative to the workspace and with `/`, that no tool may write: files that tool modules and
    servers load, files and folders that they would load if they existed, folders from which a server loads more, and
    files of weights that the settings name. `FOLDER/*` stands for the source files of a folder of which a server may
    run any. `code` is the code if it was read already."""
    folder = settings.workspace.folder
    code = read_code(settings) if code is None else code
    names = {*code.module_files, *(name for server in code.servers.values() for name in server.files)}
    paths = names | {real for name in names if (real := _real(folder, name))}
    paths |= {name for file in _model_files(settings) if (name := _real(folder, os.path.relpath(file, folder)))}
    paths |= {spelling for name in code.missing for spelling in (f"{name}.py", name)}
    paths |= {f"{folder}/*".removeprefix("./") for server in code.servers.values() for folder in server.runs}
    return frozenset(paths.union(*(server.closed for server in code.servers.values())))


def _model_files(settings: Settings) -> Iterator[Path]:
    models = settings.models
    agents = (agent.model for agent in settings.agents.values())
    for spec in (models.default, *models.tiers.values(), *agents):
        for member in members_of(spec or ""):
            if file := model_file(member, settings.workspace.folder):
                yield file


def _real(folder: Path, name: str) -> str:
    """Return the target of a link, relative to the workspace; empty if it leads out."""
    real = Path(os.path.realpath(folder / name))
    home = Path(os.path.realpath(folder))
    return real.relative_to(home).as_posix() if real.is_relative_to(home) else ""
