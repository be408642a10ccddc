"""The picture of a run, and how it is painted."""

from __future__ import annotations

import asyncio
import io
import signal
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text
from tests.depth import depth

from quire.display.live import LiveView, Painter, wrapped_rows
from quire.display.live_frame import FrameState, frame, summary
from quire.display.run_views import JsonLines, PlainView
from quire.display.text import duration, money, one_line, visible
from quire.engine.progress import Progress
from quire.engine.records import EffectRecord, Event, Usage
from quire.library.document import read
from quire.source import Source

DOCUMENT = """# Doc

## STEP 1: First

One.

@output(x)

## STEP 2: Second

```if x == "a"```
### STEP 2a: Left
A.
```else```
### STEP 2b: Right
B.
### STEP 2c: Further right
C.
```endif```

## STEP 3: Third

Three.
"""


def progress(text: str = DOCUMENT) -> Progress:
    return Progress.of(read(Source.of(text, "doc.md")).runnable())


def happened(type: str, path: str, at: float = 100.0, **live: str) -> Event:
    return Event(type, "run", at, 1, path, path, {}, live)


def effect(path: str, elapsed: float, usage: Usage | None = None) -> Event:
    record = EffectRecord(path, "model", "ok", "", 100.0, None, None, usage, elapsed)
    return Event("effect", "run", 100.0, 1, path, "", {}, {}, False, record)


def lines(known: Progress, width: int = 80, height: int = 24, note: str = "") -> list[str]:
    return [line.plain for line in frame(known, width, height, FrameState(103.5, 12.0, note))]


def test_a_run_under_way() -> None:
    known = progress()
    for event in (
        happened("step_started", "1"),
        effect("1/model", 3.25, Usage(1000, 234, 0.0012)),
        happened("step_completed", "1", output="a", displayed="a"),
        happened("step_started", "2"),
        happened("step_started", "2/case[2]/1"),
        happened("delta", "2/case[2]/1/model", text="some text"),
    ):
        known.apply(event)
    assert lines(known) == [
        "✓ 1 First  3.2s · 1,234 tokens · $0.0012  │ a",
        "⠋ 2 Second  3.5s",
        "  ⠋ 2b Right  3.5s",
        "  │ some text",
        "  ○ 2c Further right",
        "○ 3 Third",
        "step 2 of 3 · 12.0s · 1,234 tokens · $0.0012 · Ctrl-C pauses",
    ]
    assert lines(known, note="pausing")[-1] == "pausing"
    assert [line[:9].rstrip() for line in lines(known, width=14)] == [
        "✓ 1 First",
        "⠋ 2 Secon",
        "  ⠋ 2b Ri",
        "  │ some",
        "  ○ 2c Fu",
        "○ 3 Third",
        "step 2 of",
    ]


def test_a_finished_step_shows_the_beginning_of_its_result() -> None:
    """§4: on one line, cut to the width, and without what drives a terminal."""
    known = progress()
    known.apply(happened("step_completed", "1", output="one\n\ntwo \x1b[2J" + "x" * 99))
    assert lines(known, width=40)[0].startswith("✓ 1 First  │ one two ")
    assert (len(lines(known, width=40)[0]), lines(known, width=40)[0][-1]) == (39, "…")
    assert lines(known, width=24)[0] == "✓ 1 First"


def test_the_summary_has_every_step_and_only_the_arm_that_was_taken() -> None:
    known = progress()
    for event in (
        happened("step_completed", "1", output="a"),
        happened("step_started", "2"),
        happened("step_completed", "2/case[1]/1", output="b"),
        happened("step_completed", "2", output="b"),
        happened("step_failed", "3"),
    ):
        known.apply(event)
    shown = [line.plain for line in summary(known, 80, FrameState(0, 1.5))]
    assert shown == ["✓ 1 First  │ a", "✓ 2 Second  │ b", "  ✓ 2a Left  │ b", "✗ 3 Third", "2 of 3 steps · 1.5s"]
    ascii = [line.plain[:1] for line in summary(known, 80, FrameState(0, 1.5, unicode=False))]
    assert ascii == ["+", "+", " ", "x", "2"]


def test_a_long_document_is_shown_around_its_current_step() -> None:
    known = progress("# Long\n\n" + "".join(f"## STEP {n}: Step {n}\n\nx\n\n" for n in range(1, 51)))
    for number in range(1, 30):
        known.apply(happened("step_completed", str(number), output="x"))
    known.apply(happened("step_started", "30"))
    shown = lines(known, height=10)
    assert len(shown) == 9
    assert shown[0].strip() == "… 26 above" and shown[-2].strip() == "… 18 below"
    assert any("30 Step 30" in line for line in shown)
    assert "30 Step 30" in lines(known, height=3)[0]


