"""Python functions as tools: the `@tool` decorator, and the connection `python`.

Functions come from the modules named under `[tools] modules`, never from scanning a folder; they are imported when the
first of them is needed, and only in a trusted workspace. Installed packages provide theirs by the entry point group
`quire.tools`.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, overload

from msgspec import Struct

from quire.engine.premises import LONGEST_PYTHON, PYTHON_SECONDS, TOOL_SECONDS
from quire.errors import ToolFailed
from quire.tools.blocking import OutOfTime, in_thread, within
from quire.tools.confirmed_imports import ConfirmedImports
from quire.tools.function_schemas import EFFECT_ID, Unsupported, as_value, converted, input_schema
from quire.tools.registry import ToolSpec
from quire.trust.capabilities import python_tool
from quire.workspace.consent import require_trusted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from quire.engine.ports import EffectClass
    from quire.values import Value
    from quire.workspace.settings import Settings

F = TypeVar("F", bound=Callable[..., object])

GROUP = "quire.tools"


class PythonTool(Struct, frozen=True):
    name: str
    function: Callable[..., object]
    effect: EffectClass
    timeout: float | None = PYTHON_SECONDS

    @property
    def seconds(self) -> float:
        return LONGEST_PYTHON if self.timeout is None else min(self.timeout, LONGEST_PYTHON)

    @property
    def origin(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"


_declared: dict[str, PythonTool] = {}


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(
    *, name: str | None = None, effect: EffectClass = "write", timeout: float | None = PYTHON_SECONDS
) -> Callable[[F], F]: ...


def tool(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    effect: EffectClass = "write",
    timeout: float | None = PYTHON_SECONDS,
) -> F | Callable[[F], F]:
    """Make a function callable from documents: `@tool(python, NAME, {…})`.

    Its annotations become the schema of its arguments, its docstring the description. `effect` states what a crash in
    the middle may leave behind: nothing ("read"), nothing that a second call would not repair ("idempotent"), or
    anything ("write"). A parameter named `effect_id` gets an id that is the same when the same step runs again after a
    crash. A call that takes longer than `timeout` seconds, or than a day, fails; a function that is not `async` cannot
    be stopped then, and is left behind in its thread. The function itself is returned unchanged.
    """

    def declare(decorated: F) -> F:
        _declare(PythonTool(name or decorated.__name__, decorated, effect, timeout))
        return decorated

    return declare if function is None else declare(function)


def _declare(added: PythonTool) -> None:
    before = _declared.get(added.name)
    if before is not None and before.origin != added.origin:
        raise ValueError(f'the tool "{added.name}" is declared twice: by {before.origin} and by {added.origin}')
    _declared[added.name] = added


class PythonConnection:
    """The functions that are declared once the modules are imported; with `installed`, those of packages too."""

    def __init__(
        self,
        modules: Sequence[str],
        folder: Path,
        *,
        installed: bool = False,
        files: Mapping[str, str] | None = None,
    ) -> None:
        """`files` are the files of the folder that may be loaded, with their hashes; None for those that exist now."""
        self._files = files
        self._modules = tuple(modules)
        self._folder = folder
        self._installed = installed
        self._specs: dict[str, ToolSpec] | None = None

    def tool_id(self, tool: str) -> str:
        return python_tool(tool)

    def known(self, tool: str) -> ToolSpec | None:
        try:
            return self._load().get(tool)
        except ToolFailed:
            return None

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        return self._load()

    def longest(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> float:
        return TOOL_SECONDS.of("python", _declared[tool.name].seconds)

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        """Call the function and return its result, converted to JSON if possible: the gate refuses anything else."""
        declared = _declared[tool.name]
        function = declared.function
        values = converted(function, arguments, tool.id)
        if EFFECT_ID in inspect.signature(function).parameters:
            values[EFFECT_ID] = effect_id
        try:
            if inspect.iscoroutinefunction(function):
                result = await within(function(**values), declared.seconds)
            else:
                result = await in_thread(lambda: function(**values), seconds=declared.seconds)
        except ToolFailed:
            raise
        except OutOfTime:
            raise ToolFailed(f"{tool.id} took longer than {declared.seconds:g} s", kind="timeout") from None
        except (Exception, SystemExit) as error:
            raise ToolFailed(f"{tool.id} raised {type(error).__name__}: {error}") from None
        return as_value(result)  # type: ignore[return-value]

    async def prompt(self, name: str) -> str:
        raise ToolFailed("Python functions have no prompts")

    async def close(self) -> None:
        pass

    def _load(self) -> dict[str, ToolSpec]:
        if self._specs is None:
            # Output of a module while it is loaded is not part of the result of a run.
            with redirect_stdout(sys.stderr):
                self._import_all()
                if self._installed:
                    _load_installed()
            self._specs = {name: _spec(declared) for name, declared in _declared.items()}
        return self._specs

    def _import_all(self) -> None:
        files = self._files
        if files is None:
            from quire.workspace.server_code import read_modules

            modules, _ = read_modules(self._folder, self._modules)
            files = {name: digest for loaded in modules.values() for name, digest in loaded.items()}
        with _confirmed(self._folder, files, self._modules):
            for module in self._modules:
                _import(module, self._folder)


def workspace_tools(settings: Settings) -> Mapping[str, ToolSpec]:
    """Return the tools of the modules of a workspace, for commands that only look. Raises `Untrusted` before anything
    is imported that the user has not agreed to, and `ToolFailed` for a module that cannot be loaded."""
    files = require_trusted(settings).module_files
    return PythonConnection(settings.tools.modules, settings.workspace.folder, files=files)._load()


def installed_tools() -> Mapping[str, ToolSpec]:
    """Return the tools of installed packages, for commands that only look. Raises `ToolFailed` if one cannot be
    loaded."""
    with redirect_stdout(sys.stderr):
        names = _load_installed()
    return {name: _spec(declared) for name, declared in _declared.items() if name in names}


def _spec(declared: PythonTool) -> ToolSpec:
    """Make the spec of a function. One that cannot be a tool gets a `problem`, and does not affect the others."""
    schema: dict[str, Value] = {}
    problem = ""
    try:
        schema = input_schema(declared.function)
    except Unsupported as error:
        problem = str(error)
    return ToolSpec(
        id=python_tool(declared.name),
        name=declared.name,
        description=inspect.getdoc(declared.function) or "",
        schema=schema,
        effect=declared.effect,
        problem=problem,
    )


def _load_installed() -> set[str]:
    """Load the tools of installed packages, and return their names. An entry point names a module full of tools, or one
    function.

    Only the folders into which packages are installed are searched: a distribution that lies in a workspace, or
    anywhere else on the path, was not installed by the user.
    """
    import site
    import sysconfig
    from importlib.metadata import distributions

    folders = [*(sysconfig.get_path(kind) for kind in ("purelib", "platlib")), site.getusersitepackages()]
    names: set[str] = set()
    for distribution in distributions(path=list(dict.fromkeys(folders))):
        for point in distribution.entry_points:
            if point.group == GROUP:
                names |= _load_point(point, distribution.metadata["Name"])
    return names


def _load_point(point: EntryPoint, package: str) -> set[str]:
    try:
        loaded: object = point.load()
        is_declared = any(declared.function is loaded for declared in _declared.values())
        if callable(loaded) and not is_declared:
            _declare(PythonTool(point.name, loaded, "write"))
    except (Exception, SystemExit) as error:
        raise ToolFailed(
            f"the tool {point.name} of the package {package} cannot be loaded: {type(error).__name__}: {error}"
        ) from None
    tools = {name: declared.function for name, declared in _declared.items()}
    return {name for name, function in tools.items() if function is loaded or function.__module__ == point.module}


def _import(name: str, folder: Path) -> None:
    top = name.partition(".")[0]
    own = importlib.machinery.PathFinder.find_spec(top, [str(folder)])
    loaded = sys.modules.get(top)
    if own is not None and loaded is not None and _place(own) != _place(loaded.__spec__):
        raise ToolFailed(f"the module {name} cannot be loaded: {loaded!r} already has its name")
    try:
        importlib.import_module(name)
    except (Exception, SystemExit) as error:
        is_file = name.endswith(".py") and isinstance(error, ModuleNotFoundError)
        why = f"write {name[:-3].replace('/', '.')}, without .py" if is_file else f"{type(error).__name__}: {error}"
        raise ToolFailed(f"the module {name} cannot be loaded: {why}") from None


def _place(spec: importlib.machinery.ModuleSpec | None) -> tuple[str | None, tuple[str, ...]]:
    return (None, ()) if spec is None else (spec.origin, tuple(spec.submodule_search_locations or ()))


@contextmanager
def _confirmed(folder: Path, files: Mapping[str, str], modules: Sequence[str]) -> Iterator[None]:
    """Allow the import of the confirmed files of a folder, and of no others in it, inside the block.

    Afterwards only submodules of loaded packages can be imported: a missing library that Quire imports later must not
    be found in the workspace.
    """
    tops = [name.partition(".")[0] for name in modules]
    own = [top for top in tops if importlib.machinery.PathFinder.find_spec(top, [str(folder)]) is not None]
    path, finder = list(sys.path), ConfirmedImports(str(folder), _folders(folder), files, own)
    sys.meta_path.insert(0, finder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        finder.active = False
        if not finder.is_used:
            sys.meta_path.remove(finder)
        sys.path[:] = path


def _folders(folder: Path) -> list[str]:
    """Return the folders of top-level modules: the workspace, and the folders below it on this interpreter's path."""
    below = [entry for entry in sys.path if entry.startswith(f"{folder}{os.sep}")]
    return [str(folder), *below]
