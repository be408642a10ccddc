"""Look at as many random documents as one likes: `python -m tests.analysis.soundness 5000 [FIRST]`."""

from __future__ import annotations

import sys
from collections import Counter

from tests.analysis.soundness.cases import KINDS, case_of, problems_of


def main() -> None:
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        for kind in KINDS:
            case = case_of(kind, seed)
            found = problems_of(case)
            seen[f"{kind} {case.outcome}"] += 1
            if found:
                print(f"--- {kind} {seed}: {found[0]}")
    print(dict(seen))


if __name__ == "__main__":
    main()
