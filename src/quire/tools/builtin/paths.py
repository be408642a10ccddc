"""Find a file of the workspace without ever leaving it, and keep tools from writing the files that grant permissions.

A path is walked name by name, each folder opened from the one before it and links resolved by hand: the checked file is
the one that is opened, even if another process replaces a folder by a link meanwhile. The result is an open folder and
a plain name in it.

Some places are always closed, some are opened by an explicit grant. The tables of names are used by the file tools, the
sandbox and the documentation; a name is compared after `fold`, at any depth unless its row says otherwise, and covers
everything below it. `protected_places` finds the places that depend on the files of a workspace.
"""

from __future__ import annotations

import errno
import functools
import os
import shlex
import stat
import unicodedata
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from msgspec import Struct, field

from quire.errors import Denied, ToolFailed
from quire.os_flags import FOLDER, NO_LINK, NO_WAIT
from quire.wording import cut

MAX_PATH = 4096
MAX_LINKS = 40


class Place(Struct, frozen=True):
    """`name` in the open folder `folder`; "." for the folder itself. `parts` are the real names from the workspace
    on."""

    folder: int
    name: str
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        return "/".join(self.parts) or "."

    def status(self) -> os.stat_result | None:
        return _status(self.name, self.folder)


def _status(name: str, at: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None


class Places:
    """The files below one folder. `private` are folders in it that no tool may even read."""

    def __init__(self, root: Path, private: Sequence[Path] = ()) -> None:
        self.root = root.resolve()
        self.private = tuple(folder.resolve() for folder in private)

    @contextmanager
    def locate(self, path: str, *, to_write: Protection | None = None) -> Iterator[Place]:
        """Open the place of a path, whether or not a file exists there.

        With `to_write` the place must be writable for tools, and missing folders above it are created. Raises
        `ToolFailed` or `Denied`; an `OSError` inside the block becomes a `ToolFailed` too.
        """
        try:
            with ExitStack() as opened:
                yield self._walk(path, to_write, opened)
        except OSError as error:
            raise ToolFailed(f"{_shown(path)}: {_reason(error)}", kind="file") from None

    def open_folder(self, name: str, at: int) -> int:
        """Open a folder in a folder, never through a link. Raises `OSError`, or `Denied` for a private one."""
        opened = os.open(name, FOLDER, dir_fd=at)
        try:
            self._check_private(os.fstat(opened))
        except BaseException:
            os.close(opened)
            raise
        return opened

    def _walk(self, path: str, to_write: Protection | None, opened: ExitStack) -> Place:
        pending = deque(self._parts(path))
        folders: list[tuple[str, int]] = [("", self._root(opened))]
        links = 0
        while pending:
            part = pending.popleft()
            at = folders[-1][1]
            if part == "..":
                # Only a link can contain it: `_parts` refuses it in the requested path.
                if len(folders) == 1:
                    raise self._outside(path)
                folders.pop()
                continue
            if to_write:
                self._require_no_repository([*(name for name, _ in folders[1:]), part], at, last=not pending)
            status = _status(part, at)
            if status is not None and stat.S_ISLNK(status.st_mode):
                links += 1
                if links > MAX_LINKS:
                    raise ToolFailed(f"{_shown(path)}: too many links", kind="file")
                target = os.readlink(part, dir_fd=at)
                if target.startswith("/"):
                    del folders[1:]
                    target = self._inside(target, path)
                pending.extendleft(reversed([name for name in target.split("/") if name not in ("", ".")]))
                continue
            if not pending:
                if status is not None:
                    self._check_private(status)
                parts = (*(name for name, _ in folders[1:]), part)
                if to_write:
                    to_write.require(parts)
                return Place(at, part, parts)
            if status is None and to_write and ".." not in pending:
                # Below a missing folder there are no links: these are the real names of all the rest.
                to_write.require((*(name for name, _ in folders[1:]), part, *pending))
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=at)
            below = self.open_folder(part, at)
            opened.callback(os.close, below)
            folders.append((part, below))
        return Place(folders[-1][1], ".", tuple(name for name, _ in folders[1:]))

    def _require_no_repository(self, parts: list[str], at: int, *, last: bool) -> None:
        """Raise `Denied` if a name would make its folder a repository. Git needs files for marks, not folders."""
        name = fold(parts[-1])
        is_mark, is_store = last and name in map(fold, GIT_MARKS), name in GIT_STORES
        for other in GIT_STORES if is_mark else GIT_MARKS if is_store else ():
            beside = _status(other, at)
            if beside is not None and (is_mark or not stat.S_ISDIR(beside.st_mode)):
                raise Denied(
                    f"permission denied: {printable_path('/'.join(parts))} is protected (beside {other} it makes the "
                    f"folder a git repository); no tool may write it, and {NO_GRANT}: {EDIT}"
                )

    def _root(self, opened: ExitStack) -> int:
        if os.open not in os.supports_dir_fd or not NO_LINK:
            message = "the file tools need a system that opens files relative to folders and without following links"
            raise ToolFailed(message, kind="file")
        root = os.open(self.root, FOLDER)
        opened.callback(os.close, root)
        return root

    def _parts(self, path: str) -> list[str]:
        if "\0" in path or len(path) > MAX_PATH:
            raise ToolFailed(f"{_shown(path)} is not a path", kind="file")
        if path.startswith("/"):
            path = self._inside(path, path)
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise ToolFailed(f"{_shown(path)}: a path must not contain ..", kind="file")
        return parts

    def _inside(self, target: str, path: str) -> str:
        """Return an absolute path relative to the workspace. Compares names only; the walk checks the rest."""
        root = str(self.root).rstrip("/")
        if target != root and not target.startswith(root + "/"):
            raise self._outside(path)
        return target[len(root) :]

    def _outside(self, path: str) -> ToolFailed:
        return ToolFailed(f"{_shown(path)} is outside of the workspace", kind="outside")

    def _check_private(self, status: os.stat_result) -> None:
        for folder in self.private:
            try:
                if os.path.samestat(status, folder.stat()):
                    raise Denied("permission denied: no tool may use your user folder")
            except OSError:
                continue


