"""BD101 to BD107: amounts that nothing bounds, or that a limit of the engine cuts off."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_lint = partial(make, Severity.LINT)
_note = partial(make, Severity.NOTE)

_FAN = (
    "pipeline: p\nsteps:\n  - for_each:\n      over: ctx.files\n{limit}      on_error: abort\n"
    "      do: {{tool: {{name: file__read, args: {{path: !expr item}}}}}}\n"
    "      collect: {{transform: {{value: pipe}}}}"
)
_BOARD = (
    "pipeline: p\nsteps:\n  - for_each:\n      over: ctx.readers\n{limit}      on_error: abort\n"
    '      do: {{agent: {{prompt: "Read as {{item}}"}}}}\n      collect: {{transform: {{value: pipe}}}}'
)

UNBOUNDED_FAN = _lint(
    "BD101",
    "unbounded-fan",
    "A fan-out or a loop with tools or model calls goes through a list whose length nothing in the document limits.",
    "The list comes from an input, a tool or a model, so one run may do the work ten thousand times: only there does\n"
    "the engine stop it. `max_items` at the step, or `max_items` of the input or the schema field that has the list,\n"
    "says how many are meant. A fan whose model calls may pass the limit of a run is BD105.",
    _FAN.format(limit=""),
    _FAN.format(limit="      max_items: 100\n"),
)
UNBOUNDED_REPLY = _lint(
    "BD102",
    "unbounded-reply",
    "Nothing limits how much a model writes, so no amount of tokens or money can be proven.",
    "`[runs] reply_tokens` in `quire.toml` limits every reply, and `max_tokens` those of one agent. One of them\n"
    "always holds with the engine of today, so only a model that keeps to neither is reported.",
    "[runs]\nreply_tokens = 0",
    "[runs]\nreply_tokens = 4096",
)
UNBOUNDED_TURN = _lint(
    "BD103",
    "unbounded-turn",
    "Nothing limits how many calls, questions or threads there are, or how long they take.",
    "A thread has turns, spawns and a duration; an agent has turns and 200 calls in each; each call has a time-out.\n"
    "The finding names the one that is missing and the line that sets it.",
    '<limits turns="8"/>',
    '<limits turns="8" duration_seconds="600"/>',
)
CANNOT_COMPLETE = make(
    Severity.ERROR,
    "BD104",
    "cannot-complete",
    "Every run that completes makes more model calls than a run may make.",
    "The run would stop in the middle, after it was paid for, so it does not start. `max_pipeline_spawns` under\n"
    "`[safety.spawn]` in `quire.toml` is the limit. A pipeline of which that is certain without the directives that\n"
    "it calls is PL116.",
    "- for_each:\n    items: [a, b, c, d]\n    on_error: abort\n    do: {call: {pipeline: ask_reviewer}}\n"
    "    collect: {transform: {value: pipe}}",
    "- for_each:\n    items: [a, b]\n    on_error: abort\n    do: {call: {pipeline: ask_reviewer}}\n"
    "    collect: {transform: {value: pipe}}",
)
MAY_STOP = _lint(
    "BD105",
    "may-stop-midway",
    "A run can need more model calls than it may make; then it stops in the middle.",
    "`max_pipeline_spawns` under `[safety.spawn]` in `quire.toml` is the limit. The message says from which size of\n"
    "an input on. Limit the list with `max_items`, or raise the limit. A pipeline that only turns with\n"
    "tools, corrections of replies and further tries bring above the limit is not reported.",
    _BOARD.format(limit=""),
    _BOARD.format(limit="      max_items: 20\n"),
)
UNPRICED = _note(
    "BD106",
    "unpriced",
    "The price of a model is not known, so the money of a run is not known either.",
    "It is shown as `unpriced`, never as 0. `quire show` and `quire lock` look for prices; `quire check` does not. A\n"
    "table of your own quire.toml sets the price, in dollars per million tokens.",
    '[models]\ndefault = "https://models.example.org/large"',
    '[models.prices."https://models.example.org/large"]\ninput = 3\noutput = 15',
)
OLD_PRICE = _note(
    "BD107",
    "old-price",
    "The price of a model was last looked at more than 120 days ago.",
    "Prices change. A newer version of the price list (`pip install --upgrade genai-prices`) or a price of your own\n"
    "with its date is more certain. `quire show` and `quire lock` say so; `quire check` loads no prices.",
    '[models.prices."anthropic:claude-sonnet-4-5"]\ninput = 3\noutput = 15\ndate = 2025-01-31',
    '[models.prices."anthropic:claude-sonnet-4-5"]\ninput = 3\noutput = 15\ndate = 2026-10-12',
)
