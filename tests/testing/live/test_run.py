"""Live tests from the file to the report: scripts and a service on loopback take the place of hosted models."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.given import given
from tests.models.conftest import Stub, stub
from tests.testing.bench import TAGLINE, TIDY

from quire.display.test_live import announcement_line, report_json
from quire.errors import CannotStart
from quire.models.retry import Retrying
from quire.testing.discovery import TestTarget
from quire.testing.live.calibration import Calibration, store_calibration
from quire.testing.live.judges import load_judge
from quire.testing.live.live_run import announcement_of, live_standings, run_live
from quire.testing.live.plan import LiveOptions, live_plan, same_model
from quire.testing.live.statistics import Agreement
from quire.testing.live.tries import LiveReport, Status, Try

__all__ = ["stub"]

PLAYBOOK = """\
# Capital

## INPUTS

- `country` (string): A country

## STEP 1: Answer

Name the capital of {{country}}.
"""
TEST = """\
cases:
  - name: capitals
    each: [{country: France, city: Paris}, {country: Japan, city: Tokyo}]
    inputs: {country: "{row.country}"}
    model: {"1": "{row.city}"}
    expect:
      output: {contains: "{row.city}"}
      prompts: {"1": {contains: "a prompt of another document"}}
      steps: {"1": skipped}
      used: {model_calls: 9}
    live: {LIVE}
"""
BOTH = [{"contains": "France", "reply": "Paris."}, {"contains": "Japan", "reply": "Tokyo."}]


class Place:
    """A workspace with a document, a test and scripts, and a user without settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.home = folder / "home"
        self.folder.mkdir()
        self.home.mkdir()
        self.environ = {"QUIRE_HOME": str(self.home)}
        self.write("capital.playbook.md", PLAYBOOK)
        self.live("{}")

    def write(self, name: str, text: str) -> Path:
        return given({name: text}, self.folder) / name

    def live(self, terms: str) -> None:
        self.write("capital.test.yaml", TEST.replace("{LIVE}", terms))

    def script(self, name: str, *entries: object) -> str:
        return f"script:{self.write(name, json.dumps(list(entries)))}"

    def prices(self, *specs: str, input: float = 0.0, output: float = 10_000.0) -> None:
        tables = [f"[models.prices.{json.dumps(spec)}]\ninput = {input}\noutput = {output}\n" for spec in specs]
        (self.home / "quire.toml").write_text("\n".join(tables))

    def options(self, *models: str, **rest: object) -> LiveOptions:
        targets = (TestTarget(str(self.folder / "capital.test.yaml")),)
        return LiveOptions(targets, models=models, **rest)  # type: ignore[arg-type]

    def run(self, *models: str, tries: list[Try] | None = None, **rest: object) -> LiveReport:
        plan = live_plan(self.options(*models, **rest), self.environ)
        return run_live(plan, tries.append if tries is not None else lambda made: None)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.setenv("QUIRE_HOME", str(made.home))
    monkeypatch.chdir(made.folder)
    return made


def test_models_are_graded_by_the_output_alone(place: Place) -> None:
    good, bad = place.script("good.json", *BOTH), place.script("bad.json", BOTH[0], {"default": "No idea."})
    tries: list[Try] = []
    report = place.run(good, bad, tries=tries)
    first, second = report.scores
    assert (first.model, first.status, first.passed, first.tried) == (good, Status.VERIFIED, 2, 2)
    assert (second.model, second.status, second.passed, second.tried) == (bad, Status.FAILING, 1, 2)
    assert second.problems == ('output: "No idea." does not contain "Tokyo"',)
    assert (report.exit_code, report.made, report.planned) == (1, 4, 4)
    (pair,) = report.pairs
    assert (pair.comparison.first_only, pair.comparison.rows) == (1, 2)
    assert [(one.attempt.row, one.calls) for one in tries] == [("row 1", 1), ("row 1", 1), ("row 2", 1), ("row 2", 1)]


