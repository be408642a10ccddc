"""Shell commands that do what a button or a piece of advice proposes, quoted so that they can be pasted.

Names of steps and documents come from documents, so every word is quoted. A `Blank` stands for a word that the user
fills in; it is written as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from quire.display.text import pasted
from quire.plan.vocabulary import JOINT
from quire.values import Value, encode, value_of

if TYPE_CHECKING:
    from quire.engine.records import Question


class Blank(str):
    """A word that the user replaces, such as VALUE or NAME=VALUE."""

    __slots__ = ()


VALUE, STEP, OTHER = Blank("VALUE"), Blank("STEP"), Blank("OTHER")
SETTING = Blank("NAME=VALUE")


def shell_line(*words: str) -> str:
    """Return `quire` with these words."""
    return " ".join(["quire", *(word if isinstance(word, Blank) else pasted(word) for word in words)])


def typed(way: str) -> str:
    """Return the way to a step as a user types it."""
    return way if isinstance(way, Blank) else way.replace(JOINT, ">")


def run_command(
    document: str,
    inputs: Mapping[str, Value] | None = None,
    *,
    model: str = "",
    budget: str = "",
    breakpoints: Iterable[str] = (),
    answers: Mapping[str, str] | None = None,
    limits: Mapping[str, Value] | None = None,
    allow: Iterable[str] = (),
    unattended: bool = False,
    force: bool = False,
    detach: bool = False,
    reuse: str = "",
    as_json: bool = False,
) -> str:
    """Return the command that starts a run. With `as_json`, for a pipeline, a text that would be read as another JSON
    value is quoted."""
    values = {name: _typed_input(value, as_json) for name, value in (inputs or {}).items()}
    words = [*_options("-i", _pairs(values)), *_options("--model", [model]), *_options("--budget", [budget])]
    words += [*_options("--limit", _pairs(limits or {}, none="none")), *_options("--break", map(typed, breakpoints))]
    words += _options("--answer", _pairs({typed(step): answer for step, answer in (answers or {}).items()}))
    words += [*_options("--allow", allow), *_options("--reuse", [reuse])]
    flags = {"--unattended": unattended, "--force": force, "--detach": detach}
    words += [flag for flag, is_set in flags.items() if is_set]
    return shell_line("run", document, *words)


def _typed_input(value: Value, as_json: bool) -> Value:
    """Return a value as `-i` takes it: an @ at the beginning would name a file."""
    if not isinstance(value, str):
        return value
    if as_json and value_of(value) != value:
        return encode(value)
    return f"@{value}" if value.startswith("@") else value


def answer_command(run: str, step: str = "", value: str = VALUE) -> str:
    """Return the command that answers a question; `step` is the way to it or its path, if several are open."""
    return shell_line("answer", run, *([typed(step)] if step else []), value)


def answer_to(question: Question, others: Iterable[Question], value: str = VALUE) -> str:
    """Return the command that answers one of the open questions of a run."""
    rest = [other for other in others if other.path != question.path]
    if not rest:
        return answer_command(question.run, "", value)
    named = question.path if any(other.way == question.way for other in rest) else question.way
    return answer_command(question.run, named, value)


def resume_command(
    run: str,
    *,
    sets: Mapping[str, Value] | Blank | None = None,
    budget: str = "",
    limit: str = "",
    model: str = "",
    answer: tuple[str, str] | None = None,
    document: bool = False,
    script: str = "",
) -> str:
    """Return the command that continues with a run. `limit` is NAME=VALUE; `answer` is a step and a value."""
    words = [*_options("--set", _settings(sets)), *_options("--budget", [budget]), *_options("--limit", [limit])]
    words += [*_options("--model", [model]), *_options("--script", [script])]
    if answer is not None:
        # The name is quoted by itself: the user fills in what follows it.
        words += [Blank(f"--answer {pasted(typed(answer[0]))}={answer[1]}")]
    return shell_line("resume", run, *words, *(["--document"] if document else []))


def try_command(run: str, step: str, count: int = 1) -> str:
    return shell_line("runs", "try", run, typed(step), *(["-n", str(count)] if count > 1 else []))


def fork_command(
    run: str,
    step: str,
    *,
    sets: Mapping[str, Value] | Blank | None = None,
    model: str = "",
    budget: str = "",
    allow: str = "",
) -> str:
    words = [*_options("--allow", [allow]), *_options("--set", _settings(sets))]
    words += [*_options("--model", [model]), *_options("--budget", [budget])]
    return shell_line("runs", "fork", run, "--from", typed(step), *words)


def cancel_command(run: str) -> str:
    return shell_line("runs", "cancel", run)


def compare_command(run: str, other: str = OTHER) -> str:
    return shell_line("runs", "diff", run, other)


def export_command(run: str) -> str:
    return shell_line("runs", "export", run, "-o", f"{run}.jsonl")


def prune_command(age: str, statuses: Iterable[str] = ()) -> str:
    return shell_line("runs", "prune", "--older-than", age, *_options("--status", [",".join(statuses)]))


def import_command(file: str) -> str:
    return shell_line("runs", "import", file)


def why_command(run: str, step: str) -> str:
    return shell_line("runs", "why", run, typed(step))


def side_command(run: str, side: str, step: str = "") -> str:
    """Return the command that shows one side of a run: `--journal`, `--output`, `--transcript`, `--prompt` STEP."""
    return shell_line("runs", run, side, *([typed(step)] if step else []))


def show_command(document: str, *options: str) -> str:
    return shell_line("show", document, *options)


def _options(name: str, values: Iterable[str]) -> Iterator[str]:
    for value in values:
        if value:
            yield name
            yield value


def _settings(sets: Mapping[str, Value] | Blank | None) -> Iterable[str]:
    return [sets] if isinstance(sets, Blank) else _pairs(sets or {})


def _pairs(values: Mapping[str, Value], none: str = "null") -> list[str]:
    texts = {name: none if value is None else value for name, value in values.items()}
    return [f"{name}={value if isinstance(value, str) else encode(value)}" for name, value in texts.items()]
