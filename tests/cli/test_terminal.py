"""`quire run` as a person sees it: on a real terminal, with real keys."""

from __future__ import annotations

import os
import re
import select
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.given import given
from tests.warm import start_quire

fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")

PATIENCE = 20.0
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CTRL_C, CTRL_D = "\x03", "\x04"

TWO = "# Two\n\n## STEP 1: First\n\nFirst.\n\n## STEP 2: Second\n\nSecond.\n"
ASKING = """# Ask

## STEP 1: Draft

Draft.

## STEP 2: Choose

@elicit(select, "Which way?", "ship it", "rework")

## STEP 3: Sure

@elicit(confirm, "Sure?")

## STEP 4: Name

@elicit(input, "Called?", default:"Ann")

## STEP 5: Write

Write {{__elicit_step_2}} {{__elicit_step_3}} {{__elicit_step_4}}.
"""


class Screen:
    """A process on a terminal of its own."""

    def __init__(self, arguments: list[str], env: Mapping[str, str], size: tuple[int, int] = (30, 90)) -> None:
        self.master, slave = os.openpty()
        self.resize(*size)
        kept = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")
        }  # of a worker of tests
        environ = {**kept, "TERM": "xterm-256color", **env}
        self.process = start_quire(
            arguments, cwd=Path.cwd(), env=environ, stdin=slave, stdout=slave, stderr=slave, terminal=True
        )
        os.close(slave)
        self.raw = ""
        self._seen = 0

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_for(self, *texts: str) -> str:
        """Everything new up to where the texts are on the screen, one after the other."""
        wanted = re.compile(".*".join(map(re.escape, texts)), re.DOTALL)
        give_up = time.monotonic() + PATIENCE
        while not wanted.search(new := ANSI.sub("", self.raw[self._seen :])):
            if time.monotonic() > give_up or not self._read():
                raise AssertionError(f"{texts!r} did not come; the screen has {new!r}")
        self._seen = len(self.raw)
        return new

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def end(self) -> tuple[int, str]:
        """The exit code, and everything that has not been waited for."""
        while self._read():
            pass
        return self.process.wait(PATIENCE), ANSI.sub("", self.raw[self._seen :])

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.master], [], [], PATIENCE)
        try:
            data = os.read(self.master, 65536) if ready else b""
        except OSError:
            # How Linux says that nobody has the terminal open any more.
            return False
        self.raw += data.decode("utf-8", "replace")
        return bool(data)


Quire = Callable[..., Screen]


@pytest.fixture
def quire(workspace: Path) -> Iterator[Quire]:
    screens: list[Screen] = []

    def start(*arguments: str, size: tuple[int, int] = (30, 90), **env: str) -> Screen:
        screens.append(Screen(list(arguments), env, size))
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


def put(text: str, *replies: object) -> tuple[str, str, str]:
    """Writes a document and its script; the arguments that run them."""
    given({"page.md": text, "replies.json": replies})
    return "page.md", "--script", "replies.json"


def test_the_steps_are_shown_and_the_output_comes_last(quire: Quire) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 234, "cost": 0.0012}
    screen = quire("run", *put(TWO, {"reply": "one", "delay_ms": 250, "usage": usage}, {"reply": "the end"}))
    screen.wait_for("step 1 of 2")
    code, rest = screen.end()
    assert code == 0
    assert "✓ 1 First" in rest and "✓ 2 Second" in rest
    assert "2 of 2 steps" in rest and "1,234 tokens · $0.0012" in rest
    assert rest.rstrip().endswith("the end")


def test_what_a_model_writes_cannot_drive_the_terminal(quire: Quire) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J [red]markup[/red] \u202eback"
    text = TWO.replace("First.", "First.\n\n@output(x)")
    screen = quire("run", *put(text, {"reply": evil}, {"reply": evil, "delay_ms": 250}))
    code, rest = screen.end()
    assert code == 0
    assert "\x1b]0" not in screen.raw and "\x1b[2J" not in screen.raw and "\u202e" not in screen.raw
    assert "␛]0;owned␇␛[2J [red]markup[/red]" in rest


def test_questions_are_asked_in_place(quire: Quire) -> None:
    script = ({"step": "1", "reply": "a draft to look at"}, {"contains": "Write rework no Ann.", "reply": "the end"})
    screen = quire("run", *put(ASKING, *script))
    asked = screen.wait_for("a number or an option: ")
    assert "a draft to look at" in asked
    assert "step 2 (Choose) asks: Which way?\r\n  1. ship it\r\n  2. rework" in asked
    screen.press("neither\n")
    screen.wait_for("answer one of: ship it | rework", "option: ")
    screen.press("2\n")
    screen.wait_for("yes or no: ")
    screen.press("n\n")
    screen.wait_for("answer [Ann]: ")
    screen.press("\n")
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("the end")


