"""Find the document of a test, and hold the test against it without running it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from quire.diagnostics import Diagnostic
from quire.errors import CannotStart, QuireError
from quire.formats import TEST_SUFFIX
from quire.library.document import Document, load
from quire.plan.uses import called_names
from quire.source import NOWHERE, Source, open_text, real_path

if TYPE_CHECKING:
    from quire.formats.test.syntax import TestFile
    from quire.library.library import Library
    from quire.plan.nodes import Plan

ENDINGS = (".playbook.md", ".yaml", ".yml", ".md")
"""The endings of a document whose name is that of its test file, in the order in which they are tried."""


def find_tested(source: Source, file: TestFile, library: Library) -> Document:
    """Return the document that a test names by a path from its folder, or by a name; without one, the document with
    the name of the test file. Raises `CannotStart`, or `Unreadable` for a document that cannot be read."""
    folder = real_path(Path(source.name)).parent
    named = file.document.text if file.document else ""
    name = named or Path(source.name).name.removesuffix(TEST_SUFFIX)
    tried = (named,) if named else tuple(name + ending for ending in ENDINGS)
    for file_name in tried:
        path = folder / file_name
        if path.is_file() or open_text(path) is not None:
            if not real_path(path).is_relative_to(library.settings.workspace.folder.resolve()):
                raise CannotStart(f"{file_name} is outside of the workspace of the test")
            return load(path)
    is_path = name.endswith(ENDINGS) or ".." in name
    document = None if is_path else library.find(name)
    if document is not None:
        return document
    if is_path:
        raise CannotStart(f"no document {name} exists beside the test")
    beside = ", ".join(tried)
    raise CannotStart(f"unknown document {name}: neither {beside} beside the test, nor one with that name")


def compare(file: TestFile, document: Document, library: Library) -> list[Diagnostic]:
    """Return the findings about a test that need its document, which has no errors."""
    from quire.formats.test.check import check_against

    plan = document.runnable()
    system = "\n".join(agent.system for agent in library.settings.agents.values())
    return check_against(file, plan, callee_plans(plan, library), system)


def check_test(source: Source, file: TestFile, library: Library) -> list[Diagnostic]:
    """Return the findings about a test that need its document; one if the document cannot be found or has errors."""
    from quire.formats.test.codes import NO_DOCUMENT

    where = file.document.span if file.document else NOWHERE
    try:
        document = find_tested(source, file, library)
    except QuireError as error:
        return [Diagnostic(NO_DOCUMENT, str(error), where)]
    if document.plan is None:
        message = f"the document {document.name} has errors"
        return [Diagnostic(NO_DOCUMENT, message, where, "", f"quire check {document.name}")]
    return compare(file, document, library)


def callee_plans(plan: Plan, library: Library) -> dict[str, Plan]:
    """Return the plans of the documents that a plan can call, by name. Documents that cannot be read are left out."""
    plans: dict[str, Plan] = {}
    waiting = [plan]
    while waiting:
        for name in called_names(waiting.pop()):
            with suppress(QuireError):
                document = library.find(name) if name not in plans else None
                if document is not None and document.plan is not None:
                    plans[name] = document.plan
                    waiting.append(document.plan)
    return plans
