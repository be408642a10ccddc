"""Show hovers in a test file, and the results of the last run above and inside of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quire.errors import QuireError
from quire.formats.test.fields import description_of, words_at
from quire.lsp.answers import Hint, Hover, Lens, code, fenced, paragraphs
from quire.lsp.desk import uri_of
from quire.lsp.prompts import prompt_text_of
from quire.lsp.test.cursor_places import Place, place_at
from quire.lsp.test.index import ITEM, Role, below_world, key_role, value_role
from quire.lsp.test.tested import TestedDocument, tested
from quire.plan.descriptions import instead_of_model, step_name
from quire.source import Span, line_end
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.lsp.document_tests import CaseRecord, CheckMark
    from quire.lsp.document_view import View

LONGEST_PROMPT = 3_000
_STEPS = ("model step", "person step", "step")
_READ = re.compile(r"\b(inputs|named|stores|outputs)\.([A-Za-z_][A-Za-z0-9_]*)")
_READ_ROLES: Mapping[str, Role] = {"inputs": "input", "named": "named", "stores": "store", "outputs": "output"}


def hover(view: View, offset: int) -> Hover | None:
    """Return what is known about the place under the cursor."""
    text = view.source.text
    place = place_at(text, offset, whole=True)
    if place.kind == "text" or not place.word.holds(offset):
        return None
    word = place.word.of(text).strip()
    document = tested(view)
    about = _expression(document, text, place, offset) if place.tag == "!expr" else ""
    about = about or (_value(document, place.path, word) if place.kind == "value" else _key(document, place, word))
    result = _result(view, offset)
    whole = paragraphs(about, result)
    return Hover(place.word, whole) if whole else None


def _key(document: TestedDocument, place: Place, word: str) -> str:
    if not word:
        return ""
    path = (*place.path, word)
    role = key_role(place.path)
    if role is not None and (text := name_text(document, role, word, place.path)):
        return text
    if place.path[-1:] == (ITEM,) and (text := _value(document, place.path, word)):
        return text
    description = description_of(path)
    if not description:
        return ""
    words = words_at(path)
    one_of = f"\n\nOne of {', '.join(map(code, words))}." if len(words) > 1 else ""
    return f"**{word}**\n\n{description}{one_of}"


def _value(document: TestedDocument, path: tuple[str, ...], word: str) -> str:
    role = value_role(path)
    if role in ("document", "tool", *_STEPS) and role is not None:
        return name_text(document, role, word, path)
    if word in words_at(path):
        description = description_of(path) or description_of(path[:-1])
        return f"**{path[-1]}**: {code(word)}\n\n{description}"
    return ""


def _expression(document: TestedDocument, text: str, place: Place, offset: int) -> str:
    for match in _READ.finditer(text, place.word.start, place.word.end):
        if match.start() <= offset <= match.end():
            return name_text(document, _READ_ROLES[match[1]], match[2], place.path)
    return ""


def name_text(document: TestedDocument, role: Role, name: str, path: tuple[str, ...]) -> str:
    """Return what is known about a name of the tested document, as Markdown; empty if nothing is."""
    match role:
        case "input":
            return input_text(document, name)
        case "model step" | "person step" | "step":
            return step_text(document, name)
        case "named" | "store" | "output":
            return _value_text(document, name)
        case "tool":
            return tool_text(document, name)
        case "argument":
            return _argument_text(document, name, path)
        case "document":
            return _document_text(document)
        case "hook" if name in document.hooks:
            return f"**hook {code(name)}** of {_file(document)}"
    return ""


def input_text(document: TestedDocument, name: str) -> str:
    schema = document.inputs.get(name)
    if schema is None:
        return ""
    kind = schema.get("type")
    return paragraphs(
        f"**input {code(name)}** of {_file(document)}",
        f"Type: {code(kind)}" if isinstance(kind, str) else "",
        "One of " + ", ".join(code(str(word)) for word in schema["enum"]) if "enum" in schema else "",
        f"Default: {code(str(schema['default']))}" if "default" in schema else "",
        str(schema.get("description", "")),
        "It is needed." if name in document.required else "",
    )


def step_text(document: TestedDocument, label: str) -> str:
    """Return the step with a label: its title, its work, and the messages that its model would get."""
    step = document.step(label)
    if step is None:
        return ""
    title = step_name(step)
    asks = step.work is not None and step.work.asks_model
    lines = [f"**step {code(label)}** {title}".rstrip(), f"in {_file(document)}"]
    if step.ask is not None:
        lines.append(f"It asks a person ({step.ask.kind}).")
    if step.capture is not None and title != step.capture.name:
        lines.append(f"Its result is named {code(step.capture.name)}.")
    if not asks and step.ask is None:
        lines.append(f"It asks no model: {instead_of_model(step)}.")
    prompt = _prompt(document, label) if asks else ""
    return paragraphs(*lines, fenced(prompt) if prompt else "")


def _prompt(document: TestedDocument, label: str) -> str:
    try:
        text = prompt_text_of(document.view, label) if document.view is not None else ""
    except QuireError:
        return ""
    return text if len(text) <= LONGEST_PROMPT else text[:LONGEST_PROMPT] + " …"


def tool_text(document: TestedDocument, name: str) -> str:
    """Return the arguments of a tool, if they are known without starting anything."""
    facts = document.tool(name)
    if facts is None:
        unknown = "Its arguments are known to its server or module, which is not started here."
        return f"**tool {code(name)}**\n\n{unknown}"
    again = f"Calling it again: {facts.effect}." if facts.effect else ""
    arguments = "\n".join(f"- {_parameter(facts.schema, argument)}" for argument in facts.schema.get("properties", {}))
    return paragraphs(f"**tool {code(name)}**", facts.description, again, arguments)


def _parameter(schema: Mapping[str, Any], name: str) -> str:
    facts = schema["properties"][name]
    kind = f" ({facts['type']})" if isinstance(facts.get("type"), str) else ""
    needed = ", needed" if name in schema.get("required", ()) else ""
    description = str(facts.get("description", ""))
    return f"{code(name)}{kind}{needed}" + (f": {description}" if description else "")


def _argument_text(document: TestedDocument, name: str, path: tuple[str, ...]) -> str:
    """Return an argument of a tool whose script is at this path; the tool of a call is not known by the path."""
    below = below_world(path) or ()
    tool = below[1] if below[:1] == ("tools",) and len(below) > 1 else ""
    facts = document.tool(tool) if tool else None
    return _parameter(facts.schema, name) if facts and name in facts.schema.get("properties", {}) else ""


def _value_text(document: TestedDocument, name: str) -> str:
    if name not in document.values:
        return input_text(document, name)
    lines = [f"**{code(name)}** is made by {_file(document)}"]
    if words := document.values[name]:
        lines.append("One of " + ", ".join(map(code, words)))
    if document.plan is not None:
        makers = [step.label for _, step in document.plan.steps() if step.capture and step.capture.name == name]
        if makers:
            lines.append(f"Written by step {', '.join(map(code, makers))}.")
    return "\n\n".join(lines)


def _document_text(document: TestedDocument) -> str:
    if document.document is None:
        return ""
    head = f"**{_file(document)}**, a {document.format}"
    if document.plan is None:
        return paragraphs(head, "It has errors, so its tests cannot run.")
    return paragraphs(head, document.plan.title, document.plan.description)


def _file(document: TestedDocument) -> str:
    return code(Path(document.path).name)


def _result(view: View, offset: int) -> str:
    """Return the result of the last run at a place: of an expectation, or of a whole case at its name."""
    record = view.folder.test_memory.of_test(view)
    if record is None:
        return ""
    for case in record.cases:
        for mark in case.marks:
            if mark.start <= offset <= mark.end:
                verdict = "✓ held in the last run" if mark.holds else f"✗ {mark.message}"
                return f"{verdict}\n\n{fenced(mark.value)}" if mark.value else verdict
    symbol = next((symbol for symbol in view.index.symbols if symbol.selection.holds(offset)), None)
    cases = (case for case in record.cases if symbol is not None and case.name == symbol.name)
    return next(map(case_text, cases), "")


def case_text(case: CaseRecord) -> str:
    """Return the result of a case as Markdown."""
    if case.failed:
        return "\n".join(["✗ failed in the last run", "", *(f"- {code(message)}" for message in case.messages)])
    if case.others and not case.passed:
        return f"not counted in the last run: {case.reason}" if case.reason else "skipped in the last run"
    return f"✓ passed in the last run, in {case.seconds * 1000:.0f} ms"


UPDATE = "quire.updateSnapshots"
"""Done by the client in a terminal (`quire test --update PATH::CASE`), because it writes a file."""
_SNAPSHOT = "!snapshot"


def lenses(view: View) -> list[Lens]:
    """Return the lenses. Running costs nothing; the numbers of the last results are added to the first one."""
    symbols = view.index.symbols
    if not symbols:
        return []
    uri = uri_of(view.path)
    lenses = [Lens(Span(0, 0), "Run all", "quire.test", (uri,))]
    record = view.folder.test_memory.of_test(view)
    failed = {case.name for case in record.cases if case.failed} if record else set()
    passed = {case.name for case in record.cases if case.passed and not case.failed} if record else set()
    text = view.source.text
    for symbol in symbols:
        if not symbol.name:
            continue
        sign = " ✗" if symbol.name in failed else " ✓" if symbol.name in passed else ""
        lenses.append(Lens(symbol.selection, f"Run case{sign}", "quire.test", (uri, symbol.name)))
        if text.find(_SNAPSHOT, symbol.span.start, symbol.span.end) >= 0:
            lenses.append(Lens(symbol.selection, "Update snapshot", UPDATE, (uri, symbol.name)))
    return lenses


LONGEST_VALUE = 40


def hints(view: View, span: Span) -> list[Hint]:
    """Return the results of cases that were run with this text and with the document as it is now."""
    record = view.folder.test_memory.of_test(view)
    if record is None:
        return []
    hints: list[Hint] = []
    cases = {case.name: case for case in record.cases}
    for symbol in view.index.symbols:
        case = cases.get(symbol.name)
        if case is None or symbol.span.start > span.end or symbol.span.end < span.start:
            continue
        hints.append(
            Hint(line_end(view.source.text, symbol.selection.end), _result_label(case), tooltip=case_text(case))
        )
        hints += [_check_hint(view, mark) for mark in case.marks]
    return hints


def _result_label(case: CaseRecord) -> str:
    if case.failed:
        rows = case.passed + case.failed
        return "✗" if rows == 1 else f"✗ {case.failed} of {rows} rows"
    if case.others and not case.passed:
        return "skipped" if not case.messages else "✗ as expected"
    return f"✓ {case.seconds * 1000:.0f} ms"


def _check_hint(view: View, mark: CheckMark) -> Hint:
    value = cut_line(" ".join(mark.value.split()), LONGEST_VALUE)
    if mark.holds and value != mark.value:
        value = ""  # a long text, such as a prompt, that is as it should be
    tooltip = mark.message if not mark.holds else ""
    if value != mark.value:
        tooltip = f"{tooltip}\n\n{fenced(mark.value)}".strip()
    sign = "✓" if mark.holds else "✗"
    return Hint(min(mark.end, line_end(view.source.text, mark.start)), f"{sign} {value}".rstrip(), tooltip=tooltip)
