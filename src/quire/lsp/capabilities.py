"""The table of all methods, and what the server says of itself in `initialize`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

from quire import __version__
from quire.lsp.protocol import COMMANDS, INCREMENTAL, TOKEN_MARKS, TOKEN_TYPES, TRIGGERS

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
    found: Callable[..., Any] = getattr(import_module(f"quire.lsp.features.{module}"), name or module)
    return found


def server_capabilities(encoding: str, *, pulls: bool) -> dict[str, object]:
    """Return what the server can do, for the answer to `initialize`."""
    said: dict[str, object] = {
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
        said["diagnosticProvider"] = {
            "identifier": "quire",
            "interFileDependencies": True,
            "workspaceDiagnostics": True,
            "workDoneProgress": True,
        }
    return said


SERVER_INFO = {"name": "quire", "version": __version__}
