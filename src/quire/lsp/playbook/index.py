"""The names and parts of a playbook: its outline, its own names, those of other things, and the rules for new ones."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from quire.lsp.answers import Index, Link, Name, NameKind, Symbol
from quire.lsp.languages import function
from quire.lsp.name_targets import CalledDocument, pipeline_names
from quire.lsp.playbook.layout import ASKED, Part, Section, layout_of, steps_of
from quire.lsp.playbook.tools import (
    OWN,
    called_by_tool,
    json_texts,
    prompt_path,
    read_tool,
)
from quire.patterns import late_pattern
from quire.source import PLACEHOLDER, Span

if TYPE_CHECKING:
    from quire.formats.playbook.syntax import (
        Arm,
        InputDeclaration,
        ModelChoice,
        Playbook,
        PromptReference,
        Step,
        ToolCall,
    )
    from quire.lsp.document_view import View


def outline(view: View, tree: Playbook) -> tuple[Symbol, ...]:
    """Return the parts of a playbook in the order of its text."""
    layout = layout_of(view)
    parts = {part.heading.start: part for part in layout.parts}
    symbols = [_section_symbol(section, tree) for section in layout.sections if section.kind]
    ends = [marker.line.start() for marker in layout.markers if marker.word == "endif"]
    symbols += [_step_symbol(step, parts, ends) for step in tree.steps if step.start in parts]
    return tuple(sorted(symbols, key=lambda symbol: symbol.span.start))


def arm_words(arm: Arm) -> str:
    """Return an arm in words: `depth == "thorough"`, or `else`."""
    condition = arm.condition
    return f'{condition.variable} {condition.operator} "{condition.value}"' if condition else "else"


def work_words(step: Step) -> str:
    """Return the work of a step in short words."""
    words: list[str] = []
    if step.tool:
        words.append(f"calls {step.tool.connection}/{step.tool.tool}")
    elif step.elicitation:
        words.append("asks a person")
    if not step.tool and (step.has_text or step.prompt):
        words.append("asks a model")
    result = f" → {step.output.name}" if step.output else ""
    return ", ".join(words) + result


def input_words(declared: InputDeclaration) -> str:
    """Return the type of an input in words: `enum: a, b`, `string = Go`."""
    if declared.options:
        return f"{declared.type}: {', '.join(declared.options)}"
    return declared.type if declared.default is None else f"{declared.type} = {declared.default}"


def _section_symbol(section: Section, tree: Playbook) -> Symbol:
    children: tuple[Symbol, ...] = ()
    if section.kind == "inputs":
        # The inputs are in the order of the text.
        first = bisect_left(tree.inputs, section.start, key=attrgetter("start"))
        last = bisect_left(tree.inputs, section.end, key=attrgetter("start"))
        children = tuple(
            Symbol(declared.name, "input", declared.span, declared.name_span, input_words(declared))
            for declared in tree.inputs[first:last]
        )
    return Symbol(section.name, "element", Span(section.start, section.end), section.heading, "", children)


def _step_symbol(step: Step, parts: dict[int, Part], ends: list[int]) -> Symbol:
    part = parts[step.start]
    arms = []
    for number, arm in enumerate(step.arms):
        if number + 1 < len(step.arms):
            end = step.arms[number + 1].start
        else:
            at = bisect_left(ends, arm.end)
            end = ends[at] if at < len(ends) and ends[at] < part.end else part.end
        arms.append(_arm_symbol(arm, max(end, arm.end), parts))
    return Symbol(_name(step), "step", Span(part.start, part.end), part.heading, work_words(step), tuple(arms))


def _arm_symbol(arm: Arm, end: int, parts: dict[int, Part]) -> Symbol:
    children = []
    for step in arm.steps:
        part = parts.get(step.start)
        span = Span(part.start, part.end) if part else Span(step.start, max(step.start, step.end))
        children.append(Symbol(_name(step), "step", span, part.heading if part else span, work_words(step)))
    word = "" if arm.condition is None else "if "
    return Symbol(word + arm_words(arm), "branch", Span(arm.start, end), arm.span, "", tuple(children))


def _name(step: Step) -> str:
    return f"STEP {step.label}: {step.title}" if step.title else f"STEP {step.label}"


def references(view: View, step: Step, names: list[Name], links: list[Link]) -> None:
    """Add the names and links of one step."""
    if step.tool:
        _tool(view, step.tool, names, links)
    if step.prompt:
        _prompt(view, step.prompt, names, links)
    if step.model:
        names.append(_model(view, step.model))


def _tool(view: View, call: ToolCall, names: list[Name], links: list[Link]) -> None:
    written = read_tool(view.source.text, call.start, call.end - 1)
    if written is None or written.tool_span is None:
        return
    names.append(Name("server", call.connection, written.connection_span, "reads", renames=False))
    callee = called_by_tool(view, call.tool) if call.connection == OWN else None
    if callee is None:
        names.append(Name("tool", call.tool, written.tool_span, "reads", call.connection, renames=False))
        return
    if callee.kind == "pipeline":
        names += pipeline_names(call.tool, written.tool_span, callee.declared, callee.path)
    else:
        names.append(Name(callee.kind, call.tool, written.tool_span, "reads", "", callee.path, renames=False))
    links.append(Link(written.tool_span, callee.path, f"Open {call.tool}"))
    if written.arguments is not None:
        names += _passed(view, callee, written.arguments, call.end - 1)


def _passed(view: View, callee: CalledDocument, start: int, end: int) -> list[Name]:
    """Return the inputs of a called document that a call gives values to."""
    text = view.source.text
    return [
        Name("input", key.span.of(text), key.span, "writes", callee.scope, callee.path)
        for key in json_texts(text, start, end)
        if key.is_key and key.depth == 1
    ]


def _prompt(view: View, prompt: PromptReference, names: list[Name], links: list[Link]) -> None:
    scheme, colon, where = prompt.ref.partition(":")
    if not colon:
        return
    end = prompt.end - 1
    span = Span(end - len(where), end)
    if scheme == "mcp":
        server = where.partition("/")[0]
        names.append(Name("server", server, Span(span.start, span.start + len(server)), "reads", renames=False))
        return
    path = prompt_path(view, prompt.ref)
    if path:
        kind: NameKind = "file" if scheme == "file" else "prompt"
        names.append(Name(kind, where, span, "reads", document=path, renames=False))
        links.append(Link(span, path, "Open the prompt"))


def _model(view: View, choice: ModelChoice) -> Name:
    """Return the name of a profile or a tier. One that the workspace's own settings declare belongs to them."""
    settings = view.folder.settings
    kind: NameKind = "agent" if settings is not None and choice.name in settings.agents else "model"
    file = view.folder.settings_file
    is_known = settings is not None and (kind == "agent" or choice.name in settings.models.tiers)
    toml = view.folder.view(file) if is_known else None
    is_declared = toml is not None and choice.name in toml.source.text
    document = file if is_declared else ""
    return Name(kind, choice.name, choice.name_span, "reads", document=document, renames=is_declared)


