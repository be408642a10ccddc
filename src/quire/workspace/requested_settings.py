"""Settings of a workspace that go beyond the user's own: they are requests, and do not hold until they are confirmed.

A workspace may lower a limit, name the model that the user has anyway, or name any hosted model if the user has not
chosen one. Without consent it may not raise a limit, weaken a setting of the user, replace the user's model, load a
file of weights, or read documents outside its folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from quire.workspace.settings import Excess, PipelineEntry, Settings

_CAUTION = ("rerun", "ask", "fail")
_NOT_HERE = ("http://", "https://")


def find_excess(
    merged: Settings, own: Settings, theirs: Settings, own_table: Mapping[str, object], table: Mapping[str, object]
) -> tuple[Excess, ...]:
    """Return the settings of the workspace that go beyond the user's own. `own_table` and `table` are the files of the
    user and of the workspace as written, `own` and `theirs` the same with defaults filled in."""
    return (
        *_models(merged, own, theirs),
        *_spawns(own, theirs, table),
        *_runs(own, theirs, own_table),
        *_replies(own, theirs, table),
        *(
            Excess("limit", f"pipelines.entries.{key}.path", entry.path, f"read the pipeline {key} from {entry.path}")
            for key, entry in sorted(theirs.pipelines.items())
            if not _is_inside(entry, merged.workspace.folder)
        ),
    )


def without_excess(merged: Settings, own: Settings) -> Settings:
    """Return the settings without those beyond the user's own. The choice of models stays: a run that would use an
    unconfirmed one is refused, because falling back to another model may be less private."""
    folder = merged.workspace.folder
    over = {one.key for one in merged.excess}
    runs = merged.runs
    for key in ("durability", "on_uncertain", "expiry", "context_budget", "reply_tokens"):
        if f"runs.{key}" in over:
            runs = replace(runs, **{key: getattr(own.runs, key)})
    spawn = merged.spawn
    for key in ("max_pipeline_spawns", "max_pipeline_fan_out_depth"):
        if f"safety.spawn.{key}" in over:
            spawn = replace(spawn, **{key: getattr(own.spawn, key)}, said=own.spawn.said)
    mode = merged.trust.mode if own.trust.mode == "warn" else "require"
    return replace(
        merged,
        runs=runs,
        spawn=spawn,
        trust=replace(merged.trust, mode=mode, documents=merged.trust.documents or own.trust.documents),
        pipelines={key: entry for key, entry in merged.pipelines.items() if _is_inside(entry, folder)},
        prompt_folders=tuple(one for one in merged.prompt_folders if one not in merged.outside),
        knowledge_folders=tuple(one for one in merged.knowledge_folders if one not in merged.outside),
    )


def model_file(spec: str, folder: Path) -> Path | None:
    """Return the file of weights that a model's name refers to, None for all other models. A relative path is looked up
    in the workspace; the name of a pulled model is not a path."""
    kind, _, name = spec.partition(":")
    if kind != "local" or not name:
        return None
    path = folder / os.path.expanduser(name)  # noqa: PTH111  # an unknown user is not an exception here
    return path if "/" in name or os.sep in name or name.endswith(".gguf") or path.exists() else None


def _models(merged: Settings, own: Settings, theirs: Settings) -> Iterator[Excess]:
    named = {"default": theirs.models.default, **{f"tiers.{name}": spec for name, spec in theirs.models.tiers.items()}}
    users = {"default": own.models.default, **{f"tiers.{name}": spec for name, spec in own.models.tiers.items()}}
    for key, spec in sorted(named.items()):
        if not spec or spec.startswith(_NOT_HERE):
            continue  # Addresses always need consent, whatever the user's own model is.
        # A tier that the user does not have would otherwise be a model of the user's own.
        spec, yours = merged.models.tiers.get(spec, spec), users.get(key) or users["default"]
        yours = own.models.tiers.get(yours, yours) if yours else None
        if spec == yours or spec.startswith(_NOT_HERE):
            continue
        what = f"as the model {key.removeprefix('tiers.')}"
        if file := model_file(spec, merged.workspace.folder):
            yield Excess("model", f"models.{key}", spec, f"load the model file {file}, {what}")
        elif yours:
            yield Excess("model", f"models.{key}", spec, f"send prompts to {spec} instead of your {yours}, {what}")


def _spawns(own: Settings, theirs: Settings, table: Mapping[str, object]) -> Iterator[Excess]:
    safety = table.get("safety")
    spawn = safety.get("spawn") if isinstance(safety, Mapping) else None
    for key in spawn if isinstance(spawn, Mapping) else ():
        wanted, yours = getattr(theirs.spawn, key), getattr(own.spawn, key)
        # 0 means no limit.
        if wanted != yours and yours and (wanted > yours or not wanted):
            shown = wanted or "0 (no limit)"
            yield Excess(
                "limit", f"safety.spawn.{key}", str(wanted), f"set [safety.spawn] {key} = {shown}, above your {yours}"
            )


def _runs(own: Settings, theirs: Settings, own_table: Mapping[str, object]) -> Iterator[Excess]:
    """Compare with the values that the user has set, not with the defaults: these settings concern the workspace's own
    runs."""
    table = own_table.get("runs")
    said = table if isinstance(table, Mapping) else {}
    mine, wanted = own.runs, theirs.runs
    weaker = {
        "durability": mine.durability == "power" and wanted.durability == "process",
        "on_uncertain": _CAUTION.index(wanted.on_uncertain) < _CAUTION.index(mine.on_uncertain),
        "expiry": _longer(wanted.expiry, mine.expiry),
        "context_budget": (wanted.context_budget or 0) > (mine.context_budget or 0),
    }
    for key, is_weaker in weaker.items():
        stated = theirs.requested.get("runs")
        if key in said and is_weaker and isinstance(stated, Mapping) and key in stated:
            shown = f"set [runs] {key} = {stated[key]}, where you have {said[key]}"
            yield Excess("limit", f"runs.{key}", str(stated[key]), shown)


def _replies(own: Settings, theirs: Settings, table: Mapping[str, object]) -> Iterator[Excess]:
    """Compare with the default too: longer replies cost the user's money."""
    runs = table.get("runs")
    wanted, yours = theirs.runs.reply_tokens, own.runs.reply_tokens
    if isinstance(runs, Mapping) and "reply_tokens" in runs and wanted > yours:
        line = f"set [runs] reply_tokens = {wanted}, above your {yours}"
        yield Excess("limit", "runs.reply_tokens", str(wanted), line)


def _longer(wanted: float | None, mine: float | None) -> bool:
    """Compare two times; None means for ever."""
    return mine is not None and (wanted is None or wanted > mine)


def _is_inside(entry: PipelineEntry, folder: Path) -> bool:
    try:
        return Path(os.path.realpath(folder / entry.path)).is_relative_to(os.path.realpath(folder))
    except (OSError, ValueError):
        return False
