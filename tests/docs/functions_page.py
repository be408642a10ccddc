"""Writes the tables of functions in `docs/reference/expressions.md` anew, from the table in the code.

python -m tests.docs.functions_page
"""

from __future__ import annotations

from tests.docs.pages import ROOT, text_of

from quire.expr.functions import FUNCTIONS, Function, Group

PAGE = "docs/reference/expressions.md"
BEGIN = "<!-- The tables are written by tests/docs/functions_page.py. -->\n"
END = "<!-- The end of the tables. -->\n"
GROUPS: tuple[Group, ...] = ("Conversions", "Texts", "Numbers", "Lists", "Maps")


def functions_page() -> str:
    """Return the page with the tables as they have to be."""
    before, _, rest = text_of(PAGE).partition(BEGIN)
    after = rest.partition(END)[2]
    tables = "\n".join(_table(group) for group in GROUPS)
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def _table(group: Group) -> str:
    rows = [_row(function) for function in FUNCTIONS.values() if function.group == group]
    return "\n".join([f"### {group}", "", "| function | gives | examples |", "| --- | --- | --- |", *rows, ""])


def _row(function: Function) -> str:
    forms = "<br>".join(f"`{form}`" for form in function.forms)
    examples = "<br>".join(f"`{text}` → `{value}`" for text, value in function.examples)
    return f"| {forms} | {function.meaning} | {examples} |"


if __name__ == "__main__":
    page = functions_page()
    (ROOT / PAGE).write_text(page, encoding="utf-8")
