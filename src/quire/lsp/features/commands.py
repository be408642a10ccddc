"""Carry out the commands of the server: all of them are free, start nothing and write nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from quire.errors import QuireError
from quire.lsp.desk import path_of
from quire.lsp.features.code_actions import fix_all
from quire.lsp.features.request_places import workspace_edit
from quire.lsp.jobs import Unasked
from quire.lsp.protocol import INVALID_PARAMS, RequestFailed

if TYPE_CHECKING:
    from quire.lsp.progress import Tell
    from quire.lsp.session import Session
    from quire.lsp.test_results import TestRecord
    from quire.lsp.views import View


def execute(session: Session, params: Mapping[str, Any]) -> Any:
    """Carry out a command and return its result. Raises `RequestFailed` for one that is not known."""
    command, arguments = params.get("command"), params.get("arguments")
    given = [str(one) for one in arguments] if isinstance(arguments, list) else []
    match command:
        case "quire.showPrompt":
            return _prompt(_view(session, given), given[1:])
        case "quire.fixAll":
            return _fix_all(session, _view(session, given))
        case "quire.test":
            return _test(session, _view(session, given), given[1] if len(given) > 1 else "")
        case "quire.writeTest":
            _write_test(session, _view(session, given), given[1] if len(given) > 1 else "")
        case "quire.showProof":
            from quire.lsp.reports import proof_text

            view = _view(session, given)
            session.later(lambda _tell: proof_text(view), title="Quire: prove the document")
        case "quire.lockDiff":
            from quire.lsp.reports import lock_text

            folder = _view(session, given).folder
            session.later(lambda _tell: lock_text(folder), title="Quire: compare with quire.lock")
    raise RequestFailed(f"the command {command} is not known", INVALID_PARAMS)


def _view(session: Session, given: Sequence[str]) -> View:
    uri = given[0] if given else ""
    view = session.desk.view(uri) or (session.desk.view_of(path_of(uri)) if uri.startswith("file:") else None)
    if view is None or not view.format:
        raise RequestFailed("the command needs the address of a document", INVALID_PARAMS)
    return view


def _prompt(view: View, steps: Sequence[str]) -> str:
    """Return the messages that a model would get at a step, as text."""
    from quire.display.transcript import prompt_text
    from quire.lsp.prompts import preview_of

    return prompt_text(preview_of(view, steps[0] if steps else "").request)


def _fix_all(session: Session, view: View) -> Any:
    found = fix_all(view)
    if found is None:
        return None
    return workspace_edit(session, found.edits)


def _test(session: Session, view: View, case: str) -> NoReturn:
    """Run the cases of a test file, or of all tests of a document. The answer has the objects of `quire test --json`;
    the results are kept for lenses, hints and hovers."""
    tests = list(_tests_of(view))
    if not tests:
        raise RequestFailed(f"{Path(view.path).name} has no test yet")

    def run(tell: Tell) -> Any:
        from quire.lsp.test_runs import run_tests

        return run_tests(tests, [case] if case else [], tell)

    def keep(result: tuple[Any, list[TestRecord]]) -> Any:
        printed, records = result
        _keep(session, records)
        return printed

    session.later(run, keep, title="Quire: run tests", long=True)


def tests_ran(session: Session, params: Mapping[str, Any]) -> None:
    """Run tests again that the editor has run by itself, in the background: its results lack what lenses, hints and
    hovers show. They are free, and read the files that the editor's run has left."""
    wanted: list[tuple[list[tuple[str, str]], list[str]]] = []
    tests = params.get("tests")
    for one in tests if isinstance(tests, list) else []:
        said = one if isinstance(one, Mapping) else {}
        view = session.desk.view_of(path_of(str(said.get("uri"))))
        cases = said.get("cases")
        if view is not None and view.format == "test":
            wanted.append((list(_tests_of(view)), [str(case) for case in cases] if isinstance(cases, list) else []))

    def run(_tell: Tell) -> list[TestRecord]:
        from quire.lsp.test_runs import run_tests

        return [record for paths, cases in wanted for record in run_tests(paths, cases)[1]]

    if wanted:
        session.errands.add(Unasked(), run, lambda records: _keep(session, records))


def _keep(session: Session, records: list[TestRecord]) -> None:
    session.desk.test_memory.keep(records)
    session.refresh("codeLens", "inlayHint")


def _write_test(session: Session, view: View, wanted: str) -> NoReturn:
    """Have a case written that takes a decision, given by its id. The editor is asked to make the edit."""
    from quire.lsp.drafted_tests import added_case, draft_case

    def write(draft: Any) -> None:
        try:
            case = added_case(session.desk.view_of(view.path) or view, draft)
        except QuireError:
            return  # the test was changed meanwhile, and has no list of cases any more
        edit = workspace_edit(session, (case,), creates=True)
        if edit is not None:
            session.outbox.apply("Write a test", edit)

    session.later(lambda _tell: draft_case(view, wanted), write)


def _tests_of(view: View) -> Iterator[tuple[str, str]]:
    """Yield the paths of the tests of a document, or of a test itself, each with that of its document."""
    from quire.lsp.document_tests import tests_of
    from quire.lsp.test.tested import tested

    if view.format == "test":
        yield view.path, tested(view).path
    else:
        yield from ((test.path, view.path) for test in tests_of(view))
