"""Run all of it, or the parts that are named: `python -m tests.lsp.vscode [--pictures] [PART…]`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.lsp.vscode.bookshop import write_bookshop
from tests.lsp.vscode.code_server import EXTENSION, ROOT, CodeServer
from tests.lsp.vscode.failures import beside_other_files, trusted_elsewhere, without_a_program, without_trust
from tests.lsp.vscode.golden_path import golden_path
from tests.lsp.vscode.window import window

PICTURES = ROOT / "docs" / "pictures"


def main(arguments: list[str]) -> int:
    if shutil.which("npm") is None:
        raise SystemExit("VS Code comes from npm, which is not installed")
    if not list((EXTENSION / "dist").glob("*.vsix")):
        raise SystemExit("the extension is not built: make vscode")
    pictures = PICTURES if "--pictures" in arguments else None
    named = [one for one in arguments if one != "--pictures"] or (["golden_path"] if pictures else [])

    def way(server: CodeServer) -> None:
        folder = write_bookshop(server)
        with server.running(trusts=True) as url, window(url, folder, server.environment, pictures) as opened:
            golden_path(opened)

    parts = {
        "golden_path": way,
        **{one.__name__: one for one in (without_a_program, without_trust, trusted_elsewhere, beside_other_files)},
    }
    for name, part in parts.items():
        if not named or name in named:
            print(name, flush=True)
            with tempfile.TemporaryDirectory() as place:
                part(CodeServer(Path(place)))
    print("the extension works")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
