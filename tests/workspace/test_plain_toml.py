"""Settings that are read without the whole reader of TOML are what that reader makes of them."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.depth import depth

from quire.workspace.plain_toml import read_plain_toml

PIECES = (
    "[a]", "[a.b]", "[ a ]", "[[a]]", "[a.]", "[]", "a", "b", "a.b", '"a"', "a-b_1", "ä", "=", " = ", "\n", "\n\n", " ",
    "\t", "#", "# about", '"', '"x"', '"x y"', '"#"', '"\\n"', '"""', "''", "'x'", "1", "0", "01", "-1", "+1", "1_000",
    "1.5", "1e3", "0x1", "inf", "nan", "true", "false", "True", "2026-01-01", "07:00:00", "[", "]", ",", '["a", "b"]',
    "[1, 2,]", "[true]", "[[1]]", "{}", '{a = "b"}', "\r\n", "\r", "\x00", "\x7f", "\u00a0", "\u2028", "\ufeff",
    "9" * 15, "9" * 16, "١", "a = 1\n", 'b = "x"  # y\n', "[c.d]\ne = [1]\n",
)  # fmt: skip


def told(value: object) -> object:
    """Return a value with its types: for Python, true is 1."""
    if isinstance(value, dict):
        return {key: told(one) for key, one in value.items()}
    if isinstance(value, list):
        return [told(one) for one in value]
    return type(value).__name__, value


@settings(max_examples=depth(400, 60_000), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("[a]\nb = 1\n[a.b]\nc = 1")
@example("[a.b]\nc = 1\n[a]\nb = 1")
@example("[a.b]\n[a]\n[a]")
@example("a = 1\n[a]\n")
@example('a = """x"""')
@example('a = ""x')
def test_every_text_is_left_alone_or_read_as_tomllib_reads_it(text: str) -> None:
    found = read_plain_toml(text)
    if found is not None:
        assert told(found) == told(tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        'top = "x"\n\n[models]\ndefault = "small" # ours\n[models.tiers]\nfast = "a:b"\n[runs]\nreply_tokens = 4096\n',
        '[tools]\nmodules = ["counting", "more"]\nallow = []\n[agents.reader]\ntools = ["file__read",]\n',
        "[trust]\nlocked = true\n\n[assume]\n\treaders = 20\n",
    ],
)
def test_usual_settings_are_read(text: str) -> None:
    assert told(read_plain_toml(text)) == told(tomllib.loads(text))


@pytest.mark.parametrize("text", ["[a]\n[a]", "a = 1\na = 2", "a = 1.5", "a.b = 1", 'a = "\\u0041"', "a = [\n1]", "a"])
def test_everything_else_is_left_alone(text: str) -> None:
    assert read_plain_toml(text) is None
