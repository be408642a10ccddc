"""The functions that each format has for editors, the table of all requests, and the capabilities of the server.

A function stands in a module of the format's folder: `quire.lsp.playbook.hover` has `hover(view, offset)`. A format
without the module has no such answers. `MODULES` names those that stand in a module of another name. Modules are
imported when they are first asked.

| module | function | returns |
| --- | --- | --- |
| `index` | `index(view)` | `Index` |
| `hover` | `hover(view, offset)` | `Hover` or None |
| `completion` | `complete(view, offset)` | list of `Completion` |
| `completion` | `resolve(view, what)` | Markdown |
| `signatures` | `signature(view, offset)` | `Signature` or None |
| `decorations` | `tokens(view)` | list of `Token` |
| `decorations` | `hints(view, span)` | list of `Hint` |
| `decorations` | `lenses(view)` | list of `Lens` |
| `actions` | `actions(view, span, findings)` | list of `Action` |
| `formatting` | `format(view, span)` | list of `Edit` |
| `decorations` | `folds(view)` | list of `Fold` |
| `naming` | `name_problem(view, name, new)` | why a new name is not allowed, or an empty text |
| `naming` | `can_stand(view, name, new)` | whether a call by a name can be written in this way |
| `naming` | `place_edits(view, names, new)` | list of `Edit` for places that get a new name, or why they cannot |
| `file_moves` | `moved(view, new)` | list of `Edit`: the texts about the document's own place |
| `file_moves` | `followed(view, moves)` | list of `Edit`: other texts that depend on moved files |
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from quire import __version__
from quire.lsp.protocol import COMMANDS, INCREMENTAL, TOKEN_MARKS, TOKEN_TYPES, TRIGGERS

FORMATS = ("playbook", "pipeline", "directive", "knowledge", "test", "settings")
MODULES: dict[str, dict[str, str]] = {
    "playbook": {"signatures": "directive_forms", "naming": "index"},
    "pipeline": {"signatures": "signature_help", "formatting": "decorations"},
    "directive": {"signatures": "completion", "formatting": "decorations", "file_moves": "naming"},
    "knowledge": {
        **dict.fromkeys(("hover", "actions", "decorations"), "completion"),
        **dict.fromkeys(("index", "file_moves"), "metadata"),
    },
    "test": {"naming": "index", "decorations": "hover"},
    "settings": {"hover": "completion", "naming": "index", "check": "index"},
}
"""The modules of a format that answer for what the table above names, where they do not have its name."""


@lru_cache(maxsize=256)
def function(format: str, module: str, name: str) -> Callable[..., Any] | None:
    """Return a function of a format; None if the format has no such module."""
    place = f"quire.lsp.{format}.{MODULES.get(format, {}).get(module, module)}"
    if format not in FORMATS or find_spec(f"quire.lsp.{format}") is None or find_spec(place) is None:
        return None
    answer: Callable[..., Any] | None = getattr(import_module(place), name, None)
    return answer


class ModuleLoads:
    """Loads the modules of hovers and completions before they are asked for, a few at a time."""

    def __init__(self) -> None:
        self._wanted: set[str] = set()
        self._waiting: deque[Callable[[], object]] = deque()

    def want(self, format: str) -> bool:
        """Have the modules of a format loaded, unless they are already. Return False if nothing is to be loaded."""
        if format and format not in self._wanted:
            self._wanted.add(format)
            for module, name in (("hover", "hover"), ("completion", "complete")):
                self._waiting.append(partial(handler, f"textDocument/{module}"))
                self._waiting.append(partial(function, format, module, name))
        return bool(self._waiting)

    def next(self) -> bool:
        """Load some modules, few enough that a request does not wait long. Return False if these were the last ones."""
        load = self._waiting.popleft()
        load()
        return bool(self._waiting)


REQUESTS: dict[str, str] = {
    "textDocument/hover": "completion:hover",
    "textDocument/completion": "completion",
    "completionItem/resolve": "completion:resolve",
    "textDocument/signatureHelp": "completion:signature_help",
    "textDocument/definition": "navigation:definition",
    "textDocument/references": "navigation:references",
    "textDocument/documentHighlight": "navigation:highlight",
    "textDocument/documentLink": "navigation:links",
    "textDocument/prepareRename": "rename:prepare",
    "textDocument/rename": "rename",
    "textDocument/linkedEditingRange": "rename:linked",
    "workspace/willRenameFiles": "rename:will_rename",
    "textDocument/documentSymbol": "symbols:document",
    "workspace/symbol": "symbols:workspace",
    "textDocument/foldingRange": "symbols:folding",
    "textDocument/selectionRange": "symbols:selection",
    "textDocument/prepareCallHierarchy": "navigation:prepare_calls",
    "callHierarchy/incomingCalls": "navigation:incoming_calls",
    "callHierarchy/outgoingCalls": "navigation:outgoing_calls",
    "textDocument/semanticTokens/full": "semantic_tokens:full",
    "textDocument/semanticTokens/full/delta": "semantic_tokens:delta",
    "textDocument/inlayHint": "semantic_tokens:inlay_hints",
    "textDocument/codeLens": "commands:code_lenses",
    "textDocument/codeAction": "commands:code_actions",
    "textDocument/formatting": "symbols:formatting",
    "textDocument/rangeFormatting": "symbols:format_part",
    "workspace/executeCommand": "commands:execute",
}
"""Method: the module in `quire.lsp.features` and its function, which has the module's name unless it is given."""

