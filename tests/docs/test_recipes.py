"""The recipes are tried: their pipelines are checked and run, on a service of this machine where they need one."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from tests.docs.pages import ROOT, Block, blocks, text_of
from tests.examples.command import Desk, desk, need_sandbox
from tests.given import given
from tests.processes import wait_until

from quire.installed import DISTRIBUTION
from quire.values import Value

RECIPES = sorted(path.relative_to(ROOT) for path in (ROOT / "docs" / "recipes").glob("*.md"))
PIPELINES = [block for page in RECIPES for block in blocks(page, "yaml") if "pipeline: " in block.text]
TOKEN = "a-token-of-the-test"


@pytest.fixture
def work(tmp_path: Path) -> Desk:
    """A workspace with the pipelines of all recipes, each in the file of its name."""
    made = desk(tmp_path)
    for block in PIPELINES:
        made.write(f"pipelines/{name_of(block)}.yaml", block.text)
    return made


def name_of(block: Block) -> str:
    found = re.search(r"^pipeline: (\w+)$", block.text, re.MULTILINE)
    assert found, str(block)
    return found[1]


def run(work: Desk, *arguments: str) -> Value:
    result: Value = json.loads(work.fine("run", *arguments))
    return result


def test_the_pipelines_are_clean(work: Desk) -> None:
    names = [name_of(block) for block in PIPELINES]
    assert len(names) == len(set(names)) >= 12
    work.fine("check", "--strict", "pipelines")


@pytest.mark.parametrize("name", ["improve", "improve_anywhere"])
def test_a_loop_ends_when_the_work_is_done(name: str, work: Desk) -> None:
    better: Value = {"reply": {"done": False, "text": "b"}}
    best: Value = {"reply": {"done": True, "text": "c"}}
    script = work.script(better, best, {"error": "too much"})
    assert work.fine("run", name, "-i", "draft=a", "--script", script) == "c\n"
    kept = work.script({"default": {"done": False, "text": "d"}})
    assert work.fine("run", name, "-i", "draft=a", "--script", kept) == "d\n"
    assert sum(path.endswith("model") for path in work.effects()) == 3


def test_several_steps_for_each_item(work: Desk) -> None:
    work.write("a.txt", "one\ntwo\n")
    (work.folder / "b.txt").write_bytes(b"\x00\x01")
    assert run(work, "first_lines") == {"lines": [{"file": "a.txt", "line": "one"}], "failed": ["b.txt"]}


def test_pages_of_a_service(work: Desk) -> None:
    pages: dict[str, tuple[int, Value]] = {"/?page=1": (200, [1, 2]), "/?page=2": (200, [3]), "/?page=3": (200, [])}
    with service(pages) as (address, _):
        grant = ("--allow", f"http__get={address}")
        assert run(work, "all_pages", "-i", f"address=http://{address}/", *grant) == [1, 2, 3]
        failed = work.quire("run", "all_pages", "-i", f"address=http://{address}/x", *grant)
        assert failed.returncode == 3 and "the service answered 404" in failed.stderr


def test_a_missing_file_is_survived(work: Desk) -> None:
    gone, anywhere = run(work, "rates"), run(work, "rates_anywhere")
    assert isinstance(gone, dict) and isinstance(anywhere, dict)
    assert gone["rates"] == [""] and isinstance(gone["problem"], dict)
    assert "rates.csv" in str(gone["problem"]["message"])
    assert anywhere["rates"] == [] and "rates.csv" in json.dumps(anywhere["problem"])
    work.write("rates.csv", "a\nb")
    assert run(work, "rates") == {"rates": ["a", "b"], "problem": None}
    assert run(work, "rates_anywhere") == {"rates": ["a\nb"], "problem": []}


def test_a_command_is_tried_three_times(work: Desk) -> None:
    need_sandbox()
    work.write("check.sh", "echo x >> tries; test $(wc -l < tries) -ge 3\n")
    assert work.fine("run", "patient", "--allow", "shell") == "ready\n"
    work.write("check.sh", "echo never >&2; exit 1\n")
    failed = work.quire("run", "patient", "--allow", "shell")
    assert failed.returncode == 3 and "three times: " in failed.stderr and "never" in failed.stderr


def test_what_went_wrong_is_undone(work: Desk) -> None:
    need_sandbox()
    work.write("a.txt", "old")
    command = ("run", "replace_file", "--allow", "shell", "-i", "path=a.txt", "-i")
    failed = work.quire(*command, "text=half of")
    assert failed.returncode == 3 and "the old one is back" in failed.stderr
    assert (work.folder / "a.txt").read_text() == "old"
    assert work.fine(*command, "text=new END") == "replaced\n"
    assert (work.folder / "a.txt").read_text() == "new END"


def test_a_variable_that_is_not_granted_is_refused_before_the_start(work: Desk) -> None:
    refused = work.quire("run", "two_secrets", "--allow", "shell", "--allow", "http__send=api.example.org")
    assert refused.returncode == 6 and "DEPLOY_TOKEN" in refused.stderr
    assert "[1/2]" not in refused.stderr


def test_a_workspace_that_grants_itself_variables_and_headers_is_refused(work: Desk) -> None:
    (settings,) = blocks("docs/recipes/secrets.md", "toml")
    work.write("quire.toml", settings.text)
    refused = work.quire("run", "rates")
    assert refused.returncode == 2 and "shell_env" in refused.stderr and "[http]" in refused.stderr
    work.write("quire.toml", '[tools]\nallow = ["http__send=api.example.org"]\n')
    assert work.quire("run", "rates").returncode == 6


def test_a_comment_on_an_issue(work: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The headers of the page, for a service of this machine that stands for GitHub."""
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    issue = {"title": "A list", "body": "It is empty."}
    answers: dict[str, tuple[int, Value]] = {
        "/repos/octo-org/octo-repo/issues/7": (200, issue),
        "/repos/octo-org/octo-repo/issues/7/comments": (201, {"html_url": "https://github.com/x"}),
    }
    (settings,) = blocks("docs/recipes/github.md", "toml")
    script = work.script({"contains": "It is empty.", "reply": {"comment": "Which version?"}})
    with service(answers) as (address, asked):
        work.home.mkdir()
        (work.home / "quire.toml").write_text(settings.text.replace("api.github.com", address), encoding="utf-8")
        command = next(line for line in console("docs/recipes/github.md") if "comment.yaml" in line)
        arguments = shlex.split(command.replace("=api.github.com", f"={address}").replace("comment.yaml", "comment"))[
            1:
        ]
        arguments += ["-i", f"api=http://{address}", "--script", script]
        waiting = work.quire(*arguments)
        assert waiting.returncode == 4, waiting.stderr
        assert work.fine("answer", "last", "yes") == "https://github.com/x\n"
        assert work.fine(*arguments, "--unattended") == "Not posted.\n"
    sent = [(method, body) for method, _, body, _ in asked]
    assert sent == [("GET", None), ("POST", {"body": "Which version?"}), ("GET", None)]
    assert {headers["Authorization"] for *_, headers in asked} == {f"Bearer {TOKEN}"}
    for path in (work.folder / ".quire").rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes()


