"""The items that come with Quire, verified by hashes in the package.

They carry no signature, so users do not have to trust a key of Quire's. A file that was changed after the installation
no longer matches its hash and is refused like any other modified item.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from quire.trust.signature_line import digest_of

FOLDER = Path(__file__).resolve().parent.parent / "space"

HASHES: Mapping[str, str] = {
    "directives/rye/agent/core/base.md": "b6c47cfbe405cf826903bb6bce9b1306cb55b78a6c2f754ad086935e2812a68c",
    "directives/rye/core/create_directive.md": "30829c00175cff33eb0d3075b9cd16e680f94d28959d445ca93c90f3ba3f2568",
    "directives/rye/core/create_threaded_directive.md": "a2376ebf406db876b65921d7a7def73e7493807a91a36db6ed51f9d19044ca8c",  # noqa: E501
    "knowledge/rye/agent/core/Behavior.md": "b1f31ba46ae2f44cd79dda529e431e28db2410fd869ba283766a7ab81de04452",
    "knowledge/rye/agent/core/Identity.md": "2df8d4844b3b1094db6090829d70b58843ae63c37a64a04a142e81b439f9dfe2",
}
"""The sha256 of each file, by its path in the folder. `tests/library/test_built_in.py` prints the expected value."""


def is_genuine(path: Path, text: str) -> bool:
    """Tell whether a file of the folder is the one that was shipped. `text` is the normalised text."""
    try:
        name = path.relative_to(FOLDER).as_posix()
    except ValueError:
        return False
    return HASHES.get(name) == digest_of(text)