def test_repeats_are_asked_again(place: Place) -> None:
    place.live("{repeat: 3}")
    model = place.script("wavers.json", *BOTH, {"default": "?"})
    wavering = place.script("w.json", "Paris", "Tokyo", "Paris", "Tokyo", "Paris", "no")
    steady, flaky = place.run(model, wavering, at_once=1).scores
    assert (steady.passed, steady.tried, steady.pass_all) == (6, 6, 1.0)
    assert (flaky.status, flaky.passed, flaky.tried, flaky.pass_all) == (Status.FLAKY, 5, 6, 0.5)
    assert place.run(model, repeat=1).scores[0].tried == 2


def test_a_case_is_stopped_when_it_is_decided(place: Place) -> None:
    place.live("{repeat: 20, pass: 0.9}")
    (score,) = place.run(place.script("bad.json", {"default": "No."}), at_once=1).scores
    assert (score.status, score.passed) == (Status.FAILING, 0)
    assert score.tried < 5 and score.stopped == 40 - score.tried and score.complete
    assert [one.status for one in live_standings(place.options())] == [Status.FAILING]


@pytest.mark.parametrize(
    ("terms", "problem"),
    [
        ("{similar: {to: Paris or Tokyo}}", "the output is not similar: 0.5 of 0.7"),
        ("{seconds: 0}", "it took longer than 0 s"),
        ("{cost: 0.01}", "it cost more than $0.01"),
    ],
)
def test_terms(place: Place, terms: str, problem: str) -> None:
    place.live(terms)
    model = place.script("good.json", *({**one, "usage": {"output_tokens": 100}} for one in BOTH))
    place.prices(model)
    (score,) = place.run(model).scores
    assert (score.passed, score.problems) == (0, (f"{problem} (2 times)",))


def test_the_budget_stops_everything(place: Place) -> None:
    """Each call may cost $163.84, and really costs one dollar. After three the budget covers no other one."""
    place.live("{repeat: 10}")
    model = place.script("good.json", *({**one, "usage": {"output_tokens": 100}} for one in BOTH))
    place.prices(model)
    report = place.run(model, budget=166.0, at_once=1)
    assert (report.exit_code, report.budget_reached) == (5, True)
    assert report.spent == pytest.approx(3.0)
    (score,) = report.scores
    assert (score.tried, score.lost, score.status, score.complete) == (3, 1, Status.VERIFIED, False)
    assert [one.status for one in live_standings(place.options())] == [Status.UNVERIFIED]  # half a test is none
    with pytest.raises(CannotStart, match=r"the price of script:.* is not known"):
        place.run(place.script("other.json", *BOTH), budget=1.0)


def test_the_line_before_paying(place: Place) -> None:
    place.live("{repeat: 5}")
    model = place.script("good.json", *({**one, "usage": {"output_tokens": 100}} for one in BOTH))
    place.prices(model, output=10.0)
    plan = live_plan(place.options(model), place.environ)
    line = announcement_line(announcement_of(plan))
    assert line == "PAID: 2 rows × 1 model × 5 = 10 calls, ≤ $1.64 (bound)"
    run_live(plan)
    line = announcement_line(announcement_of(plan))
    assert line == "PAID: 2 rows × 1 model × 5 = 10 calls, ≤ $1.64 (bound), about $0.010 (seen)"


def test_the_price_of_reading_results_of_tools_has_no_bound(place: Place) -> None:
    look = '## STEP 1: Look\n\n@tool(quire, file__read, {"path": "a.txt"})\n\n'
    place.write("capital.playbook.md", PLAYBOOK.replace("## STEP 1", f"{look}## STEP 2"))
    model = place.script("good.json", *BOTH)
    place.prices(model, output=10.0)
    line = announcement_line(announcement_of(live_plan(place.options(model), place.environ)))
    assert line.endswith("no bound: a model may read what tools return, and that has no bound")


