"""`quire test --mutate`: the table, the survivors with their expectations, and the least score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.testing.bench import DOCUMENTS
from tests.testing.mutation.test_document_tests import TAGLINE

from quire.cli.test import command

MORE = """document: tagline.playbook.md
cases:
  - name: looks at the prompts
    inputs: {product: a bakery, tone: dry}
    answers: {"2": "yes"}
    model: {"1": '{"best": "Bread."}', "3a": x}
    expect: {prompts: {"1": {contains: [You write, a bakery, dry]}}}
"""


@pytest.fixture(autouse=True)
def tests(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    name, text = DOCUMENTS["tagline"]
    (workspace / name).write_text(text.lstrip("\n"))
    (workspace / "tagline.test.yaml").write_text(TAGLINE)
    monkeypatch.chdir(workspace)
    return workspace


def test_the_table_and_the_survivors_follow_the_cases(invoke: Invoke) -> None:
    result = invoke(command, "--mutate")
    assert result.exit_code == 0, result.stdout
    head, row, _blank, title, *survivors = result.stdout.splitlines()
    assert head.split() == ["mutants", "made", "noticed", "survived", "score"]
    name, made, noticed, survived, score = row.split()
    assert (name, title) == ("tagline.playbook.md", "not noticed in tagline.playbook.md:")
    assert int(made) == int(noticed) + int(survived) and score.endswith("%")
    assert "  tagline.playbook.md:14  drops {{tone}} from the prompt of step 1" in survivors
    at = survivors.index("  tagline.playbook.md:14  drops {{tone}} from the prompt of step 1")
    assert survivors[at + 1].startswith('    tagline.test.yaml::a yes: prompts: {"1": {contains: "Write three')


@pytest.mark.parametrize(("least", "code"), [("100", 1), ("10", 0)])
def test_a_score_that_is_too_low_fails(invoke: Invoke, least: str, code: int) -> None:
    result = invoke(command, "--format", "concise", "--mutate-fail-under", least)
    assert result.exit_code == code
    assert ("TS141 error" in result.stdout and "100 % is asked for" in result.stdout) is bool(code)


def test_a_mutant_survives_only_if_no_file_notices_it(invoke: Invoke, tests: Path) -> None:
    alone = _json(invoke, "tagline.test.yaml")
    (tests / "more.test.yaml").write_text(MORE)
    together = _json(invoke)
    lost = {one["id"] for one in alone["survivors"]} - {one["id"] for one in together["survivors"]}
    assert {"drop_system", "drop_reference:1:tone", "drop_reference:1:product"} <= lost
    assert alone["mutants"] == together["mutants"]


def test_other_forms(invoke: Invoke) -> None:
    assert "# not noticed in tagline.playbook.md:" in invoke(command, "--mutate", "--format", "tap").stdout
    annotation = invoke(command, "--mutate", "--format", "github").stdout
    assert "::warning file=tagline.playbook.md" in annotation and "no case notices a document that drops" in annotation


def test_without_the_option_nothing_is_mutated(invoke: Invoke) -> None:
    assert "mutants" not in invoke(command).stdout


def test_a_file_that_cannot_be_read_has_no_mutants(invoke: Invoke, tests: Path) -> None:
    (tests / "broken.test.yaml").write_text("cases: 5\n")
    result = invoke(command, "--mutate", "broken.test.yaml")
    assert result.exit_code != 0
    assert "mutants" not in result.stdout


def _json(invoke: Invoke, *paths: str) -> dict[str, list[dict[str, str]]]:
    lines = [json.loads(line) for line in invoke(command, "--mutate", "--json", *paths).stdout.splitlines()]
    (found,) = [line for line in lines if line["type"] == "mutation"]
    return found
