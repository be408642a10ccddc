"""JSON of a workspace: its trust (keys, requests and signatures), the runs that need the user now, each with the one
action that helps, and the models that a run may use. No key of a model is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quire.display.advice import by_other_means, fails_again
from quire.display.run_json import row_data, steps_data
from quire.display.shell_commands import Blank, resume_command, shell_line
from quire.engine.records import Status
from quire.errors import QuireError
from quire.models.choose import MODEL_BY_KEY
from quire.models.downloads import KNOWN, preferred_model, pulled_models
from quire.runs.outcome import limit_to_raise
from quire.trust.trusted_keys import TrustedKeys, own_notes, requested_keys, revoked_ids
from quire.workspace.consent import changes, is_trusted, requests

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from quire.engine.progress import Progress
    from quire.engine.records import RunRow
    from quire.library.document_state import DocumentState
    from quire.runs.runtime import Runtime
    from quire.trust.trusted_keys import UserSpace
    from quire.values import Value
    from quire.workspace.settings import Settings


_KEY_VERBS = {"requested": ("trust", "add"), "trusted": ("trust", "remove"), "own": ("trust", "keys", "revoke")}
"""The words of the command that changes the state of a key."""


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
    rows = []
    for key in trusted.keys.values():
        state = "own" if key.origin == "own" else "trusted"
        rows.append((key.key_id, "revoked" if key.key_id in trusted.revoked else state, key.name))
    rows += [(key_id, "revoked", "") for key_id in sorted(trusted.revoked) if key_id not in trusted.keys]
    rows += [
        (key.key_id, "requested", key.name)
        for key in requested_keys(folder)
        if key.key_id not in trusted.keys and key.key_id not in trusted.revoked
    ]
    return rows


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
        {
            "key_id": key_id,
            "state": state,
            "name": name,
            "command": shell_line(*_KEY_VERBS[state], key_id) if state in _KEY_VERBS else "",
        }
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
        "new_key_command": shell_line("trust", "keys", "new"),
        "keys": keys,
        "signatures": [
            _signature(document) for document in documents if document.signature.required or document.signature.claimed
        ],
    }


def _signature(state: DocumentState) -> Value:
    verdict = state.signature.verdict
    return {
        "id": state.id,
        "title": state.title,
        "ok": bool(verdict and verdict.ok),
        "outcome": verdict.outcome.value if verdict else None,
        "key_id": (verdict.key_id or None) if verdict else None,
        "by": state.signature.by or None,
        "required": state.signature.required,
        "message": (verdict.message if verdict else state.signature.message) or None,
        "command": shell_line("sign", *(["--check"] if verdict and verdict.ok else []), state.id),
    }


MORE = Blank("MORE")


def stopped_data(row: RunRow) -> dict[str, Value]:
    """Return a run that stopped and can continue, with the action that helps."""
    return {**row_data(row), "budget": row.pins.get("budget"), "action": _action(row)}


def _action(row: RunRow) -> dict[str, Value]:
    """Return the action: its kind, the words of its button, the reason, and the command that does the same.

    `resume` continues as it is, `more` needs an amount for `budget` or a limit, `look` can only be done after looking
    at the run: with another text, another model or another grant.
    """
    command = resume_command(row.id)
    if row.status is Status.PAUSED:
        where = f" at step {row.position}" if row.position else ""
        return _button("resume", "Continue", row.waits or f"stopped{where}", command)
    if row.status is Status.INTERRUPTED:
        return _button("resume", "Continue", "its process has ended; all recorded steps are kept", command)
    failure = row.failure
    if failure is None:
        return _button("resume", "Try again", "", command)
    if name := limit_to_raise(row):
        with_more = resume_command(row.id, limit=f"{name}={MORE}")
        return {**_button("more", "Raise the limit", failure.message, with_more), "limit": name}
    if failure.kind == "limit":
        with_more = resume_command(row.id, budget=MORE)
        return {**_button("more", "Raise the budget", failure.message, with_more), "limit": "budget"}
    if failure.kind == "denied" or fails_again(row) or by_other_means(row):
        return _button("look", "See what helps", failure.message, resume_command(row.id, document=True))
    return _button("resume", "Try again", failure.message, command)


def _button(kind: str, label: str, reason: str, command: str) -> dict[str, Value]:
    return {"kind": kind, "label": label, "reason": reason, "command": command}


def running_data(row: RunRow, progress: Progress | None, labels: Sequence[str]) -> dict[str, Value]:
    """Return a run under way with its place: step `at` of `of`, and the items of its fan-outs.

    `labels` are the top-level steps of its document. A run that another process drives has no `progress`.
    """
    fans = [step.fan for step in progress.steps.values() if step.fan and step.status == "running"] if progress else []
    return {
        **row_data(row),
        "budget": row.pins.get("budget"),
        **steps_data(row, labels),
        "items": {
            "total": sum(fan.total or 0 for fan in fans),
            "done": sum(fan.done for fan in fans),
            "failed": sum(fan.failed for fan in fans),
        }
        if fans
        else None,
    }


def models_data(runtime: Runtime) -> dict[str, Value]:
    """Return what is known of models. Of the environment only the names of variables are told."""
    settings, environ = runtime.settings, runtime.environ
    first = preferred_model(environ)
    try:
        choice = runtime.choose_model(None)
        default: Value = {"model": choice.spec, "reason": choice.reason}
        problem = None
    except QuireError as error:
        default, problem = None, str(error)
    return {
        "default": default,
        "problem": problem,
        "tiers": dict(settings.models.tiers),
        "providers": [
            {
                "name": name,
                "host": urlsplit(provider.base_url).hostname,
                "key": provider.api_key_env,
                "has_key": not provider.api_key_env or bool(environ.get(provider.api_key_env)),
            }
            for name, provider in sorted(settings.models.providers.items())
        ],
        "keys": [name for name in MODEL_BY_KEY if environ.get(name)],
        "local": [
            {"name": model.name, "size": model.size, "model": f"local:{model.name}", "preferred": model == first}
            for model in pulled_models(environ)
        ],
        "can_pull": list(KNOWN),
    }