SEARCHES = frozenset(
    {
        "textDocument/codeLens",
        "textDocument/references",
        "textDocument/rename",
        "workspace/symbol",
        "workspace/willRenameFiles",
        "callHierarchy/incomingCalls",
    }
)
"""Requests that read all documents of a workspace. They are answered by a process of their own, so that a large
workspace does not keep other requests waiting."""


@lru_cache(maxsize=64)
def handler(method: str) -> Callable[..., Any] | None:
    """Return the function that answers a request; None for a method that is not known."""
    place = REQUESTS.get(method)
    if place is None:
        return None
    module, _, name = place.partition(":")
    answer: Callable[..., Any] = getattr(import_module(f"quire.lsp.features.{module}"), name or module)
    return answer


def server_capabilities(encoding: str, *, pulls: bool) -> dict[str, object]:
    """Return what the server can do, for the answer to `initialize`."""
    capabilities: dict[str, object] = {
        "positionEncoding": encoding,
        "textDocumentSync": {"openClose": True, "change": INCREMENTAL, "save": {"includeText": False}},
        "hoverProvider": True,
        "completionProvider": {"triggerCharacters": list(TRIGGERS), "resolveProvider": True},
        "signatureHelpProvider": {"triggerCharacters": ["(", ","], "retriggerCharacters": [","]},
        "definitionProvider": True,
        "referencesProvider": True,
        "documentHighlightProvider": True,
        "documentLinkProvider": {"resolveProvider": False},
        "renameProvider": {"prepareProvider": True},
        "linkedEditingRangeProvider": True,
        "documentSymbolProvider": True,
        "workspaceSymbolProvider": True,
        "foldingRangeProvider": True,
        "selectionRangeProvider": True,
        "callHierarchyProvider": True,
        "semanticTokensProvider": {
            "legend": {"tokenTypes": list(TOKEN_TYPES), "tokenModifiers": list(TOKEN_MARKS)},
            "full": {"delta": True},
        },
        "inlayHintProvider": True,
        "codeLensProvider": {"resolveProvider": False},
        "codeActionProvider": {"codeActionKinds": ["quickfix", "refactor", "source.fixAll.quire"]},
        "documentFormattingProvider": True,
        "documentRangeFormattingProvider": True,
        "executeCommandProvider": {"commands": list(COMMANDS), "workDoneProgress": True},
        "workspace": {
            "workspaceFolders": {"supported": True, "changeNotifications": True},
            "fileOperations": {
                "willRename": {
                    "filters": [
                        {"pattern": {"glob": "**/*.{md,markdown,yaml,yml}", "matches": "file"}},
                        {"pattern": {"glob": "**", "matches": "folder"}},
                    ]
                }
            },
        },
    }
    if pulls:
        capabilities["diagnosticProvider"] = {
            "identifier": "quire",
            "interFileDependencies": True,
            "workspaceDiagnostics": True,
            "workDoneProgress": True,
        }
    return capabilities


SERVER_INFO = {"name": "quire", "version": __version__}
