"""Playbooks and pipelines that carry a signature are verified before they run, whoever names them.

A line that promises a signature and is not looked at is worse than none. Directives and knowledge are the business of
`quire.runtime.bundles`.
"""

from __future__ import annotations

from pathlib import Path

from quire.errors import Refused
from quire.source import Source
from quire.trust.signable import signable
from quire.trust.signing import Kind, is_signed
from quire.trust.trusted import TrustedKeys
from quire.workspace.requests import is_trusted
from quire.workspace.settings import Settings


def require_signed(settings: Settings, source: Source, format: str) -> None:
    """Raises `Refused` for a document whose signature does not hold; for one without any only where `[trust]
    documents` asks for it. In warn mode, once the user has confirmed that mode, nothing is refused."""
    kind: Kind = "pipeline" if format == "pipeline" else "playbook"
    if format == "directive" or not (settings.trust.documents or is_signed(source.text, kind)):
        return
    path = Path(source.name)
    if path.is_file():
        message = signable(path, settings.workspace.folder).verify(source.text, TrustedKeys.load(settings)).message
    elif settings.trust.documents:
        message = f"{source.name} is in no file, so nobody has signed it, and [trust] documents asks for signatures"
    else:
        return  # A text that was handed over has no place that a signature could be for.
    if message and (settings.trust.mode == "require" or not is_trusted(settings)):
        raise Refused(message)
