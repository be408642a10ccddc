"""Read the comments `quire: allow CODE because "reason"`, hide the findings they cover, and report wrong ones (AL).

In a playbook, whose steps have no place for a comment, `in step 3` may stand before `because`. Errors are never hidden.
A comment that hides nothing is an error itself, so that none is left behind when its cause is gone. Of several comments
for one finding the first one hides it. Where a comment may stand is in `suppression_comments`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import islice

from msgspec import Struct

from quire.diagnostics import Code, Diagnostic, Edit, Fix, Severity, make
from quire.formats import format_of
from quire.formats.suppression_comments import WORD, Comment, comments, labelled_steps
from quire.patterns import late_pattern
from quire.source import NOWHERE, Source, Span
from quire.wording import cut_line, did_you_mean, nearest

MOST = 200
"""Maximum number of comments of one document that are read."""

LONGEST_REASON = 500
"""Maximum number of characters of a reason. The lock lists all reasons."""

_ORDER = late_pattern(r"quire:[ \t]*+(\w++)(?:[ \t]++(\S++))?")
_REST = late_pattern(r"(?:[ \t]++in[ \t]++step[ \t]++([0-9]++[a-z]?+))?[ \t]++because[ \t]++\"([^\"]*+)\"")
_CODE = late_pattern(r"[A-Za-z]{2}[0-9]{3}(?![0-9A-Za-z])")
_MEANT = ("allow", "allows", "allowed", "ignore", "disable", "suppress", "noqa")


class Allow(Struct, frozen=True):
    """A comment that hides the findings of one code in a part of its document."""

    code: str
    reason: str
    span: Span
    """Where the comment is."""
    covers: tuple[Span, ...]
    """A finding is hidden if it begins in one of these parts, which are in order and do not overlap."""
    step: str = ""
    """The label of the step of a playbook that it is for, as written; empty if it is not for one step."""
    whole: bool = False
    """True if it covers the file, and so findings without a place."""

    def hides(self, finding: Diagnostic) -> bool:
        if finding.code.id != self.code or finding.severity is Severity.ERROR:
            return False
        at = finding.span.start
        if finding.span == NOWHERE:
            return self.whole
        if self.whole:
            # A comment never hides what is wrong with its own letters.
            return not self.span.start <= at < self.span.end
        before = bisect_right(self.covers, at, key=lambda part: part.start)
        return before > 0 and at < self.covers[before - 1].end


class Hidden(Struct, frozen=True):
    """A finding that is not shown."""

    finding: Diagnostic
    allow: Allow


class Applied(Struct, frozen=True):
    """The findings about a document after its comments were applied."""

    diagnostics: tuple[Diagnostic, ...]
    hidden: tuple[Hidden, ...] = ()


def allows_of(source: Source) -> tuple[Allow, ...]:
    """Return the comments of a document that are well-formed, in the order of its text. Raises `CannotStart` for a file
    that Quire does not know."""
    return tuple(allow for allow in _read(source) if isinstance(allow, Allow))


def applied(
    source: Source,
    found: tuple[Diagnostic, ...],
    known: Callable[[], Iterable[Code]],
    was_searched: Callable[[Code], bool],
) -> Applied:
    """Hide findings, and add those about the comments. `known` returns every code; a code for which `was_searched` is
    false is not reported as hiding nothing."""
    comments_read = list(_read(source))
    if not comments_read:
        return Applied(found)
    allows = [allow for allow in comments_read if isinstance(allow, Allow)]
    wrong = [finding for finding in comments_read if isinstance(finding, Diagnostic)]
    by_code: dict[str, list[int]] = {}
    for number, allow in enumerate(allows):
        by_code.setdefault(allow.code, []).append(number)
    findings, hidden, used = list[Diagnostic](), list[Hidden](), set[int]()
    for finding in (*found, *wrong):
        first = next((number for number in by_code.get(finding.code.id, ()) if allows[number].hides(finding)), None)
        if first is None:
            findings.append(finding)
        else:
            hidden.append(Hidden(finding, allows[first]))
            used.add(first)
    if unused := [allow for number, allow in enumerate(allows) if number not in used]:
        is_complete = not any(finding.severity is Severity.ERROR for finding in found)
        findings += _about_unused(source, unused, known(), was_searched, is_complete, hidden)
    return Applied(tuple(sorted(findings, key=lambda finding: finding.span.start)), tuple(hidden))


def _about_unused(
    source: Source,
    allows: list[Allow],
    known: Iterable[Code],
    was_searched: Callable[[Code], bool],
    is_complete: bool,
    hidden: list[Hidden],
) -> Iterator[Diagnostic]:
    codes = {code.id: code for code in known}
    for allow in allows:
        code = codes.get(allow.code)
        if code is None:
            shown = cut_line(allow.code, 40)
            named = next((other.id for other in codes.values() if other.name == shown.lower()), None)
            close = named or nearest(allow.code, codes)
            yield Diagnostic(UNKNOWN, f"unknown code {shown}", allow.span, help=did_you_mean(close))
        elif code.severity is Severity.ERROR:
            message = f"{code.id} is an error, and errors are not hidden"
            yield Diagnostic(OF_ERROR, message, allow.span, help="correct the document, and drop the comment")
        elif is_complete and was_searched(code):
            instead = next((other.allow for other in hidden if allow.hides(other.finding)), None)
            yield _hides_nothing(source, allow, instead)


def _hides_nothing(source: Source, allow: Allow, instead: Allow | None) -> Diagnostic:
    """Return the finding about a comment. `instead` is the one that hides the same findings."""
    if instead is not None:
        line = source.position(instead.span.start).line
        message = f"the comment on line {line} already hides {allow.code} here, so this one hides nothing"
    elif allow.step and not allow.covers:
        message = f"step {allow.step} does not exist, so the comment hides nothing"
    else:
        place = f"step {allow.step}" if allow.step else "this document" if allow.whole else "the part that it covers"
        message = f"{allow.code} is not found in {place}, so the comment hides nothing"
    whole = source.line_span(source.position(allow.span.start).line)
    start, end = allow.span.start, allow.span.end
    before, after = source.text[whole.start : start], source.text[end : whole.end]
    start = whole.start + len(before.rstrip())
    if not before.strip() and not after.strip():
        end = min(whole.end + 1, len(source.text))
    # Findings depend on the settings of a workspace too, so the comment may be needed elsewhere.
    fix = Fix("drop the comment", (Edit(Span(start, end), source.text[start:end], ""),), safe=False)
    return Diagnostic(UNUSED, message, allow.span, help="drop it, or move it to the finding", fix=fix)


def _read(source: Source) -> Iterator[Allow | Diagnostic]:
    """Yield each comment, or the finding about it, in the order of the text."""
    if WORD not in source.text:
        return
    format = format_of(source)
    ordered = sorted(islice(comments(source, format), MOST + 1), key=lambda comment: comment.span.start)
    steps = _Steps(source) if format == "playbook" else None
    for comment in ordered[:MOST]:
        if (read := _allow(format, comment, steps)) is not None:
            yield read
    if len(ordered) > MOST:
        message = f"a document has at most {MOST} comments that hide findings; this one is not read"
        yield Diagnostic(FORM, message, ordered[MOST].span)


class _Steps:
    """The steps of a playbook, which are found once, and only for a comment that names one."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @cached_property
    def by_label(self) -> dict[str, tuple[Span, ...]]:
        return labelled_steps(self._source)

    def moved(self, comment: Comment, after_code: int) -> Fix | None:
        """Return the fix that moves a comment from the text of a step to the place before the title; `after_code` is
        where the name of the step belongs in it. It is not safe, because the text may be meant for the model."""
        from quire.formats.markdown import signature_line

        text, at = self._source.text, comment.span.start
        line = self._source.line_span(self._source.position(at).line)
        if text[line.start : line.end].strip() != text[at : comment.span.end]:
            return None
        steps = [(span, label) for label, spans in self.by_label.items() for span in spans]
        around = [(span.start, label) for span, label in steps if span.start <= at < span.end]
        where = f" in step {max(around)[1]}" if around else ""
        top = len(signature_line(text))
        top += 1 if top else 0
        new = f"<!-- {comment.text[:after_code]}{where}{comment.text[after_code:]} -->\n"
        end = min(line.end + 1, len(text))
        edits = (Edit(Span(top, top), "", new), Edit(Span(line.start, end), text[line.start : end], ""))
        return Fix("move the comment before the title", edits, safe=False)


