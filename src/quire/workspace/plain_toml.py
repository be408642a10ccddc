"""Read TOML of the plain kind that most settings are written in, without a whole reader, which takes long to load.

Tables, plain keys, and on one line each: texts without escapes, whole numbers, true and false, and lists of these.
Everything else is left to `tomllib`, and so is every text that might be wrong: this reader reports nothing.
"""

from __future__ import annotations

_Value = str | int | bool | list["_Value"]
_Table = dict[str, object]
_LONGEST_NUMBER = 15


class _NotPlain(Exception):
    """The text has something that this reader does not know."""


def read_plain_toml(text: str) -> dict[str, object] | None:
    """Return what `tomllib.loads` returns, or None for a text that is not of the plain kind."""
    if not text.replace("\n", "").replace("\t", "").isprintable():
        return None
    top: _Table = {}
    table, headers = top, set[str]()
    try:
        for line in text.split("\n"):
            content = line.strip(" \t")
            if not content or content[0] == "#":
                continue
            if content[0] == "[":
                header = _without_comment(content)
                if header in headers:
                    return None
                headers.add(header)
                table = _opened(top, header)
            else:
                name, found, value = content.partition("=")
                key = _key(name.strip(" \t"))
                if not found or key in table:
                    return None
                table[key] = _value(value.strip(" \t"))
    except _NotPlain:
        return None
    return top


def _opened(top: _Table, header: str) -> _Table:
    """Return the table of a line `[a.b]`."""
    if header[-1] != "]":
        raise _NotPlain
    table = top
    for name in header[1:-1].split("."):
        below = table.setdefault(_key(name), {})
        if not isinstance(below, dict):
            raise _NotPlain
        table = below
    return table


def _key(name: str) -> str:
    """Return a key that is written without quotes."""
    if not name.isascii() or not name.replace("-", "_").replace("_", "a").isalnum():
        raise _NotPlain
    return name


def _without_comment(content: str) -> str:
    if '"' in content or "'" in content:
        raise _NotPlain
    return content.partition("#")[0].rstrip(" \t")


def _value(text: str) -> _Value:
    """Return the value behind a sign of equality, with nothing but a comment behind it."""
    value, rest = _text(text) if text[:1] == '"' else _list(text) if text[:1] == "[" else _word(text)
    if rest and rest[0] != "#":
        raise _NotPlain
    return value


def _text(text: str) -> tuple[str, str]:
    """Return a text in quotes at the beginning of another, and what is behind it."""
    end = text.find('"', 1)
    found = text[1:end]
    # Three quotes begin a text of several lines.
    if end < 0 or "\\" in found or text[:3] == '"""':
        raise _NotPlain
    return found, text[end + 1 :].lstrip(" \t")


def _word(text: str) -> tuple[int | bool, str]:
    """Return a number or a truth value at the beginning of a text, and what is behind it."""
    word = text.partition("#")[0].partition("]")[0].partition(",")[0].rstrip(" \t")
    rest = text[len(word) :].lstrip(" \t")
    if word in ("true", "false"):
        return word == "true", rest
    is_number = word.isascii() and word.isdigit() and len(word) <= _LONGEST_NUMBER
    if not is_number or (word[0] == "0" and word != "0"):
        raise _NotPlain
    return int(word), rest


def _list(text: str) -> tuple[list[_Value], str]:
    """Return a list on one line, and what is behind it."""
    items: list[_Value] = []
    rest = text[1:].lstrip(" \t")
    while rest[:1] != "]":
        item, rest = _text(rest) if rest[:1] == '"' else _word(rest)
        items.append(item)
        if rest[:1] == ",":
            rest = rest[1:].lstrip(" \t")
        elif rest[:1] != "]":
            raise _NotPlain
    return items, rest[1:].lstrip(" \t")
