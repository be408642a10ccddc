"""Workflows among the examples: each runs as its page says, comes to what it should, and survives a kill."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.examples.command import Desk, need_sandbox
from tests.warm import start_quire

from quire.formats.pipeline.parse import parse
from quire.source import read_source
from quire.values import Value

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMITS = (
    ("feat(orders): add up prices", "def total(prices):\n    return sum(prices)\n"),
    ("fix: round the total", "def total(prices):\n    return round(sum(prices), 2)\n"),
    ("Say what prices are", '"""Prices are in cents."""\n\n\ndef total(prices):\n    return round(sum(prices), 2)\n'),
)
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Kill:
    """Where a run is killed: at the call that `entry` of its script answers, when `done` is recorded."""

    entry: int
    done: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One run: `output` is what it prints, or a part of that text; `files` have these parts; `said` is on stderr.

    `first` are commands that come before it, once.
    """

    example: str
    output: Value = ""
    options: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    exit: int = 0
    said: str = ""
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    document: str = ""
    script: str = ""
    first: tuple[tuple[str, ...], ...] = ()
    kill: Kill | None = None

    @property
    def in_repository(self) -> bool:
        """Whether it works on the git repository around it; its commands need a sandbox then."""
        return "--allow" in self.options

    def place(self, name: str) -> str:
        return f"examples/{self.example}/{name}" if self.in_repository else name

    @property
    def command(self) -> tuple[str, ...]:
        document = self.document or self.place(f"{self.example}.yaml")
        return ("run", document, "--script", self.place(self.script or f"{self.example}.script.json"), *self.options)


SHELL = ("--allow", "shell")
TRIAGE = ("--inputs", "issues.json")

WHY = "Why are there fewer swifts, and what helps?"
SWIFTS = "Renovation closes the holes they nest in (library/swifts.md)."
BOXES = "Boxes help, three or more side by side (library/nest-boxes.md)."
SIGNED = (("keys", "new"), ("sign", ".ai", "--yes"))


def issue(number: int) -> tuple[str, ...]:
    return (*TRIAGE, "-i", f'issue={{"number": {number}, "title": "A list"}}')