def test_rows_of_another_file(place: Place) -> None:
    rows = place.write("more.csv", "country,city\nFrance,Paris\nJapan,Tokyo\nJapan,Kyoto\n")
    (score,) = place.run(place.script("good.json", *BOTH), each=rows).scores
    assert (score.passed, score.tried) == (2, 3)


def test_rows_that_look_the_same_are_two(place: Place) -> None:
    text = (place.folder / "capital.test.yaml").read_text()
    rows = "each: [{country: France, city: Paris}, {country: Japan, city: Tokyo}]"
    place.write("capital.test.yaml", text.replace(rows, 'matrix: {country: [France], city: [Paris], n: [1, "1"]}'))
    (score,) = place.run(place.script("good.json", *BOTH)).scores
    assert list(score.rows) == ["country=France, city=Paris, n=1", "country=France, city=Paris, n=1 (2)"]


def test_standings_follow_the_document_and_the_test(place: Place) -> None:
    options = place.options()
    assert [one.status for one in live_standings(options)] == [Status.UNVERIFIED]
    place.run(place.script("good.json", *BOTH))
    assert [(one.status, one.changed) for one in live_standings(options)] == [(Status.VERIFIED, ())]
    place.write("capital.playbook.md", PLAYBOOK.replace("## STEP", "\n\n## STEP"))
    assert [one.status for one in live_standings(options)] == [Status.VERIFIED]  # a blank line is not a change
    place.write("capital.playbook.md", PLAYBOOK.replace("Name", "Say"))
    assert [(one.status, one.changed) for one in live_standings(options)] == [(Status.STALE, ("document",))]
    place.write("capital.playbook.md", PLAYBOOK)
    place.live("{pass: 0.5}")
    assert [(one.status, one.changed) for one in live_standings(options)] == [(Status.STALE, ("test",))]


def test_a_baseline(place: Place) -> None:
    bad = place.run(place.script("bad.json", {"default": "No."}))
    earlier = place.write("baseline.json", report_json(bad))
    shutil.copy(place.folder / "capital.test.yaml", place.folder / "kept.yaml")
    report = place.run(place.script("good.json", *BOTH), baseline=earlier)
    (pair,) = report.baseline
    assert pair.first.endswith("bad.json (baseline)")
    assert (pair.comparison.first_only, pair.comparison.second_only, pair.comparison.rows) == (0, 2, 2)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("expect:", "crash: everywhere\n    expect:"), "it dies everywhere"),
        (("expect:", "skip: later\n    expect:"), "it is skipped: later"),
        (('output: {contains: "{row.city}"}', "status: completed"), "nothing decides about a try"),
        (("live: {}", "live: {tools: real}"), "its tools are real"),
        (("    live: {}", ""), "no case has live terms"),
    ],
)
def test_cases_that_are_not_tried(place: Place, change: tuple[str, str], reason: str) -> None:
    text = (place.folder / "capital.test.yaml").read_text()
    place.write("capital.test.yaml", text.replace(*change))
    with pytest.raises(CannotStart, match=reason):
        place.run(place.script("good.json", *BOTH))


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ("{similar: {to: 5}}", "to must be"),
        ("{similar: {too: x}}", "too"),
        ("{judge: tone.judge.yaml}", "tone.judge.yaml does not exist"),
        ("{repeat: 1000000}", "repeats are more than"),
    ],
)
def test_terms_that_are_refused(place: Place, terms: str, message: str) -> None:
    place.live(terms)
    with pytest.raises(CannotStart, match=message):
        place.run(place.script("good.json", *BOTH))


def test_a_model_is_not_compared_with_itself(place: Place) -> None:
    model = place.script("good.json", *BOTH)
    with pytest.raises(CannotStart, match="two names mean the same model"):
        place.run(model, model)


VERDICTS = [
    {"contains": "| Paris.", "reply": '{"reason": "short", "verdict": "fail"}'},
    {"contains": "| Tokyo.", "reply": '{"reason": "fine", "verdict": "pass"}'},
]


