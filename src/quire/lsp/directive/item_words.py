"""Items: the files behind their ids, their signatures, and what a directive says of them in words.

The folders are listed once for each state of the workspace. Nothing is verified here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from quire.errors import QuireError
from quire.lsp.directive.tags import scan
from quire.lsp.markdown import code
from quire.patterns import late_pattern
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.wording import cut_line

if TYPE_CHECKING:
    from quire.library.items import Entry, ItemType
    from quire.library.registered import Registered
    from quire.lsp.answers import Name, NameKind
    from quire.lsp.folders import Folder
    from quire.lsp.views import View
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
    known = entries(folder, item_type)
    if item_id in known:
        return known[item_id]
    if "/" in item_id or item_type == "pipeline":
        return None
    named = [entry for entry in known.values() if entry.name == item_id]
    return named[0] if len(named) == 1 else None


def path_of_item(folder: Folder, item_type: str, item_id: str) -> str:
    """Return the absolute path of the file of an item; empty if there is none."""
    found = entry_of(folder, item_type, item_id)
    return os.path.abspath(found.path) if found else ""  # noqa: PTH100


def pipeline_called(folder: Folder, item_id: str) -> Registered | None:
    """Return the registered pipeline that an id means; None if there is none."""
    try:
        return folder.snapshot.registry().pipelines.get(item_id.strip()) if folder.snapshot is not None else None
    except QuireError:
        return None


def permitted_pipeline(folder: Folder, pattern: str) -> str:
    """Return the id of the pipeline that a permission means, in which dots may stand for slashes; empty if it means
    none, or more than one by a wildcard."""
    known = entries(folder, "pipeline") if is_static(pattern) else {}
    dotted = pattern.replace("/", ".")
    return pattern if pattern in known else next((one for one in known if one.replace("/", ".") == dotted), "")


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
    match verdict.outcome:
        case Verification.UNSIGNED:
            return "not signed"
        case Verification.MODIFIED:
            return "changed since it was signed"
        case Verification.UNTRUSTED:
            return "signed with a key that you do not trust"
        case Verification.REVOKED:
            return "signed with a key that is revoked"
        case Verification.MISPLACED:
            return "signed for another place"
    return "its signature is not valid"


_LONGEST = 300


def item_markdown(view: View, name: Name) -> str:
    """Return title, place and signature of an item that a name means."""
    kind = "playbook" if name.kind == "document" else name.kind
    head = f"**{kind}** {code(name.text)}"
    home = view.folder.view(name.document) if name.document else None
    if home is None:
        known = any(sign in name.text for sign in "{$*")
        return f"{head}\n\n" + ("Its id is filled in when the hook acts." if known else "It is in no space.")
    lines = [f"{head}\n", f"- {code(_shown(view, name.document))}"]
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
        found = scan(home.source.text).below("metadata", "description")
        return cut_line(" ".join(found.text[0].split()), _LONGEST) if found else ""
    try:
        plan = home.document.plan if home.document else None
    except QuireError:
        return ""
    return cut_line(plan.description or plan.title, _LONGEST) if plan else ""


def _inputs(home: View) -> str:
    if home.format == "directive":
        inputs = home.reading.partial.inputs
        return ", ".join(code(one.name) + (" (required)" if one.required else "") for one in inputs if one.name)
    plan = home.document.plan if home.document and home.format != "knowledge" else None
    return ", ".join(code(one.name) + (" (required)" if one.required else "") for one in plan.inputs) if plan else ""


def _shown(view: View, path: str) -> str:
    home = str(view.folder.path)
    return path[len(home) + 1 :] if path.startswith(f"{home}/") else path


def parameter_markdown(view: View, name: Name) -> str:
    """Return the declaration of an input or an output, of this directive or of one that it calls."""
    home = view.folder.view(name.document) if name.document else view
    where = f" of {code(_shown(view, name.document))}" if name.document else ""
    head = f"**{name.kind}** {code(name.text)}{where}"
    if home is None or home.format != "directive":
        return head
    directive = home.reading.partial
    known = directive.inputs if name.kind == "input" else directive.outputs
    found = next((one for one in known if one.name == name.text), None)
    if found is None:
        return f"{head}\n\nIt is not declared."
    facts = [code(found.type), "required" if found.required else "optional"]
    if found.default is not None:
        facts.append(f"default {code(found.default)}")
    text = " ".join(found.description.split())
    return f"{head} — {', '.join(facts)}" + (f"\n\n{cut_line(text, _LONGEST)}" if text else "")


def tool_markdown(item_id: str) -> str:
    """Return description and arguments of a tool; what is known of a tool of a server is its name alone."""
    from quire.plan.vocabulary import CONTROL

    if item_id == CONTROL:
        return f"**tool** {code(item_id)}\n\nDecides how the thread goes on. It needs no permission."
    tool = next((one for one in BUILT_IN_TOOLS if one.id == item_id), None)
    if tool is None:
        if item_id.startswith("mcp/"):
            return f"**tool** {code(item_id)}\n\nA tool of an MCP server, which is not started to ask about it."
        return f"**tool** {code(item_id)}"
    lines = [f"**tool** {code(tool.id)}, also {code(tool.name)}", "", tool.description, "", f"- class: {tool.effect}"]
    return "\n".join([*lines, *schema_lines(tool.schema)])


def schema_lines(schema: Mapping[str, Value]) -> list[str]:
    """Return the arguments of a schema, one a line."""
    properties, required = schema.get("properties"), schema.get("required")
    needed = required if isinstance(required, list | tuple) else ()
    if not isinstance(properties, Mapping):
        return []
    found = []
    for name, one in properties.items():
        about = one if isinstance(one, Mapping) else {}
        type, text = about.get("type"), about.get("description")
        words = [str(type)] if isinstance(type, str) else []
        words += [f"one of {', '.join(map(str, choices))}"] if isinstance(choices := about.get("enum"), list) else []
        words += ["required"] if name in needed else []
        said = f" — {text}" if isinstance(text, str) else ""
        found.append(f"- {code(name)}" + (f" ({', '.join(words)})" if words else "") + said)
    return found
