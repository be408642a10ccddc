"""Invisible letters that a language or an emoji needs: joiners, marks, selectors."""

from __future__ import annotations

import re

_JOINED = re.compile(
    "[\u0600-\u08ff\u0900-\u109f\u1780-\u18af\u1900-\u1cff\ua800-\ua82f\ua840-\ua8df\ua900-\uaadf\uabc0-\uabff"
    "\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00010a5f\U00011000-\U00011fff]"
)
"""Scripts whose letters are shaped by joiners: Arabic, Syriac, those of India and of South East Asia, Mongolian."""

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaa7f]")
"""Scripts without spaces between words, in which a zero width space marks where a line may break."""

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
_IDEOGRAPH = re.compile("[\u2e80-\u2fdf\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MONGOLIAN = re.compile("[\u1800-\u18af]")
_PICTURE = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u20e3\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d"
    "\u3297\u3299\U0001f000-\U0001faff]"
)
"""Symbols that are shown as emoji, and the parts that emoji consist of."""

_KEY = re.compile("[#*0-9]\ufe0f\u20e3")
_FLAG = re.compile(
    "\U0001f3f4(?:\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|"
    "\U000e0077\U000e006c\U000e0073))\U000e007f"
)
"""England, Scotland and Wales: the only emoji that are written with tag characters."""

_JAMO = re.compile("[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]")


def is_needed(text: str, start: int, end: int) -> bool:
    """Tell whether a language or an emoji needs these characters.

    None of them needs more than one in a row, except for the selector and the joiner inside an emoji, and three flags.
    """
    letters, before, after = text[start:end], text[start - 1 : start], text[end : end + 1]
    if len(letters) == 1:
        return _is_needed_alone(letters, before, after) or (
            letters in "\u200e\u200f\u061c" and _RIGHT_TO_LEFT.search(_line(text, start)) is not None
        )
    if letters == "\ufe0f\u200d":
        return bool(_PICTURE.match(before) and _PICTURE.match(after))
    return _FLAG.match(text, start - 1) is not None and len(letters) == 6


def _is_needed_alone(letter: str, before: str, after: str) -> bool:
    match letter:
        case "\u200d" | "\u200c" if _JOINED.match(before):
            return True
        case "\u200d":
            return bool(_PICTURE.match(before) and _PICTURE.match(after))
        case "\u200b":
            return _UNSPACED.match(before) is not None
        case "\ufe0e" | "\ufe0f":
            return bool(_PICTURE.match(before) or _KEY.match(before + letter + after))
        case "\u115f" | "\u1160":
            return bool(_JAMO.match(before) or _JAMO.match(after))
        case "\u180b" | "\u180c" | "\u180d" | "\u180e" | "\u180f":
            return _MONGOLIAN.match(before) is not None
    selector = "\ufe00" <= letter <= "\ufe0d" or "\U000e0100" <= letter <= "\U000e01ef"
    return selector and _IDEOGRAPH.match(before) is not None


def _line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[text.rfind("\n", 0, at) + 1 : len(text) if end < 0 else end]
