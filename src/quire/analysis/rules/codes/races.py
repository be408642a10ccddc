"""RC101: work that runs side by side and changes the same thing."""

from __future__ import annotations

from quire.diagnostics import Severity, make

SHARED_WRITE = make(
    Severity.WARNING,
    "RC101",
    "shared-write",
    "Two branches of a `parallel`, or all items of a `for_each`, write the same file or the same kept value.",
    "They run at the same time, so the last one wins, and which one that is differs from run to run. Let each of them\n"
    "write a place of its own, or return its result and write once after `collect`. Called documents count as\n"
    "well. A `for_each` with `max_parallel: 1` runs its items in order and is not meant.",
    "- for_each:\n    over: ctx.notes\n    max_items: 20\n    on_error: abort\n"
    "    do: {tool: {name: file__write, args: {path: out.md, content: !expr item.text}}}\n"
    "    collect: {transform: {value: pipe}}",
    "- for_each:\n    over: ctx.notes\n    max_items: 20\n    on_error: abort\n"
    "    do: {tool: {name: file__write, args: {path: !expr item.name, content: !expr item.text}}}\n"
    "    collect: {transform: {value: pipe}}",
)
