"""The table of methods in docs/editors.md, printed from the server: `python -m tests.docs.editor_methods`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from quire.lsp.capabilities import REQUESTS
from quire.lsp.languages import FORMATS

MODULES = {
    "textDocument/hover": "hover",
    "textDocument/completion": "completion",
    "textDocument/signatureHelp": "signatures",
    "textDocument/semanticTokens/full": "tokens",
    "textDocument/inlayHint": "hints",
    "textDocument/codeLens": "lenses",
    "textDocument/formatting": "formatting",
}
"""Methods that are answered by a module of each format. All others are answered from the names and parts of a document,
for every format that has an index."""
OTHERS = (
    "textDocument/diagnostic",
    "workspace/diagnostic",
    "textDocument/publishDiagnostics",
    "window/workDoneProgress/create",
    "window/workDoneProgress/cancel",
    "$/progress",
)


def lines() -> Iterator[str]:
    yield f"| method | {' | '.join(FORMATS)} |"
    yield f"| --- |{' --- |' * len(FORMATS)}"
    for method in [*REQUESTS, *OTHERS]:
        marks = ["✓" if _answers(method, format) else "" for format in FORMATS]
        yield f"| `{method}` | {' | '.join(marks)} |"


def _answers(method: str, format: str) -> bool:
    if method in OTHERS or method == "workspace/executeCommand":
        return True
    module = MODULES.get(method.removesuffix("/delta").replace("rangeFormatting", "formatting"), "index")
    if method == "completionItem/resolve":
        module = "completion"
    place = f"quire.lsp.{format}"
    return find_spec(place) is not None and find_spec(f"{place}.{module}") is not None


if __name__ == "__main__":
    print("\n".join(lines()))
