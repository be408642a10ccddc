"""All benchmarks in one run: `make bench`, or `python -m bench NAME…` for some of them."""

from __future__ import annotations

import importlib
import sys

from bench.rows import show

BENCHES = (
    "parse",
    "startup",
    "preflight",
    "checks",
    "proofs",
    "lock",
    "many",
    "engine",
    "store",
    "run_list",
    "page",
    "waiting",
    "expr",
    "pipeline_parse",
    "pipeline",
    "trust",
    "thread",
    "document_mutation",
    "cluster",
    "authoring",
    "langgraph_peer",
    "document_tests",
    "document_suite",
    "editor",
)


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}: there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    missed = 0
    for name in names or BENCHES:
        rows = importlib.import_module(f"bench.{name}").measure()
        show(name, rows)
        missed += sum(not row.ok for row in rows)
    print(f"\n{missed} target{'' if missed == 1 else 's'} missed" if missed else "\nevery target reached")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
