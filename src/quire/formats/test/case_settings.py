"""Read the world of a case (inputs, model, tools, answers, files and the rest), and complete it with the defaults."""

from __future__ import annotations

from collections.abc import Mapping as AnyMapping
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from quire.formats.test import codes
from quire.formats.test.fields import TestFields, keys_of
from quire.formats.test.scripts import ModelReader, ToolReader
from quire.formats.test.syntax import FileContent, GivenAnswer, Script, Setting, ToolScript
from quire.formats.yaml import Entry, Mapping, Node, Scalar, Sequence
from quire.plan.vocabulary import typed_way
from quire.wording import quoted

if TYPE_CHECKING:
    from quire.formats.test.scripts import Entries
    from quire.source import Span

_PLACED = ("inputs", "model", "tools", "answers", "files", "limits", "config")
"""The keys whose entries have positions of their own."""
_T = TypeVar("_T")


class SettingReader:
    """Reads settings. With `shared` they are the defaults, and a case does not have to use them."""

    def __init__(self, fields: TestFields, *, shared: bool = False) -> None:
        self.fields = fields
        self.shared = shared
        self._model = ModelReader(fields, shared=shared)
        self._tools = ToolReader(fields, shared=shared)

    def setting(self, entries: Entries) -> Setting:
        """Read the keys of a setting; other keys are left alone."""
        fields, get = self.fields, entries.get
        return Setting(
            inputs=fields.values(entry, "inputs") if (entry := get("inputs")) else {},
            model=self.model(entry) if (entry := get("model")) else None,
            tools=self.tools(entry) if (entry := get("tools")) else {},
            answers=self.answers(entry) if (entry := get("answers")) else {},
            files=self.files(entry) if (entry := get("files")) else {},
            allow=fields.texts(entry, "allow") if (entry := get("allow")) else None,
            limits=fields.values(entry, "limits") if (entry := get("limits")) else {},
            config=fields.values(entry, "config") if (entry := get("config")) else {},
            unattended=fields.flag(entry, "unattended") if (entry := get("unattended")) else None,
            clock=self._clock(entry) if (entry := get("clock")) else "",
            cassette=self._cassette(entry) if (entry := get("cassette")) else None,
            spans=_spans(entries),
        )

    def model(self, entry: Entry) -> Script | None:
        return self._model.model(entry)

    def tools(self, entry: Entry) -> dict[str, ToolScript]:
        return self._tools.tools(entry)

    def answers(self, entry: Entry) -> dict[str, tuple[GivenAnswer, ...]]:
        node = self.fields.mapping(entry, "answers", "write the label of the step before its answer")
        if node is None:
            return {}
        by_step: dict[str, tuple[GivenAnswer, ...]] = {}
        for label, answer_entry in self.fields.named(node, "the label of a step"):
            value = answer_entry.value
            parts = value.items if isinstance(value, Sequence) else (value,)
            answers = (self._answer(part, answer_entry) for part in parts)
            by_step[typed_way(label)] = tuple(answer for answer in answers if answer is not None)
        return by_step

    def _answer(self, node: Node, entry: Entry) -> GivenAnswer | None:
        fields = self.fields
        if not isinstance(node, Mapping):
            text = self._spoken(node, entry)
            return None if text is None else GivenAnswer(text, span=node.span, shared=self.shared)
        entries = fields.keys(node, "cases.-.answers.STEP", "an answer")
        if "answer" not in entries:
            fields.missing("the answer is missing", node, entries, "write {answer: …}")
            return None
        text = self._spoken(entries["answer"].value, entries["answer"])
        after = fields.duration(entries["after"], "after") if "after" in entries else None
        by = (fields.text(entries["by"], "by") if "by" in entries else "") or ""
        return None if text is None else GivenAnswer(text, after, by, node.span, self.shared)

    def _spoken(self, node: Node, entry: Entry) -> str | None:
        """Return an answer as a person types it."""
        if isinstance(node, Scalar) and not node.tag and node.value is not None:
            if isinstance(node.value, bool):
                return "yes" if node.value else "no"
            return node.text
        self.fields.wrong("an answer", "text", node, entry.visible if node is entry.value else None)
        return None

    def files(self, entry: Entry) -> dict[str, FileContent]:
        node = self.fields.mapping(entry, "files", "write the path of each file before its text")
        if node is None:
            return {}
        contents = {path: self._file(path, part) for path, part in self.fields.named(node, "the path of a file")}
        return {path: content for path, content in contents.items() if content is not None}

    def _file(self, path: str, entry: Entry) -> FileContent | None:
        fields, node = self.fields, entry.value
        if not fields.path(path, "the path", entry.key.span):
            return None
        if isinstance(node, Mapping):
            entries = fields.keys(node, "cases.-.files.PATH", "a file")
            if "file" not in entries:
                fields.missing("the file to copy is missing", node, entries, "write {file: PATH}")
                return None
            name = fields.text(entries["file"], "file")
            if name is None or not fields.path(name, "the path", entries["file"].visible):
                return None
            return FileContent(copy_of=name, span=node.span)
        if isinstance(node, Scalar) and node.value is None and not node.tag:
            return FileContent(span=entry.key.span)
        text = fields.text(entry, "the text of a file", empty=True)
        return None if text is None else FileContent(text, span=node.span)

    def _clock(self, entry: Entry) -> str:
        from datetime import datetime  # Few tests need it.

        text = self.fields.text(entry, "clock")
        try:
            if text is not None:
                datetime.fromisoformat(text)
        except ValueError:
            message = f"clock must be a moment such as 2026-01-31T09:00:00Z, not {quoted(text or '')}"
            self.fields.report(codes.SYNTAX, message, entry.visible)
        return text or ""

    def _cassette(self, entry: Entry) -> str | bool | None:
        node = entry.value
        if isinstance(node, Scalar) and isinstance(node.value, bool):
            return node.value
        text = self.fields.text(entry, "cassette")
        return text if text is not None and self.fields.path(text, "the path", entry.visible) else None