CASES = [
    Case(
        "code-review",
        "# Review since HEAD~1\n\n## minor: 1\n\n- `orders.py:2` Rounding",
        SHELL,
        files={"review.md": ("## note: 1\n\n- `orders.py:1` Say in the name",)},
        kill=Kill(3, ("1/tool", "3/for_each[0]/try[1]/model", "3/for_each[1]/try[2]/model")),
    ),
    Case("code-review", "No findings.", (*SHELL, "-i", "reviewers=tests", "-i", "report=out/tests.md")),
    Case("code-review", "Nothing has changed since HEAD.", (*SHELL, "-i", "base=HEAD")),
    Case("code-review", "Nothing has changed since HEAD~1.", (*SHELL, "-i", "paths=docs,README.md")),
    Case(
        "code-review",
        "",
        (*SHELL, "-i", "reviewers=secrets,licences"),
        exit=3,
        said="failed at step 6: blocked, see review.md",
        files={"review.md": ("## blocker: 2\n\n- `orders.py:2` The prices", "No review for licences.")},
    ),
    Case("code-review", "", (*SHELL, "-i", "base=--output=x"), exit=2, said="base"),
    Case(
        "release-notes",
        "# 1.3.0\n\n- Lists can be exported",
        (*SHELL, "-i", "version=1.3.0", "-i", "since=HEAD~2"),
        files={"RELEASE_NOTES.md": ("## Fixed\n\n- fix: round the total (", "## Other\n\n- Say what prices are (")},
        kill=Kill(0, ("1/tool",)),
    ),
    Case(
        "release-notes",
        "Nothing has changed since v1.",
        (*SHELL, "-i", "version=1.3.0", "-i", "since=v1"),
    ),
    Case(
        "issue-triage",
        {"labels": ["question", "export", "low"], "comment": "Use `--separator ';'`. The file itself is UTF-8."},
        TRIAGE,
        kill=Kill(5, ("2/model", "5/match[3]/1/tool")),
    ),
    Case(
        "issue-triage",
        {"labels": ["duplicate", "import", "high"], "comment": "This is the same as #12; let us go on there."},
        issue(32),
    ),
    Case("issue-triage", {"labels": ["unclear", "page", "normal"], "comment": None}, issue(33)),
    Case(
        "issue-triage",
        {
            "labels": ["bug", "page", "normal"],
            "comment": "To look into it we need:\n\n- the version\n- what you expected",
        },
        issue(34),
    ),
    Case("issue-triage", {"labels": ["feature", "other", "low"], "comment": None}, issue(35)),
    Case("issue-triage", "", issue(0), exit=2, said="issue.number"),
    Case(
        "invoice-extraction",
        {
            "read": 3,
            "failed": [
                {"file": "invoices/note.txt", "why": "it is not an invoice"},
                {"file": "invoices/scan.tif", "why": "invoices/scan.tif is not text: it holds zero bytes"},
            ],
            "totals": [{"currency": "EUR", "total": 107.5}, {"currency": "CHF", "total": 128.4}],
        },
        files={
            "report.csv": (
                '"file","number","date","seller","total","currency"\n"invoices/2026-014.txt","2026-014","2026-02-03",',
                '"A/77","2026-01-12","Holz ""Zur Eiche""","128.4","CHF"\n',
            ),
            "report.json": ('"file": "invoices/hosting.md"', '"why": "invoices/scan.tif is not text'),
        },
        kill=Kill(4, ("2/for_each[0]/steps/1/tool", "2/for_each[0]/steps/2/try[1]/model")),
    ),
    Case(
        "invoice-extraction",
        "",
        ("-i", "files=invoices/*.tif"),
        exit=3,
        said="no invoice in 1 files",
    ),
    Case(
        "rfc-review",
        "# Review of RFC 7\n\n- Proposal: name files by an id",
        ("-i", "rfc=@rfc.md", "-i", "area=security"),
        answers=("accept",),
        document="rfc-review.playbook.md",
        first=(("trust", "workspace", "--yes"),),
        kill=Kill(4, ("1/tool", "2/model", "3/model")),
    ),
    Case(
        "research",
        f"{SWIFTS} {BOXES}\n",
        ("-i", f"question={WHY}"),
        kill=Kill(3, ("1/repeat[1]/steps/5/model", "1/repeat[2]/steps/2/tool")),
    ),
    Case(
        "research",
        "The notes do not say.\n\nStill missing: where they spend the winter\n",
        ("-i", "question=Where do swifts live in winter?"),
    ),
    Case(
        "research",
        {"answer": f"{SWIFTS} {BOXES}"},
        ("-i", f"question={WHY}"),
        said="directive_return failed: Say what helps them.",
        document="answer_question",
        script="answer_question.script.json",
        first=SIGNED,
        kill=Kill(3, ("thread/turn[1]/tool[0]/tool", "thread/turn[2]/model")),
    ),
    Case(
        "weekly-report",
        "# The week\n\nTotals are rounded.\n",
        (*SHELL, "-i", "file=week.md"),
        ("shorter", "Yes "),
        files={"week.md": ("# The week\n\nTotals are rounded.\n",)},
        kill=Kill(1, ("1/tool", "2/tool", "3/tool", "4/tool")),
    ),
    Case("weekly-report", "Not published.", SHELL, ("no",)),
    Case("weekly-report", "Not published.", (*SHELL, "--unattended")),
]
NAMES = sorted({case.example for case in CASES})


def git(folder: Path, *arguments: str) -> None:
    nobody = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, env=nobody, check=True, capture_output=True)


@pytest.fixture(scope="session")
def cloned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with the examples in it, as a clone of the project has them."""
    folder = tmp_path_factory.mktemp("workflows") / "clone"
    folder.mkdir()
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns(".quire", "__pycache__"))
    git(folder, "init", "-q")
    for subject, text in COMMITS:
        (folder / "orders.py").write_text(text, encoding="utf-8")
        git(folder, "add", "orders.py")
        git(folder, "commit", "-q", "-m", subject)
    git(folder, "tag", "v1")
    return folder


@pytest.fixture
def clone(cloned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that, for one test to change."""
    monkeypatch.setenv("QUIRE_PYTHON", sys.executable)
    shutil.copytree(cloned, tmp_path / "clone")
    return tmp_path / "clone"


def desk_of(case: Case, clone: Path) -> Desk:
    if case.in_repository:
        need_sandbox()
    desk = Desk(clone if case.in_repository else clone / "examples" / case.example, clone.parent / "home")
    for command in case.first:
        desk.fine(*command)
    return desk


