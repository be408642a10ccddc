"""`quire check` says what `show`, `sign` and `run` would refuse, with the files of a real workspace around it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Invoke
from tests.given import given

from quire.cli.check import command
from quire.cli.show import command as show
from quire.library.check import all_codes
from quire.library.document import load
from quire.plan.built_in_tools import ALIASES
from quire.plan.uses import called_names, is_built_in

METADATA = """<description>Greets</description><category>team</category><author>me</author><model tier="low" />
<permissions><execute><tool>rye.file-system.write</tool><pipeline>*</pipeline><playbook>*</playbook>
<tool>rye.agent.threads.thread_directive</tool></execute>
<acknowledge risk="elevated">Starts others</acknowledge></permissions>"""
KNOWLEDGE = '```yaml\nname: names\ntitle: Names\nversion: "1.0.0"\nentry_type: reference\n```\n\nAda.\n'


def directive(name: str, attributes: str = "", metadata: str = "", body: str = "Say hello.") -> str:
    root = f'<directive name="{name}" version="1.0.0"{attributes}>'
    return f"# T\n\n```xml\n{root}<metadata>{METADATA}{metadata}</metadata></directive>\n```\n\n{body}\n"


def playbook(*names: str) -> str:
    steps = (f'## STEP {number}: A\n\n@tool(quire, "{name}")\n\n' for number, name in enumerate(names, 1))
    return "# Page\n\n" + "".join(steps)


def pipeline(name: str, *names: str) -> str:
    return f"pipeline: {name}\nsteps:\n" + "".join(f"- call: {{pipeline: {one}}}\n" for one in names)


def running(kind: str, name: str) -> str:
    return f'`rye_execute(item_type="{kind}", item_id="{name}")`'


def found(invoke: Invoke, *names: str) -> list[tuple[str, str]]:
    done = invoke(command, "--json", *names)
    told = [(one["code"], one["message"]) for one in json.loads(done.stdout)]
    return [one for one in told if one[0] not in ("DR302", "PB225", "PL101")]


@pytest.mark.parametrize("tool", ["http__get", "http__send"])
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Authorization: x", "the header Authorization cannot be set by a document"),
        ('"X-A": "1\\r\\nX-B: 2"', "the header X-A cannot be set: it has a line break"),
        ('"X A": x', "'X A' is not the name of a header"),
    ],
)
def test_a_header_that_is_never_sent(tmp_path: Path, invoke: Invoke, tool: str, header: str, expected: str) -> None:
    """§3: both tools refuse secrets at run time; what stands in the document is found before."""
    method = "method: POST, " if tool == "http__send" else ""
    args = f"{{{method}url: 'https://example.com', headers: {{{header}, Accept: text/html}}}}"
    given({"a.yaml": f"pipeline: a\nsteps:\n- tool: {{name: {tool}, args: {args}}}\n"})
    ((code, message),) = found(invoke, "a.yaml")
    assert code == "PL113" and message.startswith(expected)


GREET = ".ai/directives/team/greet.md"


@pytest.mark.parametrize(
    ("extends", "files", "expected"),
    [
        ("team/base", {"team/base": directive("base")}, []),
        ("stem", {"team/stem": directive("stem")}, []),
        ("rye/agent/core/base", {}, []),
        ("team/base", {}, [("DR024", "unknown directive team/base")]),
        (
            "base",
            {"a/base": directive("base"), "b/base": directive("base")},
            [("DR024", "base means several directives: a/base, b/base, rye/agent/core/base; say which")],
        ),
        (
            "team/base",
            {"team/base": "# No fence\n"},
            [
                (
                    "DR024",
                    "the directive team/base cannot be read: line 1: this file has no xml fence, so it is not "
                    "a directive",
                )
            ],
        ),
        (
            "team/base",
            {"team/base": directive("base", ' extends="greet"')},
            [("DR025", "extends goes round in a circle: team/greet → team/base → team/greet")],
        ),
    ],
)
def test_parents(
    invoke: Invoke, workspace: Path, extends: str, files: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    given({f".ai/directives/{name}.md": text for name, text in files.items()}, workspace)
    given({GREET: directive("greet", f' extends="{extends}"')}, workspace)
    assert found(invoke, GREET) == expected
    assert (invoke(show, GREET).exit_code == 0) == (not expected)


def test_a_parent_in_the_space_of_the_user_is_found(invoke: Invoke, workspace: Path) -> None:
    given({GREET: directive("greet", ' extends="mine/base"', "<context><before>names</before></context>")}, workspace)
    assert [code for code, _ in found(invoke, GREET)] == ["DR024", "DR113"]
    home = workspace.parent / "home"
    given({".ai/directives/mine/base.md": directive("base"), ".ai/knowledge/mine/names.md": KNOWLEDGE}, home)
    assert found(invoke, GREET) == []


def test_knowledge(invoke: Invoke, workspace: Path) -> None:
    context = "<context><system>rye/agent/core/Identity</system><before>team/names</before><after>team/gone</after>"
    given(
        {
            ".ai/knowledge/team/names.md": KNOWLEDGE,
            GREET: directive("greet", "", f"{context}<after>team/bad</after></context>"),
        },
        workspace,
    )
    (workspace / ".ai/knowledge/team/bad.md").symlink_to("names.md")
    assert found(invoke, GREET) == [
        ("DR113", "unknown knowledge team/gone: it is not in the project folder, the user folder or built in"),
        ("DR026", "the knowledge team/bad is a link to team/names; put a file of its own there"),
    ]


def test_places(invoke: Invoke, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given({".ai/directives/other/hello.md": directive("greet"), ".ai/knowledge/team/other.md": KNOWLEDGE}, workspace)
    assert [code for code, _ in found(invoke, ".")] == ["DR205", "DR205", "KN104"]
    monkeypatch.chdir(workspace / ".ai/directives/other")
    assert [code for code, _ in found(invoke, "hello.md")] == ["DR205", "DR205"]


def test_a_directive_in_no_space_has_no_place(invoke: Invoke, workspace: Path) -> None:
    given({"hello.md": directive("greet", ' extends="nobody"')}, workspace)
    assert found(invoke, "hello.md") == []


@pytest.mark.parametrize("names", [' extends="team/base"', ""])
def test_a_broken_configuration_is_no_finding_about_a_file(invoke: Invoke, workspace: Path, names: str) -> None:
    """It is said where something is looked for, as for pipelines."""
    given({"quire.toml": "nonsense = 1\n", GREET: directive("greet", names)}, workspace)
    done = invoke(command, "--json", GREET)
    assert done.exit_code == (2 if names else 0)
    assert ("nonsense" in done.stderr) == bool(names)
    assert "DR024" not in done.stdout


CIRCLE = {
    "playbooks/letter.playbook.md": playbook("price"),
    "pipelines/price.yaml": pipeline("price", "letter"),
}
DECIDED = {
    "playbooks/hello.playbook.md": playbook("team/greet"),
    "pipelines/arrive.yaml": pipeline("arrive", "hello"),
    GREET: directive("greet", "", "", running("pipeline", "arrive")),
}


@pytest.mark.parametrize(
    ("file", "files", "expected"),
    [
        ("playbooks/letter.playbook.md", CIRCLE, [("PB007", "letter can reach itself: letter → price → letter")]),
        ("pipelines/price.yaml", CIRCLE, [("PL020", "price can reach itself: price → letter → price")]),
        (
            "outer.yaml",
            {**CIRCLE, "outer.yaml": pipeline("outer", "letter")},
            [("PL020", "letter can reach itself: letter → price → letter")],
        ),
        # A run of a pipeline that nobody registers takes its own name for itself.
        (
            "own.yaml",
            {"own.yaml": pipeline("own", "page"), "page.playbook.md": playbook("own")},
            [("PL020", "own can reach itself: own → page → own")],
        ),
        (
            "pipelines/both.yaml",
            {
                "pipelines/both.yaml": pipeline("one", "two") + "---\n" + pipeline("two", "page"),
                "page.playbook.md": playbook("both.one"),
            },
            [
                ("PL020", "both.one can reach itself: both.one → both.two → page → both.one"),
                ("PL020", "both.two can reach itself: both.two → page → both.one → both.two"),
            ],
        ),
        (
            "page.playbook.md",
            {
                "page.playbook.md": playbook("a"),
                "pipelines/a.yaml": pipeline("a", "b"),
                "pipelines/b.yaml": pipeline("b", "a"),
            },
            [("PB007", "a can reach itself: a → b → a")],
        ),
        (
            "playbooks/hello.playbook.md",
            DECIDED,
            [("PB227", "hello can reach itself: hello → team/greet → arrive → hello")],
        ),
        (
            "pipelines/arrive.yaml",
            DECIDED,
            [("PL115", "arrive can reach itself: arrive → hello → team/greet → arrive")],
        ),
        (GREET, DECIDED, [("DR114", "team/greet can reach itself: team/greet → arrive → hello → team/greet")]),
        # A name of a file that cannot be read, or of several, leads nowhere.
        ("page.playbook.md", {"page.playbook.md": playbook("x"), "pipelines/x.yaml": "pipeline: x\nsteps: 3\n"}, []),
        (
            GREET,
            {GREET: directive("greet", "", "", running("directive", "team/greet"))},
            [("DR202", "no permission covers rye.execute.directive.team.greet, which this calls for")],
        ),
    ],
)
def test_circles(
    invoke: Invoke, workspace: Path, file: str, files: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    given(files, workspace)
    assert found(invoke, file) == expected


def test_the_documents_that_a_plan_calls(workspace: Path) -> None:
    match = "- match: {on: ctx.x, cases: {y: {pipeline: b}}, default: {pipeline: c}}\n"
    given(
        {"p.yaml": pipeline("p", "a", "shell") + match, "p.playbook.md": playbook("a", "ask", "shell", "rye/bash")},
        workspace,
    )
    for file, names in (("p.yaml", ["a", "shell", "b", "c"]), ("p.playbook.md", ["a"])):
        assert list(called_names(load(workspace / file).runnable())) == names
    assert all(is_built_in(name) for name in (*ALIASES, *ALIASES.values(), "ask"))


def test_every_new_code_has_a_page(invoke: Invoke) -> None:
    for code in all_codes():
        done = invoke(command, "--explain", code.id)
        assert done.exit_code == 0 and "Wrong:" in done.stdout, code.id


@pytest.mark.parametrize(
    ("name", "text", "unloaded"),
    [
        (
            "page.playbook.md",
            "# T\n\n## STEP 1: A\n\nHello.\n",
            ("quire.workspace", "quire.library.snapshot", "lxml"),
        ),
        (GREET, directive("greet"), ("quire.formats.pipeline", "yaml")),
        (
            GREET,
            directive("greet", ' extends="rye/agent/core/base"'),
            ("quire.formats.pipeline", "quire.runs", "asyncio", "sqlite3", "rich"),
        ),
    ],
)
def test_only_who_names_others_loads_what_finds_them(
    workspace: Path, name: str, text: str, unloaded: tuple[str, ...]
) -> None:
    given({name: text}, workspace)
    code = f"import sys; from quire.cli import main\ntry: main(['check', {name!r}])\nexcept SystemExit: pass\n"
    code += "sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=workspace)
    assert "quire.cli.check" in done.stderr
    loaded = done.stderr.split()
    assert [one for one in loaded if one in unloaded] == []


@pytest.mark.parametrize(
    ("permissions", "count"),
    [
        ("<execute><tool>rye.bash.*</tool></execute>", 1),
        ("<execute><tool>shell</tool><tool>file__write</tool><directive>*</directive></execute>", 2),
        ('<execute><tool>rye.bash</tool></execute><acknowledge risk="elevated">Builds</acknowledge>', 0),
        ("<execute><tool>file__read</tool></execute>", 0),
        ("<fetch><knowledge>secret/*</knowledge></fetch>", 1),
        ("*", 1),
    ],
)
def test_elevated_permissions_without_an_acknowledgement(
    invoke: Invoke, workspace: Path, permissions: str, count: int
) -> None:
    """seeds S7, ruling 19 of directives: `check` warns as `run` does. A project's table counts too."""
    own = METADATA[METADATA.index("<permissions>") :]
    text = directive("x").replace(own, f"<permissions>{permissions}</permissions>")
    table = "patterns:\n  - {pattern: rye.fetch.knowledge.secret.*, tier: elevated}\n"
    given({".ai/directives/team/x.md": text, ".ai/config/capability_risk.yaml": table}, workspace)
    told = found(invoke, ".ai/directives/team/x.md")
    assert [code for code, _ in told].count("DR117") == count
