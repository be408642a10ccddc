"""Quire runs AI workflows that are written as documents.

    import quire

    document = quire.load("review.playbook.md")
    for finding in quire.check("review.playbook.md"):
        print(finding.message)
    result = await quire.run(document, inputs={"topic": "tea"}, answers={"3": "yes"})
    again = quire.run_sync(document, inputs={"topic": "tea"}).parse(dict[str, str])
    async for event in quire.run(document, inputs={"topic": "tea"}):
        print(event.type)
    envelope = await quire.launch("review", input={"topic": "tea"})
    async with quire.open() as workspace:
        ended = await workspace.drive(await workspace.find("last"))

Names are imported on first use: `import quire` itself costs almost nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quire.api import Launch, Result, Running, check, launch, open, run, run_sync
    from quire.diagnostics import Diagnostic, Severity
    from quire.engine.records import Event, Status
    from quire.errors import QuireError, WrongResult
    from quire.library.document import Document, load
    from quire.models.scripted import ScriptedModel
    from quire.source import Source
    from quire.tools.python import tool
    from quire.values import Value

__version__ = "0.2.0"

__all__ = [
    "Diagnostic",
    "Document",
    "Event",
    "Launch",
    "QuireError",
    "Result",
    "Running",
    "ScriptedModel",
    "Severity",
    "Source",
    "Status",
    "Value",
    "WrongResult",
    "check",
    "launch",
    "load",
    "open",
    "run",
    "run_sync",
    "tool",
]

_HOMES = {
    "quire.api": ("Launch", "Result", "Running", "check", "launch", "open", "run", "run_sync"),
    "quire.diagnostics": ("Diagnostic", "Severity"),
    "quire.library.document": ("Document", "load"),
    "quire.engine.records": ("Event", "Status"),
    "quire.errors": ("QuireError", "WrongResult"),
    "quire.models.scripted": ("ScriptedModel",),
    "quire.source": ("Source",),
    "quire.tools.python": ("tool",),
    "quire.values": ("Value",),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            import importlib

            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'quire' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
