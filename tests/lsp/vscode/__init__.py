"""The extension in VS Code itself: `make test-vscode`, or `python -m tests.lsp.vscode` once the extension is built.

VS Code runs as `code-server` from npm, in `editors/vscode/.code-server` (`QUIRE_CODE_SERVER` names another folder); its
window is a page in Chromium. `--pictures` writes the pictures of docs/guides/editors.md. `QUIRE_SCREENSHOTS` names a
folder for pictures of every station, also of the one that failed.
"""
