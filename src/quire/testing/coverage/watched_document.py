"""The common part of watched documents: the decisions that one run takes, and the moments at which they show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quire.testing.coverage.decisions import Kind, decision_id

if TYPE_CHECKING:
    from quire.engine.pure_work import PureWork
    from quire.engine.records import EffectRecord
    from quire.engine.requests import Emit, Fan, HumanRequest, Join, Load, ModelRequest, Recorded, ToolRequest, Walk
    from quire.errors import StepFailed
    from quire.runs.pins import PinnedRun
    from quire.values import Value


class WatchedDocument:
    """A document whose runs are watched, one after the other.

    A format overrides `walk`, and those of the other methods that show its decisions; by themselves they do nothing.
    """

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.records: Mapping[str, EffectRecord] = {}
        """The records of the run by path; empty for a walk without a journal."""
        self.prompts: dict[str, str] = {}
        """The places of the steps that made model calls, by the paths of the calls, where a path does not say it."""

    def begin(self, records: Iterable[EffectRecord] = ()) -> None:
        """Forget the run before."""
        self.taken = set()
        self.prompts = {}
        self.records = {record.path: record for record in records}

    def take(self, kind: Kind, place: str, choice: str = "", way: str = "") -> None:
        self.taken.add(decision_id(kind, place, choice, way))

    def author_of(self, path: str) -> str:
        """Return the author of an answer; empty if it is not known."""
        record = self.records.get(path)
        return record.by if record is not None else ""

    def walk(self, run: PinnedRun, work: PureWork) -> Walk:
        """Return the walk of a run from its start, on the watched plan."""
        raise NotImplementedError

    def emitted(self, event: Emit) -> None:
        """Note an event."""

    def asked(self, request: ModelRequest) -> None:
        """Note a call of the model, whether it was answered or failed."""

    def called(self, request: ToolRequest) -> None:
        """Note a call of a tool that was allowed."""

    def answered(self, request: HumanRequest, answer: str) -> None:
        """Note a question that was answered."""

    def loaded(self, request: Load) -> None:
        """Note a text that was loaded."""

    def joined(self, request: Join, states: Sequence[Mapping[str, Value]]) -> None:
        """Note how children were found that ran beside."""

    def failed(self, request: Recorded, error: StepFailed) -> None:
        """Note an effect that failed."""

    def child_ended(self, fan: Fan, number: int, *, failed: bool) -> None:
        """Note the end of one child of a fan."""