@settings(max_examples=depth(25, 60), deadline=None)
@given(
    width=st.integers(1, 120),
    height=st.integers(1, 40),
    text=st.text(max_size=400) | st.just("世界 " * 80) | st.just("\x1b[2J\x9b31m" * 40),
)
def test_a_picture_fits_and_holds_no_control_characters(width: int, height: int, text: str) -> None:
    known = progress()
    known.apply(happened("step_started", "1"))
    known.apply(happened("delta", "1/model", text=text))
    known.steps["3"].title = text
    picture = frame(known, width, height, FrameState(101.0, 1.0))
    assert 1 <= len(picture) <= max(1, height - 1)
    assert all(line.cell_len <= max(1, width - 1) for line in picture)
    assert not any(unicodedata.category(character) == "Cc" for line in picture for character in line.plain)


def test_a_prompt_that_is_read() -> None:
    known = progress()
    known.apply(happened("step_started", "1"))
    shown = []
    for event in (
        happened("reading", "1/model", processed=768, total=2031),
        happened("reading", "1/model", processed=2031, total=2031),
        happened("reading", "1/model", processed=256, total=2031),
        happened("delta", "1/model", text="So"),
    ):
        known.apply(event)
        shown.append(lines(known)[1])
    assert shown == ["  │ reading the prompt 768/2,031", "○ 2 Second", "  │ reading the prompt 256/2,031", "  │ So"]


def test_a_prompt_that_is_read_for_long_is_said_once() -> None:
    known, out = progress(), io.StringIO()
    view = PlainView(known, out)
    for at, processed in ((100, 256), (109, 512), (110, 768), (130, 1024), (131, 2031)):
        event = Event("reading", "r", at, 0, "1/model", "1", {}, {"processed": processed, "total": 2031})
        known.apply(event)
        view.show(event)
    assert out.getvalue() == "  reading the prompt 768/2,031\n"


def terminal(width: int = 40) -> Console:
    return Console(file=io.StringIO(), width=width, height=24, force_terminal=True, color_system=None)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    console.file.seek(0)
    console.file.truncate()
    return text


def test_a_picture_is_painted_over_the_last_one_in_a_single_write() -> None:
    console = terminal()
    painter = Painter(console)
    painter.paint([Text("x" * 30), Text("y")])
    assert written(console) == "\r" + "x" * 30 + "\x1b[K\ny\x1b[K\n\x1b[J"
    painter.paint([Text("z")])
    assert written(console) == "\r\x1b[2Az\x1b[K\n\x1b[J"
    painter.clear()
    assert written(console) == "\r\x1b[1A\x1b[2K\x1b[1B\x1b[J\x1b[1A"
    painter.clear()
    assert written(console) == ""


def test_a_narrower_window_has_wrapped_the_last_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "x")
    console = terminal(width=40)
    painter = Painter(console)
    painter.paint([Text("x" * 30), Text("y")])
    written(console)
    console.width = 12
    painter.clear()
    assert written(console) == erased(4)


def erased(rows: int) -> str:
    """Row by row: tmux puts a screen that is erased at once into its history, and joins wrapped rows again that were
    only painted over."""
    return f"\r\x1b[{rows}A" + "\x1b[2K\x1b[1B" * rows + f"\x1b[J\x1b[{rows}A"


@pytest.mark.parametrize(
    ("line", "width", "rows"),
    [("x" * 30, 10, 3), ("x" * 31, 10, 4), ("日本語日本語", 5, 3), ("x日本", 4, 2), ("日本語", 1, 3), ("", 5, 1)],
)
def test_rows_of_a_line_in_a_narrower_window(line: str, width: int, rows: int) -> None:
    """A wide letter never stands in two rows: 12 cells are three rows of five."""
    assert wrapped_rows(line, width) == rows


def test_a_picture_is_erased_before_one_of_another_width_is_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMUX", "x")
    console = terminal(width=40)
    painter = Painter(console)
    painter.paint([Text("日" * 15), Text("y")])
    written(console)
    console.width = 9
    painter.paint([Text("z")])
    assert written(console) == erased(5) + "z\x1b[K\n\x1b[J"
    console.width = 50
    painter.paint([Text("z")])
    assert written(console) == erased(1) + "z\x1b[K\n\x1b[J"
    painter.paint([Text("z")])
    assert written(console) == "\r\x1b[1Az\x1b[K\n\x1b[J"