def open_file(place: Place) -> int:
    """Open the regular file at a place for reading. Never blocks: a pipe or a device is refused."""
    flags = os.O_RDONLY | NO_WAIT | NO_LINK
    status = place.status()
    if status is not None:
        require_regular(status, place.path)
    opened = os.open(place.name, flags, dir_fd=place.folder)
    try:
        require_regular(os.fstat(opened), place.path)
    except BaseException:
        os.close(opened)
        raise
    return opened


def require_regular(status: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ToolFailed(f"{path} is a folder", kind="file")
    if not stat.S_ISREG(status.st_mode):
        raise ToolFailed(f"{path} is not a regular file", kind="file")


def _shown(path: str) -> str:
    text = printable_path(path)
    return cut(text, 200, 200)


def _reason(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "a part of the path is not a folder"
    return (error.strerror or type(error).__name__).lower()


NO_GRANT = "no grant opens it"
EDIT = "change it yourself"
ELSEWHERE = 'give the server a "cwd" elsewhere in .mcp.json, or write a data file such as .md, .txt, .csv or .json'

KEPT_OUT = frozenset({".quire", ".git", ".venv"})
"""Folders that a search does not enter unless the pattern names them."""

_IMPORTED = (".py", ".pyw", ".pyc", ".so", ".pyd")


DATA = (
    *(".md", ".markdown", ".rst", ".adoc", ".txt", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".geojson", ".yaml"),
    *(".yml", ".log", ".diff", ".patch", ".ics", ".vcf", ".bib", ".tex", ".svg", ".png", ".jpg", ".jpeg"),
    *(".gif", ".webp", ".pdf", ".wav", ".mp3", ".mp4", ".db", ".db3", ".sqlite", ".sqlite3", ".duckdb", ".parquet"),
)
"""Endings of files that stay open where a server may run any file: no program of theirs is known to be started by its
place. Their names may still ask, such as `package.json`."""


class Row(Struct, frozen=True):
    """A row of the table in `docs/guides/tools.md`. `names` are folded; a `*` in front marks an ending, a `*`
    behind a beginning."""

    names: tuple[str, ...]
    why: str


def fold(name: str) -> str:
    """Return a name as the most forgiving file system sees it: without case, width and invisible letters."""
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
        name = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return name.casefold().rstrip(" .")


CLOSED = (
    Row(("quire.toml", "pyproject.toml", ".mcp.json"), "they ask for servers, modules and grants"),
    Row(("quire.lock",), "the permissions of documents that people have reviewed"),
    Row((".quire",), "the runs, their answers and their grants"),
    Row((".git", "git~1", ".hg", ".jj", ".sl", "_darcs", ".pijul"), "hooks and settings that start programs"),
    Row((".venv",), "the interpreter and its packages"),
)
"""Always closed; no grant opens them."""

AI = ".ai"
RULES = ("config", "keys", "trust")
"""Always closed directly below `.ai`, where risk tables and trusted keys are kept."""

# fmt: off
ASKING = (
    Row((AI, "*.playbook.md", "*.test.yaml"), "documents that run later, and their tests"),
    Row((".github", ".gitlab", ".gitlab-ci.*", ".circleci", ".travis.yml", ".woodpecker*", ".forgejo", ".gitea",
         ".drone.*", ".buildkite", ".cirrus.yml", ".appveyor.yml", "appveyor.yml", "jenkinsfile", "azure-pipelines.yml",
         "bitbucket-pipelines.yml", "cloudbuild.yaml", "buildspec.yml"),
         "runs at a push, with the secrets of the project"),
    Row((".vscode", ".idea", ".run", ".zed", ".fleet", ".vs", "*.code-workspace", ".devcontainer*", ".exrc", ".vimrc",
         ".lvimrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".claude", ".cursor", ".codex", ".gemini", ".kiro",
         ".windsurf", ".continue", ".opencode", ".roo", ".junie", ".amazonq", ".agents"),
         "runs when an editor or an assistant opens the folder"),
    Row(("agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", ".cursorrules",
         ".windsurfrules", ".clinerules", ".roorules", ".rules", ".goosehints", ".aider*", "opencode.json*"),
         "assistants obey it"),
    Row((".envrc", ".env", ".env.*", "mise.toml", ".mise*", "flake.nix", "shell.nix", "default.nix", ".bashrc",
         ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".login", ".inputrc", ".zshrc", ".zshenv",
         ".zprofile", ".zlogin", ".kshrc", ".cshrc", ".tcshrc", "config.fish"),
         "runs, or sets variables, when a shell comes into the folder"),
    Row((".gitattributes", ".gitmodules", ".gitconfig", ".githooks", ".husky", ".huskyrc*", ".pre-commit-config.yaml",
         "lefthook*", ".lefthook*", ".overcommit.yml", ".lintstagedrc*"), "runs at a commit or a checkout"),
    Row(("makefile", "gnumakefile", "justfile", ".justfile", "taskfile.yml", "taskfile.yaml", "taskfile.dist.*",
         "rakefile", "gemfile", "*.gemspec", "cargo.toml", "build.rs", ".cargo", ".bazelrc", "cmakelists.txt",
         "cmakepresets.json", "meson.build", "pom.xml", "build.xml", "mvnw*", ".mvn", "build.gradle*",
         "settings.gradle*", "gradlew*", "dockerfile", "dockerfile.*", "containerfile", "compose.yml", "compose.yaml",
         "docker-compose.*", "procfile", "vagrantfile", "package.json", ".npmrc", ".yarn", ".yarnrc*", ".pnpmfile.cjs",
         "pnpm-workspace.yaml", "nx.json", "turbo.json", "deno.json*", "bunfig.toml", "composer.json", "pubspec.yaml",
         "mix.exs", "setup.py", "setup.cfg"), "runs at a build or an installation"),
    Row(("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "tox.toml", "noxfile.py",
         ".coveragerc", ".mocharc*", ".nycrc*"), "runs when tests are looked for"),
    Row((".pylintrc*", "pylintrc*", "mypy.ini", ".mypy.ini", ".flake8", ".rubocop.yml", ".eslintrc*", ".prettierrc*",
         ".stylelintrc*", ".babelrc*", "*.config.js", "*.config.cjs", "*.config.mjs", "*.config.ts", "*.config.mts",
         "*.config.cts"), "names code that a checker or a bundler loads"),
    Row(("sitecustomize.py", "usercustomize.py", "*.pth", "*.dist-info", "*.egg-info", "node_modules", ".pdbrc",
         ".gdbinit", ".lldbinit", ".irbrc", ".pryrc", ".rprofile", ".ghci", ".iex.exs", ".sqliterc", ".psqlrc"),
         "runs when an interpreter or a debugger starts"),
)
"""Opened by a grant for the place, or for a folder above it."""

DOCUMENT_FOLDERS = ("prompts", "pipelines", "playbooks")
"""Like `ASKING`, but only directly in the workspace: elsewhere these are ordinary names."""
# fmt: on

GIT_MARKS, GIT_STORES = ("HEAD", "config", "config.worktree"), ("objects", "refs", "commondir")
"""A folder with a file of the first and an entry of the second names may be a repository for git, which starts programs
that `config` names. One beside the other is closed, in any order."""

VENV_MARK = "pyvenv.cfg"
"""A folder that contains this file is a virtual environment, and needs a grant."""


def _sorted(rows: tuple[Row, ...]) -> tuple[frozenset[str], tuple[str, ...], tuple[str, ...]]:
    names = [name for row in rows for name in row.names]
    endings = tuple(name[1:] for name in names if name.startswith("*"))
    beginnings = tuple(name[:-1] for name in names if name.endswith("*"))
    return frozenset(name for name in names if "*" not in name), endings, beginnings


_CLOSED, _, _ = _sorted(CLOSED)
_ASKING, _ENDINGS, _BEGINNINGS = _sorted(ASKING)


class Protection(Struct, frozen=True):
    """The places of a workspace that tools may not write. Paths are relative to the workspace, with `/`."""

    granted: frozenset[str] = frozenset()
    """Places that the user opened; `.` stands for all that a grant can open."""
    asking: frozenset[str] = frozenset()
    """Places that need a grant, in addition to the list of names."""
    signs: Callable[[str], bool] = lambda directive: False
    """Tells whether the run may sign the directive with an id: a run that may sign it may also write it."""
    declared: str = ""
    """The place of the permissions of the directive that writes; empty if the writer is not a directive."""
    closed: frozenset[str] = frozenset()
    """Files and folders that confirmed servers and tool modules load. Modules beside them are closed too, even new
    ones, because Python looks there for imports. `FOLDER/*` closes all files below a folder but data files, because a
    server may build or run any."""
    led_to: Mapping[str, str] = field(default_factory=dict)
    """Closed places, each with the protected name that leads to it."""
    replacing: Callable[[str], None] = lambda directive: None
    """Called with the id of a directive of the project that is about to be written."""

    def require(self, parts: Sequence[str]) -> None:
        """Raise `Denied` unless a tool may write there. `parts` are the real names, links resolved."""
        path = printable_path("/".join(parts))
        if self.is_closed(parts):
            via = next((self.led_to[prefix] for prefix in _prefixes(parts) if prefix in self.led_to), "")
            reason, opens = (f" ({via} leads to it)", EDIT) if via else self._closed_by(parts)
            raise Denied(
                f"permission denied: {path} is protected{reason}; no tool may write it, and {NO_GRANT}: {opens}"
            )
        place, directive = self._asking(parts), _directive(parts)
        if place and not (directive and self.signs(directive)):
            what = path if place == "/".join(parts) else f"the folder {printable_path(place)}"
            raise Denied(f"permission denied: writing {path} needs a grant for {what}; " + self._advice(parts, place))
        if directive:
            self.replacing(directive)

    def require_grant(self, parts: Sequence[str]) -> None:
        """Raise `Denied` unless the user opened the place of a document or a folder above it."""
        if not self.is_granted([fold(part) for part in parts]):
            path = "/".join(parts)
            raise Denied(
                f"permission denied: {printable_path(path)} is a document that runs later; writing it needs a grant; "
                + self._advice(parts, path)
            )

    def is_closed(self, parts: Sequence[str]) -> bool:
        folded = [fold(part) for part in parts]
        above = any(self.closes(folded[: end + 1]) for end in range(len(folded)))
        return above or "" in self.led_to or self.is_source(folded)

    def covers(self, folded: Sequence[str], *, is_folder: bool) -> bool:
        """Tell whether a place may not be written, assuming that the folders above it may."""
        if self.closes(folded) or (not is_folder and self.is_source(folded)):
            return True
        return self._asks(folded) and not self.is_granted(folded)

    def is_granted(self, folded: Sequence[str]) -> bool:
        return "." in self.granted or any(prefix in _folded(self.granted) for prefix in _prefixes(folded))

    def grant_for(self, path: str) -> str:
        """Return the grant that opens a protected place; empty if there is none."""
        parts = path.split("/")
        place = "" if self.is_closed(parts) else self._asking(parts)
        return _grant(place) if place else ""

    def closes(self, folded: Sequence[str]) -> bool:
        """Tell whether a place itself is closed with all that is below it, not only a folder above it."""
        if folded[-1] in _CLOSED or (len(folded) > 1 and folded[-2] == AI and folded[-1] in RULES):
            return True
        if not self.closed and not self.led_to:
            return False
        path = "/".join(folded)
        return path in _folded(self.closed) or path in _folded(frozenset(self.led_to)) or self._is_beside(folded)

    def _is_beside(self, folded: Sequence[str]) -> bool:
        folders, name = _folders(self.closed), folded[-1]
        if "/".join(folded[:-1]) in folders:
            return name == "__pycache__" or name.endswith(_IMPORTED)
        # A new package would be found before a module of the same name.
        return len(folded) > 1 and name.startswith("__init__.") and "/".join(folded[:-2]) in folders

    def is_source(self, folded: Sequence[str]) -> bool:
        """Tell whether a file is closed only because a server may run any file of its folder."""
        if not self.closed or folded[-1].endswith(DATA) or self.closes(folded):
            return False
        return any(f"{folder}/*".lstrip("/") in _folded(self.closed) for folder in ("", *_prefixes(folded[:-1])))

    def _closed_by(self, parts: Sequence[str]) -> tuple[str, str]:
        """Return the reason why a place is closed, and how to write it all the same."""
        folded = [fold(part) for part in parts]
        if any(prefix in _folded(self.closed) for prefix in _prefixes(folded)):
            return " (a confirmed server or tool module loads it)", EDIT
        if self.is_source(folded):
            return " (a confirmed server may build or run any file of its folder)", ELSEWHERE
        if any(self._is_beside(folded[: end + 1]) for end in range(len(folded))):
            return " (a confirmed server or tool module loads files of its folder)", EDIT
        return "", EDIT

    def _asks(self, folded: Sequence[str]) -> bool:
        name = folded[-1]
        if name in _ASKING or name.endswith(_ENDINGS) or name.startswith(_BEGINNINGS):
            return True
        if len(folded) == 1 and name in DOCUMENT_FOLDERS:
            return True
        return bool(self.asking) and "/".join(folded) in _folded(self.asking)

    def _asking(self, parts: Sequence[str]) -> str:
        """Return the place that has to be opened first, or the empty text."""
        folded = [fold(part) for part in parts]
        if self.is_granted(folded):
            return ""
        if "" in self.asking:
            return "."
        end = next((end for end in range(1, len(folded) + 1) if self._asks(folded[:end])), 0)
        if end == 1 and folded[0] in DOCUMENT_FOLDERS:
            return folded[0]
        return "/".join(parts[:end])

    def _advice(self, parts: Sequence[str], folder: str) -> str:
        grant = _grant(folder)
        if not self.declared:
            return f"grant it with {grant}, or under [tools] allow in the quire.toml of your user folder"
        directive = _directive(parts)
        if not directive:
            return new_run_with(grant)
        element = f"<sign><directive>{directive}</directive></sign>"
        # A directive that may sign what it writes needs no grant of the user: that is the way for an author.
        return f"{new_run_with(grant)}, or write {element} into the permissions at {self.declared} and sign that again"


def printable_path(path: str) -> str:
    """Return a path that is safe to show in a message: its names may be chosen to deceive a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in path)


def _grant(place: str) -> str:
    """Return the option, quoted so that it can be copied into a shell."""
    return f"--allow {shlex.quote(f'file__write={printable_path(place)}')}"


def new_run_with(grant: str) -> str:
    """Return the advice for a directive that lacks a permission which its own permissions cannot give. A run keeps the
    grants of its start, so resuming it does not help."""
    return f"grant it to a new run with {grant}"


def _directive(parts: Sequence[str]) -> str:
    """Return the id of the directive in a file of the project; empty for any other file."""
    folded = [fold(part) for part in parts]
    if folded[:2] != [".ai", "directives"] or len(parts) < 3 or not folded[-1].endswith(".md"):
        return ""
    return "/".join(parts[2:])[: -len(".md")]


def _prefixes(parts: Sequence[str]) -> Iterator[str]:
    """Yield the path and all folders above it, the outermost first."""
    return ("/".join(parts[: end + 1]) for end in range(len(parts)))


@functools.lru_cache(maxsize=64)
def _folded(paths: frozenset[str]) -> frozenset[str]:
    return frozenset("/".join(filter(None, (fold(part) for part in path.split("/")))) for path in paths)


@functools.lru_cache(maxsize=64)
def _folders(paths: frozenset[str]) -> frozenset[str]:
    """Return the folders that contain these places; the empty text stands for the workspace itself."""
    return frozenset(path.rpartition("/")[0] for path in _folded(paths) if not path.endswith("*"))
