"""Read the parts of a case that follow its setting: acts of `then`, rows, and the terms of live runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from quire.formats.test import codes
from quire.formats.test.fields import TestFields, shown, visible
from quire.formats.test.syntax import Act, ActKind, Judge, Live, Rows
from quire.formats.yaml import Entry, Mapping, Node, Scalar, Sequence, describe, text_of

if TYPE_CHECKING:
    from quire.formats.test.expectations import ExpectReader
    from quire.formats.test.script_parts import Entries
    from quire.formats.test.settings import SettingReader
    from quire.values import Value

KINDS = tuple(kind.value for kind in ActKind)
ROW_FILES = (".csv", ".jsonl")


class ActReader:
    """Reads `then`."""

    def __init__(self, fields: TestFields, settings: SettingReader, expect: ExpectReader) -> None:
        self._fields = fields
        self._settings = settings
        self._expect = expect

    def acts(self, entry: Entry) -> tuple[Act, ...]:
        found = (self._act(node) for node in self._fields.items(entry, "then"))
        return tuple(act for act in found if act is not None)

    def _act(self, node: Node) -> Act | None:
        fields = self._fields
        if not isinstance(node, Mapping):
            fields.wrong("an entry of then", f"a mapping with one of {', '.join(KINDS)}", node)
            return None
        entries = fields.keys(node, "cases.-.then.-", "an entry of then")
        kinds = [kind for kind in KINDS if kind in entries]
        if len(kinds) != 1:
            if kinds:
                message = f"the entry of then has both {kinds[0]} and {kinds[1]}"
                place = entries[kinds[1]].key.span
                fields.report(codes.SYNTAX, message, place, "write two entries, one after the other")
            else:
                fields.missing("the entry of then does nothing", node, entries, f"add one of {', '.join(KINDS)}")
            return None
        kind, entry, get = ActKind(kinds[0]), entries[kinds[0]], entries.get
        if kind is ActKind.CANCEL and fields.flag(entry, "cancel") is False:
            fields.report(codes.SYNTAX, "cancel can only be true", visible(entry), "leave the entry out")
        expected = get("expect")
        return Act(
            kind,
            entry.key.span,
            self._settings.answers(entry) if kind is ActKind.ANSWER else {},
            self._options(kind, entry) if kind in (ActKind.RESUME, ActKind.FORK) else {},
            (fields.duration(entry, "advance") or 0.0) if kind is ActKind.ADVANCE else 0.0,
            self._settings.files(entry) if kind is ActKind.EDIT else {},
            self._settings.model(one) if (one := get("model")) else None,
            self._settings.tools(one) if (one := get("tools")) else {},
            self._expect.expect(expected) if expected else None,
        )

    def _options(self, kind: ActKind, entry: Entry) -> dict[str, Value]:
        fields, node = self._fields, entry.value
        if kind is ActKind.RESUME and isinstance(node, Scalar) and node.value in (None, True) and not node.tag:
            return {}
        mapping = fields.mapping(entry, kind.value)
        if mapping is None:
            return {}
        entries = fields.keys(mapping, f"cases.-.then.-.{kind.value}", kind.value)
        if kind is ActKind.FORK and "from" not in entries:
            fields.missing("fork needs the step that it goes on from", mapping, entries, "write {from: STEP}")
        return {key: self._option(key, one) for key, one in entries.items()}

    def _option(self, key: str, entry: Entry) -> Value:
        if key in ("set", "limit"):
            return self._fields.values(entry, key)
        if key == "budget":
            return self._fields.number(entry, key)
        return self._fields.label(entry, key)


def read_rows(fields: TestFields, each: Entry | None, matrix: Entry | None) -> Rows | None:
    """Read `each` and `matrix`; None if a case has neither."""
    if each is None and matrix is None:
        return None
    file, rows = _each(fields, each) if each else ("", ())
    axes = _matrix(fields, matrix) if matrix else {}
    return Rows(rows, file, axes, (each or matrix).key.span)  # type: ignore[union-attr]


def _each(fields: TestFields, entry: Entry) -> tuple[str, tuple[dict[str, Value], ...]]:
    node = entry.value
    text = text_of(node)
    if text is not None:
        if not text.endswith(ROW_FILES):
            fields.report(codes.ROWS, f"{shown(text)} is not a .csv or .jsonl file", visible(entry))
        elif fields.path(text, "the path", node.span):
            return text, ()
        return "", ()
    if not isinstance(node, Sequence) or not node.items:
        message = f"each must be a list of rows, or the name of a file, not {describe(node)}"
        if isinstance(node, Sequence):
            message = "each has no rows, so the case never runs"
        fields.report(codes.ROWS, message, visible(entry))
        return "", ()
    rows: list[dict[str, Value]] = []
    for item in node.items:
        if isinstance(item, Mapping):
            rows.append({name: fields.value(one.value) for name, one in fields.named(item, "a column")})
        else:
            message = f"a row is a mapping of columns to values, not {describe(item)}"
            fields.report(codes.ROWS, message, item.span, "write {column: value}")
    return "", tuple(rows)


def _matrix(fields: TestFields, entry: Entry) -> dict[str, tuple[Value, ...]]:
    node = entry.value
    if not isinstance(node, Mapping) or not node.entries:
        fields.report(codes.ROWS, f"matrix must be a mapping of lists, not {describe(node)}", visible(entry))
        return {}
    axes: dict[str, tuple[Value, ...]] = {}
    for name, one in fields.named(node, "a column"):
        if isinstance(one.value, Sequence) and one.value.items:
            axes[name] = tuple(fields.value(item) for item in one.value.items)
        else:
            what = "an empty list" if isinstance(one.value, Sequence) else describe(one.value)
            fields.report(codes.ROWS, f"{name} of matrix must be a list of values, not {what}", visible(one))
    return axes


def read_live(fields: TestFields, entry: Entry) -> Live | None:
    """Read the terms of live runs."""
    node = fields.mapping(entry, "live")
    if node is None:
        return None
    get = fields.keys(node, "cases.-.live", "live").get
    tools = fields.choice(one, ("scripted", "real"), "tools of live") if (one := get("tools")) else None
    return Live(
        fields.number(one, "pass", 1) if (one := get("pass")) else None,
        fields.count(one, "repeat") if (one := get("repeat")) else None,
        _judge(fields, one) if (one := get("judge")) else None,
        _similar(fields, one) if (one := get("similar")) else {},
        fields.number(one, "cost") if (one := get("cost")) else None,
        fields.number(one, "seconds") if (one := get("seconds")) else None,
        cast('Literal["scripted", "real"]', tools or "scripted"),
        entry.key.span,
    )


def _similar(fields: TestFields, entry: Entry) -> dict[str, Value]:
    node = fields.mapping(entry, "similar")
    if node is None:
        return {}
    entries = fields.keys(node, "cases.-.live.similar", "similar")
    if "to" not in entries:
        fields.missing("similar needs a text to compare with", node, entries, "write {to: TEXT, least: 0.7}")
        return {}
    least = fields.number(one, "least", 1) if (one := entries.get("least")) else None
    return {"to": fields.text(entries["to"], "to") or "", "least": 0.7 if least is None else least}


def _judge(fields: TestFields, entry: Entry) -> Judge | None:
    entries: Entries = {"rubric": entry}
    if isinstance(entry.value, Mapping):
        entries = fields.keys(entry.value, "cases.-.live.judge", "judge")
        if "rubric" not in entries:
            fields.missing("judge needs a rubric", entry.value, entries, "write {rubric: FILE}")
            return None
    rubric = entries["rubric"]
    text = fields.text(rubric, "rubric")
    return Judge(text, entry.value.span) if text and fields.path(text, "the path", visible(rubric)) else None
