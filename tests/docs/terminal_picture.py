"""Draw a run in a terminal: `python -m tests.docs.terminal_picture` writes docs/pictures/terminal-run.svg.

The commands of the README are typed into a real terminal (tmux) in an empty folder. A script stands for the model. The
screen at the end, with its colours, is drawn as SVG, without letters or styles from elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text
from tests.processes import wait_until

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "terminal-run.svg"
WIDTH, HEIGHT = 84, 40
TITLE = "Steps that are followed"
REPLIES = [
    {
        "step": "1",
        "reply": 'How the sound is made, and why a cat makes it. The question is simple.\n\n{"difficulty": "simple"}',
        "usage": {"input_tokens": 133, "output_tokens": 28},
    },
    {
        "step": "3b",
        "reply": "Muscles of the larynx move some 25 times a second. Cats purr when content, and also when hurt. "
        "Why they do is not known for sure.",
        "usage": {"input_tokens": 214, "output_tokens": 41},
    },
]
PROMPT = "$ "
SCENE = (
    ("quire new playbook hello", f"\n{PROMPT.rstrip()}"),
    ("quire run hello.playbook.md", "> "),
    ("why do cats purr?", "a number or an option"),
    ("short", "3 of 3 steps"),
)
"""What is typed, and the text on the screen that shows that the next may be typed."""
FRAME = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; }}
.{unique_id}-title {{ font-family: ui-sans-serif, Arial, sans-serif; font-size: 18px; }}
{styles}
</style>
<defs>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own frame loads a font from another host."""


def record(folder: Path) -> str:
    """Type the scene on a terminal of its own, and return its last screen with its colours."""
    work = folder / "work"
    work.mkdir()
    (work / "replies.json").write_text(json.dumps(REPLIES), encoding="utf-8")
    (work / "quire.toml").write_text('[models]\ndefault = "script:replies.json"\n', encoding="utf-8")
    tmux = ("tmux", "-S", str(folder / "socket"), "-f", os.devnull)

    def screen(*options: str) -> str:
        return subprocess.run((*tmux, "capture-pane", "-p", *options), capture_output=True, text=True).stdout

    bin = Path(sys.executable).parent
    environ = {"PATH": f"{bin}{os.pathsep}{os.environ['PATH']}", "QUIRE_HOME": str(folder / "home"), "PS1": PROMPT}
    environ |= {"HOME": str(folder), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    shell = ("env", "-i", *(f"{name}={value}" for name, value in environ.items()), "bash", "--norc", "--noprofile")
    start = ("new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), "-c", str(work), *shell)
    subprocess.run((*tmux, *start), check=True)
    try:
        wait_until(lambda: screen().startswith(PROMPT.rstrip()), screen)
        for typed, then in SCENE:
            subprocess.run((*tmux, "send-keys", "-l", typed), check=True)
            wait_until(lambda text=typed: text in screen(), screen)  # type: ignore[misc]
            subprocess.run((*tmux, "send-keys", "Enter"), check=True)
            wait_until(lambda text=then, line=typed: text in screen().rstrip().rpartition(line)[2], screen)  # type: ignore[misc]
        wait_until(lambda: screen().rstrip("\n").endswith(PROMPT.rstrip()), screen)
        return screen("-e").rstrip().removesuffix(PROMPT.rstrip()).rstrip()
    finally:
        subprocess.run((*tmux, "kill-server"), check=False)


def draw(screen: str) -> str:
    """Return a screen as SVG."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    for line in screen.splitlines():
        console.print(Text.from_ansi(line), no_wrap=True, crop=True, highlight=False)
    return console.export_svg(title=TITLE, theme=MONOKAI, code_format=FRAME, unique_id="run")


def words_of(svg: str) -> list[list[str]]:
    """Return the words of a picture, line by line, without the times of a run and what is cut because of them."""
    rows: dict[float, str] = {}
    for place, text in re.findall(r'<text[^>]*\by="([\d.]+)"[^>]*>(.*?)</text>', svg):
        rows[float(place)] = rows.get(float(place), "") + unescape(text).replace("\xa0", " ")
    kept = (re.sub(r"· \d+\.\ds|\d+\.\ds|│.*", "", rows[place]) for place in sorted(rows))
    return [row.split() for row in kept]


def main() -> None:
    if shutil.which("tmux") is None:
        raise SystemExit("needs tmux")
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_text(draw(record(Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
