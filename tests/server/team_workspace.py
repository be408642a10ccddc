"""The workspace of a small support team: documents, scripts for their models, and runs in every state."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from quire.library.document import load
from quire.runs.fork import Changes, fork
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.runs.scripts import reopened
from quire.source import relative_to_here
from quire.values import Value

EXAMPLES = Path(__file__).parents[2] / "examples"

TRIAGE = """pipeline: ticket_triage
description: Sorts the tickets of a day, drafts a reply to each, and sums up the day.
steps:
  - transform: {value: ctx.tickets, output: batch}
  - for_each:
      over: batch
      max_items: 5000
      max_parallel: 4
      on_error: continue
      do:
        agent:
          prompt: |
            Ticket {item.id} of {item.customer}, plan {item.plan}:

            {item.text}

            Write one sentence: what is wanted, and how urgent it is.
      collect: {transform: {value: pipe}}
      output: summaries
  - agent:
      prompt: "Write the summary of the day for the team from these lines: {ctx.summaries}"
      output: report
"""

TEXTS = (
    "The export of invoices stops at row 1,000.",
    "I cannot log in since the update of this morning.",
    "How do I add a second administrator?",
    "The dashboard shows yesterday's numbers.",
    "Please delete the account of our former colleague.",
    "Payments by card are declined in Switzerland.",
)
CUSTOMERS = ("Northwind", "Contoso Print", "Baltic Rail", "Hotel Post", "Ada Weber")

NOTES = """09:00 the login service was down for everybody, first alarm from the status page
09:12 on-call finds the certificate of auth-gateway expired at midnight
09:31 renewal job fails: its token was rotated in October and never updated
09:42 certificate renewed by hand, logins work again"""


def tickets(count: int) -> list[Value]:
    return [
        {
            "id": f"T-{4100 + at}",
            "customer": CUSTOMERS[at % len(CUSTOMERS)],
            "plan": ("team", "business", "free")[at % 3],
            "text": TEXTS[at % len(TEXTS)],
        }
        for at in range(count)
    ]


def write_documents(folder: Path) -> None:
    """Write the documents of the team and the scripts of their models."""
    for name in ("incident-report", "announcement", "meeting-minutes"):
        document, script = f"{name}.playbook.md", f"{name}.script.json"
        shutil.copy(EXAMPLES / name / document, folder / document)
        entries = json.loads((EXAMPLES / name / script).read_text())
        (folder / script).write_text(json.dumps([_priced(entry, at) for at, entry in enumerate(entries)]))
    (folder / "ticket-triage.yaml").write_text(TRIAGE)
    replies: list[Value] = [
        {"contains": "declined in Switzerland", "error": "the connection was lost"},
        {"contains": "summary of the day", "reply": "## The day\n\nMost tickets are about **logins**.", **_usage(900)},
        {"default": "Wants the export fixed; urgent, since the month ends today.", **_usage(240)},
    ]
    (folder / "ticket-triage.script.json").write_text(json.dumps(replies))


def _priced(entry: Value, at: int) -> Value:
    return {**entry, **_usage(600 + 40 * at)} if isinstance(entry, dict) and "error" not in entry else entry


def _usage(tokens: int) -> dict[str, Value]:
    return {"usage": {"input_tokens": tokens, "output_tokens": tokens // 3, "cost": tokens * 11e-6}}


async def start(
    runtime: Runtime, name: str, inputs: Mapping[str, Value], *, script: str = "", drive: bool = True, **options: object
) -> str:
    """Start a run of a document of the team on its script, and drive it as far as it goes."""
    folder = runtime.settings.workspace.folder
    stem = name.partition(".")[0]
    path = folder / (script or f"{stem}.script.json")
    spec = f"script:{relative_to_here(path) or path}"
    document = load(relative_to_here(folder / name) or folder / name)
    run = await runtime.start(document, inputs, RunOptions(model=spec, **options))  # type: ignore[arg-type]
    if drive:
        await (await reopened(runtime, run)).drive(run)
    return run


async def incident(runtime: Runtime, **options: object) -> str:
    inputs: dict[str, Value] = {"notes": NOTES, "service": "login", "customers": 1200}
    return await start(runtime, "incident-report.playbook.md", inputs, **options)  # type: ignore[arg-type]


async def triage(runtime: Runtime, count: int) -> str:
    return await start(runtime, "ticket-triage.yaml", {"tickets": tickets(count)})


async def ordinary_day(runtime: Runtime) -> dict[str, str]:
    """Start the runs of an ordinary day. Return their ids by what is special about them."""
    commits = (EXAMPLES / "announcement" / "commits.txt").read_text()
    notes: dict[str, Value] = {"version": "2.4.0", "commits": commits, "audience": "developers"}
    answers = {"4": "yes", "6a": "on Thursday"}
    runs = {
        "release": await start(runtime, "announcement.playbook.md", notes),
        "waiting": await incident(runtime),
        "done": await incident(runtime, answers=answers),
        "triage": await triage(runtime, 40),
        "paused": await incident(runtime, answers=answers, breakpoints=("3",)),
    }
    changed = Changes(model=None, answers={"4": "no", "6a": "next week"})
    forked = await fork(runtime, runs["done"], "4", changed)
    await (await reopened(runtime, forked.run)).drive(forked.run)
    return {**runs, "fork": forked.run}
