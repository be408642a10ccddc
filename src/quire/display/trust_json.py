"""JSON of trust: the keys of the user, the keys that count, the requests of the workspace, and its signatures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quire.display.commands import shell_line
from quire.trust.own_keys import own_notes
from quire.trust.trusted_keys import TrustedKeys, requested_keys, revoked_ids
from quire.workspace.consent import changes, is_trusted, requests

if TYPE_CHECKING:
    from pathlib import Path

    from quire.library.document_state import DocumentState
    from quire.trust.trusted_keys import TrustedKey, UserSpace
    from quire.values import Value
    from quire.workspace.settings import Settings


def own_keys_data(home: UserSpace) -> list[dict[str, Value]]:
    """Return the keys that the user signs with. The private halves are never read."""
    revoked = revoked_ids(home)
    return [
        {
            "name": note.name,
            "key_id": note.public.key_id,
            "created": note.fact("created"),
            "private": note.fact("private"),
            "revoked": note.public.key_id in revoked,
        }
        for note in own_notes(home)
    ]


def key_rows(home: UserSpace, folder: Path) -> list[tuple[str, str, str]]:
    """Return the keys that count, the revoked ones and those that a project asks for: id, state and name."""
    trusted = TrustedKeys.load(home)
    rows = [(one.key_id, _state(one, trusted.revoked), one.name) for one in trusted.keys.values()]
    rows += [(key_id, "revoked", "") for key_id in sorted(trusted.revoked) if key_id not in trusted.keys]
    rows += [
        (one.key_id, "requested", one.name)
        for one in requested_keys(folder)
        if one.key_id not in trusted.keys and one.key_id not in trusted.revoked
    ]
    return rows


def _state(key: TrustedKey, revoked: frozenset[str]) -> str:
    return "revoked" if key.key_id in revoked else "own" if key.origin == "own" else "trusted"


def workspace_requests(settings: Settings) -> dict[str, Value]:
    """Return the requests of the workspace's files, and whether the user has agreed to them."""
    return {
        "workspace": str(settings.workspace.folder),
        "trusted": is_trusted(settings),
        "requests": list(requests(settings)),
    }


def trust_data(settings: Settings, documents: Iterable[DocumentState]) -> dict[str, Value]:
    """Return everything about trust that can be shown, with the commands that change it."""
    keys: list[Value] = [
        {"key_id": key_id, "state": state, "name": name, "command": _key_command(key_id, state)}
        for key_id, state, name in key_rows(settings, settings.workspace.folder)
    ]
    return {
        **workspace_requests(settings),
        "changes": list(changes(settings)),
        "command": shell_line("trust", "workspace"),
        "revoke_command": shell_line("trust", "workspace", "--revoke"),
        "mode": settings.trust.mode,
        "documents": settings.trust.documents,
        "granted": list(settings.granted),
        "denied": list(settings.denied),
        "own": list(own_keys_data(settings)),
        "new_key_command": shell_line("keys", "new"),
        "keys": keys,
        "signatures": [_signature(one) for one in documents if one.signature.required or one.signature.claimed],
    }


def _key_command(key_id: str, state: str) -> str:
    if state == "requested":
        return shell_line("trust", "add", key_id)
    if state == "trusted":
        return shell_line("trust", "remove", key_id)
    return shell_line("keys", "revoke", key_id) if state == "own" else ""


def _signature(one: DocumentState) -> Value:
    verdict = one.signature.verdict
    return {
        "id": one.id,
        "title": one.title,
        "ok": bool(verdict and verdict.ok),
        "outcome": verdict.outcome.value if verdict else None,
        "key_id": (verdict.key_id or None) if verdict else None,
        "by": one.signature.by or None,
        "required": one.signature.required,
        "message": (verdict.message if verdict else one.signature.message) or None,
        "command": shell_line("sign" if not (verdict and verdict.ok) else "verify", one.id),
    }
