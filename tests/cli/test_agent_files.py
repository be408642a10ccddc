"""`quire new agents` and `quire new skill`: the user's text stays, the skill is one by the rules of skills."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from skills_ref.validator import validate  # type: ignore[import-untyped]
from tests.cli.conftest import Said

from quire.cli import main
from quire.cli.agent_files import BEGIN, END, with_block
from quire.errors import CannotStart
from quire.formats.grammars import GRAMMARS, agents_text, skill_text
from quire.library.check import DocumentCheck
from quire.source import Source

BLOCK = b"%s\nnew\n%s\n" % (BEGIN, END)
LINES = st.lists(
    st.sampled_from([b"a\n", b"b\r\n", b"\xff\xfe", b"\n", b"see <!-- quire -->\n", b"\xef\xbb\xbf# T\n", b"c"]),
    max_size=6,
)


@examples(LINES, LINES)
def test_text_outside_of_the_marks_stays_byte_for_byte(before: list[bytes], after: list[bytes]) -> None:
    head, tail = b"".join(before), b"".join(after)
    head = head + b"\n" if head and not head.endswith(b"\n") else head
    new = with_block(b"%s%s\nold\n  %s\n%s" % (head, BEGIN, END, tail), BLOCK)
    assert new.startswith(head + BEGIN) and new.endswith(tail) and b"old" not in new
    assert len(new) - len(head) - len(tail) in (len(BLOCK), len(BLOCK) + 3)
    assert with_block(new, BLOCK) == new


@examples(LINES)
def test_the_block_comes_after_a_text_without_marks(lines: list[bytes]) -> None:
    text = b"".join(lines)
    new = with_block(text, BLOCK)
    assert new.startswith(text) and b"new" in new
    assert with_block(new, BLOCK) == new


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"%s\n", "line 1:"),
        (b"a\n%s\n%s\n", "line 2, 3:"),
        (b"%s\nx\n%s\n%s\n%s\n", "line 1, 3, 4, 5:"),
    ],
)
def test_broken_marks_are_refused(text: bytes, lines: str) -> None:
    marks = {1: (BEGIN,), 2: (END, BEGIN), 4: (BEGIN, END, BEGIN, END)}
    with pytest.raises(CannotStart, match=lines):
        with_block(text % marks[text.count(b"%s")], BLOCK)


def test_agents_are_told(workspace: Path, said: Said) -> None:
    assert main(["new", "agents"]) == 0
    said()
    file = workspace / "AGENTS.md"
    first = file.read_bytes()
    file.write_bytes(b"# Mine\n\n" + first + b"\nMore of mine.")
    (workspace / "CLAUDE.md").symlink_to("AGENTS.md")
    assert main(["new", "agents"]) == 0
    assert said()[0] == "AGENTS.md\n"
    assert file.read_bytes() == b"# Mine\n\n" + first + b"\nMore of mine."
    assert first.decode() == f"{BEGIN.decode()}\n{agents_text()}{END.decode()}\n"
    assert main(["new", "agents", "--stdout"]) == 0
    assert said()[0].encode() == first


def test_a_link_is_followed_inside_of_the_folder_only(workspace: Path, said: Said) -> None:
    (workspace / "CLAUDE.md").write_text("# Mine\n")
    (workspace / "AGENTS.md").symlink_to("CLAUDE.md")
    assert main(["new", "agents"]) == 0
    assert (workspace / "AGENTS.md").is_symlink() and "## Quire" in (workspace / "CLAUDE.md").read_text()
    (workspace / "AGENTS.md").unlink()
    outside = workspace.parent / "other.md"
    outside.write_text("theirs")
    (workspace / "AGENTS.md").symlink_to(outside)
    said()
    assert main(["new", "agents"]) == 2
    assert "leads out of this folder" in said()[1] and outside.read_text() == "theirs"


@pytest.mark.parametrize(
    ("folders", "given", "place"),
    [
        ((), [], ".agents/skills/quire"),
        ((".claude",), [], ".claude/skills/quire"),
        ((), ["write-flows"], ".agents/skills/write-flows"),
        ((".claude",), ["--to", "elsewhere"], "elsewhere/quire"),
    ],
)
def test_a_skill(workspace: Path, said: Said, folders: tuple[str, ...], given: list[str], place: str) -> None:
    for folder in folders:
        (workspace / folder).mkdir()
    assert main(["new", "skill", *given]) == 0
    assert said()[0] == f"{place}/SKILL.md\n"
    assert validate(workspace / place) == []
    for grammar in GRAMMARS:
        beside = workspace / place / "references" / f"{grammar.key.replace('/', '-')}.md"
        assert beside.read_text() == grammar.text and f"](references/{beside.name})" in skill_text("quire")
    assert main(["new", "skill", *given]) == 2
    assert "--force overwrites it" in said()[1]
    (workspace / place / "SKILL.md").write_text("x")
    assert main(["new", "skill", *given, "--force"]) == 0
    assert validate(workspace / place) == []


@pytest.mark.parametrize(
    "name", ["a/b", "..", "../x", "/tmp/x", "Quire", "a--b", "-a", "a_b", "x.playbook.md", "a" * 65, "a\n", "é", "a\\b"]
)
def test_names_that_are_none(workspace: Path, said: Said, name: str) -> None:
    assert main(["new", "skill", "--", name]) == 2
    out, err = said()
    assert out == "" and len(err.splitlines()) == 1 and "not a name for a skill" in err
    assert [path.name for path in workspace.iterdir()] == ["quire.toml"]


def test_nothing_is_written_where_a_part_of_the_skill_is_there(workspace: Path, said: Said) -> None:
    file = workspace / ".agents/skills/quire/references/test.md"
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    assert main(["new", "skill"]) == 2
    assert "references/test.md exists already" in said()[1]
    assert file.read_text() == "mine" and not (workspace / ".agents/skills/quire/SKILL.md").exists()


def test_no_link_leads_out(workspace: Path, said: Said) -> None:
    (workspace.parent / "out").mkdir()
    (workspace / ".agents").symlink_to(workspace.parent / "out")
    assert main(["new", "skill"]) == 2
    assert "leads out of this folder" in said()[1] and not any((workspace.parent / "out").iterdir())


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["agents", "x"], "takes no NAME"),
        (["agents", "--title", "x"], "not for agents"),
        (["skill", "--category", "x"], "not for skill"),
        (["playbook", "x", "--to", "y"], "--to is for skills"),
    ],
)
def test_options_that_do_not_fit(workspace: Path, said: Said, given: list[str], problem: str) -> None:
    assert main(["new", *given]) == 2
    assert problem in said()[1]


def test_the_examples_of_the_skill_check_clean() -> None:
    text = skill_text("quire")
    plain, asking = re.findall(r"^`{5}markdown\n(.*?)^`{5}$", text, re.MULTILINE | re.DOTALL)
    pipeline = text.partition("```yaml\n")[2].partition("```")[0]
    for name, document in (("x.playbook.md", plain), ("y.playbook.md", asking), ("x.yaml", pipeline)):
        assert document and DocumentCheck().of(Source.of(document, name)) == ()
    assert "<!--" not in text and len(text) < 8_000


def test_a_file_of_agents_that_cannot_be_written(workspace: Path, said: Said) -> None:
    (workspace / "AGENTS.md").mkdir()
    assert main(["new", "agents"]) == 2
    assert len(said()[1].splitlines()) == 1
