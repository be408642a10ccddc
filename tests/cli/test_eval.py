"""The value on standard output, the caret on standard error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from quire.cli.syntax import eval_command

Invoke = Callable[..., Result]


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("1 + 2",), "3\n"),
        (("{a: [1, 2.0, null, true, 'é']}", "--json"), '{"a":[1,2.0,null,true,"é"]}\n'),
        (("pipe",), "null\n"),
        (("ctx.n + n", "--context", '{"n": 2}'), "4\n"),
        (("[ctx.n, n, m]", "--context", '{"ctx": {"n": 2}, "m": 3}'), "[2,2,3]\n"),
        (("[pipe, item]", "--context", '{"pipe": 1, "item": 2}'), "[1,2]\n"),
        (("--", "-1"), "-1\n"),
        (("upper(ctx.n)", "--dialect", "quire", "--context", '{"n": "a"}'), '"A"\n'),
        (("ctx", "--context", '{"big": 123456789012345678901234567890}'), '{"big":123456789012345678901234567890}\n'),
    ],
)
def test_the_value_is_printed(invoke: Invoke, arguments: tuple[str, ...], printed: str) -> None:
    result = invoke(eval_command, *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (0, printed, "")


def test_the_context_comes_from_a_file(invoke: Invoke, workspace: Path) -> None:
    (workspace / "context.json").write_text('\ufeff{"ctx": {"n": 41}}', encoding="utf-8")
    assert invoke(eval_command, "ctx.n + 1", "--context", "@context.json").stdout == "42\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "1 + + 2",
            "error[EX001]: expected a value, not +\n"
            " --> <expression>:1:5\n"
            "  |\n"
            "1 | 1 + + 2\n"
            "  |     ^\n"
            "  = help: numbers have no sign +\n\n",
        ),
        (
            "1 +",
            "error[EX001]: expected a value, not the end\n --> <expression>:1:4\n  |\n1 | 1 +\n  |    ^\n\n",
        ),
        (
            "ctx.n +\r\n ctx.mm.x",
            "error[EX002]: ctx.mm.x is absent: ctx has no mm\n"
            " --> <expression>:2:6\n"
            "  |\n"
            "2 |  ctx.mm.x\n"
            "  |      ^^\n"
            "  = help: get(ctx, 'mm.x') gives null instead of failing\n\n",
        ),
    ],
)
def test_a_broken_expression_is_marked(invoke: Invoke, text: str, shown: str) -> None:
    result = invoke(eval_command, text, "--context", '{"n": 1}')
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", shown)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        ("{", "--context is not JSON"),
        ("[1]", "not a JSON object"),
        ("NaN", "NaN is not a JSON value"),
        ("@missing.json", "--context @missing.json cannot be read: No such file"),
        ("@binary", "not UTF-8"),
    ],
)
def test_a_bad_context_is_a_bad_start(invoke: Invoke, workspace: Path, context: str, words: str) -> None:
    (workspace / "binary").write_bytes(b"\xff\xfe")
    result = invoke(eval_command, "1", "--context", context)
    assert result.exit_code == 2 and words in result.stderr and result.stdout == ""


def test_a_function_of_the_dialect_is_refused_with_the_flag_to_add(invoke: Invoke) -> None:
    result = invoke(eval_command, "upper('a')")
    assert result.exit_code == 1 and "the function upper belongs to the Quire dialect" in result.stderr
    assert "help: add --dialect quire to use it" in result.stderr
    assert invoke(eval_command, "upper('a')", "--dialect", "other").exit_code == 2


def test_bad_usage(invoke: Invoke) -> None:
    assert invoke(eval_command).exit_code == 2


def test_an_expression_of_another_language_is_translated(invoke: Invoke) -> None:
    result = invoke(eval_command, "ctx.numbers | sum")
    assert result.exit_code == 1 and "help: write sum(ctx.numbers)" in result.stderr
    result = invoke(eval_command, "--dialect", "quire", "ctx.name | upper")
    assert result.exit_code == 1 and "help: write upper(ctx.name)" in result.stderr