@contextmanager
def service(
    answers: dict[str, tuple[int, Value]],
) -> Iterator[tuple[str, list[tuple[str, str, Value, dict[str, str]]]]]:
    """A service on this machine. Yields its address, and the requests that it got."""
    asked: list[tuple[str, str, Value, dict[str, str]]] = []

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            asked.append((self.command, self.path, body, dict(self.headers)))
            status, value = answers.get(self.path, (404, None))
            text = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()


def console(page: str) -> list[str]:
    return [line[2:] for block in blocks(page, "console") for line in block.text.splitlines() if line.startswith("$ ")]


DAILY = "pipeline: daily\nsteps:\n  - tool: {name: ask, args: {prompt: 'Whom?', default: all}}\n"


def test_the_commands_of_schedules(work: Desk) -> None:
    """The table and the command of the page, and those of the crontab and of the unit."""
    page = "docs/recipes/schedules.md"
    work.write("daily.yaml", DAILY)
    (table,) = blocks(page, "toml")
    given({"quire.toml": table.text.replace('cron = "0 7 * * 1-5"', 'every = "1s"')}, work.home)
    work.fine(*shlex.split(console(page)[0])[1:], "--yes")
    (crontab,) = blocks(page, "crontab")
    line = crontab.text.splitlines()[-1]
    fields = line.split(maxsplit=5)
    assert all(re.fullmatch(r"[\d*,/-]+", part) for part in fields[:5])
    assert fields[5].startswith("cd /srv/reports && quire ")
    scheduled = fields[5].partition("&& quire ")[2].partition(" >>")[0]
    unit = units()["quire-tick.service"]["Service"]["ExecStart"]
    assert unit.startswith("/usr/bin/env quire ")
    for command in (f"quire {scheduled}", unit.removeprefix("/usr/bin/env ")):
        wait_until(lambda: "completed" in work.fine(*shlex.split(command)[1:]))  # noqa: B023  # at once


