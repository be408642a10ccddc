"""The page on choosing a format is tried: its pipelines run in an empty folder, its names of tools mean one tool."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.pages import blocks, text_of

import quire
from quire.library.check import DocumentCheck
from quire.source import read_source
from quire.tools.builtin import SPECS
from quire.trust.capabilities import canonical, capability, flat_name

PAGE = "docs/choosing.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with the pipelines of the page, each in the file of its name."""
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "home"))
    work = tmp_path / "work"
    (work / "pipelines").mkdir(parents=True)
    monkeypatch.chdir(work)
    for block in blocks(PAGE, "yaml"):
        name = re.search(r"^pipeline: (\w+)$", block.text, re.MULTILINE)
        assert name
        (work / "pipelines" / f"{name[1]}.yaml").write_text(block.text, encoding="utf-8")
    return work


def test_the_pipelines_are_clean(folder: Path) -> None:
    found = DocumentCheck()
    for file in (folder / "pipelines").iterdir():
        assert [
            one.message for one in found.pipeline(read_source(file)) if one.severity is not quire.Severity.NOTE
        ] == []


async def test_the_loop_ends_when_the_work_is_done(folder: Path) -> None:
    script = quire.ScriptedModel(['{"done": false, "text": "b"}', '{"done": true, "text": "c"}'])
    result = await quire.run("improve", inputs={"draft": "a"}, model=script)
    assert (result.error, result.value) == ("", {"done": True, "text": "c"})
    assert len(script.calls) == 2


async def test_the_failure_is_survived(folder: Path) -> None:
    result = await quire.run("survive")
    assert result.status is quire.Status.COMPLETED
    assert isinstance(result.value, dict)
    (problem,) = result.value["problem"]
    assert result.value["rates"] == [] and "rates.csv" in problem["message"]


def test_the_names_of_one_tool() -> None:
    rows = dict(
        re.findall(r"^\| (its id|permission|offered|capability)[^|]*\| `([^`]+)` \|", text_of(PAGE), re.MULTILINE)
    )
    own = canonical("file__read")
    assert rows["its id"] == own
    assert rows["permission"] == own.replace("/", ".")
    assert rows["offered"] == flat_name(own)
    assert rows["capability"] == capability("execute", "tool", own)


def test_every_built_in_tool_and_argument_is_in_the_table_of_tools() -> None:
    """`include` is another name of `glob`; models know both."""
    page = text_of("docs/tools-and-trust.md")
    table = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", page, re.MULTILINE))
    for name, spec in SPECS.items():
        properties = spec.schema["properties"]
        assert isinstance(properties, dict)
        missing = [one for one in properties if f"`{one}" not in table[name] and one not in ("include",)]
        assert not missing, f"{name}: {missing}"
