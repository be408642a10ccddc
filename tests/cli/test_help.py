"""The help: the first page fits a small terminal, each verb's help is short and complete, and its examples work."""

from __future__ import annotations

import hashlib
import io
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from msgspec.structs import replace
from tests.cli.conftest import json_of
from tests.given import given

from quire.cli import main
from quire.cli.app import group
from quire.cli.verbs import COSTS, RUNS, VERBS, examples_of
from quire.cli.verbs import EXAMPLES as TEXT
from quire.models import downloads

ENTRIES = {**VERBS, **{f"runs {name}": verb for name, verb in RUNS.items()}}
NEW = {name: verb for name, verb in ENTRIES.items() if verb.group != "Older"}
OLDER = {name: verb for name, verb in VERBS.items() if verb.group == "Older"}


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"], ["help", "--help"]])
def test_the_first_page_fits_80_columns_and_24_rows_with_the_prompt(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, *words).splitlines()
    assert len(lines) <= 22
    assert max(map(len, lines)) < 80
    verbs = [name for name, verb in VERBS.items() if verb.group in ("Write", "Run", "Share")]
    assert [line[7:].split()[0] for line in lines[2 : lines.index("", 2)]] == verbs
    assert len(verbs) <= 18


def test_all_verbs_are_on_the_second_page(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "help", "all").splitlines()
    assert max(map(len, lines)) < 80
    assert all(
        any(re.search(rf"\b{name} +{re.escape(verb.line)}$", line) for line in lines) for name, verb in VERBS.items()
    )


@pytest.mark.parametrize("name", NEW)
def test_the_fields_of_a_verb(name: str) -> None:
    verb = NEW[name]
    assert len(verb.line) <= 58
    assert verb.cost in COSTS
    assert 2 <= len(examples_of(name)) <= 4


@pytest.mark.parametrize("name", ENTRIES)
def test_the_help_of_a_verb_is_short_and_complete(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, *name.split(), "--help")
    assert shown(capsys, "help", *name.split()) == text
    assert text.count("\n") <= 60
    assert max(map(len, text.splitlines())) <= 80
    command, context = command_of(name)
    options = [param for param in command.get_params(context) if isinstance(param, click.Option) and not param.hidden]
    assert [
        param.opts for param in options if not any(re.search(rf"^ .*{opt}\b", text, re.M) for opt in param.opts)
    ] in ([], [["-h", "--help"]])
    verb = ENTRIES[name]
    if name in OLDER:
        assert f"The same as {verb.line}." in text
        return
    assert COSTS[verb.cost] in " ".join(text.split())
    assert all(f"\n  {example}\n" in text for example in examples_of(name))
    assert text.endswith(f"\nMore: quire docs {verb.page}\n")
    assert main(["docs", verb.page]) == 0
    assert capsys.readouterr().out.startswith("# "), "a page, not a place of a search"


def command_of(name: str) -> tuple[click.Command, click.Context]:
    command: click.Command = group
    context = click.Context(group, info_name="quire")
    for word in name.split():
        assert isinstance(command, click.Group)
        below = command.get_command(context, word)
        assert below is not None
        command, context = below, click.Context(below, context, word)
    listing = getattr(command, "listing", command)
    assert isinstance(listing, click.Command)
    return listing, context


def test_help_is_narrow_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = shown(capsys, "help", "run").splitlines()
    assert [line for line in lines if len(line) > 40 and not line.startswith("  quire run ")] == []


@pytest.mark.parametrize("words", [["keys"], ["trust"], ["trust", "keys"], ["model"]])
def test_a_verb_with_verbs_below_prints_its_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", shown(capsys, *words, "--help"))
    assert err.startswith(f"Usage: quire {' '.join(words)} ") and "\nVerbs:\n" in err


def test_help_of_a_verb_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "rnu"]) == 2
    assert capsys.readouterr().err == "quire: unknown verb 'rnu'; did you mean 'run'? (see quire --help)\n"