def judge(case: Case, desk: Desk, done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == case.exit, done.stderr
    assert case.said in " ".join(done.stderr.split())
    if isinstance(case.output, str):
        assert case.output in done.stdout
    else:
        assert json.loads(done.stdout) == case.output
    for name, parts in case.files.items():
        text = (desk.folder / name).read_text(encoding="utf-8")
        assert [part for part in parts if part not in text] == [], text


def answered(case: Case, desk: Desk, done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """Give the answers that a run waits for, one after the other."""
    for answer in case.answers:
        assert done.returncode == 4, done.stderr
        done = desk.quire("answer", "last", answer)
    return done


@pytest.mark.parametrize("case", CASES, ids=[f"{case.example}-{at}" for at, case in enumerate(CASES)])
def test_a_workflow_comes_to_what_it_should(case: Case, clone: Path) -> None:
    desk = desk_of(case, clone)
    judge(case, desk, answered(case, desk, desk.quire(*case.command)))


@pytest.mark.parametrize("case", [case for case in CASES if case.kill], ids=lambda case: case.example)
def test_a_killed_workflow_goes_on_where_it_was(case: Case, clone: Path) -> None:
    desk, kill = desk_of(case, clone), case.kill
    assert kill is not None
    script = desk.folder / case.command[3]
    replies = script.read_text(encoding="utf-8")
    slow = json.loads(replies)
    slow[kill.entry]["delay_ms"] = 600_000
    script.write_text(json.dumps(slow), encoding="utf-8")
    process = start_quire(case.command, cwd=desk.folder, env=desk.environ)
    try:
        before = wait_for(desk, kill.done, process.poll)
    finally:
        process.kill()
        process.wait()
    script.write_text(replies, encoding="utf-8")
    judge(case, desk, answered(case, desk, desk.quire("resume", "last")))
    after = desk.effects()
    assert {path: after[path] for path in kill.done} == {path: before[path] for path in kill.done}
    assert set(after) > set(kill.done)


def wait_for(desk: Desk, paths: tuple[str, ...], ended: object) -> dict[str, float]:
    """Wait until these effects are recorded by a run that is under way. Return when each was done."""
    until = time.monotonic() + PATIENCE
    effects: dict[str, float] = {}
    while not set(paths) <= set(effects):
        assert time.monotonic() < until and callable(ended) and ended() is None, effects
        if desk.quire("runs", "last", "--json").returncode == 0:
            effects = desk.effects()
    return effects


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_workflow_can_be_followed(name: str, clone: Path) -> None:
    page = clone / "examples" / name / "README.md"
    followed = re.findall(r"^\$ quire (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert followed
    for command, after in itertools.zip_longest(followed, followed[1:], fillvalue=""):
        arguments = shlex.split(command)
        if "shell" in arguments:
            need_sandbox()
        at_root = any(part.startswith("examples/") for part in arguments)
        desk = Desk(clone if at_root else page.parent, clone.parent / "home")
        done = desk.quire(*arguments)
        assert done.returncode == (4 if after.startswith("answer") else 0), done.stderr


def test_a_weekly_report_begins_where_the_last_one_ended(clone: Path) -> None:
    case = next(case for case in CASES if case.example == "weekly-report")
    desk = desk_of(case, clone)
    judge(case, desk, answered(case, desk, desk.quire(*case.command)))
    assert desk.fine(*case.command) == "Nothing is new since the last report.\n"
    git(clone, "commit", "-q", "--allow-empty", "-m", "Begin another week")
    again = desk.quire(*case.command)
    assert again.returncode == 4
    prompt = desk.fine("runs", "last", "--prompt", "6.do.1")
    assert "- Begin another week (Ada)" in prompt and "round the total" not in prompt


def test_every_pipeline_of_the_dialect_has_a_case_and_a_page() -> None:
    files = {path: parse(read_source(path), registered=True).file for path in EXAMPLES.glob("*/*.yaml")}
    dialect = {path.parent.name for path, file in files.items() if file and any(p.dialect for p in file.pipelines)}
    assert dialect <= set(NAMES)
    for name in NAMES:
        assert len((EXAMPLES / name / "README.md").read_text(encoding="utf-8").splitlines()) <= 20
