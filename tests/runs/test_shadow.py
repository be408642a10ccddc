"""Stored runs as tests of an edited document: the same end, a different one, or the first thing that is new."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.given import given
from tests.runs.test_journals import JOURNALS
from tests.runs.travel import Travel, use

from quire.engine.records import RunRow
from quire.engine.requests import HumanRequest, ModelRequest, ToolRequest
from quire.errors import BadDocument, CannotStart, NoSuchRun
from quire.library.document import load
from quire.runs.edited_document import EditedDocument
from quire.runs.export import export_lines, write_export
from quire.runs.fork import Changes, fork
from quire.runs.imports import import_run, read_export
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.runs.shadow import Replayed, replay_run, runs_of
from quire.stores import open_store
from quire.values import Value, encode
from quire.workspace.configuration import load_settings
from quire.workspace.locate import Workspace

FILES = {
    "everything": "everything.playbook.md",
    "choices": "choices.playbook.md",
    "board": "board.yaml",
    "letters": "letters.yaml",
    "dialect": "dialect.yaml",
    "dialect_waiting": "dialect.yaml",
    "dialect_failed": "dialect.yaml",
    "parent": ".ai/directives/demo/parent.md",
}


@pytest.fixture
def travel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Travel:
    made = Travel(tmp_path / "work")
    monkeypatch.chdir(made.folder)
    return made


async def made(travel: Travel, name: str) -> str:
    run: str = await getattr(travel, name)(run_id=f"run-{name}")
    return run or f"run-{name}"


async def replayed(travel: Travel, run: str, file: str) -> Replayed:
    """Replay with no way out, and see to it that the store has the same runs with the same records as before."""
    async with travel.runtime() as runtime:
        before = await _stored(runtime.store.list, runtime.store.effects)
        with pytest.MonkeyPatch.context() as closed:
            for place, name in ((socket.socket, "connect"), (subprocess, "Popen"), (os, "posix_spawn"), (os, "fork")):
                closed.setattr(place, name, _refused)
            found = await replay_run(runtime, run, EditedDocument(runtime, Path(file)))
        assert await _stored(runtime.store.list, runtime.store.effects) == before
    return found


def _refused(*given: object) -> None:
    raise AssertionError(f"a replay started or reached something: {given}")


async def _stored(listed: Callable[..., object], effects: Callable[..., object]) -> list[object]:
    rows: list[RunRow] = await listed(limit=100)  # type: ignore[misc]
    return [(row, await effects(row.id)) for row in rows]  # type: ignore[misc]


def edit(travel: Travel, name: str, *changes: tuple[str, str], to: str = "") -> str:
    text = (travel.folder / FILES[name]).read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    travel.write(to or FILES[name], text)
    return to or FILES[name]


@pytest.mark.parametrize("name", FILES)
async def test_an_unchanged_document_comes_to_the_same_end(travel: Travel, name: str) -> None:
    run = await made(travel, name)
    found = await replayed(travel, run, FILES[name])
    assert (found.verdict, found.changes, found.dropped, found.reworded) == ("same", [], found.dropped, [])
    assert not found.dropped


@pytest.mark.parametrize("name", ["everything", "board", "dialect", "parent"])
async def test_imported_runs_too(travel: Travel, name: str, tmp_path: Path) -> None:
    run = await made(travel, name)
    file = tmp_path / "run.jsonl"
    async with travel.runtime() as runtime:
        write_export(await export_lines(runtime, run), file)
    elsewhere = Travel(tmp_path / "elsewhere" / "work")
    (elsewhere.folder / "prompts" / "style.md").unlink()
    (elsewhere.folder / "pipelines" / "double.yaml").unlink()
    copy = elsewhere.write(Path(FILES[name]).name, (travel.folder / FILES[name]).read_text())
    async with elsewhere.runtime() as runtime:
        imported = await import_run(runtime, read_export(file))
    found = await replayed(elsewhere, imported, str(copy))
    assert (found.verdict, list(found.changes)) == ("same", [])


@pytest.mark.parametrize("file", JOURNALS, ids=lambda file: file.stem)
async def test_journals_of_every_version_come_to_the_same_end(travel: Travel, file: Path) -> None:
    """In a workspace that has neither the settings nor the keys of the one where they were made."""
    async with travel.runtime() as runtime:
        run = await import_run(runtime, read_export(file))
        row = await runtime.row(run)
        text = await runtime.store.text(str(row.pins["document"]))
        travel.write(f"copy/{Path(row.document).name}", text)
    found = await replayed(travel, run, f"copy/{Path(row.document).name}")
    assert (found.verdict, list(found.changes), list(found.dropped)) == ("same", [], [])


PLAYBOOK_EDITS: list[tuple[tuple[tuple[str, str], ...], str, str, str]] = [
    # the change, the verdict, the step of the first difference, the reason
    ((("# Everything", "# All of it"),), "same", "", ""),
    ((("A little of all", "A bit of all"),), "same", "", ""),
    ((("The gist of", "The core of"),), "new", "2", "prompt changed"),
    ((("You are brief.", "You are very brief."),), "new", "2", "prompt changed"),
    ((("Is {{gist}} right?", "Is it true: {{gist}}?"),), "same", "", ""),
    ((('"yes", "no", default:"yes"', '"sure", "no", default:"no"'),), "new", "3", "question changed"),
    ((('agreed == "yes"', 'agreed == "no"'),), "new", "4c", "another branch"),
    ((("Shorten it.", "Cut it."),), "new", "4b", "prompt changed"),
    ((("notes.txt", "other.txt"),), "new", "1", "arguments changed"),
    ((('(quire, double, {"n": {{size}}})', '(quire, halve, {"n": {{size}}})'),), "new", "5", "new tool call"),
    ((("- `size` (number: 3)", "- `more` (string): More\n- `size` (number: 3)"),), "new", "", "new input"),
    ((("## ARTIFACTS", "## STEP 7: Thanks\n\nSay thank you.\n\n## ARTIFACTS"),), "new", "7", "new model call"),
    ((("\nAll of it, {{twice}} times, about {{topic}}.", '\n@tool(quire, file__read, {"path": "notes.txt"})'),),
     "new", "6", "new tool call"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "verdict", "step", "reason"), PLAYBOOK_EDITS)
async def test_edits_of_a_playbook(
    travel: Travel, changes: tuple[tuple[str, str], ...], verdict: str, step: str, reason: str
) -> None:
    run = await made(travel, "everything")
    found = await replayed(travel, run, edit(travel, "everything", *changes))
    assert (found.verdict, found.new.request.label if found.new else "", found.reason) == (verdict, step, reason)


async def test_a_removed_last_step_is_a_different_end(travel: Travel) -> None:
    run = await made(travel, "everything")
    file = edit(travel, "everything", ("## STEP 6: End\n\nAll of it, {{twice}} times, about {{topic}}.\n", ""))
    found = await replayed(travel, run, file)
    assert (found.verdict, found.reason) == ("different", "output changed")
    assert [(one.what, one.a) for one in found.changes] == [("output", "the end")]
    assert [(one.label, type(one)) for one in found.dropped] == [("6", ModelRequest)]


async def test_a_question_in_other_words_keeps_its_answer_and_says_so(travel: Travel) -> None:
    run = await made(travel, "everything")
    found = await replayed(travel, run, edit(travel, "everything", ("Is {{gist}} right?", "Is {{gist}} all right?")))
    assert found.verdict == "same"
    assert [(then.prompt, now.prompt) for then, now in found.reworded] == [("Is rust right?", "Is rust all right?")]


async def test_a_reworded_question_does_not_take_the_answer_of_another(travel: Travel) -> None:
    text = '# Two\n\n## STEP 1: One\n\n@elicit(confirm, "Shall we begin?")\n\n## STEP 2: Two\n\nGo.\n'
    travel.write("two.playbook.md", text)
    run, _ = await travel.run("two.playbook.md", {}, ["gone"], RunOptions(answers={"1": "no"}))
    new = text.replace("## STEP 1: One", '## STEP 1: Zero\n\n@elicit(confirm, "Is the door closed?")\n\n## STEP 2: One')
    travel.write("two.playbook.md", new.replace("STEP 2: Two", "STEP 3: Two"))
    found = await replayed(travel, run, "two.playbook.md")
    assert found.new is not None and isinstance(found.new.request, HumanRequest)
    assert (found.new.what, found.new.request.prompt) == ("new question", "Is the door closed?")


PIPELINE_EDITS: list[tuple[tuple[tuple[str, str], ...], str, str, str]] = [
    ((("p + '!'", "p + '?'"),), "new", "3.do", "prompt changed"),
    ((("steps:\n- transform", "steps:\n- transform: {value: '1', output: one}\n- transform"),), "same", "", ""),
    ((("on_error: retry(1)", "on_error: continue"),), "same", "", ""),
    ((("options: [Ann, Bo]", "options: [Ann, Bo, Cy]"),), "same", "", ""),
    ((("options: [Ann, Bo]", "options: [Ann, Cy]"),), "new", "2", "question changed"),
    ((("ctx.count > 1", "ctx.count > 2"),), "new", "7", "prompt changed"),
    ((("Which of {loud} is lost?", "Which of {loud} got lost?"),), "new", "4.lost", "prompt changed"),
    ((("- agent: {prompt: \"Sum up {checks} and {twice} for {marker}.\"}", "- transform: {value: ctx.twice}"),),
     "different", "", "output changed"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "verdict", "step", "reason"), PIPELINE_EDITS)
async def test_edits_of_a_pipeline(
    travel: Travel, changes: tuple[tuple[str, str], ...], verdict: str, step: str, reason: str
) -> None:
    run = await made(travel, "board")
    found = await replayed(travel, run, edit(travel, "board", *changes))
    assert (found.verdict, found.new.request.label if found.new else "", found.reason) == (verdict, step, reason)


async def test_steps_that_moved_find_their_records(travel: Travel) -> None:
    """All ten steps of the dialect stand one place later: blocks, loops, retries, a survived failure."""
    run = await made(travel, "dialect")
    inserted = "  - transform: {value: \"'x'\", output: x}\n  - steps:\n      output: draft"
    found = await replayed(travel, run, edit(travel, "dialect", ("  - steps:\n      output: draft", inserted)))
    assert (found.verdict, list(found.dropped)) == ("same", [])
    assert [(one.what, one.where) for one in found.changes if one.what != "step"] == [("store", "x")]


async def test_agents_that_use_tools_move_with_their_turns(travel: Travel) -> None:
    home = Path(travel.environ["QUIRE_HOME"])
    given({"quire.toml": '[agents.default]\ntools = ["file__read"]\n'}, home)
    travel.write("a.yaml", "pipeline: a\nsteps:\n- agent: {prompt: Read., output: x}\n- agent: {prompt: 'And {x}.'}\n")
    use: Value = {"tool_calls": [{"name": "file__read", "input": {"path": "notes.txt"}}]}
    run, _ = await travel.run("a.yaml", {}, [use, use, "read", "done"])
    text = (travel.folder / "a.yaml").read_text()
    travel.write("b.yaml", text.replace("steps:\n", "steps:\n- transform: {value: '1'}\n"))
    found = await replayed(travel, run, "b.yaml")
    assert (found.verdict, list(found.dropped)) == ("same", [])
    travel.write("c.yaml", (travel.folder / "b.yaml").read_text().replace("And {x}.", "Or {x}."))
    found = await replayed(travel, run, "c.yaml")
    assert found.new is not None and (found.new.request.label, found.new.what) == ("3", "prompt changed")


async def test_edits_of_a_callee_are_seen(travel: Travel) -> None:
    run = await made(travel, "board")
    file = travel.folder / "pipelines" / "double.yaml"
    file.write_text(file.read_text().replace("* 2", "* 3"))
    found = await replayed(travel, run, FILES["board"])
    assert found.new is not None and (found.new.request.label, found.new.what) == ("7", "prompt changed")


async def test_values_that_a_person_set_in_a_callee_stay_there(travel: Travel) -> None:
    travel.write(
        "pipelines/n.yaml", 'pipeline: n\nsteps:\n- transform: {value: "1", output: n}\n- transform: {value: n}\n'
    )
    text = "pipeline: p\nsteps:\n- call: {pipeline: n, output: a}\n- call: {pipeline: n, output: b}\n"
    travel.write("p.yaml", f"{text}- transform: {{value: '[a, b]'}}\n")
    run, _ = await travel.run("p.yaml", {}, [], RunOptions(breakpoints=("2>1",)))
    async with travel.runtime() as runtime:
        await runtime.drive(run, overrides={"n": 41})
        assert (await runtime.view(run)).value == [1, 41]
    assert (await replayed(travel, run, "p.yaml")).verdict == "same"
    moved = (travel.folder / "p.yaml").read_text().replace("steps:\n", "steps:\n- transform: {value: '1'}\n")
    travel.write("p.yaml", moved)
    assert (await replayed(travel, run, "p.yaml")).verdict == "same"
    travel.write("p.yaml", moved.replace("pipeline: n, output: b", "pipeline: double, pass: {n: a}, output: b"))
    found = await replayed(travel, run, "p.yaml")
    assert (found.verdict, [one.path for one in found.dropped]) == ("different", ["2/call/1/break"])


async def test_values_that_a_person_set_move_with_their_step(travel: Travel) -> None:
    text = 'pipeline: p\nsteps:\n- transform: {value: "1", output: n}\n- transform: {value: n}\n'
    travel.write("p.yaml", text)
    run, _ = await travel.run("p.yaml", {}, [], RunOptions(breakpoints=("1",)))
    async with travel.runtime() as runtime:
        await runtime.drive(run, overrides={"n": 41})
    travel.write("p.yaml", text.replace("steps:\n", "steps:\n- transform: {value: '0'}\n"))
    assert (await replayed(travel, run, "p.yaml")).verdict == "same"
    travel.write("p.yaml", text.replace('"1"', '"2"'))
    assert (await replayed(travel, run, "p.yaml")).verdict == "same"


async def test_one_pipeline_of_a_file_of_several(travel: Travel) -> None:
    text = "pipeline: one\nsteps:\n- agent: {prompt: One.}\n---\npipeline: two\nsteps:\n- agent: {prompt: Two.}\n"
    file = travel.write("pipelines/both.yaml", text)
    async with travel.runtime(["x"]) as runtime:
        document = runtime.library.find("both.two") or runtime.library.find("two")
        assert document is not None and document.declared
        run = await runtime.start(document, {}, RunOptions())
        await runtime.drive(run)
        assert (await runs_of(runtime, EditedDocument(runtime, file), 5))[0] == [run]
    assert (await replayed(travel, run, str(file))).verdict == "same"
    file.write_text(text.replace("One.", "None."))
    assert (await replayed(travel, run, str(file))).verdict == "same"
    file.write_text(text.replace("Two.", "Three."))
    assert (await replayed(travel, run, str(file))).reason == "prompt changed"
    file.write_text(text[: text.index("---")])
    with pytest.raises(CannotStart, match="has no pipeline"):
        await replayed(travel, run, str(file))


async def test_called_directives_that_may_not_run_here_are_taken_as_pinned(travel: Travel) -> None:
    file = travel.folder / ".ai/directives/demo/child.md"
    travel.write("p.yaml", "pipeline: p\nsteps:\n- call: {pipeline: child, pass: {who: \"'Cy'\"}}\n")
    run, ended = await travel.run("p.yaml", {}, [use(("directive_return", {"said": "psst"}))])
    assert str(ended.status) == "completed"
    file.write_text(file.read_text().replace("Whisper", "Shout"))
    assert (await replayed(travel, run, "p.yaml")).verdict == "same"
    travel.sign(file)
    assert (await replayed(travel, run, "p.yaml")).reason == "prompt changed"


async def test_an_edited_prompt_file_is_seen(travel: Travel) -> None:
    run = await made(travel, "everything")
    travel.write("prompts/style.md", "Write in long words.")
    found = await replayed(travel, run, FILES["everything"])
    assert found.new is not None and found.new.what == "prompt changed"
    before = found.new.before
    assert isinstance(before, ModelRequest) and "plain words" in before.system + before.messages[-1].content


async def test_edits_of_a_directive(travel: Travel) -> None:
    """Its text is read without its signature, which an edit has broken."""
    run = await made(travel, "parent")
    found = await replayed(travel, run, edit(travel, "parent", ("Greet", "Welcome"), to="new.md"))
    assert found.new is not None and (found.new.request.label, found.new.what) == ("turn 1", "prompt changed")
    fewer = await replayed(travel, run, edit(travel, "parent", ('turns="20"', 'turns="2"')))
    assert (fewer.verdict, fewer.reason) == ("different", "status, error, output changed")
    more = await replayed(travel, run, edit(travel, "parent", ('turns="2"', 'turns="200"')))
    assert more.verdict == "same"


async def test_a_directive_that_asks_for_another_model(travel: Travel) -> None:
    """The model is found by the settings alone: no service is asked which models it has."""
    home = Path(travel.environ["QUIRE_HOME"])
    given({"quire.toml": '[models]\ndefault = "script:own.json"\n[models.tiers]\nhigh = "script:other.json"\n'}, home)
    travel.write("own.json", encode([use(("directive_return", {"said": "x"}))]))
    file = ".ai/directives/demo/parent.md"
    settings = load_settings(Workspace(travel.folder), travel.environ)
    runtime = Runtime(settings, open_store(travel.folder / ".quire" / "quire.db"), environ=travel.environ)
    run = await runtime.start(load(travel.folder / file), {"who": "Bo"}, RunOptions())
    assert str((await runtime.drive(run)).status) == "completed"
    for tier, reason in (("low", ""), ("general", ""), ("high", "model changed")):
        text = (travel.folder / file).read_text().replace('<model tier="low" />', f'<model tier="{tier}" />')
        found = await replay_run(runtime, run, EditedDocument(runtime, travel.write("new.md", text)))
        assert found.reason == reason, tier
    await runtime.close()


async def test_a_run_that_waits_is_compared_with_where_it_waits(travel: Travel) -> None:
    run = await made(travel, "dialect_waiting")
    file = edit(travel, "dialect", ("'Take ' + version + '?'", "'Really take ' + version + '?'"))
    found = await replayed(travel, run, file)
    assert found.new is not None and isinstance(found.new.request, HumanRequest)
    assert (found.verdict, found.new.what) == ("new", "question changed")


async def test_a_run_that_is_paused_rests_where_it_stands(travel: Travel) -> None:
    text = "# Two\n\n## STEP 1: One\n\nOne.\n\n## STEP 2: Two\n\nTwo.\n"
    travel.write("two.playbook.md", text)
    run, ended = await travel.run("two.playbook.md", {}, ["x"], RunOptions(breakpoints=("1",)))
    assert str(ended.status) == "paused"
    assert (await replayed(travel, run, "two.playbook.md")).verdict == "same"
    travel.write("two.playbook.md", text.replace("Two.", "Three."))
    assert (await replayed(travel, run, "two.playbook.md")).verdict == "same"
    travel.write("two.playbook.md", text.replace("One.", "None."))
    assert (await replayed(travel, run, "two.playbook.md")).reason == "prompt changed"


async def test_a_failure_that_does_not_happen_any_more(travel: Travel) -> None:
    run = await made(travel, "dialect_failed")
    found = await replayed(travel, run, edit(travel, "dialect", ("when: strict", "when: 'false'")))
    assert found.new is not None and isinstance(found.new.request, ModelRequest)
    assert "Sum up" in found.new.request.messages[-1].content


async def test_writes_are_not_performed_and_their_loss_is_told(travel: Travel) -> None:
    write = '@tool(quire, file__write, {"path": "out.txt", "content": "x"})'
    text = f"# W\n\n## STEP 1: Write\n\n{write}\n\n## STEP 2: End\n\n@context(none)\n\nEnd.\n"
    travel.write("w.playbook.md", text)
    run, _ = await travel.run("w.playbook.md", {}, ["ended"], RunOptions(allow=("file__write",)))
    written = travel.folder / "out.txt"
    written.unlink()
    assert (await replayed(travel, run, "w.playbook.md")).verdict == "same"
    travel.write(
        "v.playbook.md",
        text.replace('@tool(quire, file__write, {"path": "out.txt", "content": "x"})', '@elicit(confirm, "Go?")'),
    )
    found = await replayed(travel, run, "v.playbook.md")
    assert found.verdict == "new"
    end = "# W\n\n## STEP 1: End\n\n@context(none)\n\nEnd.\n"
    travel.write("u.playbook.md", end)
    found = await replayed(travel, run, "u.playbook.md")
    assert (found.verdict, [type(one) for one in found.dropped]) == ("same", [ToolRequest])
    assert not written.exists()


async def test_forked_runs_and_runs_with_reused_replies_are_runs_too(travel: Travel) -> None:
    run = await made(travel, "everything")
    async with travel.runtime(["another end"]) as runtime:
        forked = await fork(runtime, run, "6", Changes())
        await runtime.drive(forked.run)
    assert (await replayed(travel, forked.run, FILES["everything"])).verdict == "same"


async def test_the_runs_of_a_document_are_found(travel: Travel) -> None:
    text = "# Small\n\n## STEP 1: One\n\nOne.\n"
    for name, body in (("small.playbook.md", text), ("other.playbook.md", text.replace("Small", "Other"))):
        travel.write(name, body)
    runs = [(await travel.run("small.playbook.md", {}, ["x"], run_id=f"small-{number}"))[0] for number in range(3)]
    await travel.run("other.playbook.md", {}, ["x"])
    async with travel.runtime() as runtime:
        started = await runtime.start(load("small.playbook.md"), {}, RunOptions())
        edited = EditedDocument(runtime, Path("small.playbook.md"))
        found, count = await runs_of(runtime, edited, 2)
        assert (count, len(found)) == (3, 2)
        assert set(found) < set(runs) and started not in found
        nothing = travel.write("nothing.playbook.md", text.replace("Small", "Nothing"))
        with pytest.raises(NoSuchRun, match="no completed run"):
            await runs_of(runtime, EditedDocument(runtime, nothing), 2)


async def test_documents_that_cannot_be_those_of_the_run(travel: Travel) -> None:
    run = await made(travel, "everything")
    with pytest.raises(CannotStart, match=r"board\.yaml is a pipeline, and run .* is of a playbook"):
        await replayed(travel, run, "board.yaml")
    travel.write("broken.playbook.md", "# Broken\n")
    with pytest.raises(BadDocument):
        await replayed(travel, run, "broken.playbook.md")
    board = await made(travel, "board")
    travel.write("broken.yaml", "pipeline: board\nsteps: 1\n")
    with pytest.raises(BadDocument):
        await replayed(travel, board, "broken.yaml")


async def test_a_run_that_cannot_be_read_is_said_so(travel: Travel) -> None:
    import sqlite3

    run = await made(travel, "everything")
    with sqlite3.connect(travel.folder / ".quire" / "quire.db") as database:
        database.execute("UPDATE journal SET request = 'x' WHERE path = '2/model'")
    found = await replayed(travel, run, FILES["everything"])
    assert (found.verdict, "cannot be replayed" in found.problem) == ("unreadable", True)
