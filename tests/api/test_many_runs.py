"""Many runs in one process: what they share, what each of them sees anew, and results without a replay."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.given import given

import quire
from quire.engine.driver.drive import Drive
from quire.engine.ports import ModelCall, ModelReply
from quire.engine.records import Usage
from quire.errors import BadConfiguration
from quire.runs import stored
from quire.runs.runtime import Runtime
from quire.values import Value
from quire.workspace import configuration
from quire.workspace.grants import is_everything
from quire.workspace.locate import Workspace
from quire.workspace.settings import Settings

PLAYBOOK = "# A\n\n## STEP 1: Say\n\nSay.\n"


pytestmark = pytest.mark.usefixtures("workspace")


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders whose settings were loaded."""
    folders: list[Path] = []
    whole = configuration.load_settings

    def counted(workspace: Workspace, environ: Mapping[str, str]) -> Settings:
        folders.append(workspace.folder)
        return whole(workspace, environ)

    monkeypatch.setattr(stored, "load_settings", counted)
    return folders


def scripted(**entry: Value) -> quire.ScriptedModel:
    return quire.ScriptedModel([entry or {"default": "fine"}], keep_calls=False)


async def test_runs_that_begin_at_once_read_the_settings_once(loaded: list[Path]) -> None:
    await asyncio.gather(*(quire.run(PLAYBOOK, model=scripted()) for _ in range(20)))
    assert len(loaded) == 1
    assert not stored._turns


