"""How often a small model writes a pipeline from the grammar that runs, and corrects it when it is told its errors.

    QUIRE_AUTHORING_MODEL=FILE.gguf python -m bench.authoring [--samples N] [--grammar FILE] [--log FILE] [--unseen]

Each task is a new conversation: the grammar as system prompt, the task as message. The reply goes through the same gate
as the tool `run_pipeline_inline`; what that tool says of a wrong definition, or of a run that failed, is the next
message, twice at most. A valid definition is run on inputs whose result is known, with real files and a model that
gives fixed replies: so a definition is *valid* when nothing refuses it, and *right* when it does what the task says.
Skipped, saying so, without a model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.rows import Row, show
from quire.engine.conversation import Message
from quire.engine.ports import Model, ModelCall, ModelReply
from quire.engine.records import Question, Usage
from quire.formats.grammars import PIPELINE
from quire.formats.pipeline.inline import as_list
from quire.runs.launch import KnownTools, Launcher, Launching
from quire.runs.runtime import Runtime
from quire.trust.capabilities import Grants
from quire.values import Value
from quire.workspace.grants import default_grants

MODEL = "QUIRE_AUTHORING_MODEL"
REPAIRS = 2
LONGEST_REPLY = 220
LEAD = "You write pipelines for a machine that runs them. Reply with one definition in YAML and nothing else."
AGAIN = "Correct this and write the whole corrected definition."


class Ran(NamedTuple):
    """A run of a definition: its result, what the model in it was asked, and its folder."""

    output: Any
    prompts: Sequence[str]
    folder: Path

    def asked(self, *words: str) -> bool:
        return all(any(word in prompt for prompt in self.prompts) for word in words)


class Task(NamedTuple):
    name: str
    text: str
    given: Mapping[str, Any]
    right: Callable[[Ran], bool]


def _summary_is_written(ran: Ran) -> bool:
    file = ran.folder / "summary.txt"
    return ran.asked("Tea grows") and file.is_file() and "reply 1" in file.read_text()


ORDERS = [{"customer": "Bo", "amount": 50}, {"customer": "Cy", "amount": 150}]
TASKS = (
    Task(
        "sum",
        "Add up the numbers in the list ctx.numbers. The result is the sum.",
        {"numbers": [3, 4, 5]},
        lambda ran: ran.output == 12,
    ),
    Task(
        "greet",
        "The input is ctx.name. The result is the text 'Hello, NAME!' with that name in it. Do not ask a model.",
        {"name": "Ada"},
        lambda ran: ran.output == "Hello, Ada!",
    ),
    Task(
        "large orders",
        "ctx.orders is a list of objects with customer and amount. The result is the list of the customers whose "
        "amount is greater than 100.",
        {"orders": ORDERS},
        lambda ran: ran.output == ["Cy"],
    ),
    Task(
        "summary file",
        "Let an agent summarise ctx.text in one sentence, then write the summary into the file summary.txt.",
        {"text": "Tea grows on hills."},
        _summary_is_written,
    ),
    Task(
        "typed review",
        "Let an agent review ctx.doc. Its reply has the fields passed (true or false) and notes (text). The result is "
        "the text 'publish' if it passed, else 'rewrite'.",
        {"doc": "A draft."},
        lambda ran: ran.output == "publish" and ran.asked("A draft."),
    ),
    Task(
        "one each",
        "For every city in the list ctx.cities let an agent name one famous building there. The result is the list of "
        "the answers.",
        {"cities": ["Rome", "Oslo"]},
        lambda ran: isinstance(ran.output, list) and len(ran.output) == 2 and ran.asked("Rome", "Oslo"),
    ),
    Task(
        "side by side",
        "Let two agents read ctx.doc at the same time: one checks the facts, one checks the tone. The result is an "
        "object with the keys facts and tone and their replies.",
        {"doc": "A draft."},
        lambda ran: isinstance(ran.output, dict) and set(ran.output) == {"facts", "tone"} and len(ran.prompts) == 2,
    ),
    Task(
        "read a file",
        "Read the file notes.txt, and let an agent list the tasks in it. The result is the agent's reply.",
        {},
        lambda ran: ran.output == "reply 1" and ran.asked("water the plants"),
    ),
    Task(
        "ask first",
        "Ask a person the question 'Publish it?' with yes or no as the answer. The result is the answer.",
        {},
        lambda ran: ran.output == "yes" and not ran.prompts,
    ),
    Task(
        "running text",
        "Go through the list ctx.words in order with a fold that joins them into one text without spaces. The result "
        "is that text.",
        {"words": ["a", "b", "c"]},
        lambda ran: ran.output == "abc",
    ),
)


UNSEEN = (
    Task(
        "all above",
        "The result is true if every number in the list ctx.numbers is greater than ctx.least, else false.",
        {"numbers": [3, 9], "least": 2},
        lambda ran: ran.output is True,
    ),
    Task(
        "names in a line",
        "ctx.people is a list of objects with name and age. The result is one text with all names, separated by a "
        "comma and a space.",
        {"people": [{"name": "Ada", "age": 36}, {"name": "Bo", "age": 7}]},
        lambda ran: ran.output == "Ada, Bo",
    ),
    Task(
        "one after the other",
        "Let an agent translate ctx.text into French, then let another agent correct that translation. The result is "
        "the reply of the second.",
        {"text": "Tea grows on hills."},
        lambda ran: ran.output == "reply 2" and ran.asked("Tea grows", "reply 1"),
    ),
    Task(
        "several files",
        "ctx.paths is a list of paths. Read each of these files. The result is the list of their texts.",
        {"paths": ["notes.txt", "notes.txt"]},
        lambda ran: ran.output == ["water the plants"] * 2,
    ),
    Task(
        "one of two",
        "Let an agent say what ctx.mail is. Its reply has the field kind, which is question or complaint. The result "
        "is the kind.",
        {"mail": "Where is my tea?"},
        lambda ran: ran.output in ("question", "complaint") and ran.asked("Where is my tea?"),
    ),
)
"""Tasks that were written after the grammar and the messages had been improved on the others."""


class Attempt(NamedTuple):
    """One definition, and what became of it."""

    definition: str
    valid: bool
    """Nothing refused it."""
    ran: bool
    """Its run came to its end."""
    right: bool
    """Its result is that of the task."""
    error: str


class _Replies:
    """The model inside of the definitions: fixed texts, or the smallest value that fits the schema."""

    name = "replies"

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def complete(self, call: ModelCall, on_delta: Callable[[str], None]) -> ModelReply:
        self.prompts.append("\n".join(message.content for message in call.messages))
        text = f"reply {len(self.prompts)}" if call.schema is None else json.dumps(_smallest(call.schema))
        return ModelReply(text, self.name, Usage())


def _smallest(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: _smallest(part) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [_smallest(schema["items"])]
        case "boolean":
            return True
        case "number" | "integer":
            return 4
    return "some text"


class _Yes:
    async def ask(self, question: Question, problem: str) -> str | None:
        return None if problem else "yes"


def _workspace(folder: Path) -> Path:
    folder.mkdir()
    (folder / "quire.toml").touch()
    (folder / "notes.txt").write_text("water the plants")
    return folder


async def attempt(definition: str, task: Task) -> Attempt:
    """Launch a definition as the tool would, in a workspace of its own."""
    with tempfile.TemporaryDirectory(prefix="quire-bench-") as name:
        folder = _workspace(Path(name, "work"))
        model = _Replies()
        runtime = Runtime.open(folder, environ={"QUIRE_HOME": str(Path(name, "home"))}, model=model)
        known = KnownTools(runtime.settings, default_grants(runtime.settings, ()))
        launching = Launching(runtime, known, hint=known.hint)
        launcher = Launcher("bench", runtime.identity, Grants.of(["rye.execute.pipeline.*"]))
        try:
            await known.learn(definition)
            arguments: dict[str, Value] = {"definition": definition, "input": dict(task.given)}
            result = await launching.launch("run_pipeline_inline", arguments, launcher, people=_Yes())
            valid = result.status != "error" or "run_id" in result.data
            right = result.status == "ok" and task.right(Ran(result.data.get("output"), model.prompts, folder))
            error, errors = str(result.data.get("error", "")), result.data.get("errors")
            told = as_list(error, errors) if isinstance(errors, list) else error
            return Attempt(definition, valid, result.status == "ok", right, told)
        finally:
            await runtime.close()


async def author(
    model: Model, grammar: str, task: Task, log: Callable[[str], None] = lambda text: None
) -> list[Attempt]:
    """Let a model write a definition, tell it the errors, and let it correct them."""
    messages = [Message("user", task.text)]
    attempts: list[Attempt] = []
    while len(attempts) <= REPAIRS:
        call = ModelCall(f"{LEAD}\n\n{grammar}", tuple(messages), max_tokens=LONGEST_REPLY)
        reply = await model.complete(call, lambda piece: None)
        attempts.append(await attempt(reply.text, task))
        log(json.dumps({"task": task.name, **attempts[-1]._asdict()}, ensure_ascii=False))
        if attempts[-1].ran:
            break
        messages += [Message("assistant", reply.text), Message("user", f"{attempts[-1].error}\n\n{AGAIN}")]
    return attempts


def rows_of(authored: Sequence[Sequence[Attempt]]) -> list[Row]:
    def share(name: str, least: float, good: Callable[[Sequence[Attempt]], bool]) -> Row:
        value = 100 * sum(map(good, authored)) / len(authored)
        return Row(name, value, "%", f">= {least:g}", value >= least)

    return [
        share("definitions that are valid at first", 40, lambda tries: tries[0].valid),
        share("… after one repair", 45, lambda tries: any(one.valid for one in tries[:2])),
        share("… after two repairs", 45, lambda tries: any(one.valid for one in tries)),
        share("definitions that run to their end", 40, lambda tries: tries[-1].ran),
        share("definitions that do what the task says", 30, lambda tries: tries[-1].right),
    ]


def measure(
    samples: int = 1, grammar: str = PIPELINE.text, log: str = "", tasks: Sequence[Task] = (*TASKS, *UNSEEN)
) -> list[Row]:
    file = os.environ.get(MODEL, "")
    if not file:
        print(f"authoring: skipped, {MODEL} names no model file", file=sys.stderr)
        return []
    from quire.models.local import LocalModel

    model = LocalModel(Path(file), name=Path(file).stem)

    async def all_tasks() -> list[list[Attempt]]:
        return [await author(model, grammar, task, write) for _ in range(samples) for task in tasks]

    def write(line: str) -> None:
        if log:
            with Path(log).open("a", encoding="utf-8") as out:
                out.write(f"{line}\n")

    return rows_of(asyncio.run(all_tasks()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--grammar", type=Path, help="another text than that of quire grammar pipeline")
    parser.add_argument("--log", default="", help="a file for every definition and error, one JSON object a line")
    parser.add_argument("--unseen", action="store_true", help="only the tasks that the grammar was not improved on")
    given = parser.parse_args()
    text = given.grammar.read_text(encoding="utf-8") if given.grammar else PIPELINE.text
    tasks = UNSEEN if given.unseen else (*TASKS, *UNSEEN)
    show("authoring", measure(given.samples, text, given.log, tasks))


if __name__ == "__main__":
    main()
