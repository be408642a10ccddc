"""Offer changes and commands, and carry out those of the server, which are free, start nothing and write nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgspec.structs import replace

from quire.diagnostics import fix_of
from quire.errors import QuireError
from quire.lsp import wire
from quire.lsp.answers import Action, change
from quire.lsp.bounds import lock_text, proof_text, with_price
from quire.lsp.desk import path_of, uri_of
from quire.lsp.document_tests import added_case, draft_case, run_tests, tests_of
from quire.lsp.features import ask, view_in, workspace_edit
from quire.lsp.jobs import Unasked
from quire.lsp.prompts import prompt_text_of
from quire.lsp.protocol import INVALID_PARAMS, RequestFailed

if TYPE_CHECKING:
    from quire.diagnostics import Diagnostic, Edit
    from quire.lsp.answers import Lens
    from quire.lsp.document_tests import TestRecord
    from quire.lsp.document_view import View
    from quire.lsp.jobs import Tell
    from quire.lsp.session import Session


def code_lenses(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    if view is None:
        return None
    lenses: list[Lens] = ask(view, "decorations", "lenses") or []
    return [
        {
            "range": view.text.range(lens.span),
            "command": {"title": _title(view, lens), "command": lens.command, "arguments": list(lens.arguments)},
        }
        for lens in lenses
    ]


def _title(view: View, lens: Lens) -> str:
    """Return the title of a lens. One that runs all tests of a document has the numbers of their last results, one with
    the bound the most that a run costs."""
    if lens.command == "quire.test" and len(lens.arguments) == 1:
        return view.folder.test_memory.title(view, lens.title)
    return with_price(view, lens.title) if lens.command == "quire.showProof" else lens.title


FIX_ALL: Final = "source.fixAll.quire"
MOST_FINDINGS: Final = 50
"""Findings of a range that changes are offered for. Each change lists the findings that it mends, so a range of
thousands would fill the memory."""


def code_actions(session: Session, params: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    view = view_in(session, params)
    if view is None:
        return None
    context = params.get("context")
    kinds = context.get("only") if isinstance(context, Mapping) else None
    span = view.text.span(params.get("range"))
    touched = [finding for finding in view.findings if finding.span.meets(span)][:MOST_FINDINGS]
    actions = [*_fixes(view, touched), *(ask(view, "actions", "actions", span, tuple(touched)) or [])]
    if (everything := fix_all(view)) is not None:
        actions.append(everything)
    return [
        written
        for action in actions
        if _is_wanted(action.kind, kinds) and (written := _written(session, view, action, touched)) is not None
    ]


def _fixes(view: View, findings: list[Diagnostic]) -> list[Action]:
    """Return the fixes of findings. One that may change the meaning says so."""
    actions: dict[Action, None] = {}
    for finding in findings:
        fix = fix_of(view.source, finding)
        if fix is not None:
            title = fix.title[:1].upper() + fix.title[1:] + ("" if fix.safe else " (may change the meaning)")
            action = change(view.path, title, *fix.edits, codes=(finding.code.id,))
            actions[replace(action, preferred=fix.safe)] = None
    return list(actions)


def fix_all(view: View) -> Action | None:
    """Return the change that makes all safe fixes at once; None if there are none. Of fixes that touch each other the
    first one is made: the others are offered again after it."""
    edits: list[Edit] = []
    last = -1
    fixes = [fix for finding in view.findings if (fix := fix_of(view.source, finding)) is not None and fix.safe]
    for fix in sorted(fixes, key=lambda fix: fix.edits[0].span.start):
        if all(edit.span.start >= last for edit in fix.edits):
            edits += fix.edits
            last = max(edit.span.end for edit in fix.edits)
    return change(view.path, "Fix all that is certain", *edits, kind=FIX_ALL) if edits else None


def _is_wanted(kind: str, kinds: object) -> bool:
    """Tell whether the editor asks for a kind. Without a wish, changes of the whole document are left out."""
    if not isinstance(kinds, list) or not kinds:
        return kind != FIX_ALL
    return any(isinstance(only, str) and (kind == only or kind.startswith(f"{only}.")) for only in kinds)


def _written(session: Session, view: View, action: Action, touched: list[Diagnostic]) -> dict[str, Any] | None:
    edit = workspace_edit(session, action.edits, creates=True)
    if edit is None or (action.command and not session.client.can("workspace.applyEdit")):
        return None
    command = {"title": action.title, "command": action.command, "arguments": [uri_of(view.path), *action.arguments]}
    fixed = [finding for finding in touched if finding.code.id in action.codes]
    return {
        "title": action.title,
        "kind": action.kind,
        **({"command": command} if action.command else {"edit": edit}),
        **({"diagnostics": [wire.diagnostic(view.text, finding, session.desk) for finding in fixed]} if fixed else {}),
        **({"isPreferred": True} if action.preferred else {}),
    }


def execute(session: Session, params: Mapping[str, Any]) -> Any:
    """Carry out a command and return its result. Raises `RequestFailed` for one that is not known."""
    command, arguments = params.get("command"), params.get("arguments")
    texts = [str(argument) for argument in arguments] if isinstance(arguments, list) else []
    match command:
        case "quire.showPrompt":
            return prompt_text_of(_view(session, texts), texts[1] if len(texts) > 1 else "")
        case "quire.fixAll":
            action = fix_all(_view(session, texts))
            return workspace_edit(session, action.edits) if action is not None else None
        case "quire.test":
            return _test(session, _view(session, texts), texts[1] if len(texts) > 1 else "")
        case "quire.writeTest":
            _write_test(session, _view(session, texts), texts[1] if len(texts) > 1 else "")
        case "quire.showProof":
            view = _view(session, texts)
            session.later(lambda _tell: proof_text(view), title="Quire: prove the document")
        case "quire.lockDiff":
            folder = _view(session, texts).folder
            session.later(lambda _tell: lock_text(folder), title="Quire: compare with quire.lock")
    raise RequestFailed(f"the command {command} is not known", INVALID_PARAMS)


def _view(session: Session, arguments: Sequence[str]) -> View:
    uri = arguments[0] if arguments else ""
    view = session.desk.view(uri) or (session.desk.view_of(path_of(uri)) if uri.startswith("file:") else None)
    if view is None or not view.format:
        raise RequestFailed("the command needs the address of a document", INVALID_PARAMS)
    return view


def _test(session: Session, view: View, case: str) -> NoReturn:
    """Run the cases of a test file, or of all tests of a document. The answer has the objects of `quire test --json`;
    the results are kept for lenses, hints and hovers."""
    tests = list(_tests_of(view))
    if not tests:
        raise RequestFailed(f"{Path(view.path).name} has no test yet")

    def run(tell: Tell) -> Any:
        return run_tests(tests, [case] if case else [], tell)

    def keep(result: tuple[Any, list[TestRecord]]) -> Any:
        printed, records = result
        _keep(session, records)
        return printed

    session.later(run, keep, title="Quire: run tests", long=True)


def tests_ran(session: Session, params: Mapping[str, Any]) -> None:
    """Run tests again that the editor has run by itself, in the background: its results lack the data of lenses, hints
    and hovers. They are free, and read the files that the editor's run has left."""
    runs: list[tuple[list[tuple[str, str]], list[str]]] = []
    tests = params.get("tests")
    for test in tests if isinstance(tests, list) else []:
        named = test if isinstance(test, Mapping) else {}
        view = session.desk.view_of(path_of(str(named.get("uri"))))
        cases = named.get("cases")
        if view is not None and view.format == "test":
            runs.append((list(_tests_of(view)), [str(case) for case in cases] if isinstance(cases, list) else []))

    def run(_tell: Tell) -> list[TestRecord]:
        return [record for paths, cases in runs for record in run_tests(paths, cases)[1]]

    if runs:
        session.errands.add(Unasked(), run, lambda records: _keep(session, records))


def _keep(session: Session, records: list[TestRecord]) -> None:
    session.desk.test_memory.keep(records)
    session.refresh("codeLens", "inlayHint")


def _write_test(session: Session, view: View, decision: str) -> NoReturn:
    """Have a case written that takes a decision, given by its id. The editor is asked to make the edit."""

    def write(draft: Any) -> None:
        try:
            case = added_case(session.desk.view_of(view.path) or view, draft)
        except QuireError:
            return  # the test was changed meanwhile, and has no list of cases any more
        edit = workspace_edit(session, (case,), creates=True)
        if edit is not None:
            session.outbox.apply("Write a test", edit)

    session.later(lambda _tell: draft_case(view, decision), write)


def _tests_of(view: View) -> Iterator[tuple[str, str]]:
    """Yield the paths of the tests of a document, or of a test itself, each with that of its document."""
    from quire.lsp.test.tested import tested

    if view.format == "test":
        yield view.path, tested(view).path
    else:
        yield from ((test.path, view.path) for test in tests_of(view))
