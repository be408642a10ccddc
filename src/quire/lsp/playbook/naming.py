"""Rules for new names of inputs, outputs and steps of a playbook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quire.formats.playbook.names import family
from quire.lsp.playbook.index import KnownNames, tree_of
from quire.lsp.playbook.layout import ASKED
from quire.patterns import late_pattern

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import Playbook
    from quire.lsp.answers import Name
    from quire.lsp.views import View

_VALUE = late_pattern(r"[A-Za-z][A-Za-z0-9_]*")
_STEP = late_pattern(r"[1-9][0-9]{0,8}")
_SUBSTEP = late_pattern(r"[0-9]+[a-z]")
_PIPELINE = late_pattern(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORD = late_pattern(r"[A-Za-z0-9_-]+")


def name_problem(view: View, name: Name, new: str) -> str:
    """Return why a name cannot be changed to another one; empty if it can. The thing may belong to another document."""
    if name.document and name.document != view.path:
        home = view.folder.view(name.document)
        if home is not None and home.format and home.format != "playbook":
            from quire.lsp.languages import function

            rule = function(home.format, "naming", "name_problem")
            return str(rule(home, name, new)) if rule else _plain(name, new)
        view = home or view
    tree = tree_of(view)
    if tree is None or new == name.text:
        return ""
    if name.kind in ("input", "output"):
        return _value(tree, name, new)
    return _label(tree, name.text, new) if name.kind == "step" else _plain(name, new)


def _plain(name: Name, new: str) -> str:
    """Return the problem of a name whose rules are not known here."""
    pattern = _PIPELINE if name.kind == "pipeline" else _WORD
    return "" if pattern.fullmatch(new) else f"{new!r} is not a name: use letters, digits, - and _"


def _value(tree: Playbook, name: Name, new: str) -> str:
    if not _VALUE.fullmatch(new):
        return f"{new!r} is not a name: use letters, digits and _, and begin with a letter"
    if new.startswith(ASKED):
        return f"names that begin with {ASKED} are those of answers"
    known = KnownNames(tree)
    if new in known.inputs:
        return f"an input is named {new} already"
    if new in known.outputs:
        return f"an output is named {new} already"
    if new in known.labels:
        return f"{new} is the label of a step"
    if name.kind == "input" and name.text in known.outputs:
        return f"an output is named {name.text} too: {{{{{name.text}}}}} would mean it from then on"
    read = any(new == one.name for parent in tree.steps for step in family(parent) for one in step.placeholders)
    return f"{{{{{new}}}}} is read already, and nothing sets it yet: it would be filled in" if read else ""


def _label(tree: Playbook, old: str, new: str) -> str:
    """Return the problem of a new label. A step with sub-steps keeps its number, because theirs begin with it."""
    labels = {step.label for parent in tree.steps for step in family(parent)}
    if new in labels:
        return f"there is a step {new} already"
    for parent in tree.steps:
        if parent.label == old:
            if not _STEP.fullmatch(new):
                return f"{new!r} is not the number of a step"
            return "its sub-steps begin with its number" if parent.arms else ""
        if any(step.label == old for arm in parent.arms for step in arm.steps):
            fits = _SUBSTEP.fullmatch(new) and new[:-1] == str(parent.number)
            return "" if fits else f"a sub-step of step {parent.number} is {parent.number} and a small letter"
    return f"there is no step {old}"
