"""The page of test files is made from their schema, and its example is right."""

from __future__ import annotations

from tests.docs.pages import text_of
from tests.docs.tests_page import EXAMPLE
from tests.docs.tests_page import tests_page as page_text

from quire.formats.test.parse import parse
from quire.source import Source


def test_the_page_is_that_of_the_schema() -> None:
    assert text_of("docs/reference/test-files.md") == page_text(), (
        "python -m tests.docs.tests_page > docs/reference/test-files.md"
    )


def test_the_example_is_right() -> None:
    assert parse(Source.of(EXAMPLE, "tagline.test.yaml")).diagnostics == ()
