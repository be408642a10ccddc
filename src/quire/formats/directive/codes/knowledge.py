"""KN: findings about knowledge files."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_error = partial(make, Severity.ERROR)
_warning = partial(make, Severity.WARNING)

_RIGHT = '```yaml\nname: names\ntitle: Names\nversion: "1.0.0"\nentry_type: reference\n```\n\nAda, Grace.'

FRONT_MATTER = _error(
    "KN001",
    "frontmatter",
    "The file begins with `---` frontmatter.",
    "The metadata of a knowledge file stands in a fence of three backticks and `yaml`.",
    "---\nname: names\n---\n\nAda, Grace.",
    _RIGHT,
)
UNCLOSED = _error(
    "KN002",
    "unclosed-yaml-fence",
    "The `yaml` fence is never closed.",
    "It ends at the first line that is three backticks and nothing else.",
    "```yaml\nname: names\n\nAda, Grace.",
    _RIGHT,
)
METADATA = _error(
    "KN003",
    "knowledge-metadata",
    "The metadata is not a list of keys and values.",
    "Each line is `key: value`.",
    "```yaml\n- names\n```\n\nAda, Grace.",
    _RIGHT,
)
TOO_LARGE = _error(
    "KN004",
    "knowledge-too-large",
    "The file is too large.",
    "Everything in it goes into a prompt. A file has at most 200,000 bytes.",
    "more than 200,000 bytes",
    _RIGHT,
)
NO_METADATA = _warning(
    "KN101",
    "no-metadata",
    "The file has no `yaml` fence.",
    "Without metadata there is no knowledge in it: the body is what follows the fence.",
    "Ada, Grace.",
    _RIGHT,
)
BEFORE = _warning(
    "KN102",
    "text-before-metadata",
    "A text stands before the `yaml` fence.",
    "The body is what follows the fence; text before it is not read.",
    f"# Names\n\n{_RIGHT}",
    _RIGHT,
)
FIELD = _warning(
    "KN103",
    "knowledge-field",
    "A field is missing or wrong that signing requires.",
    "`name`, `title`, `version` and `entry_type` are required, and the version is three numbers.",
    '```yaml\nname: names\nversion: "1.0.0"\n```\n\nAda, Grace.',
    _RIGHT,
)
PLACE = _warning(
    "KN104",
    "knowledge-place",
    "The name is not that of the file, or the category is not its folder.",
    "An item is found by its place, `CATEGORY/NAME.md` below `.ai/knowledge`; signing refuses one that says another.",
    '```yaml\nname: nmaes\ntitle: Names\nversion: "1.0.0"\nentry_type: reference\n```\n\nAda, Grace.',
    _RIGHT,
)
