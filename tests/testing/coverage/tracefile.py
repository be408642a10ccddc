"""A strict reader of LCOV tracefiles, after the page geninfo(1): each record in its form, in order, with true sums."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NUMBER = r"(0|[1-9]\d*)"
_FORMS = {
    "TN": r"(\w*)",
    "SF": r"(.+)",
    "BRDA": rf"([1-9]\d*),{_NUMBER},{_NUMBER},(0|[1-9]\d*|-)",
    "BRF": _NUMBER,
    "BRH": _NUMBER,
    "DA": rf"([1-9]\d*),{_NUMBER}",
    "LF": _NUMBER,
    "LH": _NUMBER,
}
_ORDER = list(_FORMS)


@dataclass
class Record:
    """One file of a tracefile."""

    path: str = ""
    lines: dict[int, int] = field(default_factory=dict)
    branches: dict[tuple[int, int, int], int | None] = field(default_factory=dict)
    """By line, block and branch; None if the block was never reached."""


def read_tracefile(text: str) -> list[Record]:
    assert text == "" or text.endswith("end_of_record\n")
    return [_record(part.splitlines()) for part in text.split("end_of_record\n")[:-1]]


def _record(lines: list[str]) -> Record:
    record, sums = Record(), {}
    at = 0
    for line in lines:
        name, colon, rest = line.partition(":")
        assert colon and name in _FORMS, line
        assert _ORDER.index(name) >= at, f"{line} comes too late"
        at = _ORDER.index(name)
        found = re.fullmatch(_FORMS[name], rest)
        assert found, line
        match name:
            case "SF":
                assert not record.path
                record.path = rest
            case "DA":
                assert int(found[1]) not in record.lines, f"{line} stands twice"
                record.lines[int(found[1])] = int(found[2])
            case "BRDA":
                key = (int(found[1]), int(found[2]), int(found[3]))
                assert key not in record.branches, f"{line} stands twice"
                record.branches[key] = None if found[4] == "-" else int(found[4])
            case "BRF" | "BRH" | "LF" | "LH":
                sums[name] = int(rest)
    assert record.path
    assert sums == {
        "BRF": len(record.branches),
        "BRH": sum(1 for count in record.branches.values() if count),
        "LF": len(record.lines),
        "LH": sum(1 for count in record.lines.values() if count),
    }
    assert {line for line, _, _ in record.branches} <= set(record.lines)
    return record
