"""What is typed at a real terminal arrives as it was meant (G2): editing keys, pasted texts, long lines, `$EDITOR`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.cli.test_terminal import CTRL_C, Quire, put, quire

__all__ = ["quire"]

LEFT, UP, DOWN, HOME = "\x1b[D", "\x1b[A", "\x1b[B", "\x1b[H"
EDITOR_KEYS = "\x18\x05"
INPUT = '# Ask\n\n## STEP 1: Name\n\n@elicit(input, "Called?")\n\n## STEP 2: Write\n\nWrite {{__elicit_step_1}}.\n'
SELECT = INPUT.replace('@elicit(input, "Called?")', '@elicit(select, "Which?", "red", "green", "blue")')
TEXT = "# In\n\n## INPUTS\n- `story` (text)\n\n## STEP 1: W\n\n<{{story}}>\n"


def pasted(text: str) -> str:
    """As a terminal sends what is pasted."""
    return f"\x1b[200~{text}\x1b[201~"


def expects(answer: str) -> tuple[object, ...]:
    return {"contains": f"Write {answer}.", "reply": "right"}, {"default": "wrong"}


LONG = "x" * 6000
ANSWERS = [
    pytest.param("helo" + LEFT + "l\n", "hello", id="arrow keys"),
    pytest.param("ello" + HOME + "h\n", "hello", id="home"),
    pytest.param("helxy\x7f\x7flo\n", "hello", id="backspace"),
    pytest.param("日本" + LEFT + "の\n", "日の本", id="wide characters"),
    pytest.param(pasted("one\r\ntwo\rthree") + "\n", "one\ntwo\nthree", id="paste"),
    pytest.param("one\x1b\rtwo\n", "one\ntwo", id="alt-enter"),
    pytest.param(pasted(LONG) + "\n", LONG, id="more than 4,095 characters"),
]


@pytest.mark.parametrize(("keys", "answer"), ANSWERS)
def test_what_is_typed_is_what_is_answered(quire: Quire, keys: str, answer: str) -> None:
    screen = quire("run", *put(INPUT, *expects(answer)))
    screen.wait_for("answer: ")
    screen.press(keys)
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("right")


@pytest.mark.parametrize(
    ("keys", "answer"), [(DOWN + DOWN, "green"), (UP, "blue"), (DOWN + UP, "blue"), ("gre\x08\x08\x083", "blue")]
)
def test_arrows_choose_an_option(quire: Quire, keys: str, answer: str) -> None:
    screen = quire("run", *put(SELECT, *expects(answer)))
    screen.wait_for("a number or an option: ")
    screen.press(keys + "\n")
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("right")


def test_up_brings_back_the_answer_before(quire: Quire) -> None:
    text = INPUT.replace("## STEP 2", '## STEP 2: Again\n\n@elicit(input, "And?")\n\n## STEP 3')
    text = text.replace("Write {{__elicit_step_1}}", "Write {{__elicit_step_2}}")
    screen = quire("run", *put(text, *expects("Ann!")))
    screen.wait_for("answer: ")
    screen.press("Ann\n")
    screen.wait_for("And?", "answer: ")
    screen.press(UP + "!\n")
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("right")


@pytest.fixture
def editor(tmp_path: Path) -> str:
    script = tmp_path / "editor.sh"
    script.write_text('#!/bin/sh\nprintf "%s\\nsecond\\n" "$(cat "$1")" > "$1.new" && mv "$1.new" "$1"\n')
    script.chmod(0o755)
    return str(script)


def test_a_long_text_is_written_in_an_editor(quire: Quire, editor: str) -> None:
    screen = quire("run", *put(INPUT, *expects("first\nsecond")), EDITOR=editor, VISUAL="")
    screen.wait_for("answer: ")
    screen.press("first" + EDITOR_KEYS)
    screen.wait_for("second")
    screen.press("\n")
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("right")


def test_an_editor_that_is_not_there_loses_nothing(quire: Quire) -> None:
    screen = quire("run", *put(INPUT, *expects("first")), EDITOR="no-such-editor", VISUAL="")
    screen.wait_for("answer: ")
    screen.press("first" + EDITOR_KEYS)
    screen.wait_for("set $EDITOR to another one", "answer: first")
    screen.press("\n")
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("right")


def test_an_editor_is_ended_when_the_question_is_answered_elsewhere(quire: Quire, tmp_path: Path) -> None:
    script = tmp_path / "editor.sh"
    script.write_text("#!/bin/sh\necho editing >&2\nexec sleep 60\n")
    script.chmod(0o755)
    screen = quire("run", *put(INPUT, *expects("Bob")), EDITOR=str(script), VISUAL="")
    screen.wait_for("answer: ")
    screen.press(EDITOR_KEYS)
    screen.wait_for("editing")
    assert quire("answer", "last", "Bob").end()[0] == 0
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("right")


@pytest.mark.parametrize(
    "keys", [pasted("one\r\r  two") + "\n.\n", pasted("one\n\n  two\n.") + "\n", "one\n\n  two\x04"]
)
def test_an_asked_for_text_has_paragraphs(quire: Quire, keys: str) -> None:
    script = ({"contains": "<one\n\n  two>", "reply": "right"}, {"default": "wrong"})
    screen = quire("run", *put(TEXT, *script))
    screen.wait_for("or Ctrl-D ends)")
    screen.press(keys)
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("right")


def test_a_window_that_changes_its_size_keeps_the_answer(quire: Quire) -> None:
    screen = quire("run", *put(INPUT, *expects("a" * 100)))
    screen.wait_for("answer: ")
    screen.press("a" * 50)
    screen.wait_for("a" * 50)
    screen.resize(20, 30)
    screen.press("a" * 50 + "\n")
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("right")


def test_the_terminal_is_left_as_it_was(quire: Quire) -> None:
    import termios

    screen = quire("run", *put(INPUT, "x"))
    before = termios.tcgetattr(screen.master)
    screen.wait_for("answer: ")
    assert not termios.tcgetattr(screen.master)[3] & termios.ICANON
    screen.press("half an answer" + CTRL_C)
    screen.wait_for("quire resume")
    assert screen.end()[0] == 130
    after = termios.tcgetattr(screen.master)
    assert after[3] == before[3]


def test_nothing_of_it_is_loaded_before_somebody_types(workspace: Path) -> None:
    import subprocess
    import sys

    arguments = ["run", *put("# T\n\n## STEP 1: A\n\nGo.\n", "ok")]
    code = (
        f"import sys; from quire.cli import main; main({json.dumps(arguments)}); print('prompt_toolkit' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.stdout.split() == ["ok", "False"]
