"""`make pin-actions`: name each action in .github/workflows by the hash of its tag, with the tag behind it.

The hashes come from `git ls-remote`, so a tag that is moved later does not change what a release runs. Arguments: the
folder of the workflows, and the address below which the repositories of actions are.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

WORKFLOWS = Path(__file__).parents[1] / ".github" / "workflows"
HOST = "https://github.com"
USES = re.compile(
    r"(?P<start>uses: )(?P<name>[\w.-]+/[\w.-]+)(?P<inside>/[\w./-]+)?@(?P<ref>[^\s#]+)(?: +# (?P<tag>\S+))?"
)


@cache
def hash_of(repository: str, tag: str) -> str:
    """Return the commit of a tag or a branch; of an annotated tag the commit that it names, not the tag itself."""
    command = ["git", "ls-remote", "--", repository, f"refs/tags/{tag}", f"refs/tags/{tag}^{{}}", f"refs/heads/{tag}"]
    listed = subprocess.run(command, capture_output=True, text=True)  # noqa: S603  # git, and names from our own files
    if listed.returncode:
        raise SystemExit(f"{repository}: {listed.stderr.strip()}")
    hashes = {name: commit for commit, _, name in (line.partition("\t") for line in listed.stdout.splitlines())}
    for name in (f"refs/tags/{tag}^{{}}", f"refs/tags/{tag}", f"refs/heads/{tag}"):
        if name in hashes:
            return hashes[name]
    raise SystemExit(f"{repository} has neither a tag nor a branch {tag}")


def pinned(text: str, host: str) -> str:
    """Return a workflow with hashes. One that has them already is resolved again, by the tags behind them."""

    def replaced(found: re.Match[str]) -> str:
        tag = found["tag"] or found["ref"]
        commit = hash_of(f"{host}/{found['name']}", tag)
        return f"{found['start']}{found['name']}{found['inside'] or ''}@{commit} # {tag}"

    return USES.sub(replaced, text)


def main(folder: str = str(WORKFLOWS), host: str = HOST) -> int:
    # All are resolved before the first is written.
    texts = {path: pinned(path.read_text(encoding="utf-8"), host) for path in sorted(Path(folder).glob("*.yml"))}
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
        print(path.name, *sorted(set(re.findall(r"uses: (\S+@\w{8})", text))), sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
