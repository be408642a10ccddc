"""Read steps: the structure that all kinds share, and the keys of each kind by their roles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, assert_never

from quire.formats.near_names import word_fix
from quire.formats.pipeline import language, syntax
from quire.formats.pipeline.codes import errors as codes
from quire.formats.pipeline.dialect_keys import DialectKeys
from quire.formats.pipeline.fields import ADD_DIALECT, Fields, TargetReader
from quire.formats.pipeline.syntax import Name, Step, StepsBody, Target
from quire.formats.yaml import FILE, Entry, Mapping, Node, Scalar, Sequence, describe, label_of, named, text_of
from quire.plan.pipeline_work import ForEach, Parallel
from quire.wording import did_you_mean, quoted

if TYPE_CHECKING:
    from quire.formats.pipeline.language import Key, Kind

Entries = dict[str, Entry]
_ROWS = {row.name: row for row in language.KINDS}


class StepReader:
    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self.lost: list[Step] = []
        """Steps that a hole replaces, as far as they could be read, and those inside of one that could not."""
        self._inside: list[Step] = []
        self._nested = 0
        self._fans = 0
        self._dialect = DialectKeys(fields)
        self._targets = TargetReader(fields)
        self._special: dict[str, Callable[[Entries], syntax.Body | None]] = {
            "agent": self._agent,
            "call": self._call,
            "steps": self._steps,
            "fail": self._dialect.fail,
        }
        """Bodies that are not read key by key."""

    def step(self, node: Node, where: str) -> Step:
        """Read a step; `where` says which step it is, for messages.

        A step with a mistake of its own gets a hole as its body; a step that only contains such a step keeps its body.
        The YAML reader's limit on depth bounds the recursion.
        """
        diagnostics, nested = self._fields.diagnostics, self._nested
        before, began = len(diagnostics), len(self._inside)
        step = self._read(node, where)
        reported = len(diagnostics) - before
        own = reported - (self._nested - nested)
        self._nested = nested + reported
        inside = self._inside[began:]
        del self._inside[began:]
        if own or step is None:
            self.lost += [step] if step else inside
            step = _hole(node, step)
        self._inside.append(step)
        return step

    def _read(self, node: Node, where: str) -> Step | None:
        entry = self._kind(node, where)
        if entry is None:
            return None
        kind, body = entry.key.text, entry.value
        if kind == "steps" and isinstance(body, Sequence):
            return Step(kind, StepsBody(self.block(entry)), None, entry.key.span)
        if not isinstance(body, Mapping):
            help = _written(kind)
            if isinstance(node, Mapping) and len(node.entries) > 1:
                help = f"indent the keys of {kind} further than {kind} itself"
            message = f"{kind} needs a mapping of its keys, not {describe(body)}"
            self._fields.report(codes.BODY, message, entry.visible, help)
            return None
        entries = self._fields.entries(
            body, language.kinds(self._fields.dialect)[kind], kind, codes.KEY, language.MORE_KEYS[kind]
        )
        for key in language.NEEDED[kind]:
            if key not in entries:
                fix = self._fields.key_fix(body, key, _USUAL[key]) if kind == "for_each" and key in _USUAL else None
                message = f"{kind} needs the key {key}"
                self._fields.report(codes.MISSING, message, entry.key.span, language.WHY.get(key, ""), fix)
        if kind == "stop" and self._fans:
            message = "stop would end the whole pipeline while its other items or branches are under way"
            help = "stop after the for_each or parallel; the value of an item is the result of its last step"
            self._fields.report(codes.STOP_IN_FAN, message, entry.key.span, help)
        special = self._special.get(kind)
        made = special(entries) if special else self._by_roles(_ROWS[kind], entries)
        guard = self._dialect.guard(kind, entries)
        output = self._name(entries, "output", "the name of a variable (output)")
        title = self._dialect.title(entries)
        return Step(kind, made, output, entry.key.span, guard, title) if made else None

    def _kind(self, node: Node, where: str) -> Entry | None:
        """Return the entry that names the kind of a step."""
        report, known = self._fields.report, language.kinds(self._fields.dialect)
        if not isinstance(node, Mapping) or not node.entries:
            what = "an empty mapping" if isinstance(node, Mapping) else describe(node)
            text = text_of(node)
            help = _written(text) if text in known else _ONE if isinstance(node, Sequence) else _SHAPE
            report(codes.STEP, f"{where} is a mapping with one key, its kind, not {what}", node.span, help)
            return None
        kinds_written = [entry for entry in node.entries if entry.key.value in known]
        for extra in kinds_written[1:]:
            message = f"{extra.key.text} is a second kind in one step, beside {kinds_written[0].key.text}"
            report(codes.STEP, message, extra.key.span, "begin a new step with - ")
        if kinds_written:
            if len(kinds_written) > 1:
                return None
            self._beside(kinds_written[0], node)
            return kinds_written[0]
        first = node.entries[0].key
        named_kind = text_of(node.get("kind") or node.get("type"))
        if first.text in language.DIALECT_KINDS and not self._fields.dialect:
            report(codes.KIND, f"{first.text} steps belong to the Quire dialect", first.span, ADD_DIALECT)
            return None
        meant = (language.MEANT_IN_DIALECT if self._fields.dialect else language.MEANT).get(first.text.lower())
        help = did_you_mean(meant) or self._fields.suggestion(first.text, known)
        if first.text.lower() in ("if", "when"):
            help = "did you mean match? A step may have a condition of its own, when: EXPR, with dialect: quire"
        if named_kind in known:
            help = f"the kind is the key itself: {_written(named_kind)}"
        message = f"{quoted(first.text)} is not a kind of step"
        fix = word_fix(first.text, known, first.span) if len(node.entries) == 1 and help else None
        report(codes.KIND, message, first.span, help or f"the kinds are {', '.join(known)}", fix)
        return None

    def _beside(self, kind: Entry, node: Mapping) -> None:
        """Report keys beside the kind: most often they belong to its body and are not indented far enough."""
        name = kind.key.text
        for entry in node.entries:
            if entry is kind:
                continue
            text = quoted(entry.key.text)
            help = _SHAPE
            if entry.key.value in language.ALL_KINDS[name]:
                help = f"{text} belongs to the body of {name}: indent it further than {name}"
            self._fields.report(codes.STEP, f"{text} stands beside {name}; a step has one key", entry.key.span, help)

    def _name(self, entries: Entries, key: str, what: str) -> Name | None:
        return self._fields.name(entries[key], what) if key in entries else None

    def _by_roles(self, row: Kind, entries: Entries) -> syntax.Body | None:
        """Read each key of a body by its role; None if one that is needed could not be read."""
        values: dict[str, Any] = {}
        for key in language.BODY_KEYS[row.body]:
            in_fan = key.name in ("do", "branches") and row.node in (ForEach, Parallel)
            self._fans += in_fan
            if key.name in entries:
                values[key.field or key.name] = self._value(key, entries, values)
            self._fans -= in_fan
        if any(key.needed and not values.get(key.field or key.name) for key in language.BODY_KEYS[row.body]):
            return None
        if "sees_loops" in row.body.__struct_fields__:
            values["sees_loops"] = self._fields.dialect
        required = row.body.__struct_fields__[: -len(row.body.__struct_defaults__) or None]
        written = {name: value for name, value in values.items() if value is not None}
        fields: dict[str, Any] = {**dict.fromkeys(required), **written}
        return row.body(**fields)

    def _value(self, key: Key, entries: Entries, values: dict[str, Any]) -> object:
        """Read the value of a key. `values` are those of the keys before it."""
        entry, fields = entries[key.name], self._fields
        match key.role:
            case "expression" if key.inner and key.name == "default":
                return self._dialect.fan_default(entries, values.get("on_error"))
            case "expression":
                return fields.expression(entry, key.name)
            case "argument" | "command":
                return fields.argument(entry.value)
            case "arguments":
                return self._arguments(entry)
            case "items":
                return self._items(entry, entries)
            case "tool":
                name = fields.text(entry, "the name of a tool")
                return Name(name, entry.value.span) if name else None
            case "variables":
                return self._dialect.variables(entry)
            case "schema":
                return fields.name(entry, "the name of a schema")
            case "step":
                return self.step(entry.value, key.name)
            case "branches":
                return self._branches(entry)
            case "cases":
                return self._cases(entry)
            case "choice":
                return self._otherwise(entry)
            case "number":
                return self._dialect.count(entry, key.name, key.most)
            case "flag":
                return self._dialect.flag(entry, key.name)
            case "word":
                return self._dialect.on_max(entry)
            case "policy":
                return self._dialect.on_error(entry)
            case "identity":
                return fields.name(entry, "an identity")
            case "tools":
                return self._capabilities(entry)
            case "steps":
                return self.block(entry)
            case "prompt" | "model" | "store" | "target" | "passes" | "duration":
                raise TypeError(f"{key.name} is read together with other keys, by a function for its kind of step")
            case _:
                assert_never(key.role)

    def _arguments(self, entry: Entry) -> tuple[tuple[Name, syntax.Argument], ...]:
        if isinstance(entry.value, Scalar) and entry.value.value is None:
            return ()
        if not isinstance(entry.value, Mapping):
            message = f"args must be a mapping of names to values, not {describe(entry.value)}"
            self._fields.report(codes.VALUE, message, entry.value.span)
            return ()
        arguments = []
        for name, part in named(entry.value, self._fields.diagnostics):
            value = self._fields.argument(part.value)
            if value is not None:
                arguments.append((Name(name, part.key.span), value))
        return tuple(arguments)

    def _agent(self, entries: Entries) -> syntax.AgentBody | None:
        prompt, is_file = self._prompt(entries["prompt"]) if "prompt" in entries else (None, False)
        identity = self._name(entries, "identity", "an identity")
        tools = self._capabilities(entries["capabilities"]) if "capabilities" in entries else None
        schema = self._name(entries, "schema", "the name of a schema")
        settings = self._dialect.agent(entries)
        return syntax.AgentBody(prompt, identity, tools, schema, is_file, settings) if prompt else None

    def _prompt(self, entry: Entry) -> tuple[syntax.Text | None, bool]:
        """Read a prompt: its text, or the name of its file, and whether it is one."""
        node = entry.value
        if not isinstance(node, Scalar) or node.tag != FILE:
            return self._fields.placed_text(entry, "prompt"), False
        return self._dialect.prompt_file(entry, node), True

    def _capabilities(self, entry: Entry) -> tuple[Name, ...]:
        node = entry.value
        report = self._fields.report
        if not isinstance(node, Mapping):
            message = f"capabilities must be a mapping with the key tools, not {describe(node)}"
            report(codes.VALUE, message, entry.visible, "write {tools: [NAME, …]}")
            return ()
        entries = self._fields.entries(node, ("tools",), "capabilities", codes.KEY)
        if "tools" not in entries:
            report(codes.MISSING, "capabilities needs the key tools, a list of tool names", entry.key.span)
            return ()
        tools = entries["tools"].value
        if not isinstance(tools, Sequence):
            message = f"tools of capabilities must be a list of tool names, not {describe(tools)}"
            report(codes.VALUE, message, entries["tools"].visible)
            return ()
        names = []
        for item in tools.items:
            text = self._fields.text(Entry(entry.key, item), "a name in tools of capabilities")
            if text is not None:
                names.append(Name(text, item.span))
        return tuple(names)

    def _call(self, entries: Entries) -> syntax.CallBody | None:
        target = self._targets.of(entries)
        return syntax.CallBody(target) if target else None

    def _cases(self, entry: Entry) -> tuple[tuple[Name, Target | StepsBody], ...]:
        node = entry.value
        cases = []
        if isinstance(node, Mapping) and node.entries:
            labels: dict[str, Entry] = {}
            for case in node.entries:
                label = label_of(case.key)
                if labels.setdefault(label, case) is not case:
                    message = f"the label {quoted(label)} is here twice: labels are compared as text"
                    self._fields.report(codes.LABEL, message, case.key.span, _LABELS)
                target = self._target(case, f"the case {quoted(label)}")
                if target:
                    cases.append((Name(label, case.key.span), target))
        else:
            what = "empty" if isinstance(node, Mapping) else describe(node)
            message = f"cases must be a mapping of labels to targets with at least one entry, not {what}"
            self._fields.report(codes.VALUE, message, entry.visible)
        return tuple(cases)

    def _target(self, entry: Entry, what: str) -> Target | StepsBody | None:
        """Read a target: a pipeline, or in the Quire dialect a block of steps."""
        block = entry.value.find("steps") if isinstance(entry.value, Mapping) else None
        if block is None or not isinstance(entry.value, Mapping):
            return self._targets.nested(entry, what)
        if not self._fields.dialect:
            message = f"{what}: steps in place of a pipeline belong to the Quire dialect"
            self._fields.report(codes.KEY, message, block.key.span, ADD_DIALECT)
            return None
        self._fields.entries(entry.value, ("steps",), what, codes.KEY)
        steps = self.block(block)
        return StepsBody(steps) if steps else None

    def _otherwise(self, entry: Entry) -> Target | StepsBody | syntax.ExpressionText | None:
        """Read the `default` of a match: a target, or in the Quire dialect also the value itself, an expression."""
        if self._fields.dialect and isinstance(entry.value, Scalar) and entry.value.value is not None:
            return self._fields.expression(entry, "default")
        return self._target(entry, "default")

    def block(self, entry: Entry) -> tuple[Step, ...]:
        """Read a list of steps; empty if there is none."""
        node = entry.value
        if isinstance(node, Sequence) and node.items:
            return tuple(self.step(item, "a step") for item in node.items)
        what = "empty" if isinstance(node, Sequence) else describe(node)
        message = f"{entry.key.text} must be a list of at least one step, not {what}"
        help = "each step begins with - " if isinstance(node, Mapping) else ""
        self._fields.report(codes.VALUE, message, entry.visible, help)
        return ()

    def _steps(self, entries: Entries) -> StepsBody | None:
        steps = self.block(entries["do"]) if "do" in entries else ()
        return StepsBody(steps, flat=False) if steps else None

    def _items(self, entry: Entry, entries: Entries) -> syntax.Literal | None:
        if "over" in entries:
            message = "over and items exclude each other: the list comes from one of them"
            self._fields.report(codes.SOURCE, message, entry.key.span, "leave one of the two out")
        node = entry.value
        if not isinstance(node, Sequence):
            message = f"items must be a list of literals, not {describe(node)}"
            help = "over takes an expression" if isinstance(node, Scalar) and node.text else ""
            self._fields.report(codes.VALUE, message, entry.visible, help)
            return None
        listed = self._fields.argument(node)
        return listed if isinstance(listed, syntax.Literal) else None

    def _branches(self, entry: Entry) -> tuple[tuple[Name, Step], ...]:
        branches = []
        node = entry.value
        if isinstance(node, Mapping) and node.entries:
            for _, branch in named(node, self._fields.diagnostics):
                name = self._fields.name_of(branch.key, "the name of a branch")
                step = self.step(branch.value, f"the branch {quoted(branch.key.text)}")
                if name:
                    branches.append((name, step))
        else:
            what = "empty" if isinstance(node, Mapping) else describe(node)
            message = f"branches must be a mapping of names to steps with at least one entry, not {what}"
            self._fields.report(codes.VALUE, message, entry.visible)
        return tuple(branches)


def _written(kind: str) -> str:
    """Say how a step of a kind is written."""
    return f"write {kind}: {{{(language.NEEDED[kind] or ('value',))[0]}: …}}"


def _hole(node: Node, step: Step | None) -> Step:
    """Return a step whose body could not be read. Its output is taken from any place where it may have been meant."""
    output = step.output if step else None
    kind, span = (step.kind, step.span) if step else ("transform", node.span)
    places = [node, *(entry.value for entry in node.entries)] if isinstance(node, Mapping) else []
    for place in places:
        value = place.get("output") if isinstance(place, Mapping) and output is None else None
        text = text_of(value) if value is not None else None
        if value is not None and text is not None and syntax.is_name(text):
            output = Name(text, value.span)
    return Step(kind, syntax.HOLE, output, span)


_USUAL = {"on_error": "abort", "collect": "{transform: {value: pipe}}"}
"""Values of keys that a fix adds to a `for_each`."""
_ONE = "one step stands here, without a -; several of them are a block of the Quire dialect: {steps: […]}"
_SHAPE = "a step is written KIND: {…}, with all its keys inside"
_LABELS = "true is the text True, null is None, and 3 is 3"
