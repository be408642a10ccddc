"""Usage of earlier runs: which runs count, how it is counted in every store, and the sizes of their inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.given import given
from tests.play import Play
from tests.stores.conftest import Shelf
from tests.stores.conftest import shelf as shelf

from quire.engine.ports import Store
from quire.engine.records import EffectRecord, NewRun, RunUpdate, Status, Usage
from quire.engine.requests import Failure
from quire.library.document import Document, load
from quire.runs import earlier_runs as module
from quire.runs.earlier_runs import Spread, UsageSeen, busy_seconds, child_threads, input_sizes, usage_seen
from quire.stores.contract import History
from quire.values import Value

FOLDER = "/srv/here"


@pytest.fixture
def document(tmp_path: Path) -> Document:
    path = tmp_path / "p.playbook.md"
    path.write_text("# P\n\n## STEP 1: A\n\nSay.\n")
    return load(path)


def model(path: str, at: float = 0.0, elapsed: float = 1.0, **more: object) -> EffectRecord:
    usage = Usage(100, 10, 0.5)
    return EffectRecord(path, "model", "ok", "h", at, {"text": "x"}, usage=usage, elapsed=elapsed, **more)  # type: ignore[arg-type]


class Keeper:
    """Keeps runs as a drive has left them."""

    def __init__(self, store: Store, document: Document) -> None:
        self._store, self._document, self._count = store, document, 0

    async def keep(
        self,
        *effects: EffectRecord,
        inputs: Value = None,
        status: Status = Status.COMPLETED,
        name: str = "p.playbook.md",
        folder: str | None = FOLDER,
        text: str = "",
        format: str = "playbook",
        cost: float | None = 0.0,
        tokens: tuple[int, int] = (0, 0),
        **pins: Value,
    ) -> None:
        self._count += 1
        pinned = {"document": text, "folder": folder, "model": "m:x", "inputs": inputs or {}, **pins}
        run = NewRun(f"20260101-00000{self._count}-aaaa", "P", format, name, self._count, pinned, {})
        await self._store.restore(run, History(RunUpdate(status), effects, (), 9.0, *tokens, cost))


@pytest.fixture
def keeper(shelf: Shelf, document: Document) -> Keeper:
    return Keeper(shelf.open(), document)


async def seen(keeper: Keeper, document: Document, folder: str | None = FOLDER) -> UsageSeen:
    return await usage_seen(keeper._store, document, folder)


async def test_effects_are_counted_by_kind(keeper: Keeper, document: Document) -> None:
    refused = EffectRecord("5", "model", "failed", "h", 0.0, failure=Failure("too_many_calls", "no more"))
    failed = EffectRecord("6", "model", "failed", "h", 0.0, failure=Failure("timeout", "timed out"))
    await keeper.keep(
        model("1", 0.0, 2.0),
        model("2", 1.0, 2.0),
        model("3", 9.0, 1.0, by="20250101-000000-bbbb"),
        refused,
        failed,
        EffectRecord("4", "tool", "ok", "h", 20.0, "fine", elapsed=5.0),
        EffectRecord("7", "ask", "ok", "h", 100.0, "yes", elapsed=90_000.0),
        EffectRecord("8", "join", "ok", "h", 0.0, [], elapsed=500.0),
        cost=1.5,
        tokens=(300, 30),
    )
    found = await seen(keeper, document)
    assert {name: spread.most for name, spread in found.amounts.items()} == {
        "model_calls": 3,
        "tool_calls": 1,
        "questions": 1,
        "threads": 0,
        "input_tokens": 300,
        "output_tokens": 30,
        "seconds": 3.0 + 5.0,
        "work": 2.0 + 2.0 + 5.0,
        "cost": 1.5,
    }


async def test_only_completed_runs_of_this_document_count(keeper: Keeper, document: Document) -> None:
    sha = document.sha256
    await keeper.keep(model("1"))
    await keeper.keep(model("1"), text=sha)
    await keeper.keep(model("1"), text=sha, folder=None)
    await keeper.keep(model("1"), name="sub/p.playbook.md")
    for status in (Status.FAILED, Status.CANCELLED, Status.PAUSED):
        await keeper.keep(model("1"), status=status)
    await keeper.keep(model("1"), folder="/srv/elsewhere")
    await keeper.keep(model("1"), name="xp.playbook.md")
    await keeper.keep(model("1"), format="pipeline")
    await keeper.keep(model("1"), text=sha, declared="other")
    found = await seen(keeper, document)
    assert (found.runs, found.of_this_text) == (4, 2)
    assert found.told == "4 runs"
    await keeper.keep(model("1"), text=sha, imported={"status": "completed"})
    assert (await seen(keeper, document)).runs == 4
    assert (await seen(keeper, document, None)).runs == 2


async def test_a_store_without_such_runs_has_seen_nothing(keeper: Keeper, document: Document) -> None:
    found = await seen(keeper, document)
    assert found == UsageSeen()
    assert found.assumed() == {}


async def test_a_cost_that_is_not_known_of_one_run_is_not_told(keeper: Keeper, document: Document) -> None:
    await keeper.keep(model("1"), cost=0.5)
    assert "cost" in (await seen(keeper, document)).amounts
    unknown = EffectRecord("1", "model", "ok", "h", 0.0, {"text": "x"}, usage=Usage(5, 5, None))
    await keeper.keep(unknown, cost=None)
    found = await seen(keeper, document)
    assert found.runs == 2
    assert "cost" not in found.amounts
    assert found.amounts["input_tokens"].most == 100


async def test_tokens_of_calls_that_were_made_again_count(keeper: Keeper, document: Document) -> None:
    await keeper.keep(model("1"), tokens=(1_000, 2), cost=0.1)
    amounts = (await seen(keeper, document)).amounts
    assert [amounts[name].most for name in ("input_tokens", "output_tokens", "cost")] == [1_000, 10, 0.5]


async def test_sizes_of_inputs_become_assumptions(keeper: Keeper, document: Document) -> None:
    for count in range(1, 21):
        await keeper.keep(inputs={"readers": ["ab"] * count, "doc": "x" * 10 * count})
    await keeper.keep(inputs={"other": 1})
    found = await seen(keeper, document)
    assert found.sizes["|readers|"] == Spread(10, 19, 20)
    assert found.assumed()["|readers|"] == 19
    assert found.assumed("most")["‖doc‖"] == 200
    assert found.assumed("p50")["‖readers[]‖"] == 2
    assert found.sizes["‖other‖"] == Spread(1, 1, 1)


@pytest.mark.parametrize(("limit", "most", "runs"), [("MOST_RUNS", 2, 2), ("MOST_EFFECTS", 3, 2), ("MOST_BYTES", 5, 1)])
async def test_the_work_is_bounded(
    keeper: Keeper, document: Document, limit: str, most: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in range(4):
        await keeper.keep(model("1"), model("2"), inputs={"doc": "x" * (5 + count)})
    monkeypatch.setattr(module, limit, most)
    found = await seen(keeper, document)
    assert found.runs == runs
    assert found.sizes["‖doc‖"].most == 8  # the newest came first


async def test_other_documents_of_the_name_do_not_hide_runs_for_ever(
    keeper: Keeper, document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    await keeper.keep(model("1"))
    for _ in range(5):
        await keeper.keep(model("1"), folder="/srv/elsewhere")
    monkeypatch.setattr(module, "_PAGE", 2)
    assert (await seen(keeper, document)).runs == 1
    monkeypatch.setattr(module, "MOST_LISTED", 4)
    assert (await seen(keeper, document)).runs == 0


@pytest.mark.parametrize(
    ("numbers", "spread"),
    [
        ([7], Spread(7, 7, 7)),
        ([2, 1], Spread(1, 2, 2)),
        (range(1, 101), Spread(50, 95, 100)),
        ([0, 0, 0, 9], Spread(0, 9, 9)),
    ],
)
def test_a_spread_has_numbers_that_were_seen(numbers: list[float], spread: Spread) -> None:
    assert Spread.of(numbers) == spread


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 0),
        ([(0, 2), (1, 3)], 3),
        ([(0, 10), (1, 2), (3, 4)], 10),
        ([(5, 6), (0, 1)], 2),
        ([(0, 1), (1, 2)], 2),
        ([(3, 1)], 0),
    ],
)
def test_time_side_by_side_counts_once(spans: list[tuple[float, float]], seconds: float) -> None:
    assert busy_seconds(spans) == seconds


def test_threads_that_threads_start_are_counted() -> None:
    paths = [
        "thread/turn[0]",
        "thread/turn[0]/call[1]/thread/turn[0]",
        "thread/turn[0]/call[1]/thread/turn[1]",
        "thread/turn[0]/call[1]/thread/turn[1]/call[0]/thread/turn[0]",
        "3/thread/turn[0]",
        "threads/1",
    ]
    assert len(child_threads(paths)) == 2


@pytest.mark.parametrize(
    ("inputs", "sizes"),
    [
        ({"doc": "äbc"}, {"‖doc‖": 4}),
        ({"n": 12.5, "yes": True, "none": None}, {"‖n‖": 4, "‖yes‖": 4, "‖none‖": 4}),
        ({"xs": []}, {"|xs|": 0, "‖xs‖": 2}),
        ({"xs": ["a", "bcd"]}, {"|xs|": 2, "‖xs‖": 11, "‖xs[]‖": 3}),
        (
            {"o": {"lines": [{"t": "ab"}, {"t": "c"}]}},
            {
                "|o|": 1,
                "‖o‖": 32,
                "|o.lines|": 2,
                "‖o.lines‖": 22,
                "|o.lines[]|": 1,
                "‖o.lines[]‖": 10,
                "‖o.lines[].t‖": 2,
            },
        ),
        (None, {}),
        ("text", {}),
    ],
)
def test_sizes_have_the_symbols_of_bounds(inputs: Value, sizes: dict[str, int]) -> None:
    assert input_sizes(inputs) == sizes


def test_inputs_of_any_shape_are_measured_in_bounded_time() -> None:
    deep: Value = "x"
    for _ in range(150):
        deep = [deep]
    assert len(input_sizes({"deep": deep})) < 20
    assert len(input_sizes({f"x{number}": 1 for number in range(5_000)})) == 200
    assert input_sizes({"wide": {f"k{number}": "v" for number in range(5_000)}})["|wide|"] == 5_000


async def test_a_real_run_is_seen(play: Play) -> None:
    steps = "## STEP 1: A\n\nGreet {{who}}.\n\n## STEP 2: B\n\nSay.\n"
    folder = given({"p.playbook.md": f"# P\n\n## INPUTS\n\n- `who` (string): x\n\n{steps}"}, play.folder)
    document = load(folder / "p.playbook.md")
    for who in ("Ada", "Grace"):
        usage: Value = {"input_tokens": 7, "output_tokens": 3, "cost": 0.25}
        await play(document, [{"default": "x", "usage": usage}], {"who": who})
    found = await usage_seen(play.runtime.store, document, document.folder)
    assert (found.runs, found.of_this_text) == (2, 2)
    assert found.amounts["model_calls"] == Spread(2, 2, 2)
    assert found.sizes["‖who‖"] == Spread(3, 5, 5)
