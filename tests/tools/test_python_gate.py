"""The gate in front of Python functions: the whole way of a call, without any server."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.given import given

from quire.engine.requests import ToolRequest
from quire.errors import Denied, ToolFailed, Untrusted
from quire.runs.workspace_gate import open_gate
from quire.tools.gate import Gate
from quire.tools.python import PythonConnection, tool
from quire.tools.registry import Connections
from quire.trust.capabilities import Grants
from quire.trust.secrets import Redactor
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.grants import default_grants
from quire.workspace.locate import Workspace

seen: list[object] = []


@tool(name="t_add", effect="read")
def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


@tool(name="t_keeps")
def keeps(items: list[str]) -> list[str]:
    items.append("changed")
    seen.append(items)
    return items


@tool(name="t_asyncly", effect="idempotent")
async def asyncly(effect_id: str) -> str:
    return effect_id


@tool(name="t_raises")
def raises(kind: str) -> None:
    if kind == "exit":
        sys.exit("out")
    if kind == "failed":
        raise ToolFailed("said by the tool")
    raise LookupError("no hunter2-hunter2 here")


@tool(name="t_returns")
def returns(what: str) -> object:
    return {"nan": float("nan"), "object": object(), "large": "x" * 2000, "deep": _deep(300), "key": "hunter2-hunter2"}[
        what
    ]


def _deep(depth: int) -> list[object]:
    found: list[object] = []
    for _ in range(depth):
        found = [found]
    return found


def gate(*allow: str, max_result: int = 1000) -> Gate:
    registry = Connections({"python": PythonConnection([], Path())})
    grants = Grants.of(f"rye.execute.tool.python.{name}" for name in allow)
    return Gate(registry, grants, Redactor({"THE_KEY": "hunter2-hunter2"}), max_result=max_result)


def request(name: str, **arguments: Value) -> ToolRequest:
    return ToolRequest("1/tool", "1", "python", name, arguments)


async def call(name: str, **arguments: Value) -> Value:
    return await gate("*").call(request(name, **arguments), "effect-1")


async def test_a_call() -> None:
    assert await call("t_add", a=2) == 3
    assert await call("t_add", a=10**30, b=1) == 10**30 + 1
    assert await call("t_asyncly") == "effect-1"


async def test_a_tool_gets_a_copy_and_so_does_the_caller() -> None:
    arguments: dict[str, Value] = {"items": ["a"]}
    result = await gate("*").call(ToolRequest("1/tool", "1", "python", "t_keeps", arguments), "e")
    assert result == ["a", "changed"]
    assert arguments == {"items": ["a"]}
    assert result is not seen[-1]


async def test_denied_before_anything_else() -> None:
    before = len(seen)
    for refused in (gate(), gate("t_add"), gate("t_keep")):
        with pytest.raises(Denied, match=r"rye\.execute\.tool\.python\.t_keeps.*--allow python/t_keeps"):
            await refused.call(request("t_keeps", items=[]), "e")
    # Whether a tool exists is nobody's business who may not use it.
    with pytest.raises(Denied):
        await gate().call(request("t_none"), "e")
    assert len(seen) == before
    assert await gate("t_keeps").call(request("t_keeps", items=[]), "e") == ["changed"]


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "message"),
    [
        ("t_add", {"a": "1", "c": 1}, "arguments", 'a: "1" is not of type "integer"'),
        ("t_add", {"a": "1", "c": 1}, "arguments", "'c' was unexpected"),
        ("t_add", {}, "arguments", 'arguments: "a" is a required property'),
        ("t_keeps", {"items": ["a", 1]}, "arguments", 'items[1]: 1 is not of type "string"'),
        ("t_asyncly", {"effect_id": "forged"}, "arguments", "'effect_id' was unexpected"),
        ("t_ad", {}, "unknown_tool", 'unknown tool "t_ad" at python; did you mean "t_add"?'),
        ("t_raises", {"kind": "x"}, "tool", "python/t_raises raised LookupError: no [redacted:THE_KEY] here"),
        ("t_raises", {"kind": "exit"}, "tool", "python/t_raises raised SystemExit: out"),
        ("t_raises", {"kind": "failed"}, "tool", "said by the tool"),
        ("t_returns", {"what": "nan"}, "result", "python/t_returns returned no JSON value"),
        ("t_returns", {"what": "object"}, "result", "object is not a JSON value"),
        ("t_returns", {"what": "deep"}, "result", "nested deeper"),
        ("t_returns", {"what": "large"}, "result", "returned 2,002 bytes; 1,000 are allowed"),
    ],
)
async def test_failures(name: str, arguments: dict[str, Value], kind: str, message: str) -> None:
    with pytest.raises(ToolFailed) as failed:
        await call(name, **arguments)
    assert message in failed.value.message
    assert (failed.value.kind, failed.value.path) == (kind, "1/tool")
    assert "Traceback" not in failed.value.message


async def test_results_are_redacted() -> None:
    assert await call("t_returns", what="key") == "[redacted:THE_KEY]"


async def test_an_unknown_connection() -> None:
    with pytest.raises(ToolFailed, match='unknown connection "pyton"; did you mean "python"'):
        await gate("*").call(ToolRequest("1/tool", "1", "pyton", "t_add", {}), "e")


def test_effect_classes() -> None:
    classes = [gate().effect_class(request(name)) for name in ("t_add", "t_asyncly", "t_keeps", "t_none")]
    assert classes == ["read", "idempotent", "write", "write"]
    assert gate().effect_class(ToolRequest("", "", "nowhere", "x", {})) == "write"


async def test_preflight_names_each_problem_once() -> None:
    problems = await gate("t_a*").preflight(
        [("python", "t_add"), ("python", "t_abc"), ("python", "t_abc"), ("pythn", "x"), ("python", "t_keeps")]
    )
    assert [problem.partition(";")[0] for problem in problems] == [
        'unknown tool "t_abc" at python',
        'unknown connection "pythn"',
        "permission denied: python/t_keeps needs the capability rye.execute.tool.python.t_keeps",
    ]


def test_two_functions_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match=r'"t_add" is declared twice: by .*\.add and by .*\.other'):

        @tool(name="t_add")
        def other() -> None: ...


@pytest.fixture
def forget() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.startswith("qt_")]:
        del sys.modules[name]


def workspace(tmp_path: Path, module: str, files: dict[str, str]) -> Callable[[], Gate]:
    folder = tmp_path / "work"
    given({"quire.toml": f'[tools]\nmodules = ["{module}"]\n', **files}, folder)

    def build() -> Gate:
        settings = load_settings(Workspace(folder), {"QUIRE_HOME": str(tmp_path / "home")})
        return open_gate(settings, default_grants(settings), {})

    with pytest.raises(Untrusted, match=f"import the Python module {module}"):
        build()
    confirm(load_settings(Workspace(folder), {"QUIRE_HOME": str(tmp_path / "home")}))
    return build


@pytest.mark.usefixtures("forget")
async def test_modules_of_a_trusted_workspace(tmp_path: Path) -> None:
    code = (
        "from quire.tools.python import tool\nimport qt_helper, random\n"
        "@tool\ndef qt_first():\n    return [qt_helper.X, random.__name__, __name__]\n"
    )
    open_ = workspace(
        tmp_path,
        "qt_pack.inner",
        {
            "qt_pack/__init__.py": "",
            "qt_pack/inner.py": code,
            "qt_helper.py": "X = 1\n",
            "random.py": "raise SystemError('not the standard library')\n",
        },
    )
    path = list(sys.path)
    async with open_() as opened:
        assert "qt_pack" not in sys.modules, "nothing is imported before it is needed"
        assert await opened.call(request("qt_first"), "e") == [1, "random", "qt_pack.inner"]
    assert sys.path == path
    assert not list((tmp_path / "work").rglob("__pycache__"))


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize(
    ("module", "text", "message"),
    [
        ("qt_broken", "1 / 0\n", "qt_broken cannot be loaded: ZeroDivisionError"),
        ("qt_syntax", "def\n", "qt_syntax cannot be loaded: SyntaxError"),
        ("qt_exits", "raise SystemExit(3)\n", "qt_exits cannot be loaded: SystemExit"),
        ("json", "", "json cannot be loaded: .* already has its name"),
        ("qt_none.part", "", "qt_none.part cannot be loaded: ModuleNotFoundError"),
    ],
)
async def test_modules_that_do_not_load(tmp_path: Path, module: str, text: str, message: str) -> None:
    async with workspace(tmp_path, module, {f"{module.partition('.')[0]}.py": text})() as opened:
        assert opened.effect_class(request("anything")) == "write"
        with pytest.raises(ToolFailed, match=message):
            await opened.call(request("anything"), "e")


@pytest.mark.usefixtures("forget")
async def test_compiled_files_are_not_what_was_confirmed(tmp_path: Path) -> None:
    import importlib.util
    import py_compile

    source = "from quire.tools.python import tool\n@tool\ndef qt_third():\n    return 'source'\n"
    open_ = workspace(tmp_path, "qt_compiled", {"qt_compiled.py": source})
    evil = tmp_path / "evil.py"
    evil.write_text(source.replace("'source'", "'evil'"))
    cached = importlib.util.cache_from_source(str(tmp_path / "work" / "qt_compiled.py"))
    # An unchecked compiled file is believed by a plain import whatever the source says.
    py_compile.compile(str(evil), cached, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    async with open_() as opened:
        assert await opened.call(request("qt_third"), "e") == "source"
