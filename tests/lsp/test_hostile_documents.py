"""Documents that are made to be dear for the language server: twice the size takes about twice the work.

Each document repeats one construct, or leaves it open. Sizes are so large that a square would show.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.growth import assert_linear
from tests.lsp.editor import position

from quire.lsp.desk import uri_of
from quire.lsp.session import Session
from quire.source import OPEN_TEXTS

STEP = "# T\n\n## STEP 1: A\n\n"
DIRECTIVE = (
    "# T\n\n```xml\n<directive name='look' version='1.0.0'>\n<metadata><description>d</description>{}</metadata>\n"
    "</directive>\n```\n\n<process>\n<step name='a'>{}</step>\n</process>\n"
)
WHOLE = (
    *("documentSymbol", "foldingRange", "documentLink", "codeLens", "formatting", "semanticTokens/full", "inlayHint"),
    "codeAction",
)
AT = ("hover", "completion", "signatureHelp", "definition", "documentHighlight", "prepareRename", "selectionRange")


def playbook(line: str, before: str = STEP, after: str = "\n") -> Callable[[int], str]:
    return lambda size: before + "".join(line.replace("§", str(at)) for at in range(size)) + after


def directive(line: str, *, body: bool = False) -> Callable[[int], str]:
    def make(size: int) -> str:
        text = "".join(line.replace("§", str(at)) for at in range(size))
        return DIRECTIVE.format("" if body else text, text if body else "Do")

    return make


DOCUMENTS: dict[str, tuple[int, Callable[[int], str]]] = {
    "placeholders after wide characters on one line": (3_000, playbook("é{{n§}}😀")),
    "openings of comments on one line": (3_000, playbook("<!-- quire: ", "", f"\n{STEP}Go.\n")),
    "steps of comments on one line": (2_000, playbook("<!-- quire: in stp 1 ", "", f"\n{STEP}Go.\n")),
    "sections of inputs": (3_000, playbook("## INPUTS\n\n- `n§` (string): x\n", f"{STEP}Do\n\n")),
    "headings that are nearly steps": (2_500, playbook("## Step §: A\n\nDo.\n\n")),
    "names of a context": (4_000, playbook(", n§", f"{STEP}Do\n@context(a", ")\n")),
    "models that are not known": (900, playbook("## STEP §: A\nDo\n@model(m§)\n", "# T\n\n")),
    "arms that read other values": (900, playbook('```elif m§ == "a"```\nx\n', f'{STEP}```if m == "a"```\nx\n')),
    "arms that write other values": (
        600,
        playbook('```elif m == "§"```\n### STEP 1b: x\nDo\n@output(o§)\n', f'{STEP}```if m == "a"```\nx\n'),
    ),
    "fences that are not closed": (8_000, playbook("```py§\n")),
    "references without an end": (2_000, directive("{input:n§|", body=True)),
    "comments between elements": (600, directive('<!-- quire: allow DR107 because "x" -->\n<a>x</a>\n')),
}


class Server:
    """A session without the checks of messages, which take longer than the work."""

    def __init__(self, folder: Path) -> None:
        OPEN_TEXTS.clear()
        self._now = 0.0
        self._session = Session(clock=lambda: self._now)
        folders = [{"uri": uri_of(str(folder)), "name": "x"}]
        self.ask("initialize", {"processId": None, "capabilities": {}, "workspaceFolders": folders})
        self.ask("initialized", {}, answered=False)

    def ask(self, method: str, params: dict[str, Any], *, answered: bool = True) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        self._session.take({**message, "id": 1} if answered else message)
        for _ in range(20):  # until all checks are made, also those that wait
            while self._session.wait == 0:
                if (job := self._session.work()) is not None:
                    job.done(job.run())
            self._now += self._session.wait or 0.0
        sent: list[dict[str, Any]] = self._session.sent()
        problems = [one for one in sent if one.get("method") == "window/logMessage"]
        problems += [one["error"] for one in sent if "error" in one and one["error"]["code"] != -32803]
        assert problems == []


def everything(server: Server, uri: str, text: str) -> None:
    """Open a document, and ask for each feature in its middle."""
    item = {"uri": uri, "languageId": "", "version": 1, "text": text}
    server.ask("textDocument/didOpen", {"textDocument": item}, answered=False)
    middle = position(text, len(text) // 2)
    whole = {"start": {"line": 0, "character": 0}, "end": position(text, len(text))}
    where = {"textDocument": {"uri": uri}, "position": middle, "positions": [middle], "range": whole}
    for method in (*WHOLE, *AT):
        server.ask(f"textDocument/{method}", {**where, "options": {}, "context": {"diagnostics": []}})
    server.ask("textDocument/didClose", {"textDocument": {"uri": uri}}, answered=False)


@pytest.mark.parametrize("size, make", DOCUMENTS.values(), ids=DOCUMENTS)
def test_all_features_take_twice_as_long_for_twice_as_much(
    size: int, make: Callable[[int], str], tmp_path: Path
) -> None:
    (tmp_path / "quire.toml").write_text("")
    is_directive = make(1).startswith(DIRECTIVE[:20])
    uri = uri_of(str(tmp_path / (".ai/directives/look.md" if is_directive else "x.playbook.md")))
    server = Server(tmp_path)

    def asked(size: int) -> Callable[[], object]:
        text = make(size)
        return lambda: everything(server, uri, text)

    asked(10)()  # imports
    assert_linear(asked, size)