def test_a_document_called_help_is_a_document(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "# Help\n\n## STEP 1: Say\n\nSay hello.\n"
    given({"help": text, "help.playbook.md": text, "version": text, "script.json": ["hello"]}, workspace)
    assert shown(capsys, "help").startswith("Usage: quire VERB …")
    assert shown(capsys, "version").startswith("quire ")
    for name in ("help", "help.playbook.md", "version"):
        assert shown(capsys, "run", name, "--script", "script.json") == "hello\n"
    assert "playbook  help  Help" in shown(capsys, "list", "help")


SAME = {
    ("parse", "hello.playbook.md"): ("show", "hello.playbook.md", "--tree"),
    ("can", "hello.playbook.md", "execute", "tool", "shell"): (
        "show",
        "hello.playbook.md",
        "--can",
        "execute tool shell",
    ),
    ("can", "hello.playbook.md", "execute", "tool", "shell", "--allow", "shell", "--json"): (
        *("show", "hello.playbook.md", "--can", "execute tool shell", "--allow", "shell", "--json"),
    ),
    ("verify", "signed.playbook.md", "hello.playbook.md"): (
        "sign",
        "--check",
        "signed.playbook.md",
        "hello.playbook.md",
    ),
    ("verify", "signed.playbook.md", "--json"): ("sign", "--check", "signed.playbook.md", "--json"),
    ("cancel", "nosuch"): ("runs", "cancel", "nosuch"),
    ("fork", "last", "--from", "3", "--dry-run"): ("runs", "fork", "last", "--from", "3", "--dry-run"),
    ("replay", "last", "--document"): ("runs", "replay", "last", "--document"),
    ("keys", "list", "--json"): ("trust", "keys", "list", "--json"),
}


@pytest.mark.parametrize("older", SAME, ids=" ".join)
def test_an_older_spelling_does_the_same(
    older: tuple[str, ...], prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = []
    for words in (older, SAME[older]):
        status = main(list(words))
        results.append((status, *capsys.readouterr()))
    assert results[0] == results[1]
    assert results[0][1] or results[0][2]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["show", "hello.playbook.md", "--tree", "--can", "execute tool shell"], "--tree and --can exclude each other"),
        (["show", "hello.playbook.md", "--can", "execute"], "--can takes 'ACTION TYPE [ID]'"),
        (["show", "hello.playbook.md", "--can", "eat tool shell"], "--can takes 'ACTION TYPE [ID]'"),
        (["show", "hello.playbook.md", "--allow", "shell"], "--allow is for --can"),
        (["sign", "--check", "hello.playbook.md", "--yes"], "--check signs nothing"),
    ],
)
def test_options_that_do_not_go_together(
    words: list[str], says: str, prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert says in err


RUN = ("run", "hello.playbook.md", "Why?", "--quiet")
WAITING = ("answer", "runs cancel")
STATUS = {
    "quire run hello.playbook.md 'Why is tea hot?'": 4,
    "quire run hello.playbook.md -i question=@question.txt --out answer.md": 4,
    "quire show tickets --can 'execute tool shell'": 6,
    "quire worker": 2,
    "quire runs share last --days 3": 2,
    "quire worker --temporal 127.0.0.1:7233 --concurrency 50": 2,
}
"""Exit codes other than 0: a question waits, a permission is missing, and this folder has no cluster."""


@pytest.fixture
def prepared(workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with the documents of the examples, whose model is a script, and with a completed run."""
    monkeypatch.setenv("QUIRE_MODELS", str(workspace / "models"))
    reply = 'A reply. {"difficulty": "simple", "text": "x", "sure": true}'
    given(
        {
            "quire.toml": '[models]\ndefault = "script:script.json"\n',
            "script.json": [{"default": reply}],
            "question.txt": "Why is tea hot?",
            "tickets.json": {"subject": "tea", "questions": ["what is it?", "who drinks it?"]},
            "copy.db": b"",
        },
        workspace,
    )
    (workspace / "copy.db").unlink()
    for words in (
        *(["new", "playbook", "hello"], ["new", "playbook", "signed"], ["new", "pipeline", "tickets"]),
        *(["new", "test", "hello.playbook.md"], ["trust", "keys", "new"], ["sign", "signed.playbook.md"]),
        *([*RUN, "--unattended"], ["lock"]),
    ):
        assert main(words) == 0
    test = workspace / "hello.test.yaml"
    test.write_text(test.read_text().replace("expect: todo", "expect: {status: completed}"))
    capsys.readouterr()
    return workspace


@pytest.fixture
def ready(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, str], list[str]]:
    """Bring the folder into the state that an example of a verb needs, and return its words."""
    earlier = json_of(capsys, "runs")[0]["id"]

    def make_ready(name: str, example: str) -> list[str]:
        if name == "new":
            (prepared / "hello.test.yaml").unlink()
            (prepared / "pipelines" / "tickets.yaml").unlink()
            if example == "quire new playbook hello":
                (prepared / "hello.playbook.md").unlink()
        if name == "sign" and "--check" in example:
            assert main(["sign", "hello.playbook.md"]) == 0
        if name in WAITING:
            assert main([*RUN]) == 4
        if name == "resume":
            script = (prepared / "script.json").read_text()
            given({"script.json": ["simple"]}, prepared)
            assert main([*RUN, "--unattended"]) == 3
            given({"script.json": script}, prepared)
        if name == "runs import":
            assert main(["runs", "export", "last", "--out", "run.jsonl"]) == 0
            (prepared / ".quire" / "quire.db").unlink()
        if example == "quire runs verify run.jsonl":
            assert main(["runs", "export", "last", "--out", "run.jsonl"]) == 0
        if example == "quire model pull smollm2":
            given({"models/smollm2.gguf": b"GGUF"}, prepared)
            here = replace(downloads.KNOWN["smollm2"], sha256=hashlib.sha256(b"GGUF").hexdigest())
            monkeypatch.setattr(downloads, "KNOWN", {"smollm2": here})
        return [earlier if word == "RUN" else word for word in shlex.split(example)[1:]]

    return make_ready


SERVERS = ("serve", "mcp", "lsp")
EXAMPLES = [(name, example) for name in NEW for example in examples_of(name)]


def test_every_example_is_of_a_verb() -> None:
    assert [example for _, example in EXAMPLES] == TEXT.strip().split("\n")


@pytest.mark.parametrize(("name", "example"), [(n, e) for n, e in EXAMPLES if n not in SERVERS])
def test_an_example_works(
    name: str,
    example: str,
    ready: Callable[[str, str], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ready(name, example)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    status = main(words)
    out, err = capsys.readouterr()
    assert status == STATUS.get(example, 0), err
    assert out or err
