"""What every store holds to whatever it is made of, and what it says to who wants something else."""

from __future__ import annotations

import hashlib

from quire.engine.records import WAITING, Question, Status
from quire.errors import BrokenSeal, Fenced, NoSuchRun, RunBusy, RunState, StoreError
from quire.store.seals import OLD, OLD_RUN, seal_question
from quire.trust.seal import Seal

ANSWERABLE = (Status.RUNNING, *WAITING)
CANCELLABLE = (Status.PENDING, Status.RUNNING, *WAITING)


def status_at(now: float, status: Status, expires_at: float | None) -> Status:
    """Nobody writes down that a wait has lasted too long: whoever looks finds it expired."""
    expired = status in WAITING and expires_at is not None and expires_at < now
    return Status.EXPIRED if expired else status


def checked_text(text: str, sha256: str, place: str) -> str:
    """A text that is the one its hash names. Raises `StoreError`."""
    if hashlib.sha256(text.encode()).hexdigest() != sha256:
        raise StoreError(f"{place} holds another text under the hash {sha256}: it was changed")
    return text


def check_question(seal: Seal, question: Question, sealed: str | None) -> None:
    """Raises `BrokenSeal` for a question that no run of this user has asked in these words."""
    if sealed != seal_question(seal, question):
        if sealed == OLD:
            raise BrokenSeal(question.run, OLD_RUN, old=True)
        raise BrokenSeal(question.run, f"its question at {question.path} was not asked by a run of yours")


def no_such_run(run: str) -> NoSuchRun:
    return NoSuchRun(f"there is no run {run}: `quire runs` lists them")


def busy(run: str) -> RunBusy:
    return RunBusy(f"run {run} is being driven by another process")


def fenced(run: str) -> Fenced:
    return Fenced(f"run {run} has been taken over: nothing more can be written from here")


def takes_no_answers(run: str, status: Status) -> RunState:
    return RunState(f"run {run} is {status.words} and takes no answers")


def cannot_go_on(run: str, status: Status) -> RunState:
    return RunState(f"run {run} is {status.words} and cannot go on: fork it instead")


def cannot_be_cancelled(run: str, status: Status) -> RunState:
    return RunState(f"run {run} is {status.words} already: there is nothing to cancel")
