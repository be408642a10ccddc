"""Cases as values: drawn, written down, read again, made smaller; and the same case does the same again."""

from __future__ import annotations

import pytest
from tests.depth import depth
from tests.documents import FORMATS
from tests.documents.draw import Draw
from tests.simulator.__main__ import main
from tests.simulator.case import Case, check
from tests.simulator.faults import Fault
from tests.simulator.shrink import shape, shrunk

from quire.library.document import read
from quire.source import Source


def test_what_was_drawn_can_be_given_again() -> None:
    seeded = Draw.seeded(7)
    drawn = [seeded.below(10), seeded.between(3, 9), seeded.pick("abc"), seeded.chance(50)]
    given = Draw.given(seeded.taken)
    assert [given.below(10), given.between(3, 9), given.pick("abc"), given.chance(50)] == drawn
    assert given.taken == seeded.taken


def test_what_a_list_does_not_say_is_the_plainest() -> None:
    draw = Draw.given([])
    assert (draw.below(5), draw.between(2, 4), draw.pick("abc"), draw.chance(99)) == (0, 2, "a", False)


@pytest.mark.parametrize("format", FORMATS)
def test_a_case_survives_being_written_down(format: str) -> None:
    for seed in range(20):
        case = Case.of_seed(seed, format)
        again = Case.decoded(case.encoded())
        assert again == case
        assert again.scenario() == case.scenario()
        assert again.scenario().name == format


@pytest.mark.parametrize("format", ["playbook", "pipeline"])
def test_every_list_of_numbers_is_a_document(format: str) -> None:
    for seed in range(60):
        scenario = Case.of_seed(seed, format).scenario()
        for name, text in scenario.files.items():
            if name.startswith("prompts/") or name == "quire.toml":
                continue
            document = read(Source.of(text, name))
            assert document.plan is not None, (name, text, document.diagnostics)


@pytest.mark.parametrize("format", FORMATS)
def test_a_case_does_the_same_again(format: str) -> None:
    for seed in range(depth(2, 4)):
        case = Case.of_seed(seed, format)
        runs = [check(case).lived for _ in range(2)]
        assert runs[0] is not None and runs[1] is not None
        records = [[(one.path, one.state, one.at, one.elapsed) for one in lived.records] for lived in runs if lived]
        assert records[0] == records[1]
        points = [[process.points for process in lived.processes] for lived in runs if lived]
        assert points[0] == points[1]


def test_a_case_is_made_smaller_while_it_finds_the_same() -> None:
    faults = (Fault(0, "crash", 3), Fault(1, "stop", 5), Fault(2, "crash", 9))
    case = Case((9, 0, 40, 7, 3, 90, 2), faults, 1, attended=True, slow=True)

    def problems(one: Case) -> list[str]:
        found = [f"step {sum(one.choices)} was lost"] if any(number >= 25 for number in one.choices) else []
        return found if any(fault.kind == "stop" for fault in one.faults) else ["another problem"]

    small = shrunk(case, problems)
    assert small.faults == (Fault(1, "stop", 5),)
    assert len(small.choices) == 1 and 25 <= small.choices[0] < 50
    assert not small.attended and not small.slow


def test_a_problem_is_known_by_what_it_says_and_not_by_where() -> None:
    assert shape("2/model was recorded twice") == shape("7/for_each[3]/tool was recorded twice")
    assert shape("2/model was recorded twice") != shape("2/model is missing in the journal")


def test_seeds_are_told_of(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["simulator", "--seeds", "2", "--format", "playbook"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("2 seeds in ")


def test_one_that_fails_is_printed_with_how_to_see_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(self: object, *given: object) -> list[str]:
        return ["nothing is ever right"]

    monkeypatch.setattr("tests.simulator.case.judge", never)
    arguments = ["simulator", "--seeds", "1", "--from", "3", "--format", "playbook", "--shrink-seconds", "2"]
    monkeypatch.setattr("sys.argv", arguments)
    assert main() == 1
    out = capsys.readouterr().out
    assert "--seed 3 --format playbook" in out
    code = out.split("--replay ")[1].split()[0]
    monkeypatch.setattr("sys.argv", ["simulator", "--replay", code])
    assert main() == 1
    assert "nothing is ever right" in capsys.readouterr().out
    assert len(Case.decoded(code).choices) <= len(Case.of_seed(3, "playbook").choices)