@pytest.mark.parametrize("environ", [{"XTERM_VERSION": "XTerm(380)"}, {"TERM": "linux"}, {"TERM": "screen"}])
def test_a_terminal_that_cuts_lines_keeps_what_is_above(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    console = terminal(width=40)
    painter = Painter(console)
    painter.paint([Text("x" * 30), Text("y")])
    written(console)
    console.width = 12
    painter.clear()
    assert written(console) == erased(2)


async def test_nothing_is_painted_over_the_shell_after_bg(monkeypatch: pytest.MonkeyPatch) -> None:
    known, console, foreground = progress(), terminal(), [False]
    monkeypatch.setattr("quire.display.live.may_paint", lambda stream: foreground[0])
    monkeypatch.setattr("quire.display.live.SECONDS_BETWEEN_PICTURES", 0)
    view = LiveView(known, console)
    view.start()
    for _ in range(3):
        await asyncio.sleep(0)
    assert written(console) == ""
    foreground[0] = True
    for _ in range(3):
        await asyncio.sleep(0)
    assert "1 First" in written(console)
    view.stop()


async def test_nothing_is_painted_over_the_shell_after_fg(monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-Z and `fg` the shell has written below the picture, and no tick saw that."""
    known, console = progress(), terminal()
    monkeypatch.setattr("quire.display.live.SECONDS_BETWEEN_PICTURES", 0)
    before = signal.getsignal(signal.SIGCONT)
    view = LiveView(known, console)
    view.start()
    for _ in range(3):
        await asyncio.sleep(0)
    assert "\x1b[4A" in written(console)
    signal.raise_signal(signal.SIGCONT)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not written(console).startswith("\r\x1b[")
    view.stop()
    assert signal.getsignal(signal.SIGCONT) is before


async def test_a_delta_paints_nothing() -> None:
    known, console = progress(), terminal()
    view = LiveView(known, console)
    view.start()
    for _ in range(1000):
        event = happened("delta", "1/model", text="word ")
        known.apply(event)
        view.show(event)
    assert written(console) == ""
    view.stop()
    assert "0 of 3 steps" in written(console)


async def test_waiting_for_a_person_is_not_the_steps_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "time", lambda: clock[0])
    known, console = progress(), terminal()
    view = LiveView(known, console)
    view.start()
    known.apply(happened("step_started", "1", at=1000.0))
    clock[0] += 2
    view.pause()
    clock[0] += 60
    view.resume()
    clock[0] += 1
    view.stop()
    shown = written(console)
    assert "1 First  3.0s" in shown and "0 of 3 steps · 3.0s" in shown


def test_plain_lines_survive_what_comes_between() -> None:
    known, out = progress(), io.StringIO()
    view = PlainView(known, out)
    for event in (
        happened("step_started", "1"),
        Event("warning", "run", 0.0, 1, "1", "1", {"message": "odd\x1b[2J"}),
        effect("1/model", 61.0),
        happened("step_completed", "1", output="a"),
        happened("step_started", "2"),
        happened("step_skipped", "2"),
        happened("step_started", "3"),
    ):
        known.apply(event)
        view.show(event)
    view.stop()
    assert out.getvalue().splitlines() == [
        "[1/3] First …",
        "warning: step 1: odd␛[2J",
        "[1/3] First … done 1m 01s",
        "[2/3] Second … skipped",
        "[3/3] Third …",
    ]


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_has_gone_is_noticed_once() -> None:
    told: list[str] = []
    view = JsonLines(Gone(), io.StringIO())
    view.gone = lambda error: told.append("gone")
    view.show(happened("step_started", "1"))
    view.show(happened("step_completed", "1"))
    assert told == ["gone"] and view.broken
    PlainView(progress(), Gone()).say("nobody hears this")


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.04, "0.0s"), (12.34, "12.3s"), (59.96, "1m 00s"), (200, "3m 20s"), (7500, "2h 05m")]
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(("cost", "shown"), [(0.0, ""), (0.00123, "$0.0012"), (None, "cost unknown")])
def test_money(cost: float | None, shown: str) -> None:
    assert money(cost) == shown


def test_hidden_characters_are_shown() -> None:
    assert visible("a\x1b[1m\tb\r\nc\rd\u202e") == "a␛[1m\tb\nc␍d\\u202e"
    assert one_line(" a\n b\x07") == "a b␇"


def test_the_object_of_extract_is_not_in_the_picture() -> None:
    """Also for a step of a document that is called, which the plan at hand does not have."""
    for path in ("1", "1/call/2"):
        known = progress(DOCUMENT.replace("@output(x)", '@output(x, extract:"level")'))
        known.apply(happened("step_started", "1"))
        known.apply(happened("step_started", path, extract="level"))
        for piece in ("Well", ".\n```js", 'on\n{"lev', 'el": "hi"}\n', "```"):
            known.apply(happened("delta", f"{path}/model", text=piece))
            lines = "\n".join(line.plain for line in frame(known, 80, 24, FrameState(100.0, 1.0)))
            assert "│ Well" in lines
            assert "lev" not in lines
            assert "```" not in lines
        known.apply(happened("delta", f"{path}/model", text="\nMore"))
        assert "│ More" in "\n".join(line.plain for line in frame(known, 80, 24, FrameState(100.0, 1.0)))
