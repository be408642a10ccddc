"""What has to be true between any two processes of a run's life, and at its end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.documents import answer_to
from tests.chaos.sight import RunSeen, Sight, effect_id
from tests.simulator.fakes import settled

from quire.engine.driver.journal import SPENT
from quire.engine.records import EffectRecord
from quire.values import encode

_SIGNATURE = re.compile(r"rye:signed:\S+")


class Judge:
    """Looks after each process. `problems` is empty as long as all is well.

    At most `side_by_side` effects can have been under way when a process died; everything before was recorded.
    With `gaps` the numbers of events may leave some out: what a full disk refused is said again under a new one."""

    def __init__(self, side_by_side: int, *, gaps: bool = False) -> None:
        self._side_by_side = side_by_side
        self._gaps = gaps
        self.problems: list[str] = []
        self._results: dict[tuple[str, str], EffectRecord] = {}
        self._recorded: dict[str, int] = {}
        self._events: dict[str, list[tuple[int, str, str]]] = {}
        self._prompts: dict[tuple[str, str], str] = {}
        self._answered: set[tuple[str, str]] = set()
        self._letters = 0

    def look(self, sight: Sight, life: int) -> None:
        """What stands there before the process `life` starts."""
        if sight.damage:
            self.problems.append(f"the database is damaged: {sight.damage}")
        for run in sight.runs:
            self.problems += self._kept(run)
            self.problems += self._numbered(run)
            self.problems += self._asked(run)
            for path in run.results():
                self._recorded.setdefault(effect_id(run.row.id, path), life)
        known = {run.row.id for run in sight.runs}
        for gone in {run for run, _ in self._results} - known:
            self.problems.append(f"the run {gone} is gone")
        if len(sight.letters) < self._letters:
            self.problems.append("a letter is gone")
        self._letters = len(sight.letters)
        self.problems += self._performed(sight)
        lost = {one.effect for one in sight.ledger if one.life == life - 1} - self._recorded.keys()
        if len(lost) > self._side_by_side:
            self.problems.append(
                f"process {life - 1} left {len(lost)} effects without a record, and only {self._side_by_side} can be "
                "under way at once"
            )

    def _kept(self, run: RunSeen) -> Iterator[str]:
        """What was recorded is still there, as it was."""
        results = run.results()
        for (owner, path), before in self._results.items():
            if owner != run.row.id:
                continue
            now = results.get(path)
            if now is None:
                yield f"{path} was recorded and is gone"
            elif now != before:
                yield f"{path} was recorded as {before} and is now {now}"
        self._results |= {(run.row.id, path): record for path, record in results.items()}

    def _numbered(self, run: RunSeen) -> Iterator[str]:
        told = [(event.seq, event.type, event.path) for event in run.events]
        numbers = [seq for seq, _, _ in told]
        if numbers != (sorted(set(numbers)) if self._gaps else list(range(1, len(told) + 1))):
            yield f"the events of {run.row.id} are not numbered one after the other: {numbers}"
        before = self._events.get(run.row.id, [])
        if told[: len(before)] != before:
            yield f"the events of {run.row.id} are not the ones that they were"
        self._events[run.row.id] = told
        for step, times in Counter((kind, path) for _, kind, path in told if kind.startswith("step_")).items():
            if times > 1:
                yield f"{step[0]} of {step[1]} was kept {times} times"

    def _asked(self, run: RunSeen) -> Iterator[str]:
        for question in run.questions:
            key = run.row.id, question.path
            self._prompts[key] = question.prompt
            if key in self._answered:
                yield f"{question.path} is asked again after it was answered"
        for path, answer in run.answers.items():
            self._answered.add((run.row.id, path))
            yield from self._as_said(run.row.id, path, answer.value)
        for path, record in run.results().items():
            if record.kind == "ask":
                self._answered.add((run.row.id, path))
                yield from self._as_said(run.row.id, path, record.value)

    def _as_said(self, run: str, path: str, value: object) -> Iterator[str]:
        prompt = self._prompts.get((run, path))
        if prompt is not None and value != answer_to(prompt):
            yield f"{path} ({prompt}) was answered {answer_to(prompt)!r} and is stored as {value!r}"

    def _performed(self, sight: Sight) -> Iterator[str]:
        for (life, effect), times in Counter((one.life, one.effect) for one in sight.ledger).items():
            if times > 1:
                yield f"the effect {effect} was performed {times} times by process {life}"
            recorded = self._recorded.get(effect)
            if recorded is not None and life >= recorded:
                yield f"the effect {effect} was performed by process {life} although its result was recorded before"

    def end(self, sight: Sight, calm: Sight, folder: Path, calm_folder: Path) -> None:
        """The same as without any disturbance."""
        want, have = comparable(calm, calm_folder), comparable(sight, folder)
        for path in sorted(want.keys() | have.keys()):
            if want.get(path) != have.get(path):
                self.problems.append(f"{path} is {have.get(path)} in the end, undisturbed {want.get(path)}")
        recorded = {effect_id(run.row.id, path) for run in sight.runs for path in run.results()}
        made = {one.effect for one in sight.ledger}
        self.problems += [f"the effect {effect} was performed and is recorded nowhere" for effect in made - recorded]
        if len(made) != len({one.effect for one in calm.ledger}):
            self.problems.append(f"{len(made)} effects were performed, undisturbed other ones")
        if len(sight.letters) != len(calm.letters):
            self.problems.append(f"{len(sight.letters)} letters, undisturbed {len(calm.letters)}")
        read = (
            [encode(one.value) for one in sight.main.results().values() if one.path.endswith("/letters")]
            if sight.main
            else []
        )
        for letter in sight.letters:
            times = sum(text.count(f"run {letter.run} ") for text in read)
            if times > 1:
                self.problems.append(f"the letter of {letter.run} was read {times} times")
        for run in sight.runs:
            if run.questions or run.answers:
                self.problems.append(f"{run.row.id} is completed and still has questions")


def comparable(sight: Sight, folder: Path) -> dict[str, str]:
    """The journals of all runs, without what differs from one time to the next: ids, folders, prices."""
    names = {run.row.id: run.row.title for run in sight.runs}
    found = {}
    for run in sight.runs:
        for path, record in run.effects.items():
            if path.endswith("/letters") or record.kind == SPENT:
                continue  # a letter is read, and its run counted, in the turn in which it comes in
            text = f"{record.state} {settled(encode(record.value))} {record.failure}".replace(str(folder), "")
            text = _SIGNATURE.sub("signed", text)
            for id, title in names.items():
                text = text.replace(id, title)
            found[f"{run.row.title}: {path}"] = text
    return found
