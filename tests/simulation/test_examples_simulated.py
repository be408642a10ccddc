"""Every example is run once for real, on its script and with its own tools, and then simulated under faults."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.examples import test_directive_examples as house
from tests.examples import test_examples as playbooks
from tests.examples import test_pipeline_examples as pipelines
from tests.simulator.case import calm_life, simulate
from tests.simulator.faults import Fault
from tests.simulator.recorded import Recorded, record

from quire.models.scripted import ScriptedModel
from quire.values import Value
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import Workspace
from quire.workspace.settings import TrustSettings

EXAMPLES = Path(__file__).parents[2] / "examples"
OF_THE_MOMENT = ("prepare_arrival.md",)
"""Those that stop a thread wherever it is by then: what they come to is the same, not all that is on the way."""


@dataclass(frozen=True, slots=True)
class Example:
    name: str
    document: str
    script: str
    inputs: Mapping[str, Value] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    allow: tuple[str, ...] = ()


def _playbook(case: playbooks.Case) -> Example:
    home = EXAMPLES / case.example
    read: dict[str, Value] = {name: (home / file).read_text(encoding="utf-8") for name, file in case.files.items()}
    inputs = {**case.inputs, **read}
    return Example(case.example, f"{case.example}.playbook.md", f"{case.example}.script.json", inputs, case.answers)


def _pipeline(case: pipelines.Case) -> Example:
    script = f"{case.example}.script.json"
    return Example(case.example, f"{case.example}.yaml", script, case.inputs, case.answers, case.allow)


def _house(case: house.Case) -> Example:
    name = case.document.rpartition("/")[2]
    found = next(
        path
        for path in sorted(house.HOUSE.rglob(f"{name}.*"))
        if path.suffix in (".md", ".yaml") and ".test." not in path.name
    )
    pairs = [one.partition("=")[::2] for one in case.inputs]
    inputs = {key: json.loads(value) if found.suffix == ".yaml" else value for key, value in pairs}
    script = f"scripts/{case.script or name}.json"
    return Example("guest-house", str(found.relative_to(house.HOUSE)), script, inputs)


def _first(examples: list[Example]) -> list[Example]:
    """One run of each document is enough here."""
    return list({(one.name, one.document): one for one in reversed(examples)}.values())[::-1]


def _workflow(name: str, inputs: str = "") -> Example:
    read = json.loads((EXAMPLES / name / inputs).read_text(encoding="utf-8")) if inputs else {}
    return Example(name, f"{name}.yaml", f"{name}.script.json", read)


LAMPS: dict[str, Value] = {"name": "lamps", "brief": "lamps on the stairs"}
ALL = [
    *_first([_playbook(case) for case in playbooks.CASES if (EXAMPLES / case.example).exists()]),
    *_first([_pipeline(case) for case in pipelines.CASES]),
    # Those that work on a git repository are left to the tests that have one.
    _workflow("issue-triage", "issues.json"),
    _workflow("invoice-extraction"),
    Example("research", "research.yaml", "research.script.json", {"question": "Why are there fewer swifts?"}),
    Example("content-pipeline", "content-pipeline.yaml", "content-pipeline.script.json", LAMPS),
    Example("long-text", "long-text.yaml", "long-text.script.json", {"file": "diary.md", "question": "What broke?"}),
    _workflow("mail-triage"),
    # What only a sandbox can run is left to the tests that have one.
    *_first([_house(case) for case in house.CASES if not case.shell and not case.options]),
]


def _recorded(example: Example, folder: Path) -> Recorded:
    home = folder / "real"
    shutil.copytree(EXAMPLES / example.name, home, ignore=shutil.ignore_patterns(".quire", "__pycache__"))
    environ = {"QUIRE_HOME": str(folder / "home"), "QUIRE_PYTHON": sys.executable}
    settings = load_settings(Workspace(home), environ)
    settings = replace(settings, trust=TrustSettings("warn"), granted=("*",))
    confirm(settings)
    script = home / example.script
    model = ScriptedModel.from_file(script) if script.exists() else None
    allow = ("*", *example.allow)
    return asyncio.run(
        record(settings, example.document, example.inputs, model, example.answers, allow, folder / "db", environ)
    )


@pytest.mark.parametrize("example", ALL, ids=[f"{one.name}-{Path(one.document).name.split('.')[0]}" for one in ALL])
def test_an_example_under_faults_comes_to_what_it_came_to_for_real(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIRE_PYTHON", sys.executable)
    for module in (EXAMPLES / example.name).glob("*.py"):
        # Another test may have loaded it from its own copy of the example.
        monkeypatch.delitem(sys.modules, module.stem, raising=False)
    recorded = _recorded(example, tmp_path)
    files = {}
    for path in sorted((EXAMPLES / example.name).rglob("*")):
        if path.is_file() and ".quire" not in path.parts and "__pycache__" not in path.parts:
            files[str(path.relative_to(EXAMPLES / example.name))] = path.read_text(encoding="utf-8")
    scenario = recorded.scenario(example.name, files, example.document, example.inputs)
    if example.document.endswith(OF_THE_MOMENT):
        scenario = dataclasses.replace(scenario, exact=False)
    calm = calm_life(scenario)
    for number, kinds in enumerate((("crash",), ("crash", "crash", "stop"), ("takeover", "crash"), ("cancel",))):
        faults = tuple(Fault(process, kind, 7 + 5 * number + 3 * process) for process, kind in enumerate(kinds))  # type: ignore[arg-type]
        verdict = simulate(scenario, faults, number, calm=calm)
        assert not verdict.problems, (faults, verdict.problems, verdict.trace)
        assert verdict.lived is not None
        assert (verdict.lived.row.status, verdict.lived.value) == (recorded.status, recorded.value)
