"""What each workflow among the examples comes to: its runs, with their options, answers, files and failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quire.values import Value

EXAMPLES = Path(__file__).parents[2] / "examples"


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
        """Whether it works on the git repository around it: it is not a workspace of its own."""
        return not (EXAMPLES / self.example / "quire.toml").exists()

    @property
    def uses_commands(self) -> bool:
        return any(option.partition("=")[0] == "shell" for option in self.options)

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

DEPLOY = ("--allow", "shell=env:DEPLOY_TOKEN", "-i")
BROKE = ("-i", "file=diary.md", "-i", "question=What broke, and why?")
MEND = (("trust", "workspace", "--yes"),)


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
    Case(
        "deploy",
        "The timetable 1.3.0 is live and has two night trains.\n",
        (*DEPLOY, "version=1.3.0", "--answer", "6=yes"),
        files={"live/VERSION": ("1.3.0\n",), "live/index.html": ("Trains: 14",)},
        kill=Kill(3, ("1/tool", "5/try[1]/model", "8/tool", "9/tool")),
    ),
    Case(
        "deploy",
        "1.2.0 stays: not approved.\n",
        (*DEPLOY, "version=1.3.0"),
        ("no",),
        files={"live/index.html": ("Trains: 12",)},
    ),
    Case("deploy", "1.2.0 stays: not approved.\n", (*DEPLOY, "version=1.3.0", "--unattended")),
    Case("deploy", "1.2.0 is live already.\n", (*DEPLOY, "version=1.2.0")),
    Case(
        "deploy",
        "",
        (*DEPLOY, "version=1.4.0"),
        ("yes",),
        exit=3,
        said="failed at step 10.2 (10/steps/2): 1.4.0 does not work, 1.2.0 is live again",
        files={
            "live/VERSION": ("1.2.0\n",),
            "live/index.html": ("Trains: 12",),
            "live/history.txt": ("1.4.0\n1.2.0\n",),
        },
    ),
    Case(
        "deploy",
        "",
        (*DEPLOY, "version=9.9.9", "--answer", "6=yes"),
        exit=3,
        said="9.9.9 does not work, 1.2.0 is live again",
        files={"live/history.txt": ("1.2.0\n",)},
    ),
    Case("deploy", "", (*DEPLOY, "version=../1.3.0"), exit=2, said="version"),
    Case("deploy", "", (*SHELL, "-i", "version=1.3.0"), exit=6, said="DEPLOY_TOKEN"),
    Case(
        "content-pipeline",
        {"file": "articles/pump.md", "title": "A pump in the yard", "edited": "revise"},
        ("-i", "name=pump", "-i", "brief=bicycle pump in the yard"),
        files={"articles/pump.md": ('language: "English"\n---\n\n# A pump in the yard\n', "The house does.\n")},
        kill=Kill(7, ("1/tool", "2/model", "4/for_each[0]/try[1]/steps/1/model")),
    ),
    Case(
        "content-pipeline",
        {"file": "articles/lamps.md", "title": "Lamps", "edited": "publish"},
        ("-i", "name=lamps", "-i", "brief=lamps on the stairs", "-i", "language=German"),
        files={"articles/lamps.md": ("# Lampen\n\n## Neue Lampen",)},
    ),
    Case(
        "content-pipeline",
        "",
        ("-i", "name=yard", "-i", "brief=praise the yard"),
        exit=3,
        said="failed at step 6.drop.1 (6/match[3]/1): dropped: Nothing in it is new.",
    ),
    Case(
        "content-pipeline", "", ("-i", "name=none", "-i", "brief=nothing"), exit=3, said="step 3: the outline is empty"
    ),
    Case("content-pipeline", "", ("-i", "name=../style", "-i", "brief=a"), exit=2, said="name"),
    Case(
        "test-and-fix",
        {"rounds": 2, "changes": ["A discount of 10 percent leaves 90 percent.", "Cents have two digits."]},
        SHELL,
        files={"basket/prices.py": ("* (100 - discount) // 100", "{cents % 100:02}")},
        first=MEND,
        kill=Kill(3, ("2/repeat[1]/steps/1/tool", "2/repeat[1]/steps/2/turn[2]/tool[0]", "2/repeat[2]/steps/1/tool")),
    ),
    Case(
        "long-text",
        "A pane of the lantern cracked and was replaced in May, after one that did not fit;",
        BROKE,
        kill=Kill(6, ("1/tool", "4/for_each[0]/try[1]/steps/1/model", "6/repeat[1]/for_each[1]/try[1]/model")),
    ),
    Case("long-text", "", (*BROKE, "-i", "paragraphs=0"), exit=2, said="paragraphs"),
    Case("long-text", "The text does not say.\n", ("-i", "file=README.md", "-i", "question=Who?")),
    Case(
        "post-mortem",
        "# Orders fail\n\n## Summary\n\nOrders failed for 40 minutes.",
        ("-i", "title=Orders fail"),
        ("A query kept its transaction open.", "a change of ours", "yes"),
        files={"post-mortem.md": ("## Actions\n\n- Close it.",)},
        document="post-mortem.playbook.md",
        kill=Kill(0, ("1/call/1/tool", "1/call/3/for_each[2]/steps/1/tool")),
    ),
    Case(
        "post-mortem",
        "# Orders fail\n",
        ("-i", "title=Orders fail", "--answer", "3=Not known.", "--answer", "4=not known", "--answer", "6=no"),
        said="[4b] What to look for",
        document="post-mortem.playbook.md",
    ),
    Case(
        "post-mortem",
        "",
        ("-i", "title=Nothing", "-i", "logs=nowhere/*.log"),
        exit=3,
        said="no log is named nowhere/*.log",
        document="post-mortem.playbook.md",
    ),
    Case(
        "mail-triage",
        "# Mails\n\n## urgent\n\n- The key of the hall does not turn → see drafts/0002.md (mails/0002.json)\n",
        files={
            "digest.md": ("pay 95.50 EUR until 2026-09-21 (mails/0001.json)", "## not a mail\n\n- mails/0005.json\n"),
            "drafts/0002.md": ("To: ben@example.org\n\nPlease call our caretaker",),
        },
        kill=Kill(8, ("2/tool", "6/for_each[0]/try[1]/steps/1/model", "6/for_each[1]/try[1]/steps/2/match[2]/3/tool")),
    ),
    Case("mail-triage", "No new mail.\n", ("-i", "mails=mails/0005.json")),
]
