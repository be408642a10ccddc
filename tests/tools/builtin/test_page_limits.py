"""Pages of the web that are made to take long."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from quire.tools.builtin.connection import to_text

PAGES: dict[str, Callable[[int], str]] = {
    "blanks": lambda size: f"<pre>{' ' * size}x</pre>",
    "attributes": lambda size: f"<p {' '.join(f'a{number}=1' for number in range(size // 9))}>x",
    "links": lambda size: "<a href=x>y</a>" * (size // 15),
}


@pytest.mark.parametrize("kind", PAGES)
def test_reading_takes_time_in_proportion_to_the_page(kind: str) -> None:
    def seconds(size: int) -> float:
        page = PAGES[kind](size)
        begun = time.process_time()
        assert to_text(page, markdown=True)
        return time.process_time() - begun

    # Blanks took 7.5 s for 80,000, and the square of it for more.
    assert seconds(800_000) < max(20 * seconds(100_000), 3)


def test_blanks_before_the_end_of_a_line_are_left_out() -> None:
    assert to_text("<pre>a  \n\t\n b \t\n</pre>", markdown=False) == "a\n\n b"
