"""CF0xx: findings about `quire.toml`. Ids are never reused.

Editors show them at their places. The verbs print the same words in front of everything else, and exit 2.
"""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Code, Severity, make

_error = partial(make, Severity.ERROR)

NOT_TOML = _error(
    "CF001",
    "settings-syntax",
    "The settings are not TOML.",
    "Nothing of the file is read then, and no verb starts: half of the settings could mean more than all of them.",
    "[models]\ndefault = anthropic:claude-sonnet-5-5",
    '[models]\ndefault = "anthropic:claude-sonnet-5-5"',
)
UNKNOWN_SETTING = _error(
    "CF002",
    "unknown-setting",
    "A key or a table that settings do not have.",
    "It would have no effect, and a limit that does not exist limits nothing. The nearest known key is named;\n"
    "`quire docs configuration` lists all.",
    '[runs]\nexpires = "7d"',
    '[runs]\nexpiry = "7d"',
)
WRONG_SETTING = _error(
    "CF003",
    "setting-value",
    "The value of a setting is not one that it can have, or a key that belongs to it is missing.",
    "The message says which kind of value belongs there.",
    '[models.providers.house]\napi_key_env = "HOUSE_KEY"\ntimeout = 30',
    '[models.providers.house]\nbase_url = "https://models.example.org/v1"\napi_key_env = "HOUSE_KEY"\ntimeout = "30s"',
)
MISPLACED_SETTING = _error(
    "CF004",
    "setting-place",
    "A setting stands in the wrong one of the two files.",
    "A workspace may come from others: programs that are started, headers that are sent, prices and trusted servers\n"
    "are read from the `quire.toml` of your user folder only.",
    "# quire.toml of a workspace\n[sandbox]\nmemory = 64000",
    "# quire.toml of your user folder, such as ~/.config/quire/quire.toml\n[sandbox]\nmemory = 64000",
)
CANNOT_ALLOW = _error(
    "CF005",
    "setting-grant",
    "An entry of `[tools] allow` or `deny` is not a grant.",
    "Some tools take a detail after a `=`, such as the host of `http__get`; the others take none.",
    '[tools]\nallow = ["http__send"]',
    '[tools]\nallow = ["http__send=hooks.example.org"]',
)

CODES: tuple[Code, ...] = (NOT_TOML, UNKNOWN_SETTING, WRONG_SETTING, MISPLACED_SETTING, CANNOT_ALLOW)
