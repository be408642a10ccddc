"""Find the paths of the workspace that the command of a server names, and the folders of which it may run any file.

`uv run NAME`, `cargo run` and a shell name no file: they run anything that the project contains. Unknown programs count
as such programs in the folder in which they start and in those that they name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from quire.patterns import late_pattern
from quire.workspace.code import read_hashed

READERS = ("@modelcontextprotocol/server-filesystem", "mcp-server-filesystem", "mcp-server-git", "mcp-server-sqlite")
"""Packages of servers that take the folders of their command for data."""
CODE_PATHS = ("PATH", "NODE_PATH", "NODE_OPTIONS", "BASH_ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "PERL5LIB", "RUBYLIB")
"""Variables that name code, beside `PYTHONPATH`, whose folders are looked through."""
# fmt: off
_BUILDERS = frozenset((
    "uv", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi", "tox", "nox", "npm", "pnpm", "yarn", "bun", "deno",
    "nx", "turbo", "lerna", "nodemon", "pm2", "cargo", "go", "air", "make", "gmake", "cmake", "ninja", "meson",
    "just", "task", "mage", "rake", "bundle", "mise", "devbox", "nix", "direnv", "mvn", "mvnw", "gradle", "gradlew",
    "sbt", "mill", "ant", "bazel", "bazelisk", "buck2", "pants", "dotnet", "msbuild", "mix", "rebar3", "stack",
    "cabal", "swift", "zig", "dart", "flutter", "composer", "lein", "clojure", "clj", "crystal", "nim", "dub",
    "dune", "opam", "foreman", "honcho", "watchexec", "entr", "docker-compose",
))
"""Programs that build or run the project of a folder."""
# fmt: on
_FETCHED = ("dlx", "x", "exec", "create", "tool")
"""Words after a builder that run a package from a registry."""
_WRAPPERS = ("env", "timeout", "nice", "nohup", "sudo", "doas", "setsid", "stdbuf", "time")
_SHELLS = ("sh", "bash", "zsh", "dash", "ksh", "fish", "ash")
_SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".sh", ".rb", ".pl", ".php", ".lua")
_CALLED = late_pattern(rb"(?:^|[;&|(`])[ \t]*(?:(?:\w+=\S{0,99}|exec|then|do|else)[ \t]+)*([\w.-]+)", re.MULTILINE)
"""Matches the programs that a script for a shell calls."""
_PARTS = late_pattern(r"[=:,;&|()<>\"'\s]+")


def named_paths(words: Iterable[str], base: Path, workspace: Path) -> Iterator[Path]:
    """Yield the files and folders of the workspace, and the folders above it, that words name; inside of a word only
    absolute ones."""
    for word in words:
        option, equals, value = word.partition("=")
        whole = value if equals and option.startswith("-") else word
        for part in filter(None, dict.fromkeys((whole, *filter(os.path.isabs, _PARTS.split(word))))):
            path = Path(os.path.normpath(base / part))
            with suppress(OSError, ValueError):
                if (path.is_relative_to(workspace) or workspace.is_relative_to(path)) and path.exists():
                    yield path


def run_folders(argv: Sequence[str], start: Path | None, paths: Sequence[Path], workspace: Path) -> tuple[str, ...]:
    """Return the folders of the workspace of which a command may run any file: the one in which it starts, those that
    it names, and for a builder those of its project files. A builder or a text for a shell that names nothing may go
    anywhere, and so may a script that calls a builder."""
    names = (Path(word).stem.lower() for word in argv if word[:1] not in "-0123456789" and "=" not in word)
    program = next((name for name in names if name not in _WRAPPERS), "")
    builds = program in _BUILDERS
    folders = [path for path in paths if path.is_dir() and (builds or path.is_relative_to(workspace))]
    folders += [path.parent for path in paths if builds and path.is_file() and path.suffix not in _SCRIPTS]
    anywhere = program in _SHELLS and any(word.startswith("-") and "c" in word for word in argv)
    if builds and not paths:
        anywhere = not any(word in _FETCHED or "@" in word or ":" in word for word in argv)
    folders += [start] if start else [workspace] * (anywhere and not folders)
    small = (path for path in paths if path.suffix in ("", ".sh", ".bash") and path.stat().st_size < 1_000_000)
    texts = ((path, read_hashed(path)[1][:100_000]) for path in small)
    scripts = (text for path, text in texts if path.suffix or text.startswith(b"#!"))
    folders += [workspace] * any(name.decode() in _BUILDERS for text in scripts for name in _CALLED.findall(text))
    top = os.path.realpath(workspace)
    real = [workspace / os.path.relpath(os.path.realpath(folder), top) for folder in folders]
    places = {Path(os.path.normpath(folder)) for folder in (*folders, *real)}
    inside = {workspace if workspace.is_relative_to(place) else place for place in places}
    outer = (place for place in inside if place.is_relative_to(workspace) and inside.isdisjoint(place.parents))
    return tuple(sorted(place.relative_to(workspace).as_posix() for place in outer))
