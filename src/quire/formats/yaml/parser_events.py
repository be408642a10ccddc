"""Yield the events of the YAML parser with offsets into the source instead of marks.

Events are pulled one by one instead of composing a whole tree: the parser's own composer recurses in C, so a text of
brackets could kill the process. The C parser is used if it is available, else the one in Python.

Two traps are handled here. YAML 1.1 ends a line at U+0085, U+2028 and U+2029, which neither editors nor our `Source`
do: placeholders of the same length replace them while the text is parsed. And the C parser does not count a byte order
mark at the start, so every offset would be wrong by one: it is refused like a control character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from quire.diagnostics import Diagnostic
from quire.formats.yaml import codes
from quire.source import Source, Span

_LOADER: type[yaml.CSafeLoader] | type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FORBIDDEN = re.compile("\\A\ufeff|[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ALLOWED = bytes((*b"\t\n", *range(0x20, 0x7F)))
_FOREIGN_BREAKS = "\x85\u2028\u2029"
_NEXT_DOCUMENT = re.compile(r"^---(?=[ \t\n]|\Z)", re.MULTILINE)
_MAX_RESTARTS = 20
_MAX_CHARACTERS = 20


class Events:
    """Iterates over the events of a source. After a syntax error it continues with the next document."""

    def __init__(self, source: Source) -> None:
        self.found: list[Diagnostic] = []
        self.broken = False
        """True if the current document ended in a syntax error; the consumer resets it."""
        self._source = source
        self._base = 0
        self._text, self._back = _without_foreign_breaks(source.text)

    def __iter__(self) -> Iterator[tuple[yaml.Event, int, int]]:
        """Yield each event with its start and end."""
        self.found += _forbidden(self._source.text)
        if self.found:
            return
        for _ in range(_MAX_RESTARTS):
            text = self._text[self._base :] if self._base else self._text
            loader, base = _LOADER(text), self._base
            pull = loader.get_event
            try:
                while (event := pull()) is not None:
                    # The stubs allow events without marks; those of a parser always have them.
                    yield event, base + event.start_mark.index, base + event.end_mark.index  # type: ignore[union-attr]
                return
            except yaml.MarkedYAMLError as error:
                at = self._syntax(error)
            except (ValueError, OverflowError):  # The parser in Python fails on some escapes and version numbers.
                at = self._base + 1
                problem = "an escape or a directive cannot be read"
                self.found.append(Diagnostic(codes.SYNTAX, problem, Span(self._base, self._base)))
            finally:
                loader.dispose()
            self.broken = True
            following = _NEXT_DOCUMENT.search(self._text, max(at, self._base + 1))
            if not following:
                return
            self._base = following.start()

    def restored(self, text: str) -> str:
        """Return the text of a scalar with the original characters instead of placeholders."""
        return text.translate(self._back) if self._back else text

    def _syntax(self, error: yaml.MarkedYAMLError) -> int:
        text = self._source.text
        mark = error.problem_mark or error.context_mark
        at = min(self._base + (mark.index if mark else 0), len(text))
        problem = (error.problem or "this is not YAML").replace("<block end>", "the end of the block")
        context = ""
        if error.context and error.context_mark:
            line = self._source.position(min(self._base + error.context_mark.index, len(text))).line
            context = f"{error.context} that begins on line {line}"
        width = 1 if at < len(text) and text[at] != "\n" else 0
        help = _help(problem, error.context or "", text[at : at + 3])
        self.found.append(Diagnostic(codes.SYNTAX, problem, Span(at, at + width), context, help))
        return at


def _help(problem: str, context: str, there: str) -> str:
    character = there[:1]
    if there == "```":
        return "the text stands in a Markdown fence: take the lines with ``` away"
    if character == "\t":
        return "indent with spaces: YAML does not take tabs"
    if "cannot start any token" in problem:
        return f"put a text that begins with {character} in quotes"
    if "scanning an alias" in context or "scanning an anchor" in context:
        return "put a text that begins with * or & in quotes; names of anchors are letters, digits, - and _"
    if "scanning a tag" in context and character in "}]":
        return f"put a space between the tag and the {character}"
    if "mapping values are not allowed" in problem:
        return 'a text that holds ": " needs quotes; or the line is indented too far'
    if "quoted scalar" in context and "unexpected" in problem:
        return "the closing quote is missing"
    if "escape" in problem:
        return "in double quotes a backslash is written \\\\; single quotes take text as it is"
    if "expected key" in problem or "could not find expected ':'" in problem or "end of the block" in problem:
        return "a key is followed by a colon and a space, and the keys of one mapping begin in one column"
    return ""


def _forbidden(text: str) -> list[Diagnostic]:
    if text.isascii() and not text.encode().translate(None, _ALLOWED):
        return []  # ten times as fast as the pattern, which most texts do not need
    findings = []
    for match in _FORBIDDEN.finditer(text):
        code = ord(match[0])
        escape = f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}"
        help = f'in double quotes it can be written "{escape}"' if not 0xD800 <= code <= 0xDFFF else ""
        message = f"the character U+{code:04X} is not allowed in YAML"
        findings.append(Diagnostic(codes.CHARACTER, message, Span(*match.span()), "", help))
        if len(findings) == _MAX_CHARACTERS:
            break
    return findings


def _without_foreign_breaks(text: str) -> tuple[str, dict[int, int]]:
    """Replace each line break that only YAML knows with a private use character that does not occur in the text.

    Return the text and the table that restores it.
    """
    used = [character for character in _FOREIGN_BREAKS if character in text]
    if not used:
        return text, {}
    present = set(text)
    free = (code for code in range(0xE000, 0xF900) if chr(code) not in present)
    there = {ord(character): stand_in for character, stand_in in zip(used, free, strict=False)}
    return text.translate(there), {stand_in: character for character, stand_in in there.items()}