def _judge(place: Place) -> Path:
    place.live("{judge: judges/tone.judge.yaml}")
    return place.write("judges/tone.judge.yaml", "rubric: Pass if it is polite.\n")


def test_a_judge_that_was_not_measured_gives_advice(place: Place) -> None:
    _judge(place)
    judge = place.script("judge.json", *VERDICTS)
    report = place.run(place.script("good.json", *BOTH), judge_model=judge)
    (score,) = report.scores
    assert (score.status, score.passed, score.advice) == (Status.VERIFIED, 2, (1, 1, 0))
    assert [(one.judge, one.gates, one.reason) for one in report.judges] == [
        ("tone", False, "it was never compared with people")
    ]


@pytest.mark.parametrize(
    ("reply", "passed", "problem"),
    [
        ('{"reason": "short", "verdict": "fail"}', 1, "the judge says fail: short"),
        ("I would say pass.", 1, "the judge says nothing: the reply is not a verdict: I would say pass."),
        ('{"reason": "fine", "verdict": "pass"}', 2, ""),
    ],
)
def test_a_judge_that_was_measured_fails_cases(place: Place, reply: str, passed: int, problem: str) -> None:
    path = _judge(place)
    judge = place.script("judge.json", {"contains": "| Paris.", "reply": reply}, VERDICTS[1])
    store_calibration(path, Calibration(load_judge(path).hash, judge, "", Agreement(40, 0, 1, 40), 3, 1.0))
    report = place.run(place.script("good.json", *BOTH), judge_model=judge)
    (score,) = report.scores
    assert (score.passed, score.problems) == (passed, (problem,) if problem else ())
    assert report.judges[0].gates


def test_a_judge_is_not_asked_about_a_try_that_failed(place: Place) -> None:
    _judge(place)
    judge = place.script("judge.json")
    (score,) = place.run(place.script("bad.json", {"default": "No."}), judge_model=judge).scores
    assert (score.passed, score.advice) == (0, (0, 0, 0))


def test_judges_that_are_refused(place: Place) -> None:
    path = _judge(place)
    model = place.script("good.json", *BOTH)
    with pytest.raises(CannotStart, match="the judge tone names no model"):
        place.run(model)
    with pytest.raises(CannotStart, match=r"the judge tone cannot be .*, which is under test"):
        place.run(model, judge_model=model)
    path.write_text("rubric: Pass.\nmodel: http://127.0.0.1:9/v1#m\n")
    with pytest.raises(CannotStart, match="a judge cannot choose http://127"):
        place.run(model)
    place.live("{judge: ../secret.judge.yaml}")
    with pytest.raises(CannotStart, match=r"leave|outside"):
        place.run(model)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("openai:gpt-6.1-sol", "openai-responses:GPT-6.1-sol", True),
        ("openai:gpt-6.1-sol", "azure:gpt-6.1-sol", False),
        ("local:./x.gguf", "local:x.gguf", True),
        ("local:x", "local:y", False),
        ("http://127.0.0.1:1/v1#m", "http://127.0.0.1:2/v1#m", False),
    ],
)
def test_names_of_one_model(one: str, other: str, same: bool) -> None:
    assert same_model(one, other) is same


def test_the_judge_of_a_tier_of_the_workspace_needs_consent_for_an_address(place: Place, stub: Stub) -> None:
    path = _judge(place)
    path.write_text("rubric: Pass.\nmodel: remote\n")
    place.write("quire.toml", f'[models.tiers]\nremote = "{stub.spec}"\n')
    from quire.errors import Untrusted

    with pytest.raises(Untrusted):
        place.run(place.script("good.json", *BOTH))
    assert stub.requests == []


def test_a_service_on_loopback(place: Place, stub: Stub) -> None:
    stub.behaviours = [stub.say("It is ", "Paris.", tokens=(20, 4)), stub.say("Tokyo.", tokens=(20, 2))]
    (score,) = place.run(stub.spec, at_once=1).scores
    assert (score.passed, score.tried, score.input_tokens, score.output_tokens, score.cost) == (2, 2, 40, 6, None)
    assert "France" in json.dumps(stub.requests[0]) and "Japan" in json.dumps(stub.requests[1])


