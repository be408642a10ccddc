"""`make test-pythons`: the suites of formats, expressions, plan and engine on every CPython of this machine."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from tests.pythons.environment import ROOT, environment
from tests.pythons.interpreters import Interpreter, find_interpreters, missing_minors

SUITES = ("tests/formats", "tests/expr", "tests/plan", "tests/engine", "tests/test_patterns.py")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.pythons", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="such as 3.13 or 3.11.2; all without one")
    parser.add_argument("--list", action="store_true", help="only say what is there")
    options = parser.parse_args()
    found = find_interpreters()
    for one in found:
        print(f"found    {one.name}  {one.program}")
    for name in missing_minors(found):
        print(f"missing  {name}")
    chosen = [one for one in found if not options.versions or any(_fits(one, want) for want in options.versions)]
    if options.list:
        return 0
    if not chosen:
        print("no supported CPython fits", file=sys.stderr)
        return 2
    results = {one.name: _run(one) for one in chosen}
    print("\n" + "\n".join(f"{'passed' if code == 0 else 'FAILED'}   {name}" for name, code in results.items()))
    return int(any(results.values()))


def _fits(interpreter: Interpreter, wanted: str) -> bool:
    return f"{interpreter.name}.".startswith(f"{wanted}.")


def _run(interpreter: Interpreter) -> int:
    began = time.monotonic()
    print(f"\n== {interpreter.name}", flush=True)
    try:
        python = environment(interpreter)
    except subprocess.CalledProcessError as error:
        print(f"the environment cannot be made: {error}", file=sys.stderr)
        return 1
    command = [str(python), "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", "-p", "tests.pythons.quick", *SUITES]
    code = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL).returncode
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
