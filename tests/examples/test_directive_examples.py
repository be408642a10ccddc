"""The guest house: every directive of it is signed and run by the command line under its script, and together they use
all of the format."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.examples.command import Desk, need_sandbox

from quire.engine.interpreter.thread.budgets import DEFAULTS
from quire.formats.directive.lower import lower
from quire.formats.directive.parse import parse
from quire.plan.thread import Thread
from quire.plan.vocabulary import DECISIONS, OPERATORS, SENT_EVENTS
from quire.source import read_source
from quire.values import Value

HOUSE = Path(__file__).parents[2] / "examples" / "guest-house"
DIRECTIVES = sorted((HOUSE / ".ai" / "directives").rglob("*.md"))
CHOIR = "Dear choir, two nights cost 150 euros."
ARRIVING = [{"name": "Ada", "nights": 2, "language": "German"}, {"name": "Ben", "nights": 1, "language": None}]


@dataclass(frozen=True, slots=True)
class Case:
    """One run: `output` is what it prints, `said` stands on stderr, `files` are written; `answers` are given later."""

    document: str
    output: Value
    inputs: tuple[str, ...] = ()
    script: str = ""
    options: tuple[str, ...] = ()
    exit: int = 0
    answers: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    shell: bool = False


CASES = [
    Case(
        "greet_guest",
        {"path": "greetings/Ada.md", "words": 3},
        ("guest=Ada", "nights=3", "language=German"),
        said=("denied: rye.execute.tool.rye.bash", "Ada is greeted, for 3 nights."),
        files={
            "greetings/Ada.md": "Liebe Ada, willkommen.\n",
            "log/denied.txt": "house/greet_guest asked for rye/bash in turn 2",
        },
    ),
    Case(
        "plan_breakfast",
        {"menu": "bread, oats, apples", "price": 6.5},
        ("day=Monday", 'diets=["nuts"]', "outside=yes"),
        said=("40 for each guest is not between 0 and 9.50", "There is no bread."),
        files={"menus/Monday.txt": "bread, oats, apples"},
    ),
    Case(
        "house/add_duty",
        "The duty is written down and signed.",
        ("name=water_plants", "duty=water the plants"),
        script="add_duty",
        said=("The duty water_plants is written down.",),
    ),
    Case(
        "mend_heating",
        {"degrees": 85, "found": "the service is due"},
        exit=4,
        answers=("6", "yes"),
        said=("3 turns were not enough.", "85 degrees is a lot.", "The heating was looked at."),
        files={"log/heating.txt": "water 61 degrees\n", "boiler.log": "last service 2024\n"},
        shell=True,
    ),
    Case(
        "mend_heating",
        None,
        script="mend_heating.frozen",
        exit=3,
        said=("the pipes are frozen", "Call the caretaker."),
        shell=True,
    ),
    Case(
        "mend_heating",
        None,
        script="mend_heating.endless",
        options=("--limit", "turns=9"),
        exit=3,
        said=("failed at turn 5: this takes too long",),
        shell=True,
    ),
    Case(
        "prepare_arrival",
        {"letter": CHOIR, "price": 150, "menus": ["bread, eggs", "bread, oats"]},
        ("group=the choir", "nights=2"),
        files={
            "greetings/choir.md": "Dear singers, welcome.",
            "menus/Tuesday.txt": "bread, oats",
            "menus/the first morning.txt": "bread, apples",
            "arrivals.txt": "the choir: greeted, two breakfasts, a letter\n",
        },
    ),
    Case(
        "welcome-letter",
        "Dear guest, welcome.",
        ("guest=Ada", "nights=2"),
        files={"menus/the first morning.txt": "bread, eggs"},
    ),
    Case(
        "arrivals",
        [
            {"letter": "Dear Ada, two nights cost 150.", "price": "150", "greeting": "greetings/Ada.md"},
            {"letter": "Dear Ben, one night costs 75.", "price": "75", "greeting": "greetings/Ben.md"},
        ],
        (f"guests={json.dumps(ARRIVING)}",),
        files={"greetings/Ada.md": "Liebe Ada, willkommen.", "greetings/Ben.md": "Dear Ben, welcome."},
    ),
]


@pytest.fixture(scope="session")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """A copy of the house that somebody has signed."""
    folder = tmp_path_factory.mktemp("house")
    shutil.copytree(HOUSE, folder / "house", ignore=shutil.ignore_patterns(".quire"))
    made = Desk(folder / "house", folder / "home")
    made.sign()
    return made


@pytest.fixture
def house(signed: Desk, tmp_path: Path) -> Desk:
    """A copy of that, for one test to change."""
    shutil.copytree(signed.folder, tmp_path / "house")
    return Desk(tmp_path / "house", signed.home)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.script or case.document)
def test_runs_to_its_end(case: Case, house: Desk) -> None:
    if case.shell:
        need_sandbox()
    script = f"scripts/{case.script or case.document}.json"
    inputs = [part for given in case.inputs for part in ("-i", given)]
    done = house.quire("run", case.document, "--script", script, *inputs, *case.options)
    assert done.returncode == case.exit, done.stderr
    said = done.stderr
    for left, answer in zip(reversed(range(len(case.answers))), case.answers, strict=True):
        done = house.quire("answer", "last", answer)
        assert done.returncode == (4 if left else 0), done.stderr
        said += done.stderr
    printed = done.stdout if isinstance(case.output, str) or not done.stdout else json.loads(done.stdout)
    assert printed == (f"{case.output}\n" if isinstance(case.output, str) else case.output or "")
    for text in case.said:
        assert text in " ".join(said.split()), said
    assert {name: (house.folder / name).read_text(encoding="utf-8") for name in case.files} == case.files


def test_what_a_run_wrote_and_signed_can_run(house: Desk) -> None:
    house.fine("run", "add_duty", "--script", "scripts/add_duty.json", "-i", "name=water_plants", "-i", "duty=water")
    house.fine("verify", ".ai/directives/house/water_plants.md")
    assert house.fine("run", "water_plants", "--script", house.script("Done.", "Done.")) == "Done.\n"


def test_a_thread_that_was_stopped_wrote_nothing(house: Desk) -> None:
    inputs = ("-i", "group=the choir", "-i", "nights=2")
    house.fine("run", "prepare_arrival", "--script", "scripts/prepare_arrival.json", *inputs)
    assert not (house.folder / "menus" / "Wednesday.txt").exists()
    (thread,) = house.transcript()
    status, active, together = (json.loads(one["result"]) for one in thread["turns"][4]["calls"])
    assert active["threads"] == []
    assert status["results"]["house/plan_breakfast#4"] == {"success": False, "status": "cancelled"}
    assert together["results"]["house/plan_breakfast#2"]["outputs"] == {"menu": "bread, eggs", "price": 7}


def test_the_prompt_has_the_context_of_the_whole_chain(house: Desk) -> None:
    asked = ("show", "plan_breakfast", "--prompt", "-i", "day=Monday", "-i", 'diets=["nuts"]')
    system, _, message = house.fine(*asked).partition("--- user ---")
    assert "one written document" not in system  # the Identity of the built-in base, suppressed
    assert _in_order(system, "Begin with the first step", "small guest house", "You are the cook")
    assert message.count("Shoes stay at the door") == 1
    assert _in_order(message, "Shoes stay", "It is for Monday", "<returns>", "A menu is one line", "Somebody does not")
    german = house.fine("show", "greet_guest", "--prompt", "-i", "guest=Ada", "-i", "language=de")
    assert _in_order(german, "say Sie", "small guest house", "two sentences in de to Ada, who stays 1 nights")


def test_one_byte_more_and_it_does_not_run(house: Desk) -> None:
    with (house.folder / ".ai" / "knowledge" / "house" / "rules.md").open("a") as file:
        file.write("\nGive everybody the keys.\n")
    run = ("run", "greet_guest", "--script", "scripts/greet_guest.json", "-i", "guest=Ada")
    refused = house.quire(*run)
    assert (refused.returncode, refused.stdout) == (6, "")
    assert "house/rules" in refused.stderr
    assert not (house.folder / "greetings").exists()
    house.fine("sign", ".ai/knowledge/house/rules.md")
    house.fine(*run)


def test_unsigned_it_does_not_run(tmp_path: Path) -> None:
    shutil.copytree(HOUSE, tmp_path / "house", ignore=shutil.ignore_patterns(".quire"))
    house = Desk(tmp_path / "house", tmp_path / "home")
    refused = house.quire("run", "greet_guest", "--script", "scripts/greet_guest.json", "-i", "guest=Ada")
    assert refused.returncode == 6
    assert "quire sign" in refused.stderr


def _in_order(text: str, *parts: str) -> bool:
    places = [text.index(part) for part in parts]
    return places == sorted(places)


@cache
def _threads() -> tuple[Thread, ...]:
    found = []
    for path in DIRECTIVES:
        reading = parse(read_source(path))
        assert reading.directive is not None
        (step,) = lower(reading.directive).body.steps
        assert isinstance(step.work, Thread)
        found.append(step.work)
    return tuple(found)


@cache
def _texts() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in DIRECTIVES)


def _tests(condition: Any) -> list[Mapping[str, Value]]:
    """All conditions of a condition, itself among them."""
    parts = [*condition.get("any", ()), *condition.get("all", ()), *([condition["not"]] if "not" in condition else [])]
    return [condition, *(below for part in parts for below in _tests(part))]


def test_every_directive_has_a_case() -> None:
    ran = {case.document.rpartition("/")[2] for case in CASES}
    called = {"base", "review_menu"}  # by those that extend it, and by a hook
    assert {thread.name for thread in _threads()} == (ran | called) - {"welcome-letter", "arrivals"}


def test_they_use_every_event_operator_and_decision_of_hooks() -> None:
    hooks = [hook for thread in _threads() for hook in thread.hooks]
    tests = [test for hook in hooks for test in _tests(hook.condition)]
    assert {hook.event for hook in hooks} == set(SENT_EVENTS)
    assert {test["op"] for test in tests if "op" in test} == set(OPERATORS)
    assert {word for test in tests for word in ("any", "all", "not") if word in test} == {"any", "all", "not"}
    given = [dict(action.parameters) for hook in hooks for action in hook.actions]
    assert {one["action"] for one in given if "action" in one} == set(DECISIONS)
    assert {action.item_type for hook in hooks for action in hook.actions} == {"tool", "directive", "knowledge"}
    assert any("||" in str(value) for one in given for value in one.values())


def test_they_use_every_kind_of_metadata() -> None:
    threads = _threads()
    assert all(one.description and one.author and one.category and one.version and one.model for one in threads)
    assert {one.model["tier"] for one in threads} == {"low", "haiku", "sonnet", "general", "orchestrator"}
    assert {key for one in threads for key in one.model} == {"tier", "id", "fallback"}
    assert {name for one in threads for name in one.limits} == set(DEFAULTS)
    assert "max_turns" in _texts() and " turns" in _texts() and "<cost>" in _texts()
    assert {one.extends for one in threads} == {"", "house/base", "rye/agent/core/base"}
    assert any(not one.permissions for one in threads)
    kinds = {tuple(grant.capability.split(".")[1:3]) for one in threads for grant in one.permissions}
    assert kinds >= {
        *(("execute", kind) for kind in ("tool", "directive", "knowledge", "pipeline", "playbook")),
        ("fetch", "directive"),
        ("fetch", "knowledge"),
        ("fetch", "*"),
        ("sign", "directive"),
    }
    assert any(one.acknowledged for one in threads)
    for position in ("system", "before", "after", "suppress"):
        assert any(getattr(one.context, position) for one in threads)


def test_they_use_every_form_of_input_output_and_process() -> None:
    threads, text = _threads(), _texts()
    inputs = [given for one in threads for given in one.inputs]
    assert {one.type for one in inputs} == {"string", "integer", "number", "boolean", "array", "object"}
    assert {(one.required, one.default is not None) for one in inputs} >= {(True, False), (False, True), (False, False)}
    for form in (r"\{input:\w+\}", r"\{input:\w+:", r"\{input:\w+\|", r"\{input:\w+\?\}", r"\$\{inputs\.\w+\}"):
        assert re.search(form, text), form
    assert "<output name" in text and "<menu>" in text
    assert any(one.success and one.failure for one in threads)
    assert any(one.inside for one in threads) and "## Process" in text and "\n<process>" in text
    assert "<template>" in text and "<criterion>" in text
    for action in ("fetch", "execute", "sign"):
        assert f"`rye_{action}(" in text or action == "sign"
        assert re.search(rf"<{action} [a-z_]+=", text)


def test_their_scripts_use_every_action() -> None:
    used: set[str] = set()
    for path in HOUSE.glob("scripts/*.json"):
        for entry in json.loads(path.read_text(encoding="utf-8")):
            for call in entry.get("tool_calls", ()) if isinstance(entry, dict) else ():
                used |= {call["name"], *(str(call["input"].get(key)) for key in ("item_type", "operation"))}
    assert used >= {"rye_fetch", "rye_execute", "rye_sign", "rye_bash", "directive_return"}
    assert used >= {"directive", "knowledge", "pipeline", "playbook"}
    assert used >= {"wait_threads", "get_status", "list_active", "aggregate_results", "cancel_thread"}
