"""The page's own modules: HTML goes to the browser in one place, and each module is one idea."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.vendor.manifest import PAGE

MODULES = sorted([*(PAGE / "app").rglob("*.js"), *(PAGE / "frames").rglob("*.js")])
LONGEST = 300

SINK = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|setHTMLUnsafe|parseHTMLUnsafe"
    r"|createContextualFragment|parseFromString|srcdoc)\b"
    r"|\bdocument\.write(?:ln)?\b|\beval\s*\(|\bFunction\s*\(|\bset(?:Timeout|Interval)\s*\(\s*[\"'`]"
)
POLICY = re.compile(r"\.createPolicy\(")

FRAME_SINKS = {"frames/html.js": {"srcdoc", "outerHTML", "parseFromString"}, "frames/mermaid.js": {"innerHTML"}}
"""The frames have an origin of their own and nothing to lose: see docs/hostile-output.md."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PAGE).as_posix())
def test_only_the_module_of_the_policy_hands_over_html(path: Path) -> None:
    name, text = path.relative_to(PAGE).as_posix(), path.read_text(encoding="utf-8")
    if not POLICY.search(text):
        assert {match.group() for match in SINK.finditer(text)} <= FRAME_SINKS.get(name, set())


def test_there_is_one_policy() -> None:
    assert len([path for path in MODULES if POLICY.search(path.read_text(encoding="utf-8"))]) == 1


@pytest.mark.parametrize(
    "line",
    [
        "place.innerHTML = text;",
        'h("div", { dangerouslySetInnerHTML: { __html: text } })',
        "element.insertAdjacentHTML('beforeend', text)",
        "document.write(text)",
        "new Function(text)",
        "eval(text)",
        'setTimeout("run()", 1)',
        "frame.srcdoc = text",
        "new DOMParser().parseFromString(text, 'text/html')",
    ],
)
def test_the_test_sees_each_way(line: str) -> None:
    assert SINK.search(line)


def test_modules_say_what_they_do_and_are_short() -> None:
    texts = {path.relative_to(PAGE).as_posix(): path.read_text(encoding="utf-8") for path in MODULES}
    assert [name for name, text in texts.items() if not text.startswith("// ")] == []
    assert [name for name, text in texts.items() if text.count("\n") > LONGEST] == []


RULE = re.compile(r"([^{}]+)\{")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
CLASS = re.compile(r"\.([a-z][\w-]*)")


def test_a_class_belongs_to_one_style_sheet() -> None:
    """The first class of a selector names a part of the page. Two sheets that style it would change each other's parts;
    `style.css` has the parts that all screens share."""
    owners: dict[str, set[str]] = {}
    for sheet in PAGE.glob("*.css"):
        text = COMMENT.sub("", sheet.read_text(encoding="utf-8"))
        selectors = [one for rule in RULE.findall(text) if not rule.strip().startswith("@") for one in rule.split(",")]
        for first in (CLASS.search(selector) for selector in selectors):
            if first is not None and sheet.name != "style.css":
                owners.setdefault(first[1], set()).add(sheet.name)
    assert {name: sheets for name, sheets in owners.items() if len(sheets) > 1} == {}