def _allow(format: str, comment: Comment, steps: _Steps | None) -> Allow | Diagnostic | None:
    """Return the comment, or the finding about it; None for a comment that only begins like one."""
    order = _ORDER.match(comment.text)
    if not order or (order[1] != "allow" and not (order[1].lower() in _MEANT and _CODE.match(order[2] or ""))):
        return None
    if comment.covers is None:
        return _in_text(format, comment, order, steps)
    code = "" if order[2] == "because" else order[2] or ""
    rest = _REST.fullmatch(comment.text, order.end())
    step, reason = (rest[1] or "", " ".join(rest[2].split())) if rest else ("", "")
    if order[1] != "allow" or not code or not rest or not any(map(str.isalnum, reason)):
        shown = cut_line(code, 40) if _CODE.fullmatch(code) else "CODE"
        help = f'write: quire: allow {shown} because "the reason"'
        message = _form_problem(order[1], code, comment.text[order.end() :], is_read=bool(rest))
        return Diagnostic(FORM, message, comment.span, help=help)
    if len(reason) > LONGEST_REASON:
        message = f"the reason has {len(reason):,} characters, more than {LONGEST_REASON}"
        return Diagnostic(FORM, message, comment.span)
    if step and (steps is None or not comment.whole):
        help = "put the comment before the title" if steps else "put the comment above the step"
        return Diagnostic(FORM, "in step cannot stand here", comment.span, help=help)
    covers = steps.by_label.get(step, ()) if steps and step else (comment.covers,)
    return Allow(code.upper(), reason, comment.span, covers, step, comment.whole and not step)