_WORD = late_pattern(r"[A-Za-z0-9_]++")
_COMMENT = late_pattern(r"<!--[ \t]*+quire:")
_IN_STEP = late_pattern(r"\bin[ \t]++step[ \t]++([0-9]++[a-z]?+)(?![0-9A-Za-z])")


def index(view: View) -> Index:
    """Return the names, parts and links of a playbook, as far as it can be read."""
    tree = tree_of(view)
    if tree is None:
        return Index()
    names = [*own_names(view, tree)]
    links: list[Link] = []
    for step in steps_of(tree):
        if step.tool or step.prompt or step.model:
            references(view, step, names, links)
    names.sort(key=lambda name: (name.span.start, name.span.end))
    return Index(tuple(names), outline(view, tree), tuple(links))


def tree_of(view: View) -> Playbook | None:
    """Return the tree of a playbook as far as it can be read; None for a text that is empty or too large."""
    tree: Playbook | None = view.reading.partial if view.format == "playbook" else None
    return tree


class KnownNames:
    """The kind of thing that a name means in one playbook."""

    def __init__(self, tree: Playbook) -> None:
        self.inputs = {declared.name for declared in tree.inputs}
        self.outputs = {step.output.name for step in steps_of(tree) if step.output}
        self.labels = {step.label for step in steps_of(tree)}

    def kind(self, name: str) -> NameKind:
        """Return the kind of a value. An input wins over an output; a name of nothing counts as an input, because that
        is what an author would add."""
        if name not in self.inputs and (name in self.outputs or name.startswith(ASKED)):
            return "output"
        return "input"

    def is_known(self, name: str) -> bool:
        if name.startswith(ASKED):
            return name.removeprefix(ASKED) in self.labels
        return name in self.inputs or name in self.outputs


def own_names(view: View, tree: Playbook) -> Iterator[Name]:
    """Yield the names of things of the document itself."""
    names, source = KnownNames(tree), view.source
    for declared in tree.inputs:
        yield Name("input", declared.name, declared.name_span, "declares")
    starts = {step.start for step in steps_of(tree)}
    for part in layout_of(view).parts:
        if part.heading.start in starts:
            yield Name("step", part.label, part.label_span, "declares")
    for step in steps_of(tree):
        yield from _step_names(step, names)
        for condition in (arm.condition for arm in step.arms if arm.condition):
            yield from value(condition.variable, condition.variable_start, names)
    if tree.artifact:
        for match in PLACEHOLDER.finditer(source.text, tree.artifact.start, tree.artifact.end):
            yield from value(match[1], match.start(1), names)
        if tree.artifact.source:
            yield _result(tree.artifact.source, tree.artifact.source_span, names)
    for comment in comments(source.text, tree.title_start):
        if named := _IN_STEP.search(source.text, comment.start, comment.end):
            yield Name("step", named[1], Span(*named.span(1)), "reads")


