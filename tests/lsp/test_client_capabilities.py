"""Editors as `pytest-lsp` knows them: each gets findings and answers in the form that it has said it can read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types
from pytest_lsp import client_capabilities, make_test_lsp_client
from tests.lsp.language_server import COMMAND

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = "# Note\n\n## INPUTS\n\n- `topic` (string): the thing\n\n## STEP 1: Say 𝄞\n\nSay {{topic}} and {{nothing}}.\n"
CLIENTS = ["visual-studio-code", "neovim@v0.6", "neovim@v0.7", "neovim@v0.11", "emacs"]


@pytest.mark.parametrize("name", CLIENTS)
async def test_findings_and_a_hover(name: str, tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "quire.toml").write_text("")
    client = make_test_lsp_client()
    await client.start_io(*COMMAND, cwd=folder)
    try:
        begun = await client.initialize_session(
            types.InitializeParams(
                capabilities=client_capabilities(name),
                workspace_folders=[types.WorkspaceFolder(uri=folder.as_uri(), name="work")],
            )
        )
        assert begun.server_info is not None
        uri = (folder / "note.playbook.md").as_uri()
        item = types.TextDocumentItem(uri=uri, language_id="markdown", version=1, text=TEXT)
        client.text_document_did_open(types.DidOpenTextDocumentParams(text_document=item))
        document = types.TextDocumentIdentifier(uri=uri)
        async with asyncio.timeout(60):
            if begun.capabilities.diagnostic_provider is None:
                await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
                found = client.diagnostics[uri]
            else:
                report = await client.text_document_diagnostic_async(types.DocumentDiagnosticParams(document))
                assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
                found = report.items
        assert [one.code for one in found] == ["PB201"]
        place = types.Position(line=8, character=8)
        symbols = await client.text_document_document_symbol_async(types.DocumentSymbolParams(text_document=document))
        assert symbols is not None
        await client.text_document_hover_async(types.HoverParams(text_document=document, position=place))
        await client.text_document_completion_async(types.CompletionParams(text_document=document, position=place))
        await client.shutdown_session()
    finally:
        async with asyncio.timeout(20):
            await client.stop()  # type: ignore[no-untyped-call]
