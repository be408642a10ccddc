from __future__ import annotations

import importlib.util
import os
import pkgutil
import py_compile
import subprocess
import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

import quire
from quire.quick_imports import _OwnFinder

ALL = [one.name for one in pkgutil.walk_packages(quire.__path__, "quire.") if one.name != "quire.__main__"]


def test_every_module_is_found_as_python_finds_it() -> None:
    assert len(ALL) > 500
    for name in ALL:
        path = [str(Path(quire.__path__[0], *name.split(".")[1:-1]))]
        short, long = _OwnFinder.find_spec(name, path), PathFinder.find_spec(name, path)
        assert short is not None and long is not None, name
        assert _facts(short) == _facts(long)


def _facts(spec: ModuleSpec) -> list[object]:
    assert isinstance(spec.loader, SourceFileLoader)
    place = [spec.origin, spec.cached, spec.submodule_search_locations, spec.has_location, spec.parent]
    return [spec.name, *place, spec.loader.path, spec.loader.is_package(spec.name)]


@pytest.fixture(autouse=True)
def compiled_code_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


@pytest.mark.parametrize("name", ["json", "msgspec.json", "quires.one", "quire.none"])
def test_other_modules_are_left_to_python(name: str, tmp_path: Path) -> None:
    (tmp_path / "json.py").touch()
    (tmp_path / "one.py").touch()
    assert _OwnFinder.find_spec(name, [str(tmp_path)]) is None
    assert _OwnFinder.find_spec("quire.one", None) is None
    assert _OwnFinder.find_spec("quire.one", [str(tmp_path), str(tmp_path)]) is None
    assert _OwnFinder.find_spec("quire.one", [str(tmp_path)]) is not None


def test_code_is_compiled_again_when_its_text_has_changed(tmp_path: Path) -> None:
    text = tmp_path / "sample.py"
    text.write_text("VALUE = 1\n")
    assert _value(tmp_path) == 1, "nothing was compiled before"
    assert _value(tmp_path) == 1
    text.write_text("VALUE = 23\n")
    assert _value(tmp_path) == 23, "the size is another one"
    text.write_text("VALUE = 45\n")
    os.utime(text, (1_000_000_000, 1_000_000_000))
    assert _value(tmp_path) == 45, "the time is another one"


def test_compiled_code_is_used_without_reading_the_text(tmp_path: Path) -> None:
    text = tmp_path / "sample.py"
    text.write_text("VALUE = 1\n")
    os.utime(text, (1_000_000_000, 1_000_000_000))
    _value(tmp_path)
    text.write_text("VALUE = 2\n")
    os.utime(text, (1_000_000_000, 1_000_000_000))
    assert _value(tmp_path) == 1, "time and size are the same, which is all that Python looks at"


@pytest.mark.parametrize("mode", ["CHECKED_HASH", "UNCHECKED_HASH"])
def test_code_that_goes_by_a_digest_of_its_text_is_left_to_python(mode: str, tmp_path: Path) -> None:
    text = tmp_path / "sample.py"
    text.write_text("VALUE = 1\n")
    py_compile.compile(str(text), invalidation_mode=py_compile.PycInvalidationMode[mode])
    text.write_text("VALUE = 2\n")
    assert _value(tmp_path) == (2 if mode == "CHECKED_HASH" else 1)


@pytest.mark.parametrize("damaged", [b"", b"short", bytes(40)], ids=["empty", "short", "zeros"])
def test_a_damaged_file_of_compiled_code_is_replaced(damaged: bytes, tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text("VALUE = 1\n")
    compiled = Path(importlib.util.cache_from_source(str(tmp_path / "sample.py")))
    compiled.parent.mkdir()
    compiled.write_bytes(damaged)
    assert _value(tmp_path) == 1
    assert compiled.read_bytes() != damaged


def test_code_of_a_moved_folder_names_its_new_place(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    (old / "sample.py").write_text("def place(): return place.__code__.co_filename\n")
    _loaded(old)
    old.rename(new)
    assert _loaded(new)["place"]() == str(new / "sample.py")


def _value(folder: Path) -> object:
    return _loaded(folder)["VALUE"]


def _loaded(folder: Path) -> dict[str, Any]:
    spec = _OwnFinder.find_spec("quire.sample", [str(folder)])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.__file__ == str(folder / "sample.py")
    return vars(module)


CODE = """
import sys
from quire.cli import main
sys.argv = ["quire", "eval", "1 + 1", "--context", "{}"]
code = main()
print(code, type(sys.modules["quire.expr"].__spec__.loader).__name__)
"""


@pytest.mark.parametrize(
    ("options", "environ", "loader"),
    [
        ((), {}, "_OwnLoader"),
        (("-O",), {}, "SourceFileLoader"),
        ((), {"PYTHONPYCACHEPREFIX": "cache"}, "SourceFileLoader"),
    ],
)
def test_commands_take_the_short_way_where_python_is_set_up_as_usual(
    options: tuple[str, ...], environ: dict[str, str], loader: str, tmp_path: Path
) -> None:
    environ = {name: str(tmp_path / value) for name, value in environ.items()}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, *options, "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=clean | environ)
    assert done.stdout.split() == ["2", "0", loader]
