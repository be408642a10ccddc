"""Deaths of the process of a case: at every moment, and where a script says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.testing.bench import only, run, told

PLAYBOOK = """
defaults:
  inputs: {product: a bakery, tone: dry}
  model: {"1": '{"best": "Bread."}'}
cases:
  - name: it
"""

EVERYWHERE = {
    "an answer that comes later": """
answers: {"2": {answer: "yes", after: 2h}}
model: {"3a": x}
expect: {output: x}
""",
    "an act": """
expect: {status: awaiting_input}
then:
  - answer: {"2": "yes"}
    model: {"3a": x}
    expect: {output: x}
""",
    "a resume of a run that failed": """
answers: {"2": "yes"}
model: {"1": {error: {kind: auth, message: no key}}}
expect: {status: failed}
then:
  - resume: true
    model: {"1": '{"best": "B"}', "3a": x}
    expect: {output: x}
""",
}


@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_death_anywhere_changes_nothing(name: str, tmp_path: Path) -> None:
    lines = f"crash: everywhere\n{EVERYWHERE[name].strip()}".split("\n")
    assert told(only(run(tmp_path, "tagline", PLAYBOOK + "\n".join(f"    {line}" for line in lines)))) == []


FILES = """
cases:
  - name: it
    inputs: {name: notes.txt}
    files: {notes.txt: "b"}
    model: {"2": a}
"""

TOOLS = {
    "a sequence goes on where the journal ends": """
crash: everywhere
tools: {file__read: {sequence: [{returns: z}]}}
expect: {files: {notes.txt: a}, prompts: {"2": {contains: "lines: z"}}}
""",
    "a real tool dies after its work": """
tools: {file__write: {real: true, crash: after}}
expect: {status: interrupted, files: {notes.txt: a}}
then:
  - resume: true
    expect: {files: {notes.txt: a}, calls: {file__write: 2}}
""",
    "a real tool dies before its work": """
tools: {file__write: {real: true, crash: before}}
expect: {status: interrupted, files: {notes.txt: b}}
""",
    "a real tool takes its time": """
tools: {file__read: {real: true, delay_ms: 1500}}
expect: {used: {seconds: 1.5}, files: {notes.txt: a}}
""",
    "a tool is real for other arguments": """
tools: {file__read: {when: [{args: {path: other.txt}, returns: z}], else: real}}
expect: {prompts: {"2": {contains: "lines: b"}}}
""",
    "a tool is real once": """
tools: {file__read: {sequence: [real]}, file__write: {real: true, times: 1}}
expect: {prompts: {"2": {contains: "lines: b"}}, files: {notes.txt: a}}
""",
}


@pytest.mark.parametrize("name", TOOLS)
def test_scripts_of_tools(name: str, tmp_path: Path) -> None:
    lines = TOOLS[name].strip().split("\n")
    assert told(only(run(tmp_path, "files", FILES + "\n".join(f"    {line}" for line in lines)))) == []


def test_a_reply_that_kills_the_process_is_used(tmp_path: Path) -> None:
    test = """
    model: [{step: "1", crash: before}]
    answers: {"2": "yes"}
    expect: {status: interrupted}
    then:
      - resume: true
        model: {"1": '{"best": "B"}', "3a": x}
        expect: {output: x}
"""
    assert told(only(run(tmp_path, "tagline", PLAYBOOK + test))) == []
