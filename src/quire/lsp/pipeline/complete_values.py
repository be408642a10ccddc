"""Complete values that are not expressions: schemas, targets, tools and their arguments, agents, models, words.

A target is the name of a pipeline, `KEY.NAME`, or the last part of the name of a playbook or a directive in a folder. A
document that calls this pipeline, at any depth, is not offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import QuireError
from quire.expr import ExprSyntaxError, parse, python_text
from quire.formats.pipeline.syntax import is_name
from quire.formats.pipeline.walks import targets, walk
from quire.library.registered import PIPELINES_FOLDER
from quire.lsp.answers import Completion
from quire.lsp.name_targets import MOST_READ, CallCircles
from quire.lsp.pipeline.index import interface_of
from quire.lsp.pipeline.scopes import names_at
from quire.lsp.pipeline.tree import cursor_place, file_of, is_dialect, item_at, part_at, pipeline_at
from quire.lsp.tool_arguments import meaning_of, properties_of
from quire.plan.built_in_tools import BUILT_IN_TOOLS
from quire.schema import Enum, Kind, Simple, refs
from quire.source import Span, real_path

if TYPE_CHECKING:
    from quire.library.snapshot import Snapshot
    from quire.lsp.document_view import View
    from quire.lsp.pipeline.tree import YamlPlace
    from quire.lsp.yaml_scan import CursorPlace


_WORDS: dict[str, tuple[str, ...]] = {
    "dialect": ("quire",),
    "on_max": ("fail", "keep"),
    "check": ("false", "true"),
    "text": ("true", "false"),
    "required": ("false", "true"),
    "type": ("string", "number", "bool", "enum", "list", "object", "ref"),
}
_POLICIES = ("abort", "continue", "retry(2)")
_MOST_FILES = 200
_SCHEMA = re.compile(r"""^schema:[ ]*["']?([\w-]+)""", re.MULTILINE)
_NAME = re.compile(r"""\bname:[ ]*["']?([\w./-]+)""")
_PIPELINE = re.compile(r"""\bpipeline:[ ]*["']?([\w./-]+)""")


def complete_value(view: View, offset: int, place: CursorPlace, parent: YamlPlace, key: str) -> list[Completion]:
    """Return the values that a key can have."""
    span = Span(place.start, offset)
    if place.tag == "!file" or (key == "prompt" and place.text.startswith("!")):
        return _files(view, offset, place) if place.tag else _tags(span, ("!file",))
    if parent.kind in ("body", "field") and key == "schema":
        return _schemas(view, span, inside=parent.kind == "field")
    if key == "pipeline" and parent.kind in ("body", "target"):
        return _targets(view, span)
    if parent.kind == "body" and key == "name":
        return _tools(view, span)
    if parent.kind == "body" and key == "identity":
        settings = view.folder.settings
        names = ["default", *(settings.agents if settings is not None else ())]
        return [Completion(name, "reference", span=span) for name in dict.fromkeys(names)]
    if parent.kind == "body" and key == "model":
        snapshot = view.folder.snapshot
        names = sorted(map(str, snapshot.models())) if snapshot is not None else []
        return [Completion(name, "reference", span=span) for name in names]
    if parent.kind == "body" and key == "on_error":
        more = ('"retry(2), continue"',) if is_dialect(view, offset) and not place.quote else ()
        return [Completion(word, "value", span=span) for word in (*_POLICIES, *more)]
    if parent.kind == "args":
        return [*_argument_values(view, offset, key, span), *_tags(span, ("!expr",))]
    if parent.kind == "body" and key in ("command", "stdin", "cwd", "message"):
        return _tags(span, ("!expr",))
    if parent.kind == "body" and key == "prompt" and not place.text:
        return _tags(span, ("!file",))
    return [Completion(word, "value", span=span) for word in _WORDS.get(key, ())]


def complete_item(view: View, offset: int, place: CursorPlace, where: YamlPlace) -> list[Completion]:
    """Return the items that a list can have."""
    span = Span(place.start, offset)
    if where.kind == "pass":
        return passed_names(view, offset, place, span, mapping=False)
    if where.kind == "tools":
        return _tools(view, span)
    return []


def _tags(span: Span, tags: tuple[str, ...]) -> list[Completion]:
    about = {"!expr": "The value is an expression.", "!file": "The prompt is in a file."}
    return [
        Completion(tag, "keyword", f'{tag} "$1"' if tag == "!expr" else f"{tag} $1", True, about[tag], span=span)
        for tag in tags
    ]