def _spans(entries: Entries) -> dict[str, Span]:
    spans: dict[str, Span] = {}
    for key in keys_of("defaults"):
        entry = entries.get(key)
        if entry is None:
            continue
        spans[key] = entry.key.span
        if key in _PLACED and isinstance(entry.value, Mapping):
            for part in entry.value.entries:
                name = typed_way(part.key.text) if key in ("model", "answers") else part.key.text
                spans[f"{key}.{name}"] = part.key.span
    return spans


MOST_MERGED = 1_000_000


class Defaults:
    """The defaults of a file. `complete` gives a case the parts that it does not have itself."""

    def __init__(self, fields: TestFields, setting: Setting) -> None:
        self._fields = fields
        self._base = setting
        self._merged = 0

    def complete(self, own: Setting, span: Span) -> Setting:
        base = self._base
        if self._merged > MOST_MERGED:
            return own
        setting = Setting(
            inputs=self._both(base.inputs, own.inputs),
            model=self._script(base.model, own.model),
            tools=self._both(base.tools, own.tools),
            answers=self._both(base.answers, own.answers),
            files=self._both(base.files, own.files),
            allow=base.allow if own.allow is None else own.allow,
            limits=self._both(base.limits, own.limits),
            config=self._both(base.config, own.config),
            unattended=base.unattended if own.unattended is None else own.unattended,
            clock=own.clock or base.clock,
            cassette=base.cassette if own.cassette is None else own.cassette,
            spans=self._both(base.spans, own.spans),
        )
        if self._merged > MOST_MERGED:
            message = "the defaults have too many entries for the number of cases"
            self._fields.report(codes.SYNTAX, message, span, "move cases, or large inputs, to another file")
        return setting

    def _both(self, base: AnyMapping[str, _T], own: AnyMapping[str, _T]) -> AnyMapping[str, _T]:
        if not base or not own:
            return own or base
        self._merged += len(base)
        return {**base, **own}

    def _script(self, base: Script | None, own: Script | None) -> Script | None:
        """Merge two mappings step by step. A list replaces everything."""
        if base is None or own is None or not (base.by_step and own.by_step):
            return base if own is None else own
        self._merged += len(base.entries)
        steps = {(entry.step, entry.is_default) for entry in own.entries}
        entries = (entry for entry in base.entries if (entry.step, entry.is_default) not in steps)
        return replace(own, entries=(*entries, *own.entries))
