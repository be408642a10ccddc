"""Measure a judge against labels of people, and decide whether it may fail a case.

    {"text": "Bread, what else.", "label": "fail"}

The result lies beside the judge, bound to its rubric and its model. The file has the counts, and everything else is
computed from them again when it is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from quire.errors import Unreadable
from quire.source import read_source
from quire.testing.case_rows import BadRows, Row, RowProblem, read_rows
from quire.testing.live.judges import SUFFIX, VERDICTS, Judge, Verdict
from quire.testing.live.statistics import Agreement, Kappa, kappa
from quire.testing.snapshots import write_beside
from quire.values import Value, encode, fingerprint, pretty

if TYPE_CHECKING:
    from quire.engine.records import Usage
    from quire.testing.live.judges import Judgement

LEAST_LABELS = 50
LEAST_KAPPA = 0.6
REPEATS = 3
_FORMAT = 1
_LARGEST = 100_000
_AT_ONCE = 4


class Label(Struct, frozen=True):
    """A text, or the parts that a judge reads, and the verdict of a person."""

    parts: tuple[tuple[str, str], ...]
    verdict: Verdict
    line: int | None = None


class Calibration(Struct, frozen=True):
    """A judge measured against people."""

    rubric: str
    """The hash of the judge."""
    model: str
    labels: str
    """The hash of the labels."""
    agreement: Agreement
    repeats: int
    consistency: float | None
    """The share of pairs of repeats with the same verdict; None without repeats."""
    no_verdicts: int = 0
    """Judgements that were not verdicts. In the agreement they count as `fail`, as they do in a case."""
    format: int = _FORMAT

    @property
    def kappa(self) -> Kappa | None:
        return kappa(self.agreement)


class Standing(Struct, frozen=True):
    """The decision whether a judge may fail a case, with its reason."""

    gates: bool
    reason: str
    """Why it may, or why its verdict is only advice."""
    calibration: Calibration | None = None


def labels_path(judge: Path) -> Path:
    """Return the file of labels beside a judge: `tone.labels.jsonl` for `tone.judge.yaml`."""
    return judge.with_name(f"{judge.name.removesuffix(SUFFIX)}.labels.jsonl")


def calibration_path(judge: Path) -> Path:
    return judge.with_name(f"{judge.name.removesuffix(SUFFIX)}.calibration.json")


def read_labels(judge: Judge, path: Path) -> list[Label]:
    """Read labels of people. Raises `BadRows` with every line that is wrong.

    A text that is an example of the rubric is refused: the judge would be measured on what it was shown.
    """
    rows = read_rows(path.parent, path.name)
    problems: list[RowProblem] = []
    labels, earlier = [], {example.text: "an example of the judge" for example in judge.examples}
    for row in rows:
        label = _label(judge, row, problems)
        if label is None:
            continue
        text = "\0".join(part for _, part in label.parts)
        if text in earlier:
            problems.append(RowProblem(f"this text is also {earlier[text]}", row.line))
        earlier[text] = f"in line {row.line}"
        labels.append(label)
    if problems:
        raise BadRows(problems[:20])
    return labels


async def calibrate(
    judge: Judge,
    model: str,
    labels: Sequence[Label],
    ask: Callable[[Sequence[tuple[str, str]]], Awaitable[Judgement]],
    *,
    repeats: int = REPEATS,
    on_judged: Callable[[int, Usage], None] = lambda done, usage: None,
) -> Calibration:
    """Judge every text several times, and compare the first verdicts with those of people.

    Agreement is measured with single judgements, because a case asks once. `on_judged` may raise to stop.
    """
    gate = asyncio.Semaphore(_AT_ONCE)
    done = 0

    async def judged(label: Label) -> Judgement:
        nonlocal done
        async with gate:
            answer = await ask(label.parts)
        done += 1
        on_judged(done, answer.usage)
        return answer

    async with asyncio.TaskGroup() as group:
        # Repeat by repeat, so that a service that answers equal calls together has none side by side.
        tasks = [[group.create_task(judged(label)) for label in labels] for _ in range(repeats)]
    verdicts = [[tasks[repeat][place].result().verdict for repeat in range(repeats)] for place in range(len(labels))]
    pairs = [first == second for row in verdicts for first, second in combinations(row, 2)]
    return Calibration(
        rubric=judge.hash,
        model=model,
        labels=labels_hash(labels),
        agreement=_agreement([(row[0], label.verdict) for row, label in zip(verdicts, labels, strict=True)]),
        repeats=repeats,
        consistency=sum(pairs) / len(pairs) if pairs else None,
        no_verdicts=sum(verdict is None for row in verdicts for verdict in row),
    )


def labels_hash(labels: Sequence[Label]) -> str:
    return fingerprint([[[[name, text] for name, text in label.parts], label.verdict] for label in labels])


def store_calibration(judge: Path, calibration: Calibration) -> Path:
    """Write a calibration beside its judge, and return its path. Raises `CannotStart`."""
    path = calibration_path(judge)
    measured = calibration.kappa
    shown: dict[str, Value] = {
        "kappa": round(measured.value, 4) if measured else None,
        "kappa_interval": [round(measured.interval.low, 4), round(measured.interval.high, 4)] if measured else None,
        "labels_of_people": calibration.agreement.count,
    }
    write_beside(path, f"{pretty({**msgspec.to_builtins(calibration), 'shown': shown})}\n")
    return path


def stored_calibration(judge: Path) -> Calibration | None:
    """Return the calibration beside a judge, or None if there is none that can be read."""
    path = calibration_path(judge)
    try:
        text = read_source(path, limit=_LARGEST).text
        calibration = msgspec.json.decode(text.encode(), type=Calibration)
    except (Unreadable, msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    counts = calibration.agreement
    cells = (counts.both_pass, counts.only_judge, counts.only_person, counts.both_fail)
    return calibration if calibration.format == _FORMAT and all(0 <= cell <= _LARGEST for cell in cells) else None


def standing_of(judge: Judge, model: str, calibration: Calibration | None) -> Standing:
    """Decide whether a judge may fail a case: calibrated with this rubric and model, well and on enough labels."""
    if calibration is None:
        return Standing(False, "it was never compared with people")
    if calibration.rubric != judge.hash:
        return Standing(False, "it changed since it was compared with people", calibration)
    if calibration.model != model:
        return Standing(False, f"it was compared with people on {calibration.model}, not on {model}", calibration)
    if calibration.agreement.count < LEAST_LABELS:
        reason = f"it was compared with {calibration.agreement.count} labels of people; {LEAST_LABELS} are needed"
        return Standing(False, reason, calibration)
    measured = calibration.kappa
    if measured is None:
        return Standing(False, "all labels are the same, so agreement says nothing", calibration)
    if measured.interval.low < LEAST_KAPPA:
        low = f"kappa is {measured.value:.2f}, but may be as low as {measured.interval.low:.2f}"
        return Standing(False, f"{low}; {LEAST_KAPPA} is needed", calibration)
    return Standing(True, f"kappa is {measured.value:.2f}, and at least {measured.interval.low:.2f}", calibration)


def _agreement(pairs: Sequence[tuple[Verdict | None, Verdict]]) -> Agreement:
    counts = [(judged == "pass", person == "pass") for judged, person in pairs]
    return Agreement(
        both_pass=counts.count((True, True)),
        only_judge=counts.count((True, False)),
        only_person=counts.count((False, True)),
        both_fail=counts.count((False, False)),
    )


def _label(judge: Judge, row: Row, problems: list[RowProblem]) -> Label | None:
    verdict = row.values.get("label")
    judgement = next((word for word in VERDICTS if verdict == word), None)
    if judgement is None:
        problems.append(RowProblem("label is pass or fail", row.line, 'as in {"text": "…", "label": "fail"}'))
        return None
    text = row.values.get("text")
    if isinstance(text, str) and len(judge.reads) == 1:
        return Label(((judge.reads[0], text),), judgement, row.line)
    if isinstance(text, Mapping) and set(text) == set(judge.reads):
        parts = tuple((name, value if isinstance(value := text[name], str) else encode(value)) for name in judge.reads)
        return Label(parts, judgement, row.line)
    form = "a text" if len(judge.reads) == 1 else f"a mapping with {', '.join(judge.reads)}"
    problems.append(RowProblem(f"text is {form}, as the judge reads it", row.line))
    return None
