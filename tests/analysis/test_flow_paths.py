"""Ways on which text from outside reaches tools, decisions and models."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.rules.rule_cases import proof_of

from quire.analysis.flow_paths import MOST_FLOWS, flows_of
from quire.library.document import read
from quire.library.foresight import Foresight
from quire.source import Source
from quire.workspace.configuration import load_settings
from quire.workspace.locate import find_workspace

GET = """pipeline: p
dialect: quire
steps:
  - tool: {name: http__get, args: {url: "https://example.org/feed"}, output: page}
"""


@pytest.mark.parametrize(
    ("steps", "texts"),
    [
        ("  - transform: {value: '1'}", []),
        (
            '  - agent: {prompt: "Sum up {ctx.page}", output: summary, capabilities: {tools: []}}',
            ["1 http__get → page → 2 model (no tools)"],
        ),
        (
            "  - shell: {command: !expr \"['publish', ctx.page]\", when: ctx.go == 'yes'}",
            ["1 http__get → page → 2 shell argv[1]"],
        ),
        (
            "  - shell: {command: [publish], when: ctx.page == 'yes'}",
            ["1 http__get → page → 2 shell runs or not"],
        ),
        # Reading a file whose name is from outside changes nothing, and nothing leaves.
        ("  - tool: {name: file__read, args: {path: !expr ctx.page}}", []),
        # `cat` takes its input for data; a shell that reads it runs it.
        ("  - tool: {name: shell, args: {command: cat, stdin: !expr ctx.page}}", []),
        (
            "  - tool: {name: shell, args: {command: sh, stdin: !expr ctx.page}}",
            ["1 http__get → page → 2 shell stdin"],
        ),
        # A number of a schema says nothing that was written outside.
        ("  - shell: {command: !expr \"['publish', count(ctx.page)]\"}", []),
    ],
    ids=["none", "model", "argument", "decision", "read", "data", "code", "narrowed"],
)
def test_flows(steps: str, texts: list[str]) -> None:
    found = [flow.text for flow in flows_of(proof_of(f"{GET}{steps}\n"))]
    assert found == texts


def test_only_a_model_without_tools_does_not_act(tmp_path: Path) -> None:
    steps = (
        '  - agent: {prompt: "Sum up {ctx.page}", output: summary, capabilities: {tools: []}}\n'
        "  - tool: {name: file__write, args: {path: a.md, content: !expr ctx.summary}}\n"
        '  - agent: {prompt: "Do {ctx.page}"}\n'
    )
    (tmp_path / "quire.toml").write_text('[agents.default]\ntools = ["file__write"]\n')
    plan = read(Source.of(GET + steps, "p.yaml")).runnable()
    proof = Foresight(load_settings(find_workspace(tmp_path))).proof(plan)
    found = [(flow.place.way, flow.acts) for flow in flows_of(proof)]
    assert found == [("2", False), ("3", True), ("4", True)]


def test_private_values_that_leave(tmp_path: Path) -> None:
    (tmp_path / "quire.toml").write_text('[privacy]\nfiles = ["secrets/*"]\n')
    for folder, texts in (("secrets", ["private: 1 file__read → rates → 2 http__send sends it out"]), ("open", [])):
        steps = (
            f"  - tool: {{name: file__read, args: {{path: {folder}/rates.csv}}, output: rates}}\n"
            "  - tool: {name: http__send, args: {method: POST, url: 'https://example.org', json: !expr rates}}\n"
        )
        plan = read(Source.of(f"pipeline: p\nsteps:\n{steps}", "p.yaml")).runnable()
        proof = Foresight(load_settings(find_workspace(tmp_path))).proof(plan)
        assert [flow.text for flow in flows_of(proof)] == texts


def test_there_is_an_end_to_them() -> None:
    steps = "".join(
        f"  - tool: {{name: file__write, args: {{path: {at}.md, content: !expr ctx.page}}}}\n" for at in range(300)
    )
    assert len(flows_of(proof_of(GET + steps))) == MOST_FLOWS


def called(folder: Path, **documents: str) -> list[str]:
    """Return the flows of the pipeline `main`, which calls the others."""
    (folder / "quire.toml").write_text("")
    (folder / "pipelines").mkdir()
    for name, steps in documents.items():
        (folder / "pipelines" / f"{name}.yaml").write_text(f"pipeline: {name}\nsteps:\n{steps}")
    plan = read(Source.of((folder / "pipelines" / "main.yaml").read_text(), "pipelines/main.yaml")).runnable()
    return [flow.text for flow in flows_of(Foresight(load_settings(find_workspace(folder))).proof(plan))]


FETCH = GET.partition("steps:\n")[2]
KEEP = "  - tool: {name: file__write, args: {path: a.md, content: !expr page}}\n"
READ = "  - tool: {name: file__read, args: {path: a.md}, output: note}\n"
SUM_UP = '  - agent: {prompt: "Sum up {note}", capabilities: {tools: []}}\n'


def test_steps_of_a_callee_are_named_by_the_way_to_them(tmp_path: Path) -> None:
    assert called(
        tmp_path,
        fetch=FETCH,
        use='  - agent: {prompt: "Sum up {text}", capabilities: {tools: []}, output: page}\n' + KEEP,
        both="  - call: {pipeline: fetch, output: got}\n  - call: {pipeline: use, pass: {text: got}}\n",
        main="  - transform: {value: '1'}\n  - call: {pipeline: both}\n  - call: {pipeline: both}\n",
    ) == [
        "2 › 1 › 1 http__get → got → 2 › 2 › 1 model (no tools)",
        "2 › 1 › 1 http__get → got → 2 › 2 › 1 model → page → 2 › 2 › 2 file__write content",
        "3 › 1 › 1 http__get → got → 3 › 2 › 1 model (no tools)",
        "3 › 1 › 1 http__get → got → 3 › 2 › 1 model → page → 3 › 2 › 2 file__write content",
    ]


def test_a_file_that_a_callee_writes_is_named_by_the_way_to_the_step(tmp_path: Path) -> None:
    assert called(tmp_path, fetch=FETCH + KEEP, main="  - call: {pipeline: fetch}\n" + READ + SUM_UP) == [
        "1 › 1 http__get → page → 1 › 2 file__write content",
        "1 › 1 http__get → page → 1 › 2 file a.md → 2 file__read → note → 3 model (no tools)",
    ]


def test_a_step_reads_what_a_later_one_has_written_in_the_run_before(tmp_path: Path) -> None:
    assert called(tmp_path, fetch=FETCH + KEEP, main=READ + "  - call: {pipeline: fetch}\n" + SUM_UP) == [
        "2 › 1 http__get → page → 2 › 2 file__write content",
        "2 › 1 http__get → page → 2 › 2 file a.md → 1 file__read → note → 3 model (no tools)",
    ]
