"""Items in words: the files behind their ids, their signatures, limits, models, bounds and first messages.

The folders are listed once for each state of the workspace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from quire.engine.premises import THREAD_LIMITS
from quire.errors import QuireError
from quire.lsp.answers import code, fenced, kind_word
from quire.lsp.bounds import with_price
from quire.lsp.directive.elements import LIMIT_MEANINGS
from quire.lsp.directive.tags import scan
from quire.lsp.prompts import prompt_text_of
from quire.lsp.tool_arguments import properties_of, required_in
from quire.patterns import late_pattern
from quire.plan.built_in_tools import built_in_tool
from quire.plan.vocabulary import CONTROL, INTEGER_LIMITS, LIMIT_ALIASES, LIMITS
from quire.wording import cut_line
from quire.workspace.secrets import shown_model

if TYPE_CHECKING:
    from quire.library.items import Entry, ItemType
    from quire.library.registered import Registered
    from quire.lsp.answers import Name, NameKind
    from quire.lsp.desk import Folder
    from quire.lsp.directive.tags import Tagged
    from quire.lsp.document_view import View
    from quire.values import Value


KINDS: dict[str, NameKind] = {
    "directive": "directive",
    "knowledge": "knowledge",
    "pipeline": "pipeline",
    "playbook": "document",
}
"""The kind of name for each type of item that is a file."""

_OPEN = late_pattern(r"[{}$<>*?\[\]]|\.\.\.|…")
_LISTED: WeakKeyDictionary[Folder, dict[str, dict[str, Entry]]] = WeakKeyDictionary()


def entries(folder: Folder, item_type: str) -> dict[str, Entry]:
    """Return the items of a type by their ids; empty if the workspace cannot be read."""
    listed = _LISTED.setdefault(folder, {})
    if item_type not in listed:
        listed[item_type] = _read(folder, item_type)
    return listed[item_type]


def _read(folder: Folder, item_type: str) -> dict[str, Entry]:
    if item_type not in KINDS or folder.library is None:
        return {}
    kind: ItemType = item_type  # type: ignore[assignment]  # one of the keys of KINDS
    try:
        return {entry.id: entry for entry in folder.library.spaces.entries(kind)}
    except (QuireError, OSError):
        return {}


def entry_of(folder: Folder, item_type: str, item_id: str) -> Entry | None:
    """Return the item that an id means: by its whole id, else by a bare name that only one item has. Pipelines have no
    bare names."""
    item_id = item_id.strip()
    if not item_id or item_type not in KINDS or not is_static(item_id):
        return None
    listed = entries(folder, item_type)
    if item_id in listed:
        return listed[item_id]
    if "/" in item_id or item_type == "pipeline":
        return None
    named = [entry for entry in listed.values() if entry.name == item_id]
    return named[0] if len(named) == 1 else None


def path_of_item(folder: Folder, item_type: str, item_id: str) -> str:
    """Return the absolute path of the file of an item; empty if there is none."""
    entry = entry_of(folder, item_type, item_id)
    return os.path.abspath(entry.path) if entry else ""  # noqa: PTH100


def ancestors(view: View) -> Iterator[tuple[str, View]]:
    """Yield the directives that a directive extends, the nearest first, each with the id that names it."""
    root, paths = scan(view.source.text).root, {view.path}
    while root and (item_id := root.value("extends")):
        path = path_of_item(view.folder, "directive", item_id)
        parent = view.folder.view(path) if path and path not in paths else None
        if parent is None:
            return
        paths.add(path)
        yield item_id, parent
        root = scan(parent.source.text).root


def pipeline_called(folder: Folder, item_id: str) -> Registered | None:
    """Return the registered pipeline that an id means; None if there is none."""
    try:
        return folder.snapshot.registry().pipelines.get(item_id.strip()) if folder.snapshot is not None else None
    except QuireError:
        return None


def permitted_pipeline(folder: Folder, pattern: str) -> str:
    """Return the id of the pipeline that a permission means, in which dots may stand for slashes; empty if it means
    none, or more than one by a wildcard."""
    listed = entries(folder, "pipeline") if is_static(pattern) else {}
    dotted = pattern.replace("/", ".")
    return pattern if pattern in listed else next((item for item in listed if item.replace("/", ".") == dotted), "")


def is_static(item_id: str) -> bool:
    """Tell whether an id is spelled out: it has no reference and no wildcard in it."""
    return bool(item_id) and not _OPEN.search(item_id)


def id_of(path: str) -> str:
    """Return the id of a file below `.ai/directives` or `.ai/knowledge`; empty for another file."""
    parts = PurePath(path).with_suffix("").parts if PurePath(path).name else ()
    at = max((at for at, part in enumerate(parts) if part == ".ai"), default=-1)
    return "/".join(parts[at + 2 :]) if at >= 0 and len(parts) > at + 2 else ""


def signature_words(view: View) -> str:
    """Return `signed by ada`, `not signed`, or what is wrong; `built in` for an item of Quire. The text that the editor
    has counts, so an edited item counts as changed."""
    from quire.library.document_state import trusted_keys
    from quire.library.items import BUILT_IN_FOLDER, is_genuine
    from quire.trust.sign_file import signable
    from quire.trust.signatures import Verification

    settings = view.folder.settings
    path = Path(view.path)
    if path.is_relative_to(BUILT_IN_FOLDER):
        return "built in" if is_genuine(path, view.source.text) else "built in, but changed"
    if settings is None:
        return "not known: the settings cannot be read"
    try:
        item = signable(path, settings.workspace.folder)
    except QuireError as error:
        return str(error)
    keys = trusted_keys(settings)
    if isinstance(keys, str):
        return "not known: the trusted keys cannot be read"
    verdict = item.verify(view.source.text, keys)
    if verdict.ok:
        key = keys.find(verdict.key_id)
        return f"signed by {key.name}" if key and key.name else "signed"
    words = {
        Verification.UNSIGNED: "not signed",
        Verification.MODIFIED: "changed since it was signed",
        Verification.UNTRUSTED: "signed with a key that you do not trust",
        Verification.REVOKED: "signed with a key that is revoked",
        Verification.MISPLACED: "signed for another place",
    }
    return words.get(verdict.outcome, "its signature is not valid")


_LONGEST = 300


def item_markdown(view: View, name: Name) -> str:
    """Return title, place and signature of an item that a name means."""
    head = f"**{kind_word(name.kind)}** {code(name.text)}"
    home = view.folder.view(name.document) if name.document else None
    if home is None:
        is_open = any(sign in name.text for sign in "{$*")
        return f"{head}\n\n" + ("Its id is filled in when the hook acts." if is_open else "It does not exist.")
    lines = [f"{head}\n", f"- {code(view.folder.shown(name.document))}"]
    if text := described(home):
        lines.insert(1, f"{text}\n")
    if home.format in ("directive", "knowledge"):
        lines.append(f"- {signature_words(home)}")
    if inputs := _inputs(home):
        lines.append(f"- inputs: {inputs}")
    return "\n".join(lines)


def described(home: View) -> str:
    """Return what a document says about itself."""
    if home.format == "knowledge":
        title = home.reading.metadata.get("title")
        return cut_line(title, _LONGEST) if isinstance(title, str) else ""
    if home.format == "directive":
        description = scan(home.source.text).below("metadata", "description")
        return cut_line(" ".join(description.text[0].split()), _LONGEST) if description else ""
    return cut_line(home.plan.description or home.plan.title, _LONGEST) if home.plan else ""


def _inputs(home: View) -> str:
    inputs = home.reading.partial.inputs if home.format == "directive" else home.plan.inputs if home.plan else ()
    return ", ".join(code(input.name) + (" (required)" if input.required else "") for input in inputs if input.name)


def parameter_markdown(view: View, name: Name) -> str:
    """Return the declaration of an input or an output, of this directive or of one that it calls."""
    home = view.folder.view(name.document) if name.document else view
    where = f" of {code(view.folder.shown(name.document))}" if name.document else ""
    head = f"**{name.kind}** {code(name.text)}{where}"
    if home is None or home.format != "directive":
        return head
    directive = home.reading.partial
    parameters = directive.inputs if name.kind == "input" else directive.outputs
    parameter = next((candidate for candidate in parameters if candidate.name == name.text), None)
    if parameter is None:
        return f"{head}\n\nIt is not declared."
    facts = [code(parameter.type), "required" if parameter.required else "optional"]
    if parameter.default is not None:
        facts.append(f"default {code(parameter.default)}")
    text = " ".join(parameter.description.split())
    return f"{head} — {', '.join(facts)}" + (f"\n\n{cut_line(text, _LONGEST)}" if text else "")


def tool_markdown(item_id: str) -> str:
    """Return description and arguments of a tool; only the name of a tool of a server is known."""
    if item_id == CONTROL:
        return f"**tool** {code(item_id)}\n\nDecides how the thread continues. It needs no permission."
    tool = built_in_tool(item_id)
    if tool is None:
        if item_id.startswith("mcp/"):
            return f"**tool** {code(item_id)}\n\nA tool of an MCP server, which is not started to ask about it."
        return f"**tool** {code(item_id)}"
    lines = [f"**tool** {code(tool.id)}, also {code(tool.name)}", "", tool.description, "", f"- class: {tool.effect}"]
    return "\n".join([*lines, *schema_lines(tool.schema)])


def schema_lines(schema: Mapping[str, Value]) -> list[str]:
    """Return the arguments of a schema, one a line."""
    lines, needed = [], required_in(schema)
    for name, about in properties_of(schema).items():
        type, text = about.get("type"), about.get("description")
        words = [str(type)] if isinstance(type, str) else []
        words += [f"one of {', '.join(map(str, choices))}"] if isinstance(choices := about.get("enum"), list) else []
        words += ["required"] if name in needed else []
        meaning = f" — {text}" if isinstance(text, str) else ""
        lines.append(f"- {code(name)}" + (f" ({', '.join(words)})" if words else "") + meaning)
    return lines


_PER_CALL = ("spawns", "depth")


def effective_limits(view: View) -> tuple[dict[str, object], set[str]]:
    """Return the limits that count, and the names of those that the directive itself sets. Values that are not numbers
    count as not set."""
    from quire.formats.directive.lower import limits

    declared = limits(view.reading.partial)
    own = {
        name: value
        for name, value in declared.items()
        if name in LIMITS and (isinstance(value, int | float) or name == "spend_currency")
    }
    return {**THREAD_LIMITS, **own}, set(own)


def limit_markdown(name: str, value: str) -> str:
    """Return what a limit means, and what happens when it is reached."""
    from quire.formats.directive.syntax import limit_problem

    canonical = LIMIT_ALIASES.get(name, name)
    lines = [f"**limit** {code(canonical)} — {LIMIT_MEANINGS.get(canonical, '')}", ""]
    if value and (problem := limit_problem(name, value)):
        lines.append(f"- the value {problem}")
    if canonical in _PER_CALL:
        lines.append("- when it is reached: the call that would start another thread fails, and the model is told")
    elif canonical != "spend_currency":
        lines.append(
            "- when it is reached: the run ends with exit code 5; `quire resume RUN --limit "
            f"{canonical}=…` continues it, and a hook on `limit` may ask a person"
        )
    lines.append(f"- without it: {amount(canonical, THREAD_LIMITS[canonical])}")
    if canonical in INTEGER_LIMITS:
        lines.append("- a whole number")
    return "\n".join(lines)


def limits_markdown(view: View) -> str:
    """Return the limits that count, as a table to be put behind the meaning of the element."""
    effective, own = effective_limits(view)
    rows = [
        f"| {code(name)} | {amount(name, effective[name])} | {'the directive' if name in own else 'default'} |"
        for name in LIMITS
        if name != "spend_currency"
    ]
    return "\n\n| limit | counts | from |\n| --- | --- | --- |\n" + "\n".join(rows)


def amount(name: str, value: object) -> str:
    """Return the value of a limit as people read it."""
    if name == "spend" and isinstance(value, int | float):
        return f"${value:,.2f}"
    if isinstance(value, int | float):
        return f"{value:,}"
    return str(value)


def model_words(view: View, tag: Tagged) -> tuple[str, str]:
    """Return the model that `<model>` stands for here, and why; an empty name if that is only known when it runs."""
    from quire.library.survey import model_here

    settings = view.folder.settings
    if settings is None:
        return "", "the settings of the workspace cannot be read"
    attributes = {attribute.name: attribute.value.strip() for attribute in tag.attributes}
    try:
        choice = model_here(attributes, settings, os.environ)
    except QuireError as error:
        return "", str(error)
    return shown_model(choice.spec), choice.reason


def model_markdown(view: View, tag: Tagged) -> str:
    name, reason = model_words(view, tag)
    return f"\n\nHere: {code(name)} ({reason})" if name else f"\n\nHere: {reason}"


LONGEST_PROMPT = 8_000
"""Characters of a prompt in a hover. The command that shows prompts gives all of it."""


def prompt_markdown(view: View) -> str:
    """Return the hover of a directive as a whole."""

    name = id_of(view.path)
    lines = [f"**directive** {code(name)}" if name else "**directive**", f"- {signature_words(view)}"]
    if bound := bound_words(view):
        lines.append(f"- {with_price(view, bound)}")
    return "\n".join(lines) + "\n\n" + _prompt(view)


def bound_words(view: View) -> str:
    """Return the bound of a run in one line, without its price; empty if nothing is known."""
    from quire.analysis.quantities import quantities
    from quire.display.preflight_line import preflight_line

    proof = view.proof
    if proof is None:
        return ""
    return preflight_line(quantities(proof, view.folder.foresight.world("").premises), {})


def _prompt(view: View) -> str:
    try:
        text = prompt_text_of(view, "")
    except QuireError as error:
        return f"The first message is not known: {error}"
    cut = text[:LONGEST_PROMPT] + ("\n…" if len(text) > LONGEST_PROMPT else "")
    return "The first messages, with stand-ins for values that only a run knows:\n\n" + fenced(cut)
