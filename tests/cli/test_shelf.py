"""The user's own shelf: playbooks and pipelines that have a name in every workspace."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Said, json_of
from tests.given import given

from quire.cli import main

REVIEW = """# Review

## INPUTS

- `what` (string): What to review

## STEP 1: Style

@prompt(library:style)

Review {{what}}.

## STEP 2: Rules

@prompt(file:rules.md)

Apply the rules.

## STEP 3: Sum

@tool(quire, sum, {})
"""
SUM = "pipeline: sum\nsteps:\n- transform: {value: \"'%s'\"}\n"
SCRIPT = '[{"default": "said"}]'


@pytest.fixture
def shelf(workspace: Path, tmp_path: Path) -> Path:
    home = tmp_path / "home"
    given({"playbooks/review.playbook.md": REVIEW}, home)
    given({"playbooks/rules.md": "Be strict."}, home)
    given({"prompts/style.md": "In plain words."}, home)
    given({"pipelines/sum.yaml": SUM % "of the shelf"}, home)
    given({"script.json": SCRIPT}, workspace)
    return home


def run(*arguments: str) -> int:
    return main(["run", *arguments, "--script", "script.json"])


def test_it_runs_by_name_in_any_workspace(shelf: Path, said: Said) -> None:
    assert run("review", "-i", "what=this", "-q") == 0
    assert said() == ("of the shelf\n", "")
    assert run("sum", "-q") == 0
    assert said() == ("of the shelf\n", "")
    assert json_of(said, "runs", "last")["document"] == str(shelf / "pipelines" / "sum.yaml")


def test_nothing_of_a_clone_takes_the_place_of_what_it_names(shelf: Path, workspace: Path, said: Said) -> None:
    given({"pipelines/sum.yaml": SUM % "of the clone", "prompts/style.md": "EVIL", "rules.md": "EVIL"}, workspace)
    assert run("review", "-i", "what=this", "--break", "2", "-q") == 4
    said()
    assert main(["runs", "last", "--prompt", "1"]) == 0
    assert "In plain words." in said()[0]
    assert main(["runs", "last", "--prompt", "2"]) == 0
    assert "Be strict." in said()[0]
    assert main(["resume", "last", "-q"]) == 0
    assert said() == ("of the shelf\n", "")
    # By its file it is the same document.
    assert run(str(shelf / "playbooks" / "review.playbook.md"), "-i", "what=this", "-q") == 0
    assert said() == ("of the shelf\n", "")


def test_a_name_of_both_is_never_decided_silently(shelf: Path, workspace: Path, said: Said) -> None:
    given({"pipelines/sum.yaml": SUM % "of the clone"}, workspace)
    for verb in ("run", "show", "check"):
        assert main([verb, "sum"]) == 2
        out, err = said()
        assert out == ""
        assert err.startswith(
            "quire: sum means several things: the pipeline sum (pipelines/sum.yaml), the pipeline sum ("
        )
        assert err.endswith("say which by its file, or by its whole id, or as project:sum or user:sum\n")
    assert run("user:sum", "-q") == 0
    assert said()[0] == "of the shelf\n"
    assert run("project:sum", "-q") == 0
    assert said()[0] == "of the clone\n"
    assert run("system:sum", "-q") == 2
    assert "unknown file, pipeline, playbook or directive system:sum" in said()[1]


def test_a_document_of_the_workspace_does_not_see_the_shelf(shelf: Path, workspace: Path, said: Said) -> None:
    given({"caller.yaml": "pipeline: caller\nsteps:\n- call: {pipeline: sum}\n"}, workspace)
    assert run("caller.yaml") == 2
    assert "unknown pipeline sum" in said()[1]
    assert main(["check", "caller.yaml"]) == 0
    assert "sum" in said()[0]


def test_check_and_show_know_it(shelf: Path, workspace: Path, said: Said) -> None:
    assert main(["check", "review", "--strict"]) == 0
    assert said() == ("", "nothing found in 1 file\n")
    given({"playbooks/review.playbook.md": REVIEW.replace("quire, sum", "quire, smu")}, shelf)
    assert main(["check", "review"]) == 0
    assert "smu" in said()[0]
    shown = json_of(said, "show", "review")
    assert shown["document"] == str(shelf / "playbooks" / "review.playbook.md")
    assert main(["check", "nothing"]) == 2
    assert "nothing" in said()[1]


def test_bounds_count_what_the_shelf_calls(shelf: Path, workspace: Path, said: Said) -> None:
    agents = "pipeline: sum\nsteps:\n- agent: {prompt: A}\n- agent: {prompt: B}\n"
    given({"pipelines/sum.yaml": agents}, shelf)
    given({"pipelines/sum.yaml": SUM % "of the clone"}, workspace)
    assert json_of(said, "show", "review")["bounds"]["model_calls"]["most"] == 4


def test_links_of_the_user_may_lead_anywhere(shelf: Path, workspace: Path, tmp_path: Path, said: Said) -> None:
    kept = (
        given({"mine.playbook.md": "# Mine\n\n## STEP 1: Sum\n\n@tool(quire, sum, {})\n"}, tmp_path / "dotfiles")
        / "mine.playbook.md"
    )
    (shelf / "playbooks" / "mine.playbook.md").symlink_to(kept)
    given({"pipelines/sum.yaml": SUM % "of the clone"}, workspace)
    assert run("mine", "-q") == 0
    assert said()[0] == "of the shelf\n"
    (shelf / "playbooks").rename(tmp_path / "books")
    (shelf / "playbooks").symlink_to(tmp_path / "books")
    assert run("review", "-i", "what=x", "-q") == 0
    assert said()[0] == "of the shelf\n"


def test_a_broken_one_says_so(shelf: Path, said: Said) -> None:
    given({"playbooks/bad.playbook.md": "# Bad\n\n## INPUTS\n\n- nonsense\n"}, shelf)
    given({"pipelines/bad.yaml": "pipeline: ["}, shelf)
    assert main(["run", "bad", "--script", "script.json"]) == 2
    assert "Traceback" not in said()[1]
    assert run("sum", "-q") == 0


def test_without_a_shelf_nothing_changes(workspace: Path, said: Said) -> None:
    assert main(["run", "review"]) == 2
    assert "unknown file, pipeline, playbook or directive review" in said()[1]


def test_the_users_space_itself_is_a_workspace_like_others(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    given({"quire.toml": "", "script.json": SCRIPT}, shelf)
    monkeypatch.chdir(shelf)
    assert run("sum", "-q") == 0
    assert said()[0] == "of the shelf\n"


def test_a_near_name_is_suggested(shelf: Path, said: Said) -> None:
    assert main(["run", "reveiw"]) == 2
    assert "review" in said()[1]