@pytest.mark.parametrize(
    ("status", "ending", "given_up"),
    [(401, Status.UNVERIFIED, True), (404, Status.UNVERIFIED, True), (400, Status.FAILING, False)],
)
def test_a_service_that_refuses(place: Place, stub: Stub, status: int, ending: Status, given_up: bool) -> None:
    """A wrong key or name says nothing about the model; a request that it rejects does."""
    stub.behaviours = [stub.refuse(status, {"error": {"message": "no"}})]
    report = place.run(stub.spec, at_once=1)
    assert [one.status for one in report.scores] == [ending]
    assert (stub.spec in report.given_up) is given_up
    assert report.exit_code == 1


def test_a_service_that_answers_badly_fails(place: Place, stub: Stub) -> None:
    stub.behaviours = [stub.say(""), stub.say("Tokyo", finish="content_filter")]
    (score,) = place.run(stub.spec, at_once=1).scores
    assert (score.status, score.passed, score.tried, score.lost) == (Status.FAILING, 0, 2, 0)


TOOLS = """\
# Notes

## STEP 1: Read

@tool(quire, file__read, {"path": "notes.txt"})
@output(notes)

## STEP 2: Tell

Say what is in these notes: {{notes}}

## STEP 3: Run

@tool(quire, shell, {"command": ["touch", "ran"]})
"""
REAL = """\
document: notes.playbook.md
cases:
  - name: notes
    allow: [shell]
    model: {"2": "bread"}
    tools: {shell: {returns: ok}, file__read: {returns: scripted}}
    expect: {output: {contains: bread}}
    live: {tools: real}
"""


def _notes(place: Place, document: str = TOOLS) -> None:
    place.write("notes.txt", "bread and butter")
    place.write("notes.playbook.md", document)
    place.write("capital.test.yaml", REAL)


def test_real_tools_need_the_word_of_the_user(place: Place) -> None:
    _notes(place)
    with pytest.raises(CannotStart, match="needs --allow tools on the command line"):
        place.run(place.script("echo.json", {"default": "bread"}))


def test_real_tools_have_the_permissions_of_a_run_and_not_those_of_the_test(place: Place) -> None:
    """The test grants itself a shell. The run is refused before anything happens, as with `quire run`."""
    _notes(place)
    (score,) = place.run(place.script("echo.json", {"default": "bread"}), real_tools=True).scores
    assert (score.passed, score.tried) == (0, 1)
    assert "shell" in score.problems[0] and "--allow" in score.problems[0]
    assert not (place.folder / "ran").exists()


def test_real_tools_work_in_the_workspace(place: Place) -> None:
    reading = TOOLS.partition("## STEP 3")[0]
    _notes(place, reading)
    model = place.script("echo.json", {"contains": "bread and butter", "reply": "bread"}, {"default": "no"})
    (score,) = place.run(model, real_tools=True).scores
    assert (score.passed, score.problems) == (1, ())
    place.write(
        "capital.test.yaml", (place.folder / "capital.test.yaml").read_text().replace("tools: real", "repeat: 1")
    )
    (score,) = place.run(model).scores
    assert score.passed == 0  # the scripted tool says something else


