"""Prints how often each rule of the analysis finds something in documents that people wrote, for 100 documents.

    python -m tests.analysis.corpus_table [--list CODE]

The documents are the examples, those that come with Quire, complete ones of the docs and, where they are beside the
project, those of the formats' conformance suite and of its corpus. A rule that is wrong about more than 5 of 100
documents is not on by default.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

from quire import formats
from quire.analysis.rules import rule_codes
from quire.diagnostics import Diagnostic, Severity, codes_in
from quire.formats.pipeline.codes import errors
from quire.library.check import DocumentCheck
from quire.source import Source

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
_FENCE = re.compile(r"^```yaml\n((?:schema|pipeline): .*?)^```", re.S | re.M)


def documents() -> Iterator[tuple[str, Source]]:
    """Yield the documents with the group that each belongs to."""
    for folder, group in ((ROOT / "examples", "examples"), (ROOT / "src/quire/space", "space")):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".md", ".yaml") and path.name != "README.md" and ".quire" not in path.parts:
                yield group, Source.of(path.read_text(encoding="utf-8"), str(path))
    for path in sorted((ROOT / "docs").rglob("*.md")):
        for number, found in enumerate(_FENCE.finditer(path.read_text(encoding="utf-8"))):
            yield "docs", Source.of(found[1], str(ROOT / "docs" / f"{path.stem}-{number}.yaml"))
    for path in sorted((SHARED / "conformance/corpus").rglob("*.md")):
        ending = ".playbook.md" if path.parent.name == "playbook" else ".md"
        yield "corpus", Source.of(path.read_text(encoding="utf-8"), str(path.with_suffix("")) + ending)
    for path in sorted((SHARED / "conformance/cases").rglob("*.yaml")):
        yield from _cases(path)


def _cases(path: Path) -> Iterator[tuple[str, Source]]:
    for case in yaml.safe_load(path.read_text(encoding="utf-8")) or ():
        given = case.get("given") if isinstance(case, dict) else None
        texts = [given] if isinstance(given, str) else _texts(given) if isinstance(given, dict) else []
        for number, text in enumerate(texts):
            ending = ".yaml" if path.parent.name == "pipeline" else ".playbook.md"
            if path.parent.name == "directive":
                ending = ".md"
            yield "conformance", Source.of(text, str(path.parent / f"{case.get('id', 'case')}-{number}{ending}"))


def _texts(given: dict[str, object]) -> list[str]:
    found: list[str] = []
    for key in ("pipelines", "pipeline", "playbook", "directive", "text", "document", "source"):
        value = given.get(key)
        several = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else [value]
        found += [one for one in several if isinstance(one, str)]
    return found


@cache
def findings() -> tuple[Counter[str], list[tuple[str, Source, Diagnostic]]]:
    """Return how many documents each group has, and the findings of the analysis about them."""
    known = {code.id for code in (*rule_codes(), *codes_in(errors))}
    check, counted, found, seen = DocumentCheck(), Counter[str](), [], set[str]()
    for group, source in documents():
        if source.text in seen or formats.format_of(source) not in ("playbook", "directive", "pipeline"):
            continue
        seen.add(source.text)
        try:
            every = check.of(source)
        except Exception as error:
            print(f"{source.name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        if any(one.severity is Severity.ERROR for one in every):
            continue
        counted[group] += 1
        found += [(group, source, one) for one in every if one.code.id in known]
    return counted, found


def table() -> str:
    counted, found = findings()
    total = sum(counted.values())
    places = {(one.code.id, source.name) for _, source, one in found}
    per_rule = Counter(code for code, _ in places)
    lines = [
        f"{total} documents: " + ", ".join(f"{count} of {group}" for group, count in sorted(counted.items())),
        "",
        "| rule | severity | documents with it | of 100 |",
        "| --- | --- | --- | --- |",
    ]
    for code in (*rule_codes(), *codes_in(errors)):
        count = per_rule[code.id]
        lines.append(f"| {code.id} {code.name} | {code.severity} | {count} | {100 * count / max(1, total):.1f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    if "--list" in sys.argv:
        wanted = sys.argv[sys.argv.index("--list") + 1]
        for _, source, one in findings()[1]:
            if one.code.id.startswith(wanted):
                line = source.position(one.span.start).line
                path = " → ".join(place.node for place in one.flow)
                print(f"{one.code.id} {Path(source.name).relative_to(ROOT.parent)}:{line}: {one.message} [{path}]")
        return
    print(table(), end="")


if __name__ == "__main__":
    main()
