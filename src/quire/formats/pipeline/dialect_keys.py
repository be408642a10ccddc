"""Read the keys and kinds of step that only the Quire dialect has, but for those that hold other steps."""

from __future__ import annotations

import re

from quire.formats.near_names import word_fix
from quire.formats.pipeline import syntax
from quire.formats.pipeline.codes import errors as codes
from quire.formats.pipeline.fields import ADD_DIALECT, Fields
from quire.formats.pipeline.syntax import ExpressionText, Name
from quire.formats.yaml import Entry, Scalar, Sequence, describe, text_of
from quire.formats.yaml.codes import MISPLACED_TAG
from quire.plan.pipeline_work import OnError
from quire.wording import quoted

MOST_TURNS = 100
LONGEST_TIMEOUT = 24 * 3600.0
LONGEST_TITLE = 80
LONGEST_COMMAND = 600.0
"""Seconds that a command may take."""

_RETRY = re.compile(r"retry\(([0-9]{1,6})\)")
_RETRY_ON = re.compile(r"retry\(([0-9]{1,6})\)\s*,\s*continue")
_POLICIES = "continue, abort or retry(N), with a number and no spaces"
_MORE_POLICIES = 'continue, abort, retry(N) or "retry(N), continue"'
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")
_GUARDS = frozenset({"when", "on_error", "default", "timeout"})
Entries = dict[str, Entry]


