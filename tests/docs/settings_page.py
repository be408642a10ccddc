"""Writes the table of keys in `docs/reference/configuration.md` anew, from the table in the program.

python -m tests.docs.settings_page
"""

from __future__ import annotations

from tests.docs.pages import ROOT, text_of

from quire.workspace.setting_keys import SETTING_KEYS

PAGE = "docs/reference/configuration.md"
BEGIN = "<!-- made: keys -->\n"
END = "<!-- end: keys -->\n"


def settings_page() -> str:
    """Return the page with the table as it has to be."""
    before, _, rest = text_of(PAGE).partition(BEGIN)
    after = rest.partition(END)[2]
    rows = [f"| `{key.key}` | {key.default} | {key.meaning} |" for key in SETTING_KEYS]
    table = "\n".join(["| key | default | meaning |", "| --- | --- | --- |", *rows])
    return f"{before}{BEGIN}\n{table}\n\n{END}{after}"


if __name__ == "__main__":
    page = settings_page()
    (ROOT / PAGE).write_text(page, encoding="utf-8")