async def test_the_next_run_sees_an_edited_file(workspace: Path) -> None:
    assert (await quire.run(PLAYBOOK, model=scripted())).status == "completed"
    (workspace / "quire.toml").write_text("[runz]\n")
    outcomes = await asyncio.gather(*(quire.run(PLAYBOOK, model=scripted()) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in outcomes] == [BadConfiguration] * 3
    (workspace / "quire.toml").write_text("[runs]\n")
    assert (await quire.run(PLAYBOOK, model=scripted())).status == "completed"


def test_settings_of_the_same_length_at_the_same_moment_are_read_anew(workspace: Path) -> None:
    """The contents decide, not what the file system says of them."""
    file = workspace / "quire.toml"
    file.write_text("[runs]\ncontext_budget = 1111\n")
    at = file.stat()
    assert stored.settings_of(None, os.environ).runs.context_budget == 1111
    file.write_text("[runs]\ncontext_budget = 2222\n")
    os.utime(file, ns=(at.st_atime_ns, at.st_mtime_ns))
    assert stored.settings_of(None, os.environ).runs.context_budget == 2222


def test_unchanged_settings_are_parsed_once(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (workspace / "quire.toml").write_text("[runs]\ncontext_budget = 7654\n")
    first = stored.settings_of(None, os.environ)
    monkeypatch.setattr(configuration, "_settings", None)
    assert stored.settings_of(None, os.environ) == first


async def test_workspaces_that_begin_at_once_have_their_own_settings(workspace: Path, loaded: list[Path]) -> None:
    other = workspace.parent / "other"
    given({"quire.toml": "[store]\n", "broken/quire.toml": "[nothing]\n"}, other)
    folders = [workspace, other, other / "broken", other]
    outcomes = await asyncio.gather(
        *(quire.run(PLAYBOOK, model=scripted(), workspace=folder) for folder in folders), return_exceptions=True
    )
    assert [getattr(one, "status", type(one)) for one in outcomes] == [
        "completed",
        "completed",
        BadConfiguration,
        "completed",
    ]
    assert sorted(loaded) == sorted([workspace, other, other / "broken"])
    assert (other / ".quire").exists()


def test_loops_in_two_threads_do_not_share(loaded: list[Path]) -> None:
    statuses: list[str] = []

    async def several() -> None:
        runs = (quire.run(PLAYBOOK, model=scripted()) for _ in range(3))
        statuses.extend(result.status for result in await asyncio.gather(*runs))

    threads = [threading.Thread(target=lambda: asyncio.run(several())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == ["completed"] * 6
    assert len(loaded) == 2


async def test_failed_and_stopped_runs_leave_the_others_alone() -> None:
    never = asyncio.Event()

    async def wait(seconds: float) -> None:
        await never.wait()

    models = [
        scripted(),
        scripted(error={"kind": "bad", "message": "no"}),
        quire.ScriptedModel([{"reply": "x", "delay_ms": 1}], sleep=wait),
        scripted(),
    ]
    runs = [asyncio.ensure_future(quire.run(PLAYBOOK, model=model)) for model in models]
    await asyncio.wait([runs[0], runs[1], runs[3]])
    runs[2].cancel()
    await asyncio.wait([runs[2]])
    assert [run.result().status for run in (runs[0], runs[1], runs[3])] == ["completed", "failed", "completed"]
    assert runs[2].cancelled()
    async with quire.open() as runtime:
        assert sorted(row.status for row in await runtime.store.list()) == [
            "completed",
            "completed",
            "failed",
            "paused",
        ]


async def test_closing_the_workspace_leaves_runs_under_way_their_store() -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def wait(seconds: float) -> None:
        asked.set()
        await go_on.wait()

    async with quire.open():
        model = quire.ScriptedModel([{"reply": "x", "delay_ms": 1}], sleep=wait)
        under_way = asyncio.ensure_future(quire.run(PLAYBOOK, model=model))
        await asked.wait()
    go_on.set()
    assert (await under_way).output == "x"


class _Saying:
    """A model that says the value of a variable."""

    name = "saying"

    async def complete(self, call: ModelCall, on_delta: object) -> ModelReply:
        return ModelReply("the key is s3cr3t-Value-17", "saying", Usage())


async def test_a_secret_that_is_set_between_two_runs_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "s3cr3t-Value-17" in (await quire.run(PLAYBOOK, model=_Saying())).output
    monkeypatch.setenv("SOME_API_KEY", "s3cr3t-Value-17")
    assert (await quire.run(PLAYBOOK, model=_Saying())).output == "the key is [redacted:SOME_API_KEY]"


def test_a_link_to_the_home_folder_that_leads_elsewhere_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, other, link = tmp_path / "person", tmp_path / "elsewhere", tmp_path / "link"
    home.mkdir()
    other.mkdir()
    link.symlink_to(home)
    monkeypatch.setenv("HOME", str(home))
    assert is_everything(link)
    link.unlink()
    link.symlink_to(other)
    assert not is_everything(link)
    assert is_everything(tmp_path)


DOCUMENTS = {
    "captures": """# A

## INPUTS

- `x` (string: a)

## STEP 1: Rate

Rate {{x}}.

@output(score, extract:"score")

## STEP 2: Look

### 2a: Say

Say {{score}} {{missing}}.

## STEP 3: End

Say {{score}}.
""",
    "file": '# A\n\n## STEP 1: Read\n\n@tool(quire, file__read, {"path": "quire.toml"})\n\n## STEP 2: Say\n\nSay.\n',
    "stores": "pipeline: p\nsteps:\n  - transform: {value: '1 + 1', output: two}\n  - transform: {value: 'ctx.two'}\n",
    "fan": """pipeline: p
steps:
  - transform: {value: '[1, 2, 3]', output: list}
  - for_each:
      over: ctx.list
      on_error: continue
      do: {transform: {value: item + 1, output: again}}
      collect: {transform: {value: pipe, output: all}}
""",
}


@pytest.mark.parametrize("name", DOCUMENTS)
async def test_a_result_is_the_same_as_from_a_replay(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drive follows the progress of the run; the replay that it saves must say the same."""
    model = scripted(default='Fine.\n\n{"score": 7}')
    followed = await quire.run(DOCUMENTS[name], model=model, unattended=True)
    monkeypatch.setattr(Drive, "follow", lambda drive, progress: None)
    replayed = await quire.run(DOCUMENTS[name], model=model, unattended=True)
    assert followed.status == "completed"
    assert _without_id(followed) == _without_id(replayed)
    async with quire.open() as runtime:
        view = await runtime.view(followed.run)
        assert {step.label: step.status for step in view.replay.progress.steps.values()} == followed.steps


def _without_id(result: quire.Result) -> dict[str, object]:
    return {name: getattr(result, name) for name in result.__struct_fields__ if name != "run"}


async def test_a_sequence_is_not_replayed_for_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_replay(*arguments: object, **options: object) -> None:
        raise AssertionError("replayed")

    monkeypatch.setattr("quire.runs.runtime.replay", no_replay)
    assert (await quire.run(PLAYBOOK, model=scripted())).steps == {"1": "completed"}


async def test_a_document_is_read_once_for_a_run_and_its_view(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    whole = Runtime.pinned

    async def counted(self: Runtime, row: object, text: object) -> object:
        read.append("once")
        return await whole(self, row, text)  # type: ignore[arg-type]

    monkeypatch.setattr(Runtime, "pinned", counted)
    await quire.run(PLAYBOOK, model=scripted())
    assert read == ["once"]
