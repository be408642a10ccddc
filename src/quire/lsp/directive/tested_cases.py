"""Find the tests of a directive, and count their cases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

from quire.formats import TEST_SUFFIX

if TYPE_CHECKING:
    from quire.lsp.views import View
    from quire.values import Value


def test_path(view: View) -> str:
    """Return the path of the test that has the name of the document."""
    return str(PurePath(view.path).with_suffix("")) + TEST_SUFFIX


def tests_of(view: View) -> Iterator[View]:
    """Yield the tests of a document: the one with its name beside it, and those that name it."""
    stem = PurePath(view.path).stem
    own = test_path(view)
    for path in view.folder.files:
        if not path.endswith(TEST_SUFFIX):
            continue
        test = view.folder.view(path)
        if test is None or (path != own and stem not in test.source.text):
            continue
        file = test.reading.file if test.format == "test" else None
        if file is None:
            continue
        named = file.document.text if file.document else ""
        if (path == own and not named) or (named and _means(view, path, named, stem)):
            yield test


def _means(view: View, test: str, named: str, stem: str) -> bool:
    from quire.lsp.directive.item_files import id_of

    if named in (stem, id_of(view.path)):
        return True
    return os.path.normpath(os.path.join(os.path.dirname(test), named)) == view.path  # noqa: PTH118, PTH120


def count_cases(view: View) -> int:
    return sum(len(test.reading.file.cases) for test in tests_of(view))


_EXAMPLES: dict[str, Value] = {
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": ["one"],
    "list": ["one"],
    "object": {},
    "dict": {},
}


def test_text(view: View) -> str:
    """Return a first test of a directive: one case, whose model returns the outputs at once."""
    from quire.plan.built_in_tools import RETURN
    from quire.testing.scaffold_text import flow

    directive = view.reading.partial
    inputs: dict[str, Value] = {
        one.name: _EXAMPLES.get(one.type, "one") for one in directive.inputs if one.required and one.name
    }
    outputs: dict[str, Value] = {one.name: _EXAMPLES.get(one.type, "one") for one in directive.outputs if one.name}
    lines = [f"document: {flow(PurePath(view.path).name)}", "cases:", "  - name: it returns its outputs"]
    if inputs:
        lines.append(f"    inputs: {flow(inputs)}")
    if outputs:
        reply: dict[str, Value] = {"turn": 1, "tool_calls": [{"name": RETURN, "input": outputs}]}
        lines += ["    model:", f"      - {flow(reply)}", f"    expect: {flow({'outputs': outputs})}"]
    else:
        lines += ["    model:", '      - {turn: 1, reply: "Done."}', "    expect: {status: completed}"]
    return "\n".join(lines) + "\n"
