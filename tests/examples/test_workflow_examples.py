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
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.examples.command import Desk, calls, need_sandbox, recorded
from tests.examples.workflow_cases import CASES, EXAMPLES, Case
from tests.warm import start_quire

from quire.formats.pipeline.parse import parse
from quire.source import read_source
from quire.values import Value

COMMITS = (
    ("feat(orders): add up prices", "def total(prices):\n    return sum(prices)\n"),
    ("fix: round the total", "def total(prices):\n    return round(sum(prices), 2)\n"),
    ("Say what prices are", '"""Prices are in cents."""\n\n\ndef total(prices):\n    return round(sum(prices), 2)\n'),
)
PATIENCE = 60.0
TOKEN = "not-a-real-token"


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
    monkeypatch.setenv("DEPLOY_TOKEN", TOKEN)
    shutil.copytree(cloned, tmp_path / "clone")
    return tmp_path / "clone"


def desk_of(case: Case, clone: Path) -> Desk:
    if case.uses_commands:
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
        shown = desk.quire("runs", "last", "--json")
        if shown.returncode == 0:
            effects = recorded(shown.stdout)
    return effects


@pytest.mark.parametrize("name", NAMES)
def test_the_page_of_a_workflow_can_be_followed(name: str, clone: Path) -> None:
    page = clone / "examples" / name / "README.md"
    followed = re.findall(r"^\$ quire (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert followed
    for command, after in itertools.zip_longest(followed, followed[1:], fillvalue=""):
        arguments = shlex.split(command)
        if any(part.partition("=")[0] == "shell" for part in arguments):
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


EDIT = {"path": "tests/test_prices.py", "old": "class Prices(unittest.TestCase):", "new": "class Prices:"}


@pytest.mark.parametrize(
    ("replies", "said", "rounds"),
    [
        ([calls(("file__edit", EDIT)), "All tests pass."], "failed at step 4: the tests were changed", 2),
        (["There is nothing to mend."], "until did not hold after 5 rounds", 5),
    ],
    ids=["a change of the tests", "no change"],
)
def test_code_is_not_mended_by_an_agent_that_does_not_mend_it(
    replies: list[Value], said: str, rounds: int, clone: Path
) -> None:
    case = next(case for case in CASES if case.example == "test-and-fix")
    desk = desk_of(case, clone)
    entries = [{"step": "2.do.2", "reply": one} if isinstance(one, str) else one for one in replies]
    script = desk.script(*[{"step": "2.do.2", **one} for one in entries if isinstance(one, dict)])
    done = desk.quire("run", case.command[1], "--script", script, *case.options)
    assert done.returncode == 3 and said in done.stderr, done.stderr
    assert len([path for path in desk.effects() if path.endswith("]/steps/1/tool")]) == rounds


def test_the_token_of_a_deployment_is_not_kept(clone: Path) -> None:
    case = next(case for case in CASES if case.example == "deploy")
    desk = desk_of(case, clone)
    with (desk.folder / "publish.sh").open("a") as file:
        file.write('echo "published with $DEPLOY_TOKEN"\n')
    desk.fine(*case.command)
    assert "published with [redacted:DEPLOY_TOKEN]" in desk.fine("runs", "last", "--json")
    for path in (desk.folder / ".quire").rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes()
    assert desk.fine("runs", "last", "--json").count("8/tool") >= 1


def test_a_deployment_that_was_killed_while_it_published_asks_before_it_publishes_again(clone: Path) -> None:
    case = next(case for case in CASES if case.example == "deploy")
    desk = desk_of(case, clone)
    publish = (desk.folder / "publish.sh").read_text(encoding="utf-8")
    desk.write("publish.sh", "echo begun > begun\ntest -e go || sleep 100\n" + publish)
    process = start_quire(case.command, cwd=desk.folder, env=desk.environ)
    until = time.monotonic() + PATIENCE
    while not (desk.folder / "begun").exists():
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    asked = desk.quire("resume", "last")
    assert asked.returncode == 4 and "it may have finished. Call it again?" in " ".join(asked.stderr.split())
    assert (desk.folder / "live" / "VERSION").read_text(encoding="utf-8") == "1.2.0\n"
    desk.write("go", "")
    judge(case, desk, desk.quire("answer", "last", "yes"))


def test_mails_are_looked_at_once_and_a_chat_is_told_about_urgent_ones(clone: Path) -> None:
    case = next(case for case in CASES if case.example == "mail-triage")
    desk = desk_of(case, clone)
    assert "- The key" in desk.fine(*case.command)
    assert desk.fine(*case.command) == "No new mail.\n"
    late = {"received": "2999-01-01T00:00:00Z", "from": "a@example.org", "subject": "Late", "body": "Hello."}
    desk.write("mails/0006.json", json.dumps(late))
    with chat() as (address, told):
        url, host = f"http://{address}/hook", f"http__send={address}"
        refused = desk.quire(*case.command, "-i", f"chat={url}")
        assert refused.returncode == 0 and "permission denied: http__send" in refused.stderr
        assert told == []
        assert "Could not be sorted: Late (mails/0006.json)" in refused.stdout
        desk.fine(*case.command, "-i", f"chat={url}", "--allow", host)
        assert told == [{"text": "Could not be sorted: Late"}]
    soon = {**late, "received": "2998-01-01T00:00:00Z"}
    desk.write("mails/0007.json", json.dumps(soon))
    assert "mails/0007.json" in desk.fine(*case.command), "a date in the future hides no mail"


def test_an_amount_that_is_not_in_the_mail_is_not_passed_on(clone: Path) -> None:
    case = next(case for case in CASES if case.example == "mail-triage")
    desk = desk_of(case, clone)
    mail = {"received": "2026-09-08T00:00:00Z", "from": "a@example.org", "subject": "Invoice 9"}
    desk.write("mails/0009.json", json.dumps({**mail, "body": "500 boards, 128.40 EUR, until 1 October."}))
    said = desk.fine(*case.command, "-i", "mails=mails/0009.json")
    assert "Invoice for boards → read yourself what is to be paid (mails/0009.json)" in said


@contextmanager
def chat() -> Iterator[tuple[str, list[Value]]]:
    """A service on this machine that takes messages. Yields its address and what it was told."""
    told: list[Value] = []

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Chat) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", told
        server.shutdown()


def test_every_pipeline_of_the_dialect_has_a_case_and_a_page() -> None:
    paths = sorted(EXAMPLES.glob("*/*.yaml")) + sorted(EXAMPLES.glob("*/pipelines/*.yaml"))
    files = {path: parse(read_source(path), registered=True).file for path in paths}
    dialect = [path for path, file in files.items() if file and any(p.dialect for p in file.pipelines)]
    assert {path.relative_to(EXAMPLES).parts[0] for path in dialect} <= set(NAMES)
    for name in NAMES:
        assert len((EXAMPLES / name / "README.md").read_text(encoding="utf-8").splitlines()) <= 20
