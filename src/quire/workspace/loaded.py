"""The code of a workspace that runs here once it is confirmed: of tool modules, and of servers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quire.workspace.code import Code
from quire.workspace.excess import model_file
from quire.workspace.server_code import ServerCode, server_code
from quire.workspace.settings import Settings


@dataclass(frozen=True, slots=True)
class LoadedCode:
    """What was there at one moment. `modules` are the files of `[tools] modules` by module, each with its hash;
    `missing` are names that they import and that are found nowhere yet."""

    modules: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    missing: frozenset[str] = frozenset()
    servers: Mapping[str, ServerCode] = field(default_factory=dict)

    @property
    def module_files(self) -> dict[str, str]:
        return {name: digest for files in self.modules.values() for name, digest in files.items()}


def read_code(settings: Settings) -> LoadedCode:
    """Reads and hashes the files as they are now. Starts and imports nothing."""
    folder = settings.workspace.folder
    modules, missing = read_modules(folder, settings.tools.modules)
    servers = {
        name: server_code(server.expanded(os.environ), folder)
        for name, server in settings.servers.items()
        if server.command
    }
    return LoadedCode(modules, missing, servers)


def read_modules(folder: Path, names: tuple[str, ...]) -> tuple[dict[str, dict[str, str]], frozenset[str]]:
    """The files that each module loads from a folder, and the names that are found nowhere."""
    modules: dict[str, dict[str, str]] = {}
    missing: set[str] = set()
    for name in names:
        code = Code(folder, here=True)
        code.add_import(name, [folder])
        modules[name] = code.files
        missing |= code.missing
    return modules, frozenset(missing)


def loaded_files(settings: Settings, code: LoadedCode | None = None) -> frozenset[str]:
    """Paths relative to the workspace, with `/`, that no tool may write: the files that tool modules and servers load,
    files and folders that they would load if they were there, folders that a server loads more from, and files of
    weights that the settings name. `code` is what was read of them already."""
    folder = settings.workspace.folder
    code = read_code(settings) if code is None else code
    names = {*code.module_files, *(name for server in code.servers.values() for name in server.files)}
    paths = names | {real for name in names if (real := _real(folder, name))}
    paths |= {name for file in _model_files(settings) if (name := _real(folder, os.path.relpath(file, folder)))}
    paths |= {spelling for name in code.missing for spelling in (f"{name}.py", name)}
    return frozenset(paths.union(*(server.closed for server in code.servers.values())))


def _model_files(settings: Settings) -> Iterator[Path]:
    models = settings.models
    agents = (agent.model for agent in settings.agents.values())
    for spec in (models.default, *models.tiers.values(), *agents):
        if spec and (file := model_file(spec, settings.workspace.folder)):
            yield file


def _real(folder: Path, name: str) -> str:
    """Where a link in the workspace leads to in it."""
    real = Path(os.path.realpath(folder / name))
    home = Path(os.path.realpath(folder))
    return real.relative_to(home).as_posix() if real.is_relative_to(home) else ""