def _schemas(view: View, span: Span, *, inside: bool) -> list[Completion]:
    """Return the schemas of the file; `inside` of one of them, only those that do not contain it."""
    schemas = {schema.name: ", ".join(field.name for field in schema.fields) for schema in file_of(view).schemas}
    for name in re.findall(r"^schema:[ ]*([\w-]+)", view.source.text, re.MULTILINE):
        schemas.setdefault(name, "")
    around = _SCHEMA.search(view.source.text, part_at(view, span.start).start, span.start) if inside else None
    here = around[1] if around else ""
    return [
        Completion(name, "class", detail=about, span=span, resolve=f"schema:{name}")
        for name, about in schemas.items()
        if not (here and _contains(view, name, here))
    ]


def _contains(view: View, name: str, inner_name: str) -> bool:
    """Tell whether a schema is another one, or has a field of its type at any depth."""
    schemas = {schema.name: schema for schema in file_of(view).schemas}
    reached, left = {name}, [name]
    while left:
        current = left.pop()
        if current == inner_name:
            return True
        inner = {ref.schema for ref in refs(schemas[current])} - reached if current in schemas else set()
        reached |= inner
        left += inner
    return False


def _targets(view: View, span: Span) -> list[Completion]:
    completions = []
    for name, format, about in target_names(view, span.end):
        order, page = 4 if format == "pipeline" else 5, f"target:{name}"
        completions.append(Completion(name, "module", detail=about or format, order=order, span=span, resolve=page))
    return completions


def _tools(view: View, span: Span) -> list[Completion]:
    completions = [
        Completion(tool.name, "function", detail=tool.description, span=span, resolve=f"tool:{tool.name}")
        for tool in BUILT_IN_TOOLS
    ]
    settings = view.folder.settings
    return completions + [
        Completion(f"{server}__", "module", detail=f"A tool of the server {server}.", order=6, span=span)
        for server in (settings.servers if settings is not None else ())
    ]


def _files(view: View, offset: int, place: CursorPlace) -> list[Completion]:
    """Return the files below the folder of the document that may hold a prompt."""
    folder = Path(view.path).parent
    head, _, last = place.text.rpartition("/")
    if ".." in head.split("/") or head.startswith(("/", "~")):
        return []
    span = Span(offset - len(last), offset)
    completions: list[Completion] = []
    try:
        for path in sorted((folder / head).iterdir())[:_MOST_FILES]:
            if path.name.startswith("."):
                continue
            if path.is_dir():
                completions.append(Completion(f"{path.name}/", "folder", order=6, span=span))
            elif path.suffix in (".md", ".txt", ".prompt"):
                completions.append(Completion(path.name, "file", order=4, span=span))
    except OSError:
        return []
    return completions


def nearest_name(view: View, offset: int, pattern: re.Pattern[str]) -> str:
    """Return the name that the step or the target around an offset gives: the last one before it, else the next."""
    part = part_at(view, offset)
    item = item_at(part, offset)
    if item is None:
        return ""
    before = pattern.findall(view.source.text, item.start, offset)
    if before:
        return str(before[-1])
    after = pattern.search(view.source.text, offset, item.end)
    return after[1] if after else ""


def tool_schema(view: View, offset: int) -> tuple[str, Mapping[str, object]]:
    """Return the tool of the step around an offset, and the schema of its arguments; empty if it is not known."""
    snapshot = view.folder.snapshot
    tool = nearest_name(view, offset, _NAME)
    schema = snapshot.parameters(tool) if snapshot is not None and tool else None
    return tool, schema if schema is not None else {}


def argument_names(view: View, offset: int, place: CursorPlace, span: Span) -> list[Completion]:
    """Return the arguments that the tool of a step takes."""
    completions = []
    for name, about in properties_of(tool_schema(view, offset)[1]).items():
        if name not in place.keys:
            insert = f"{name}: $1"
            completions.append(Completion(name, "property", insert, True, meaning_of(about), order=2, span=span))
    return completions


def _argument_values(view: View, offset: int, key: str, span: Span) -> list[Completion]:
    about = properties_of(tool_schema(view, offset)[1]).get(key, {})
    values = about.get("enum") or ([True, False] if about.get("type") == "boolean" else [])
    shown = [
        str(value).lower() if isinstance(value, bool) else str(value)
        for value in values
        if isinstance(value, str | bool)
    ]
    return [Completion(word, "enum", order=1, span=span) for word in shown]


