"""The lists of tools and of versions are those of the program."""

from __future__ import annotations

from tests.docs.pages import text_of
from tests.docs.tools_page import tools_page
from tests.docs.versions_page import versions_page


def test_the_list_of_tools_is_that_of_the_program() -> None:
    assert text_of("docs/reference/tools-list.md") == tools_page(), (
        "python -m tests.docs.tools_page > docs/reference/tools-list.md"
    )


def test_the_versions_are_those_of_the_program() -> None:
    assert text_of("docs/reference/versions.md") == versions_page(), (
        "python -m tests.docs.versions_page > docs/reference/versions.md"
    )