def _form_problem(word: str, code: str, rest: str, *, is_read: bool) -> str:
    """Return what is wrong with the words of a comment; `is_read` if only the letters of its reason are missing."""
    if word != "allow":
        return f"{word} is not a word for comments"
    if not code:
        return "the comment names no code"
    if is_read:
        return "the reason is empty"
    if "because" not in rest:
        return "the comment has no reason"
    return "the comment ends in a reason in double quotes, and has nothing else between its code and because"


_PLACES = {
    "playbook": 'before the title: <!-- quire: allow CODE in step 3 because "the reason" -->',
    "directive": "before the fence, or above the element in the fence",
    "knowledge": "into the metadata",
}
"""Where a comment belongs that was found in a text, by format."""


def _in_text(format: str, comment: Comment, order: re.Match[str], steps: _Steps | None) -> Diagnostic:
    rest = _REST.fullmatch(comment.text, order.end()) if order[1] == "allow" else None
    fix = steps.moved(comment, order.end()) if steps and rest and not rest[1] else None
    help = f"put it {_PLACES.get(format, 'above the step, as a comment of YAML')}"
    message = "this comment is a part of a text, so it hides nothing"
    return Diagnostic(IS_TEXT, message, comment.span, help=help, fix=fix)


_error = partial(make, Severity.ERROR)

_STEP = '- transform: {value: "ctx.report.note"}'
_RIGHT = f'# quire: allow PL209 because "every report of ours has a note"\n{_STEP}'

FORM = _error(
    "AL101",
    "allow-without-reason",
    "A comment that hides findings is not complete: it has no code, no reason, or another form.",
    "A reviewer has to see why a finding does not matter here, and the lock lists the reason. The reason stands in\n"
    "double quotes after `because`. In a playbook `in step 3` may stand before `because`.",
    f"# quire: allow PL209\n{_STEP}",
    _RIGHT,
)
UNKNOWN = _error(
    "AL102",
    "allow-unknown-code",
    "A comment hides findings of a code that does not exist.",
    "It hides nothing, and looks as if it did. `quire check --explain CODE` prints the page of a code.",
    f'# quire: allow PL290 because "every report of ours has a note"\n{_STEP}',
    _RIGHT,
)
UNUSED = _error(
    "AL103",
    "allow-hides-nothing",
    "A comment hides nothing: no finding of its code begins in the part of the document that it covers.",
    "The cause was removed, the comment stands in the wrong place, or a comment before it hides the finding already.\n"
    "Left there, it would hide the next finding of that code, which no reviewer has seen. In YAML a comment behind a\n"
    "line covers that line, a comment on a line of its own covers the next line and all lines below that are indented\n"
    "deeper, and a comment above everything else covers the file. In the XML of a directive it covers its line or the\n"
    "next element. Before the title of a playbook and before the fence of a directive it covers the file. It is not\n"
    "reported if the document has an error.",
    '# quire: allow PL209 because "every report of ours has a note"\n- transform: {value: "ctx.count"}',
    '- transform: {value: "ctx.count"}',
)
OF_ERROR = _error(
    "AL104",
    "allow-of-error",
    "A comment is meant to hide an error.",
    "An error stops a document from running, so a document that hides it would only look right. Warnings, lints and\n"
    "notes can be hidden.",
    '# quire: allow PL009 because "the step is written later"\n- transfrom: {value: "1"}',
    '- transform: {value: "1"}',
)
IS_TEXT = make(
    Severity.WARNING,
    "AL105",
    "allow-in-text",
    "A comment that should hide findings stands in a text, so it hides nothing and is a part of that text.",
    "Formats skip comments in some places only. The steps of a playbook, the body of a directive, its `<permissions>`\n"
    "and the prompts of a pipeline are sent to a model as they are.",
    '## STEP 2: Publish\n\n<!-- quire: allow PB201 because "the braces are for the reader" -->\nWrite {{name}}.',
    '<!-- quire: allow PB201 in step 2 because "the braces are for the reader" -->\n# Publish\n\n'
    "## STEP 2: Publish\n\nWrite {{name}}.",
)