def passed_names(view: View, offset: int, place: CursorPlace, span: Span, *, mapping: bool) -> list[Completion]:
    """Return the names to pass: the inputs of the called document, and in a list also the stores of the caller."""
    name = nearest_name(view, offset, _PIPELINE)
    interface = interface_of(view, name) if name else None
    inputs = list(interface.known or interface.required) if interface is not None else []
    completions = {
        input: Completion(
            input,
            "property",
            f'{input}: "${{1:ctx.{input}}}"' if mapping else "",
            mapping,
            f"an input of {name}",
            order=1,
            span=span,
        )
        for input in inputs
        if input not in place.keys
    }
    if not mapping:
        for store in reversed(list(names_at(view, offset, place).scope.types.stores)):
            completions.setdefault(store, Completion(store, "variable", order=4, span=span))
    return list(completions.values())


def case_labels(view: View, offset: int, place: CursorPlace, span: Span) -> list[Completion]:
    """Return the labels that the value of `on` can have and that have no case yet."""
    on = nearest_name(view, offset, re.compile(r"""\bon:[ ]*["']?([\w. ]+)"""))
    try:
        root = parse(on.strip(), dialect=True).root if on else None
    except ExprSyntaxError:
        root = None
    if root is None:
        return []
    names = names_at(view, offset, cursor_place(view, offset))
    type = names.scope.shapes.known(root, names.scope.types)
    if isinstance(type, Enum):
        labels = [python_text(value) for value in type.values]
    elif type == Simple(Kind.BOOL):
        labels = ["True", "False"]
    else:
        return []
    quoted = {
        label: f'"{label}"'
        if label in ("True", "False", "None") or not re.fullmatch(r"[A-Za-z_][\w-]*", label)
        else label
        for label in labels
    }
    return [
        Completion(label, "enum", f"{quoted[label]}: {{$1}}", True, order=1, span=span)
        for label in labels
        if label not in place.keys
    ]


def target_names(view: View, offset: int) -> list[tuple[str, str, str]]:
    """Return the names that a call may have at an offset, each with its format and its description."""
    targets: dict[str, tuple[str, str, str]] = {}
    for pipeline in file_of(view).pipelines:
        targets[pipeline.name.text] = (pipeline.name.text, "pipeline", pipeline.description)
    snapshot = view.folder.snapshot
    if snapshot is not None:
        for name, format, about in _named(snapshot):
            targets.setdefault(name, (name, format, about))
    # The reader takes no other name of a called document.
    named = [
        target for target in targets.values() if target[0].count(".") < 2 and all(map(is_name, target[0].split(".")))
    ]
    circles = _circles(view, offset, reads=len(named) <= MOST_READ)
    return [target for target in named if not circles.is_closed_by(target[0])]


def _named(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    try:
        for name, registered in snapshot.registry().pipelines.items():
            yield name, "pipeline", registered.description
        playbooks = snapshot.playbooks().paths
        for name in (*playbooks, *_last_parts(playbooks)):
            yield name, "playbook", ""
        directives = snapshot.ids("directive")
        for name in (*directives, *_last_parts(directives)):
            yield name, "directive", ""
    except QuireError:
        return


def _last_parts(names: Iterable[str]) -> Iterator[str]:
    """Yield the last parts of names that only one of them has: these are enough to find it."""
    counts: dict[str, int] = {}
    for name in names:
        last = name.rpartition("/")[2]
        counts[last] = counts.get(last, 0) + 1
    return (last for last, count in counts.items() if count == 1)


def _circles(view: View, offset: int, *, reads: bool) -> CallCircles:
    """Return the calls that may lead back to the pipeline around an offset."""
    around = pipeline_at(view, offset)
    here = around.name.text if around is not None else ""
    own: dict[str, tuple[str, ...]] = {}
    pipelines = file_of(view).pipelines
    for pipeline in pipelines:
        called = (target.pipeline.text for _, step in walk(pipeline) for target in targets(step))
        own[pipeline.name.text] = tuple(dict.fromkeys(called))
    if len(pipelines) > 1:
        names = {f"{key}.{name}": name for key in _keys(view) for name in own}
    else:
        names = {name: name for name in own}
    return CallCircles(view.folder.snapshot, here, own, names, reads=reads)


def _keys(view: View) -> tuple[str, ...]:
    """Return the names under which a file of several pipelines is registered."""
    settings, path = view.folder.settings, real_path(Path(view.path))
    if settings is None:
        return ()
    folder = settings.workspace.folder
    below = real_path(folder / PIPELINES_FOLDER)
    keys = [key for key, entry in settings.pipelines.items() if real_path(folder / entry.path) == path]
    if path.is_relative_to(below):
        keys.append(path.relative_to(below).with_suffix("").as_posix())
    return tuple(keys)
