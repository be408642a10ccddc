"""Completions for the command line: run ids, documents, inputs and their values, models.

If the workspace has a problem, nothing is offered: an error message would appear in the middle of the typed line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from quire.engine.records import RunRow
    from quire.library.items import ItemType
    from quire.runs.runtime import Runtime
    from quire.schema import Field

Items: TypeAlias = "list[CompletionItem[str]]"
_SHOWN = 30
PART = "part"
"""Item type: the word continues after this item, so the shell adds no space."""
NOTHING = "nothing"
"""Item type: nothing fits here, and file names must not be offered either."""

_FITTING: Mapping[str, frozenset[str]] = {
    "resume": frozenset({"pending", "paused", "failed", "cancelled", "interrupted", "awaiting_input"}),
    "cancel": frozenset({"pending", "running", "paused", "interrupted", "awaiting_input"}),
    "answer": frozenset({"awaiting_input", "running"}),
}
"""The run states that a verb applies to. Verbs that are not listed take any run."""


def _item(value: str, type: str = "plain", help: str | None = None) -> CompletionItem[str]:
    from click.shell_completion import CompletionItem  # only a shell that asks needs it

    return CompletionItem(value, type=type, help=help)


def _quietly(find: Callable[[], Items]) -> Items:
    from quire.errors import QuireError

    try:
        return find()
    except (QuireError, OSError):
        return []


def complete_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Offer the newest runs whose id has this prefix and whose state fits the verb."""
    items = [_item("last", help="the newest run")] if "last".startswith(incomplete) else []
    items += _quietly(lambda: _runs(incomplete, _FITTING.get(context.info_name or "")))
    return items or [_item("", type=NOTHING)]


def _runs(incomplete: str, states: frozenset[str] | None) -> Items:
    from quire.cli.stdio import with_runtime
    from quire.display.text import one_line

    async def newest(runtime: Runtime) -> list[RunRow]:
        return list(await runtime.store.list(limit=200))

    return [
        _item(row.id, help=f"{row.status.words}, {one_line(row.title)}")
        for row in with_runtime(newest)
        if row.id.startswith(incomplete) and (states is None or row.status.value in states)
    ][:_SHOWN]


def complete_document(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Offer the documents that have a name, and files."""
    names = _quietly(lambda: list(_documents(incomplete))) if "/" not in incomplete[:1] else []
    return [*names, _item(incomplete, type="file")]


def _documents(incomplete: str) -> Iterator[CompletionItem[str]]:
    from quire.library.items import Spaces
    from quire.library.registered import SHELF, load_registry, shelf_entries
    from quire.workspace.configuration import settings_here

    settings = settings_here()
    here = set(load_registry(settings).pipelines)
    for name in here:
        if name.startswith(incomplete):
            yield _item(name, help="pipeline")
    kinds: tuple[ItemType, ...] = ("playbook", "directive")
    for kind in kinds:
        for entry in Spaces(settings).entries(kind):
            here.add(entry.id)
            # Documents that come with Quire are offered only after the user has begun to type a name.
            if entry.id.startswith(incomplete) and (incomplete or not entry.id.startswith("rye/")):
                yield _item(entry.id, help=kind)
    for kind, entries in shelf_entries(settings).items():
        for entry in entries:
            name = f"{SHELF}:{entry.id}" if entry.id in here else entry.id
            if name.startswith(incomplete) or entry.id.startswith(incomplete):
                yield _item(name, help=f"{kind} of your own")


def complete_input(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Offer `NAME=`, then the values of an enum or a boolean; after `NAME=@` offer files."""
    name, equals, value = incomplete.partition("=")
    if not equals:
        return _quietly(lambda: _names(context, incomplete))
    if value.startswith("@"):
        return _quietly(lambda: _paths(f"{name}=@", value[1:]))
    return _quietly(lambda: _values(context, name, value))


def _names(context: click.Context, incomplete: str) -> Items:
    from quire.display.text import one_line

    return [
        _item(f"{name}=", type=PART, help=one_line(about))
        for name, (about, _) in _inputs(context).items()
        if name.startswith(incomplete)
    ]


def _values(context: click.Context, name: str, value: str) -> Items:
    _, options = _inputs(context).get(name, ("", ()))
    return [_item(f"{name}={option}") for option in options if option.startswith(value)]


def _inputs(context: click.Context) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the inputs of the document named on the command line: a description and the possible values of each."""
    from quire.library.lookup import document_of, tree_of

    # An option whose value is still missing ends the reading of the line before its arguments are assigned.
    named = context.params.get("document") or context.params.get("file") or next(iter(context.args), None)
    if not isinstance(named, str) or not named:
        return {}
    document = document_of(named)
    plan = document.runnable()
    if plan.declared is not None:
        return {field.name: _field(field) for field in plan.declared}
    if plan.infers_inputs:
        from quire.formats.pipeline.inputs import inferred_inputs, optional_inputs

        tree = tree_of(document)
        return dict.fromkeys((*inferred_inputs(tree), *optional_inputs(tree)), ("", ()))
    return {
        input.name: (
            input.description or input.type,
            {"boolean": ("true", "false"), "enum": input.options}.get(input.type, ()),
        )
        for input in plan.inputs
    }


def _field(field: Field) -> tuple[str, tuple[str, ...]]:
    """Return a description of a declared input, and the values to choose from."""
    from quire.schema import Enum, Kind, Simple, type_words
    from quire.values import encode

    options: tuple[str, ...] = ("true", "false") if field.type == Simple(Kind.BOOL) else ()
    if isinstance(field.type, Enum):
        options = tuple(value if isinstance(value, str) else encode(value) for value in field.type.values)
    return field.description or type_words(field.type), options


def _paths(before: str, beginning: str) -> Items:
    folder, _, name = beginning.rpartition("/")
    base = Path(folder or ("/" if beginning.startswith("/") else "."))
    paths = sorted(path for path in base.iterdir() if path.name.startswith(name) and (name or path.name[0] != "."))
    return [_item(f"{before}{path}/", type=PART) if path.is_dir() else _item(f"{before}{path}") for path in paths]


def complete_model(context: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """Offer models that are configured, downloaded, or available through a key in the environment."""
    return _quietly(lambda: _models(incomplete))


def _models(incomplete: str) -> Items:
    import os

    from quire.models.choose import MODEL_BY_KEY
    from quire.models.downloads import pulled_models
    from quire.workspace.configuration import settings_here

    config = settings_here().models
    models = dict(config.tiers)
    if config.default:
        models.setdefault(config.default, "[models] default")
    models |= {f"local:{model.name}": "here" for model in pulled_models()}
    models |= {spec: variable for variable, spec in MODEL_BY_KEY.items() if os.environ.get(variable)}
    items = [_item(name, help=about) for name, about in models.items() if name.startswith(incomplete)]
    providers = [f"{name}:" for name in config.providers]
    return items + [_item(name, type=PART) for name in providers if name.startswith(incomplete)]