def test_a_question_is_rendered_as_markdown(quire: Quire) -> None:
    text = TWO.replace("Second.", '@elicit(confirm, "## Ready\\n\\n- **send** it\\n- {{x}}\\n\\n`now`?")')
    evil = {"reply": "\x1b]0;owned\x07 <b>all</b>"}
    screen = quire("run", *put(text.replace("First.", "First.\n\n@output(x)"), evil))
    asked = screen.wait_for("yes or no: ")
    rows = [row.strip() for row in asked.partition("asks:")[2].split("\r\n")]
    assert rows[1:6] == ["Ready", "", "• send it", "• ␛]0;owned␇ <b>all</b>", ""]
    assert rows[6] == "now?" and "\x1b]0" not in screen.raw
    screen.press("y\n")
    assert screen.end()[0] == 0


def test_ctrl_c_pauses_after_the_step(quire: Quire) -> None:
    screen = quire("run", *put(TWO, {"reply": "one", "delay_ms": 700}, "the end"))
    screen.wait_for("step 1 of 2")
    screen.press(CTRL_C)
    screen.wait_for("pausing after this step … (Ctrl-C again stops at once)")
    code, rest = screen.end()
    assert code == 130
    assert "✓ 1 First" in rest and "○ 2 Second" in rest and "^C" not in rest
    assert "paused at step 1: quire resume " in rest
    code, rest = quire("resume", "last").end()
    assert code == 0 and rest.rstrip().endswith("the end")


def test_ctrl_c_twice_stops_at_once(quire: Quire) -> None:
    screen = quire("run", *put(TWO, "one", {"reply": "two", "delay_ms": 60_000}))
    screen.wait_for("step 2 of 2")
    screen.press(CTRL_C)
    screen.wait_for("pausing")
    screen.press(CTRL_C)
    code, rest = screen.end()
    assert code == 130
    assert "✓ 1 First" in rest and "‖ 2 Second" in rest
    assert "paused at step 2: quire resume " in rest


@pytest.mark.parametrize(("key", "code"), [(CTRL_C, 130), (CTRL_D, 4)])
def test_a_question_that_is_left_stays_in_the_inbox(quire: Quire, key: str, code: int) -> None:
    screen = quire("run", *put(ASKING, {"default": "x"}))
    screen.wait_for("option: ")
    screen.press(key)
    ended, rest = screen.end()
    assert ended == code
    found = re.search(r"quire answer (\S+) VALUE", rest)
    assert found and ("quire resume" in rest) == (key == CTRL_C)
    again = quire("answer", found[1], "ship it")
    again.wait_for("yes or no: ")
    again.press(CTRL_C)
    assert "quire answer" in again.end()[1]


def test_a_question_on_one_terminal_is_answered_on_another(quire: Quire) -> None:
    script = ({"step": "1", "reply": "a draft"}, {"contains": "Write rework no Bob.", "reply": "the end"})
    first = quire("run", *put(ASKING, *script))
    first.wait_for("a number or an option: ")
    code, inbox = quire("inbox").end()
    assert code == 0 and "step 2 (select): Which way?" in inbox
    first.press("shi")  # half an answer, which nobody needs any more
    code, rest = quire("answer", "last", "rework").end()
    assert code == 0 and "stored; the run continues in its own process" in rest
    asked = first.wait_for("yes or no: ")
    assert "step 2 was answered elsewhere: rework" in asked
    first.press("n\n")
    first.wait_for("answer [Ann]: ")
    code, rest = quire("answer", "last", "2", "ship it").end()
    assert code == 2 and "asks nothing at step 2 (it is running)" in rest
    first.press("Bob\n")
    code, rest = first.end()
    assert code == 0 and rest.rstrip().endswith("the end")
    code, inbox = quire("inbox").end()
    assert "nothing waits for an answer" in inbox


def test_an_answer_at_the_terminal_closes_the_waiting_question(quire: Quire) -> None:
    screen = quire("run", *put(ASKING, {"default": "x"}))
    screen.wait_for("option: ")
    screen.press(CTRL_C)
    screen.end()
    screen = quire("resume", "last")
    screen.wait_for("option: ")
    screen.press("1\n")
    screen.wait_for("yes or no: ")
    screen.press(CTRL_C)
    # One question is open, so no step has to be named.
    assert re.search(r"quire answer \S+ VALUE", screen.end()[1])