def units() -> dict[str, ConfigParser]:
    """The units of systemd on the page, by the name of the file before each."""
    text = text_of("docs/recipes/schedules.md")
    found = {}
    for name, unit in re.findall(r"`~/\.config/systemd/user/([\w.-]+)`:\n\n```ini\n(.*?)```", text, re.DOTALL):
        found[name] = ConfigParser(interpolation=None)
        found[name].optionxform = str  # type: ignore[assignment, method-assign]
        found[name].read_string(unit)
    return found


def test_systemd_understands_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not on this machine")
    found = units()
    assert set(found) == {"quire-tick.service", "quire-tick.timer"}
    for name, unit in found.items():
        with (tmp_path / name).open("w") as file:
            unit.write(file, space_around_delimiters=False)
    calendar = found["quire-tick.timer"]["Timer"]["OnCalendar"]
    for command in (["calendar", calendar], ["verify", "--man=no", *(str(tmp_path / name) for name in found)]):
        done = subprocess.run(["systemd-analyze", *command], capture_output=True, text=True, check=False, timeout=60)
        complaints = [line for line in done.stderr.splitlines() if "quire-tick" in line]
        assert complaints == [] and (command[0] != "calendar" or done.returncode == 0), done.stderr


def test_the_jobs_of_ci(tmp_path: Path) -> None:
    """Every command of the jobs, in a repository that has the first example in it."""
    page = "docs/guides/ci.md"
    shown = [block.text for block in blocks(page, "yaml")]
    github = yaml.safe_load(next(text for text in shown if "quire check --strict --format github" in text))
    gitlab = yaml.safe_load(next(text for text in shown if "image: python" in text))
    steps = [step["run"] for step in github["jobs"]["documents"]["steps"] if "run" in step]
    by_hand = [line[2:] for line in blocks(page, "console")[0].text.splitlines()]
    clone = Desk(tmp_path / "work", tmp_path / "home")
    shutil.copytree(ROOT / "examples" / "hello", clone.folder, ignore=shutil.ignore_patterns(".quire"))
    for job in [steps, gitlab["documents"]["script"], by_hand]:
        commands = [shlex.split(command) for command in job]
        assert [command[1] for command in commands if command[0] == "quire"] == ["check", "test", "run"]
        for command in commands:
            if command[0] == "quire":
                clone.fine(*command[1:])
            else:
                assert command == ["pip", "install", f"{DISTRIBUTION}[standard]"]
    clone.write("bad.playbook.md", "# Bad\n\n## STEP 1: A\n\nSay {{nothing}}.\n")
    (check,) = (shlex.split(command)[1:] for command in steps if " check " in command)
    found = clone.quire(*check)
    assert found.returncode == 1 and "file=bad.playbook.md,line=" in found.stdout


@pytest.mark.skipif(not (ROOT / ".pre-commit-hooks.yaml").exists(), reason="the repository offers no hooks")
def test_the_hooks_of_the_page_are_those_of_the_repository() -> None:
    before = next(
        yaml.safe_load(block.text) for block in blocks("docs/guides/ci.md", "yaml") if block.text.startswith("repos:")
    )
    offered = [hook["id"] for hook in yaml.safe_load(text_of(".pre-commit-hooks.yaml"))]
    assert {hook["id"] for hook in before["repos"][0]["hooks"]} == set(offered)
