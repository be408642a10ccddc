"""Bounds and proofs of a document in words, the lenses above every document, and the difference to the lock.

All are made of the texts that the editor has: no server is started and no run is read. A proof of a large document
takes long, so hovers and hints ask for it only if it exists already or is quickly made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quire.errors import CannotStart
from quire.library.collect import collect
from quire.lsp.answers import Lens
from quire.lsp.desk import uri_of
from quire.wording import pluralize
from quire.workspace.locate import find_workspace

if TYPE_CHECKING:
    from quire.analysis.proof import Proof
    from quire.analysis.quantities import Quantity
    from quire.lsp.desk import Folder
    from quire.lsp.document_view import View
    from quire.source import Span


QUICK = 30_000
"""Characters of a document that is analysed while the user waits: it takes a few milliseconds."""


def quick_proof(view: View) -> Proof | None:
    """Return the proof of a document that is small, or was analysed before."""
    if "proof" in vars(view) or len(view.source.text) <= QUICK:
        return view.proof
    return None


def bound_words(view: View, *, quick: bool = False) -> str:
    """Return the bound of a document: `≤ 6·|readers| calls, stopped at 100, 1 question`; empty for one that cannot run.
    With `quick`, only if the proof exists already or takes no time."""
    proof = quick_proof(view) if quick else view.proof
    if proof is None:
        return ""
    from quire.analysis.quantities import quantities

    by_name = {quantity.name: quantity for quantity in quantities(proof, view.folder.foresight.world().premises)}
    parts = [_counted(by_name["model_calls"], "call")]
    if not by_name["questions"].most.is_nothing:
        parts.append(_counted(by_name["questions"], "question"))
    if proof.unknown:
        parts.append(f"and what {', '.join(proof.unknown[:3])} does")
    return ", ".join(parts)


def with_price(view: View, bound: str) -> str:
    """Return the words of a bound with the most that a run costs, as far as that is known."""
    price = view.folder.prices.words(view)
    return f"{bound}, {price}" if price else bound


def document_lenses(view: View, span: Span, *, cases: int, bound: str, sign: str = "Sign") -> Iterator[Lens]:
    """Yield the lenses that every document has: run, test if there are cases, bound and sign.

    None of them costs anything: Run and Sign put a command into a terminal of the editor.
    """
    uri = uri_of(view.path)
    yield Lens(span, "Run", "quire.run", (uri,))
    if cases:
        yield Lens(span, f"Test ({cases} {pluralize('case', cases)})", "quire.test", (uri,))
    if bound:
        yield Lens(span, bound, "quire.showProof", (uri,))
    yield Lens(span, sign, "quire.sign", (uri,))


def _counted(number: Quantity, word: str) -> str:
    stop = f", stopped at {number.ceiling.most:,}" if number.ceiling is not None else ""
    if number.most.is_endless:
        return f"any number of {word}s{stop}"
    count = number.most.as_number
    if count is None:
        return f"≤ {number.most} {word}s{stop}"
    if not count:
        return f"no {word}s"
    return f"{'' if number.least == count else '≤ '}{count:,} {pluralize(word, count)}{stop}"


_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def proof_text(view: View) -> str:
    """Return the bounds, gates, flows and the envelope of a document, as `quire show` prints them. Raises
    `QuireError` for a document that cannot run."""
    import datetime

    from quire.analysis.approvals import gates_of
    from quire.analysis.flow_paths import flows_of
    from quire.display.outline import envelope_lines
    from quire.display.proof import bound_lines, flow_lines, gate_lines
    from quire.runs.proven import assumed_sizes, prove_document

    if view.document is None or view.document.plan is None:
        raise CannotStart("the document has errors, so nothing is proven of it yet")
    document, settings = view.document, view.folder.settings
    today = datetime.datetime.now(datetime.UTC).date()
    proven = prove_document(document, settings, model="", today=today, environ=os.environ)
    lines = [
        *bound_lines(proven.quantities, assumed_sizes(settings, (), None)),
        *gate_lines(gates_of(proven.proof)),
        *flow_lines(flows_of(proven.proof)),
        *envelope_lines(view.folder.foresight.envelope(document.runnable(), document.name)),
    ]
    return _COLOURS.sub("", "\n".join(lines).strip("\n")) + "\n"


def lock_text(folder: Folder) -> str:
    """Return how the documents of a workspace differ from its `quire.lock`, as Markdown. Raises `QuireError` if the
    lock is missing or cannot be read."""
    from quire.analysis.lock.compare import compare
    from quire.display.lock_diff import diff_markdown
    from quire.library.lock_check import load_lock, lock_path, require_lock
    from quire.library.lock_facts import LockFacts

    workspace = find_workspace(folder.path)
    reading = load_lock(lock_path(workspace))
    if reading is None:
        raise CannotStart("the workspace has no quire.lock yet: quire lock writes one")
    before = require_lock(reading)
    files, _ = collect([str(workspace.folder)])
    facts = LockFacts.with_lock(workspace, before)
    documents = list(facts.documents([file.path for file in files]))
    new = facts.lock(documents)
    broken = sorted(document.key for document in documents if document.plan is None)
    changes = tuple(change for change in compare(before, new) if change.document not in broken)
    broken_lines = "".join(f"\n{key} has errors and cannot be compared.\n" for key in broken)
    return diff_markdown(changes, new.assumed) + broken_lines