def comments(text: str, end: int) -> Iterator[Span]:
    """Yield the comments before an offset that begin with `quire:`. One without its end goes to the end of its line."""
    at = stop = 0
    while opening := _COMMENT.search(text, at, end):
        if stop < opening.end():
            stop = text.find("\n", opening.end(), end)
            stop = end if stop < 0 else stop
        close = text.find("-->", opening.end(), stop)
        at = stop if close < 0 else close + len("-->")
        yield Span(opening.start(), at)


def _step_names(step: Step, names: KnownNames) -> Iterator[Name]:
    for place in step.placeholders:
        yield from value(place.name, place.start + 2, names)
    if step.output:
        yield Name("output", step.output.name, step.output.name_span, "writes")
    if step.elicitation:
        at = step.elicitation.start + 1
        for label in dict.fromkeys((step.label, str(step.number))):
            yield Name("output", ASKED + label, Span(at, at + len("elicit")), "writes", renames=False)
    if step.context:
        for word in _WORD.finditer(step.document, step.context.start + len("@context("), step.context.end - 1):
            if step.context.names:
                yield _result(word[0], Span(*word.span()), names)


def value(name: str, start: int, names: KnownNames) -> Iterator[Name]:
    """Yield the name of a value that is read. In the name of an answer, the label of the step is a name too."""
    span = Span(start, start + len(name))
    is_answer = name.startswith(ASKED) and name not in names.inputs and name not in names.outputs
    yield Name(names.kind(name), name, span, "reads", renames=not is_answer)
    label = name.removeprefix(ASKED)
    if is_answer and label in names.labels:
        yield Name("step", label, Span(span.end - len(label), span.end), "reads")


def _result(name: str, span: Span, names: KnownNames) -> Name:
    """Return the name of an earlier result: an output, or the label of a step."""
    if name in names.outputs or name.startswith(ASKED):
        return Name("output", name, span, "reads", renames=not name.startswith(ASKED))
    return Name("step", name, span, "reads")


_VALUE = late_pattern(r"[A-Za-z][A-Za-z0-9_]*")
_STEP = late_pattern(r"[1-9][0-9]{0,8}")
_SUBSTEP = late_pattern(r"[0-9]+[a-z]")
_PIPELINE = late_pattern(r"[A-Za-z_][A-Za-z0-9_-]*")
_UNQUOTED = late_pattern(r"[A-Za-z0-9_.-]++")
_HYPHENATED_WORD = late_pattern(r"[A-Za-z0-9_-]+")


def name_problem(view: View, name: Name, new: str) -> str:
    """Return why a name cannot be changed to another one; empty if it can. The thing may belong to another document."""
    if name.document and name.document != view.path:
        home = view.folder.view(name.document)
        if home is not None and home.format and home.format != "playbook":
            rule = function(home.format, "naming", "name_problem")
            return str(rule(home, name, new)) if rule else _plain(name, new)
        view = home or view
    tree = tree_of(view)
    if tree is None or new == name.text:
        return ""
    if name.kind in ("input", "output"):
        return _value(tree, name, new)
    return _label(tree, name.text, new) if name.kind == "step" else _plain(name, new)


def can_stand(view: View, name: Name, new: str) -> bool:
    """Tell whether a call can have a new name: a slash needs quotes."""
    quoted = view.source.text[name.span.start - 1 : name.span.start] == '"'
    return quoted or _UNQUOTED.fullmatch(new) is not None


def _plain(name: Name, new: str) -> str:
    """Return the problem of a name whose rules are not known here."""
    pattern = _PIPELINE if name.kind == "pipeline" else _HYPHENATED_WORD
    return "" if pattern.fullmatch(new) else f"{new!r} is not a name: use letters, digits, - and _"


def _value(tree: Playbook, name: Name, new: str) -> str:
    if not _VALUE.fullmatch(new):
        return f"{new!r} is not a name: use letters, digits and _, and begin with a letter"
    if new.startswith(ASKED):
        return f"names that begin with {ASKED} are those of answers"
    names = KnownNames(tree)
    if new in names.inputs:
        return f"an input is named {new} already"
    if new in names.outputs:
        return f"an output is named {new} already"
    if new in names.labels:
        return f"{new} is the label of a step"
    if name.kind == "input" and name.text in names.outputs:
        return f"an output is named {name.text} too: {{{{{name.text}}}}} would mean it from then on"
    read = any(new == placeholder.name for step in steps_of(tree) for placeholder in step.placeholders)
    return f"{{{{{new}}}}} is read already, and nothing sets it yet: it would be filled in" if read else ""


def _label(tree: Playbook, old: str, new: str) -> str:
    """Return the problem of a new label. A step with sub-steps keeps its number, because theirs begin with it."""
    labels = {step.label for step in steps_of(tree)}
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
    return f"unknown step {old}"
