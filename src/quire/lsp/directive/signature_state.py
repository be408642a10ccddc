"""The state of the signature of an item, in a few words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import QuireError

if TYPE_CHECKING:
    from quire.lsp.views import View


def signature_words(view: View) -> str:
    """Return `signed by ada`, `not signed`, or what is wrong; `built in` for an item of Quire. The text that the editor
    has counts, so an edited item counts as changed."""
    from quire.library.document_state import trusted_keys
    from quire.library.items import BUILT_IN_FOLDER, is_genuine
    from quire.trust.sign_file import signable
    from quire.trust.signatures import Verification

    settings = view.folder.settings
    path = Path(view.path)
    if path.is_relative_to(BUILT_IN_FOLDER):
        return "built in" if is_genuine(path, view.source.text) else "built in, but changed"
    if settings is None:
        return "not known: the settings cannot be read"
    try:
        item = signable(path, settings.workspace.folder)
    except QuireError as error:
        return str(error)
    keys = trusted_keys(settings)
    if isinstance(keys, str):
        return "not known: the trusted keys cannot be read"
    verdict = item.verify(view.source.text, keys)
    if verdict.ok:
        key = keys.find(verdict.key_id)
        return f"signed by {key.name}" if key and key.name else "signed"
    match verdict.outcome:
        case Verification.UNSIGNED:
            return "not signed"
        case Verification.MODIFIED:
            return "changed since it was signed"
        case Verification.UNTRUSTED:
            return "signed with a key that you do not trust"
        case Verification.REVOKED:
            return "signed with a key that is revoked"
        case Verification.MISPLACED:
            return "signed for another place"
    return "its signature is not valid"