def test_missing_inputs_are_asked_for_by_their_type(quire: Quire) -> None:
    text = """# In

## INPUTS
- `name` (string): Who
- `age` (number)
- `nice` (boolean)
- `colour` (enum: red, green)
- `story` (text)
- `spare` (string: none): Not asked for

## STEP 1: Write

{{name}}|{{age}}|{{nice}}|{{colour}}|{{story}}|{{spare}}
"""
    script = {"contains": "Ann|42|true|green|one\n\ntwo|none", "reply": "right"}
    screen = quire("run", *put(text, script, {"default": "wrong"}))
    for prompt, keys in (
        ("> ", "\n"),
        ("a value is needed", "Ann\n"),
        ("a number: ", "many\n"),
        ('"many" is not a number', "42\n"),
        ("y or n: ", "y\n"),
        ("a number or an option: ", "2\n"),
        ("a line with only . or Ctrl-D ends)", "one\n\ntwo\n.\n"),
    ):
        screen.wait_for(prompt)
        screen.press(keys)
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("right")


def test_giving_up_on_an_input_starts_nothing(quire: Quire, workspace: Path) -> None:
    screen = quire("run", *put("# In\n\n## INPUTS\n- `a` (string)\n\n## STEP 1: W\n\n{{a}}\n", "x"))
    screen.wait_for("> ")
    screen.press(CTRL_C)
    assert screen.end()[0] == 130
    assert not (workspace / ".quire").exists()


@pytest.mark.parametrize(
    ("keys", "code"),
    [("n\r", 6), ("\r", 6), ("yo\x1b[D\x1b[D\x1b[C\x7f\x1b[C\x7fno\r", 6), (CTRL_C, 130), (CTRL_D, 6)],
    ids=["no", "default", "arrows", "ctrl-c", "ctrl-d"],
)
def test_trust_is_asked_for_in_the_line_editor(quire: Quire, workspace: Path, keys: str, code: int) -> None:
    """Arrow keys move in the line, and never land in the answer."""
    given({"quire.toml": '[models]\ndefault = "x:y"\n[models.providers.x]\nbase_url = "http://[::1]:9"\n'}, workspace)
    Path("page.md").write_text(TWO)
    screen = quire("run", "page.md")
    assert "send prompts of the provider x to http://[::1]:9" in screen.wait_for("yes or no [no]: ")
    screen.press(keys)
    ended, rest = screen.end()
    assert ended == code and "answer yes or no" not in rest
    assert ("quire trust workspace" in rest) is (code == 6)


def test_the_arrows_choose_yes_or_no(quire: Quire, workspace: Path) -> None:
    (workspace / "quire.toml").write_text('[models.providers.x]\nbase_url = "http://[::1]:9"\n')
    screen = quire("trust", "workspace")
    screen.wait_for("yes or no [no]: ")
    screen.press("\x1b[B\x1b[B\x1b[A\r")
    code, rest = screen.end()
    assert code == 0 and "agreed; any change asks again" in rest


@pytest.mark.parametrize("size", [(30, 90), (5, 20), (2, 8)])
def test_any_size_will_do(quire: Quire, size: tuple[int, int]) -> None:
    screen = quire("run", *put(TWO, {"reply": "word " * 50, "delay_ms": 250}, "the end"), size=size)
    screen.resize(3, 12)
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("the end") and "Traceback" not in rest


def test_a_terminal_that_can_do_nothing_gets_lines(quire: Quire) -> None:
    screen = quire("run", *put(TWO, {"default": "x"}), TERM="dumb")
    code, _ = screen.end()
    assert code == 0 and "\x1b" not in screen.raw
    assert "[2/2] Second … done" in screen.raw


def test_without_colour(quire: Quire) -> None:
    screen = quire("run", *put(TWO, {"default": "x"}), NO_COLOR="1")
    assert screen.end()[0] == 0
    codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", screen.raw) for code in found.split(";")}
    assert not {code for code in codes if code and int(code) >= 30}


def test_a_wrong_answer_is_asked_for_again_before_the_next_item_asks(quire: Quire) -> None:
    ask = '{tool: {name: ask, args: {prompt: "Which?", type: select, options: [x, y]}}}'
    fan = f"{{items: [a, b], on_error: abort, do: {ask}, collect: {{transform: {{value: \"join(pipe, '+')\"}}}}}}"
    Path("asks.yaml").write_text(f"pipeline: asks\nsteps:\n  - for_each: {fan}\n")
    screen = quire("run", "asks.yaml")
    for asked, keys in (("1/for_each[0]/ask", "z\n"), ("answer one of: x | y", "x\n"), ("1/for_each[1]/ask", "y\n")):
        screen.wait_for(asked, "a number or an option: ")
        screen.press(keys)
    code, rest = screen.end()
    assert code == 0 and rest.rstrip().endswith("x+y")


def test_a_run_that_is_cancelled_elsewhere_ends_below_its_question(quire: Quire) -> None:
    screen = quire("run", *put(ASKING, "a draft"))
    screen.wait_for("a number or an option: ")
    assert quire("cancel", "last").end()[0] == 0
    code, rest = screen.end()
    assert code == 3 and "cancelled at step 2" in rest
    assert re.match(r"(a number or an option:)?\s*\n", rest), "nothing more on the line of the prompt"