class DialectKeys:
    """Reads keys of the dialect. Outside of it they are reported before, and `entries` has none of them."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def guard(self, kind: str, entries: Entries) -> syntax.GuardKeys | None:
        """Read the keys around a step; None if there are none. Those of a fan belong to its items."""
        if not self._fields.dialect or _GUARDS.isdisjoint(entries):
            return None
        when = self._expression(entries, "when")
        if kind in ("for_each", "parallel"):
            return syntax.GuardKeys(when) if when else None
        on_error = self.on_error(entries.get("on_error"))
        default = self._expression(entries, "default") if kind != "match" else None
        timeout = self._timeout(entries.get("timeout"), LONGEST_COMMAND if kind == "shell" else LONGEST_TIMEOUT)
        if "default" in entries and kind != "match" and when is None:
            self.check_default(entries["default"], on_error)
        keys = syntax.GuardKeys(when, on_error, default, timeout)
        return None if keys == syntax.GuardKeys() else keys

    def title(self, entries: Entries) -> str:
        """Read the words that name a step in all views; no words without the key."""
        title = self._fields.text(entries["title"], "a title") if "title" in entries else ""
        if title and (len(title) > LONGEST_TITLE or not title.isprintable() or not title.strip()):
            message = f"a title is one line of at most {LONGEST_TITLE} characters"
            self._fields.report(codes.VALUE, message, entries["title"].visible)
        return title or ""

    def fan_default(self, entries: Entries, on_error: OnError | None) -> ExpressionText | None:
        """Read the value that an item or a branch has if it failed."""
        if "default" not in entries:
            return None
        self.check_default(entries["default"], on_error)
        return self._expression(entries, "default")

    def check_default(self, entry: Entry, on_error: OnError | None) -> None:
        """Report a default that never counts, because no failure is survived."""
        if on_error is None or not on_error.goes_on:
            message = "this default never counts: it is the value after a failure that the run survives"
            self._fields.report(codes.UNUSED_DEFAULT, message, entry.key.span, "add on_error: continue")

    def on_error(self, entry: Entry | None) -> OnError | None:
        if entry is None:
            return None
        text = text_of(entry.value)
        if text == "continue":
            return OnError("continue")
        if text == "abort":
            return OnError("abort")
        if retry := _RETRY.fullmatch(text or ""):
            return OnError("retry", int(retry[1]))
        dialect = self._fields.dialect
        retry = _RETRY_ON.fullmatch(text or "")
        if retry and dialect:
            return OnError("retry", int(retry[1]), survives=True)
        policies = _MORE_POLICIES if dialect else _POLICIES
        message = f"on_error must be {policies}, not {self._fields.described(entry.value)}"
        help = "say how often: retry(2)" if text and "retry" in text else ""
        if retry:
            help = ADD_DIALECT
        place = entry.visible
        fix = None if retry else word_fix(text or "", ("continue", "abort"), place)
        self._fields.report(codes.ON_ERROR, message, place, help, fix)
        return None

    def agent(self, entries: Entries) -> syntax.AgentSettings | None:
        """Read the keys of an `agent` step about its model call; None without any."""
        if not any(key in entries for key in ("model", "turns", "max_tokens", "temperature")):
            return None
        model = self._fields.text(entries["model"], "model") if "model" in entries else None
        turns = self.count(entries.get("turns"), "turns", MOST_TURNS)
        max_tokens = self.count(entries.get("max_tokens"), "max_tokens", None)
        temperature = self._temperature(entries.get("temperature"))
        name = Name(model, entries["model"].value.span) if model else None
        return syntax.AgentSettings(name, turns, max_tokens, temperature)

    def on_max(self, entry: Entry) -> Name | None:
        text = text_of(entry.value)
        if text in ("fail", "keep"):
            return Name(text, entry.value.span)
        place = entry.visible
        message = f"on_max must be fail or keep (the last result), not {self._fields.described(entry.value)}"
        self._fields.report(codes.VALUE, message, place, fix=word_fix(text or "", ("fail", "keep"), place))
        return None

    def fail(self, entries: Entries) -> syntax.FailBody | None:
        message = self.argument(entries, "message")
        if isinstance(message, syntax.Literal) and not isinstance(message.value, str):
            problem = f"message must be text or !expr, not {describe(entries['message'].value)}"
            self._fields.report(codes.VALUE, problem, entries["message"].visible)
            return None
        return syntax.FailBody(message) if message else None

    def prompt_file(self, entry: Entry, node: Scalar) -> syntax.Text | None:
        """Read the name of a prompt file, relative to the document."""
        if not self._fields.dialect:
            message = "a prompt in a file belongs to the Quire dialect"
            self._fields.report(MISPLACED_TAG, message, node.span, ADD_DIALECT)
            return None
        if not node.text.strip():
            message = "!file needs the name of a file, relative to the document"
            self._fields.report(codes.VALUE, message, entry.visible, "write !file prompts/review.md")
            return None
        where = node.text.strip().replace("\\", "/")
        if where.startswith(("/", "~")) or ":" in where or ".." in where.split("/"):
            message = f"{quoted(where)} is not below the folder of the document"
            self._fields.report(codes.VALUE, message, node.span, "a prompt file is named relative to the document")
            return None
        return syntax.Text(where, node.body, node)

    def argument(self, entries: Entries, key: str) -> syntax.Argument | None:
        return self._fields.argument(entries[key].value) if key in entries else None

    def count(self, entry: Entry | None, what: str, most: int | None) -> int | None:
        _, number = self._fields.count(entry, what)
        if entry is not None and number is not None and most is not None and number > most:
            self._fields.report(codes.LIMIT, f"{what} is at most {most:,}, not {number:,}", entry.visible)
            return None
        return number

    def _expression(self, entries: Entries, key: str) -> ExpressionText | None:
        return self._fields.expression(entries[key], key) if key in entries else None

    def _timeout(self, entry: Entry | None, longest: float) -> float | None:
        if entry is None:
            return None
        match = _DURATION.fullmatch(text_of(entry.value) or "")
        seconds = round(float(match[1]) * _SECONDS[match[2]], 3) if match else 0.0
        if 0.0 < seconds <= longest:
            return seconds
        shown = self._fields.described(entry.value)
        message = f"timeout must be a duration such as 30s, 5m or 1h, not {shown}"
        if match:
            message = f"timeout is more than 0 and at most {longest / 60:g} minutes here, not {shown}"
        self._fields.report(codes.TIMEOUT, message, entry.visible)
        return None

    def flag(self, entry: Entry, what: str) -> bool | None:
        if isinstance(entry.value, Scalar) and isinstance(entry.value.value, bool):
            return entry.value.value
        message = f"{what} must be true or false, not {describe(entry.value)}"
        self._fields.report(codes.VALUE, message, entry.visible)
        return None

    def variables(self, entry: Entry) -> tuple[Name, ...] | None:
        if not isinstance(entry.value, Sequence):
            message = f"env must be a list of names of variables, not {describe(entry.value)}"
            text = text_of(entry.value)
            is_name = text and _VARIABLE.fullmatch(text)
            help = f"write [{text}]" if is_name else "their values come from your environment"
            self._fields.report(codes.VALUE, message, entry.visible, help)
            return None
        names = []
        for item in entry.value.items:
            text = text_of(item)
            if text is None or not _VARIABLE.fullmatch(text):
                message = f"{self._fields.described(item)} cannot be the name of a variable"
                help = "letters, digits and _; values are never written into a document"
                self._fields.report(codes.NAME, message, item.span, help)
            else:
                names.append(Name(text, item.span))
        return tuple(names)

    def _temperature(self, entry: Entry | None) -> float | None:
        if entry is None:
            return None
        value = entry.value.value if isinstance(entry.value, Scalar) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2:
            return float(value)
        shown = quoted(entry.value.text) if isinstance(entry.value, Scalar) else describe(entry.value)
        message = f"temperature must be a number from 0 to 2, not {shown}"
        self._fields.report(codes.LIMIT, message, entry.visible)
        return None