def test_a_directive_works_with_the_files_of_its_case(place: Place) -> None:
    """Twice at once: every try has a folder of its own, and the files in it are graded."""
    place.write(".ai/directives/tidy.md", TIDY.lstrip("\n"))
    place.write(
        "capital.test.yaml",
        """\
        document: tidy
        cases:
          - name: sorts
            files: {notes.txt: "b\\na\\n"}
            inputs: {file: notes.txt}
            model: [never asked]
            expect:
              outputs: {lines: 2}
              files: {notes.txt: "a\\nb\\n"}
              calls: {rye/file-system/write: 9}
            live: {repeat: 2}
        """.replace("\n        ", "\n").removeprefix("        "),
    )
    write = {"name": "rye_file_system_write", "input": {"path": "notes.txt", "content": "a\nb\n"}}
    script = place.script(
        "tidy.json",
        *({"tool_calls": [write]} for _ in range(2)),
        *({"tool_calls": [{"name": "directive_return", "input": {"lines": 2}}]} for _ in range(2)),
    )
    (score,) = place.run(script, at_once=2).scores
    assert (score.passed, score.tried, score.problems) == (2, 2, ())
    assert not (place.folder / "notes.txt").exists()


def test_people_and_captures_of_a_playbook(place: Place) -> None:
    place.write("tagline.playbook.md", TAGLINE.lstrip("\n"))
    place.write(
        "capital.test.yaml",
        """\
document: tagline.playbook.md
cases:
  - name: a yes polishes it
    inputs: {product: a bakery, tone: dry}
    answers: {"2": {answer: "yes", after: 30h}}
    expect: {named: {best: {contains: Bread}}, output: {matches: "^Bread"}, asked: {"2": something else}}
    live: {judge: tone.judge.yaml}
""",
    )
    place.write("tone.judge.yaml", "rubric: Pass.\nreads: [inputs.product, named.best]\n")
    model = place.script("tag.json", 'Three of them. {"best": "Bread."}', "Bread, then.")
    judge = place.script("judge.json", {"contains": "| a bakery", "reply": '{"reason": "x", "verdict": "pass"}'})
    (score,) = place.run(model, judge_model=judge).scores
    assert (score.passed, score.problems, score.advice) == (1, (), (1, 0, 0))


@pytest.mark.parametrize(
    ("behaviour", "status"),
    [
        (lambda stub: lambda exchange: exchange.drop(), Status.UNVERIFIED),
        (lambda stub: stub.refuse(500, "no"), Status.UNVERIFIED),
        (lambda stub: stub.refuse(200, "<html>"), Status.FAILING),
        (lambda stub: stub.say("x" * 4_100_000), Status.FAILING),
    ],
    ids=["hangs up", "is down", "is a web page", "never ends"],
)
def test_a_service_that_misbehaves(
    place: Place, stub: Stub, monkeypatch: pytest.MonkeyPatch, behaviour: Callable[[Stub], Any], status: Status
) -> None:
    """The test comes to an end, and says whether the model or its service is at fault."""
    monkeypatch.setitem(Retrying.__init__.__kwdefaults__ or {}, "backoff", (0.0,))
    stub.behaviours = [behaviour(stub)]
    report = place.run(stub.spec, at_once=1, repeat=1)
    assert [one.status for one in report.scores] == [status]


def test_a_judge_whose_service_is_away_loses_tries(place: Place, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that gates and cannot be asked says nothing about the model; one that advises changes nothing."""
    monkeypatch.setitem(Retrying.__init__.__kwdefaults__ or {}, "backoff", ())
    path = _judge(place)
    stub.behaviours = [stub.refuse(503, "no")]
    model = place.script("good.json", *BOTH)
    (score,) = place.run(model, judge_model=stub.spec, at_once=1).scores
    assert (score.status, score.passed, score.advice) == (Status.VERIFIED, 2, (0, 0, 2))
    store_calibration(path, Calibration(load_judge(path).hash, stub.spec, "", Agreement(40, 0, 1, 40), 3, 1.0))
    (score,) = place.run(model, judge_model=stub.spec, at_once=1).scores
    assert (score.status, score.passed, score.tried, score.lost) == (Status.UNVERIFIED, 0, 0, 2)


def test_a_try_that_takes_too_long_fails(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quire.testing.live.trial.LONGEST_TRY", 0.05)
    (score,) = place.run(place.script("slow.json", {"default": "Paris", "delay_ms": 60_000})).scores
    assert (score.passed, score.problems) == (0, ("it took longer than 0.05 s (2 times)",))
