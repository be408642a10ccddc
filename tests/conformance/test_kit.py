"""All shared cases of the formats that have landed, through the kit's own checker and protocol."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.directive_threads import run_thread
from tests.conformance.playbook_cases import run_playbook

HERE = Path(__file__).parent
KIT = HERE.parents[2] / "shared" / "conformance"
LANDED = ("playbook", "pipeline", "directive")


@pytest.mark.skipif(not KIT.is_dir(), reason="the conformance kit is not beside this clone")
@pytest.mark.parametrize("system", LANDED)
def test_every_shared_case_passes(system: str) -> None:
    adapter = [sys.executable, str(HERE / "adapter.py")]
    command = [sys.executable, str(KIT / "check.py"), "--system", system, "--", *adapter]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    passed, total = done.stdout.strip().splitlines()[-1].removeprefix(f"{system} ").split("/")
    assert int(passed) == int(total) > 0


def test_an_answer_that_is_given_beats_the_default_of_an_unattended_run() -> None:
    text = '# T\n\n## STEP 1: Ask\n\n@elicit(select, "Which?", "a", "b", default:"a")\n@output(o)\n'
    for elicit, answer in [({"1": "b"}, "b"), (["b"], "b"), ({}, "a")]:
        result = run_playbook({"text": text, "unattended": True, "elicit": elicit})
        assert (result["status"], result["named"]["o"]) == ("completed", answer)


def test_a_thread_that_is_refused_before_its_first_call_made_no_turn() -> None:
    fence = '<directive name="t" version="1.0.0"><metadata><description>x</description></metadata></directive>'
    text = f"# T\n\n```xml\n{fence}\n```\n"
    result = run_thread({"directive_id": "t", "text": text, "inputs": {}})
    assert (result["success"], result["turns"], result["dispatched"]) == (False, 0, [])
