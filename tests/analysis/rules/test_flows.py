"""TA101 to TA107: each with documents that it finds, and twins that it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.analysis.rules.test_secrets import findings_of_file
from tests.directives import directive as directive_text
from tests.given import given

from quire.diagnostics import Diagnostic

PAGE = '- {tool: {name: http__get, args: {url: "https://example.org/x"}, output: page}}\n'
SCHEMA = (
    "schema: Kind\nfields:\n  kind: {type: enum, values: [a, b]}\n  size: {type: number}\n  why: {type: string}\n---\n"
)
WORD = "^v[0-9]{1,3}$"
READ = '- {agent: {prompt: "Sort {page.text}", capabilities: {tools: []}, schema: Kind, output: found}}\n'
ASK = "- {tool: {name: ask, args: {prompt: !expr \"'Run ' + page.text\", type: confirm}, output: ok}}\n"


def found(folder: Path, text: str, name: str = "p.yaml") -> list[Diagnostic]:
    return findings_of_file(folder, held(text), name, "TA")


def pipeline(*steps: str, schema: bool = False) -> str:
    return (SCHEMA if schema else "") + "pipeline: p\ndialect: quire\nsteps:\n" + "".join(steps)


def TAG(pattern: str) -> str:  # noqa: N802  beside PAGE and READ
    """Return a step whose result has a text that a pattern holds; `held` writes its schema."""
    return (
        f'- {{agent: {{prompt: "{{page.text}}", capabilities: {{tools: []}}, schema: T, output: tag}}}} # {pattern}\n'
    )


def held(text: str) -> str:
    """Return a document with the schema of `TAG`."""
    _, is_there, rest = text.partition(" output: tag}} # ")
    pattern = rest.partition("\n")[0]
    return f"schema: T\nfields:\n  name: {{type: string, pattern: '{pattern}'}}\n---\n{text}" if is_there else text


def shell(command: str, when: str = "") -> str:
    """Return a step that runs a command. One with a condition gets no input."""
    guard, stdin = (f"when: {json.dumps(when)}, ", 'stdin: "", ') if when else ("", "")
    return f"- {{tool: {{{guard}name: shell, args: {{{stdin}command: !expr {json.dumps(command)}}}}}}}\n"


@pytest.fixture(autouse=True)
def own_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER_SPACE", str(tmp_path / "user"))
    monkeypatch.setenv("QUIRE_HOME", str(tmp_path / "user"))
    (tmp_path / "quire.toml").write_text("")


FIRING = {
    "a page as an argument": ("TA101", pipeline(PAGE, shell("['grep', page.text, 'a.md']"))),
    "a reply of a model that read the page": (
        "TA101",
        pipeline(PAGE, READ, shell("['sh', '-c', found.why]"), schema=True),
    ),
    "a script after the two dashes": ("TA101", pipeline(PAGE, shell("['sh', '-c', 'eval \"$1\"', '--', page.text]"))),
    "a whole command": ("TA101", pipeline(PAGE, shell("page.text"))),
    "a command in parts": ("TA101", pipeline(PAGE, shell("'ls ' + page.text"))),
    "input of an interpreter": ("TA101", pipeline(PAGE, shell("['sh']"))),
    "a file to write": (
        "TA102",
        pipeline(PAGE, "- {tool: {name: file__write, args: {path: !expr \"'out/' + page.text\", content: x}}}\n"),
    ),
    "an address": ("TA103", pipeline(PAGE, "- {tool: {name: http__get, args: {url: !expr page.json.next}}}\n")),
    "the rest of a host": (
        "TA103",
        pipeline(PAGE, "- {tool: {name: http__get, args: {url: !expr \"'https://example.' + page.text\"}}}\n"),
    ),
    "a prompt with tools": (
        "TA104",
        pipeline(PAGE, '- {agent: {identity: hand, prompt: "Do {page.text}", capabilities: {tools: [file__write]}}}\n'),
    ),
    "a decision": (
        "TA105",
        pipeline(PAGE, shell("['./publish.sh', ctx.version]", "page.text == 'go'")),
    ),
    "a verdict of a model": ("TA105", pipeline(PAGE, READ, shell("['ls', ctx.at]", "found.kind == 'a'"), schema=True)),
    "a word that begins with a dash": ("TA101", pipeline(PAGE, TAG("^[-a-z]+$"), shell("['git', 'tag', tag.name]"))),
    "a pattern without an anchor": ("TA101", pipeline(PAGE, TAG("^v[0-9]+"), shell("['git', 'tag', tag.name]"))),
    "a word as a program": ("TA101", pipeline(PAGE, TAG(WORD), shell("[tag.name, 'a']"))),
    "a word as code": ("TA101", pipeline(PAGE, TAG(WORD), shell("['sh', '-c', tag.name]"))),
    "a word and more": ("TA101", pipeline(PAGE, TAG(WORD), shell("['git', 'tag', tag.name + page.text]"))),
    "a word as a whole path": (
        "TA102",
        pipeline(PAGE, TAG(WORD), "- {tool: {name: file__write, args: {path: !expr tag.name, content: x}}}\n"),
    ),
    "a word as a host": (
        "TA103",
        pipeline(PAGE, TAG(WORD), "- {tool: {name: http__get, args: {url: !expr \"'https://' + tag.name\"}}}\n"),
    ),
    "an agent that reads files and the web": (
        "TA106",
        pipeline('- {agent: {identity: web, prompt: "Help", capabilities: {tools: [file__read, http__get]}}}\n'),
    ),
}
CLEAN = {
    "words after two dashes": pipeline(PAGE, shell("['grep', '-c', '--', page.text, 'a.md']")),
    "an enum, a number": pipeline(PAGE, READ, shell("['git', 'tag', found.kind, text(found.size)]"), schema=True),
    "a count": pipeline(PAGE, shell("['seq', text(count(page.text))]")),
    "input of a filter": pipeline(PAGE, shell("['wc', '-w']")),
    "a word of the document": pipeline(shell("['ls', 'a']")),
    "an input of the caller": pipeline(shell("['ls', ctx.folder]")),
    "a fixed host": pipeline(
        PAGE, "- {tool: {name: http__get, args: {url: !expr \"'https://example.org/' + page.text\"}}}\n"
    ),
    "content of a file": pipeline(
        PAGE, "- {tool: {name: file__write, args: {path: a.md, content: !expr page.text}}}\n"
    ),
    "a prompt without tools": pipeline(PAGE, READ, schema=True),
    "an agent that only reads files": pipeline(
        '- {agent: {identity: web, prompt: "Help", capabilities: {tools: [file__read]}}}\n'
    ),
    "a decision about a constant command": pipeline(
        PAGE, '- {tool: {when: "page.text == \'go\'", name: shell, args: {command: ./publish.sh, stdin: ""}}}\n'
    ),
    "a verdict about a constant command": pipeline(PAGE, READ, shell("['ls']", "found.kind == 'a'"), schema=True),
    "a word of a pattern": pipeline(PAGE, TAG(WORD), shell("['git', 'tag', tag.name, 'v-' + tag.name + '.0']")),
    "a word of a pattern in a folder": pipeline(
        PAGE,
        TAG(WORD),
        "- {tool: {name: file__write, args: {path: !expr \"'out/' + tag.name + '.md'\", content: x}}}\n",
    ),
    "a page that a person has seen": pipeline(PAGE, ASK, shell("['sh', '-c', page.text]", "ok == 'yes'")),
}
AGENTS = '[agents.hand]\ntools = ["file__write"]\n[agents.web]\ntools = ["file__read", "http__get"]\n'


@pytest.mark.parametrize("name", FIRING)
def test_a_flow_is_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "quire.toml").write_text(AGENTS)
    code, text = FIRING[name]
    findings = found(tmp_path, text)
    assert code in [one.code.id for one in findings], findings
    for one in findings:
        assert one.flow
        assert one.flow[0].node in ("1 http__get", "1 file__read")


@pytest.mark.parametrize("name", CLEAN)
def test_a_twin_is_clean(tmp_path: Path, name: str) -> None:
    (tmp_path / "quire.toml").write_text(AGENTS)
    assert not found(tmp_path, CLEAN[name])


def test_the_path_ends_in_the_place(tmp_path: Path) -> None:
    (one,) = found(tmp_path, pipeline(PAGE, READ, shell("['tag', '-m', found.why]"), schema=True))
    assert [place.node for place in one.flow] == ["1 http__get", "page", "2 model", "found", "3 shell argv[2]"]


@pytest.mark.parametrize(
    "answer",
    [
        "ok == 'no'",
        "ok != 'yes'",
        "ok",
        "ok == 'yes' or ctx.force",
    ],
)
def test_a_question_whose_yes_is_not_needed_is_no_consent(tmp_path: Path, answer: str) -> None:
    step = (
        f'- {{tool: {{when: {json.dumps(answer)}, name: shell, args: {{stdin: "", command: !expr "[page.text]"}}}}}}\n'
    )
    assert "TA101" in [one.code.id for one in found(tmp_path, pipeline(PAGE, ASK, step))]


@pytest.mark.parametrize(
    ("question", "is_shown"),
    [
        ("'Run ' + page.text", True),
        ("page", True),
        ("{a: page.text}", True),
        ("json(page)", True),
        ("'Run ' + text(get(page, 'text'))", True),
        ("'Status was ' + text(page.status)", False),
        ("'It has ' + text(count(page.text)) + ' letters'", False),
        ("'It begins with ' + slice(page.text, 0, 10)", False),
        ("page.text == 'a'", False),
    ],
)
def test_a_part_or_a_count_of_a_value_is_not_the_value(tmp_path: Path, question: str, is_shown: bool) -> None:
    ask = "- {tool: {name: ask, args: {prompt: Go on?, show: !expr %s, type: confirm}, output: ok}}\n"
    step = shell("['run', page.text]", "ok == 'yes'")
    findings = found(tmp_path, pipeline(PAGE, ask % json.dumps(question), step))
    assert ("TA101" not in [one.code.id for one in findings]) is is_shown


INTERPRETERS = {
    True: ["bash -e", "bash -eu", "bash --norc", "bash -o pipefail", "python3 -u", "python3.11", "ssh host",
           "ssh -p 22 host", "sqlite3 a.db", "sudo bash", "env A=1 sh", "timeout 5 sh", "sh -s -- a", "bash -c sh",
           "node", "docker exec -i box sh", "xargs rm"],
    False: ["bash script.sh", "bash -c cat", "python3 run.py", "python3 -m json.tool", "ssh host ls", "node -e 1",
            "sqlite3 a.db .tables", "sudo tee log", "env A=1 cat", "awk {print}", "perl -ne print", "wc -l"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "runs"), [(one, runs) for runs, several in INTERPRETERS.items() for one in several]
)
def test_programs_that_run_their_input(tmp_path: Path, command: str, runs: bool) -> None:
    step = f"- {{tool: {{name: shell, args: {{command: {json.dumps(command.split())}}}}}}}\n"
    findings = found(tmp_path, pipeline(PAGE, "- {transform: {value: page.text}}\n", step))
    assert ("TA101" in [one.code.id for one in findings]) is runs


def test_a_yes_to_an_older_value_is_no_consent(tmp_path: Path) -> None:
    step = shell("[page.text]", "ok == 'yes'")
    assert "TA101" in [one.code.id for one in found(tmp_path, pipeline(PAGE, ASK, PAGE, step))]


PLAYBOOK = """# Look

## STEP 1: Fetch

@tool(quire, http__get, {"url": "https://example.org"})
@output(page)

## STEP 2: Think

Say something.

@output(kind: enum, "a", "b")

## STEP 3: Tag

@tool(quire, shell, {"command": ["git", "tag", "{{kind}}"]})
"""


def test_an_enum_of_a_playbook_does_not_narrow_and_every_model_reads_all_before_it(tmp_path: Path) -> None:
    (one,) = found(tmp_path, PLAYBOOK, "look.playbook.md")
    assert one.code.id == "TA101"
    assert [place.node for place in one.flow] == ["1 http__get", "2 model", "kind", "3 shell argv[2]"]


def test_a_callee_passes_on_what_it_is_given(tmp_path: Path) -> None:
    folder = tmp_path / "pipelines"
    given({"runner.yaml": "pipeline: runner\nsteps:\n" + shell("['sh', '-c', ctx.what]")}, folder)
    (one,) = found(tmp_path, pipeline(PAGE, "- {call: {pipeline: runner, pass: {what: page.text}}}\n"))
    assert one.code.id == "TA101"
    assert one.flow[-1].source is not None
    assert one.flow[-1].source.name.endswith("runner.yaml")


def test_a_flow_within_a_callee_is_told_at_the_callee(tmp_path: Path) -> None:
    folder = tmp_path / "pipelines"
    folder.mkdir()
    inner = "pipeline: runner\nsteps:\n" + PAGE + shell("['sh', '-c', page.text]")
    assert found(tmp_path, inner, "pipelines/runner.yaml")
    assert not found(tmp_path, pipeline("- {call: {pipeline: runner}}\n"))


SERVER = {"mcpServers": {"tickets": {"command": "tickets", "args": ["--stdio"]}}}
LIST = "- {tool: {name: tickets__list, output: page}}\n"


@pytest.mark.parametrize(
    ("mark", "fires"),
    [
        ("", True),
        ('[servers.tickets]\nat = "tickets --stdio"\ntrusted = true\n', False),
        ('[servers.tickets]\nat = "other --stdio"\ntrusted = true\n', True),
        ('[servers.tickets]\nat = "tickets --stdio"\nprivate = true\n', True),
    ],
)
def test_results_of_a_server_are_from_outside_unless_the_user_trusts_it(
    tmp_path: Path, mark: str, *, fires: bool
) -> None:
    given({".mcp.json": SERVER, "user/quire.toml": mark}, tmp_path)
    assert bool(found(tmp_path, pipeline(LIST, shell("['sh', '-c', page.text]")))) is fires


@pytest.mark.parametrize(("allow", "fires"), [("shell", False), ("shell=network", True), ("shell=unsandboxed", True)])
def test_output_of_commands_with_network_is_from_outside(tmp_path: Path, allow: str, *, fires: bool) -> None:
    given({"user/quire.toml": f'[tools]\nallow = ["{allow}"]\n'}, tmp_path)
    run = '- {tool: {name: shell, args: {command: ./get, stdin: ""}, output: page}}\n'
    assert bool(found(tmp_path, pipeline(run, shell("['grep', page]")))) is fires


def directive(permissions: str, hook: str) -> str:
    meta = f'<limits turns="6" tokens="4096" />\n<permissions><execute>{permissions}</execute></permissions>'
    guest = '<inputs><input name="guest" type="string" required="true">Who comes</input></inputs>'
    following = '<outputs><output name="next" type="string">What is next</output></outputs>'
    meta, more = f"{meta}\n<hooks>{hook}</hooks>", f"{guest}\n{following}"
    return directive_text("greet", "", "Greet the guest.", category="team", meta=meta, more=more)


WEB = "<tool>rye.web.fetch</tool>"
NEXT = """<hook id="next" event="after_complete"><action primary="execute" item_type="{}" item_id="{}">
  <param name="path" value="{}" /><param name="content" value="x" /></action></hook>"""


@pytest.mark.parametrize(
    ("permissions", "hook", "codes"),
    [
        (WEB, ("directive", "${outputs.next}", "x"), ["TA107"]),
        (WEB, ("tool", "rye/file-system/write", "${outputs.next}"), ["TA102"]),
        (WEB, ("tool", "rye/file-system/write", "log.txt"), []),
        (WEB, ("tool", "rye/file-system/write", "${inputs.guest}"), []),
        ("<tool>rye.file-system.read</tool>", ("directive", "${outputs.next}", "x"), []),
    ],
)
def test_hooks_pass_on_exactly_what_they_name(
    tmp_path: Path, permissions: str, hook: tuple[str, str, str], codes: list[str]
) -> None:
    text = directive(permissions, NEXT.format(*hook))
    findings = found(tmp_path, text, ".ai/directives/team/greet.md")
    assert [one.code.id for one in findings if one.code.id not in ("TA104", "TA106")] == codes
    for one in findings:
        assert text[one.span.start :].startswith("<hook")


def test_a_text_from_outside_does_not_choose_a_prompt(tmp_path: Path) -> None:
    (tmp_path / "prompts").mkdir()
    text = PLAYBOOK.partition("## STEP 2")[0] + "## STEP 2: Think\n\nSay it.\n\n@prompt(file:prompts/{{page}}.md)\n"
    (one,) = found(tmp_path, text, "look.playbook.md")
    assert one.code.id == "TA107"
    assert not found(tmp_path, text.replace("{{page}}", "a"), "look.playbook.md")


def confidences(findings: list[Diagnostic]) -> list[tuple[str, str]]:
    return [(one.code.id, one.confidence) for one in findings]


def agent(prompt: str, *tools: str) -> str:
    return (
        f"- {{agent: {{identity: all, prompt: {json.dumps(prompt)}, capabilities: {{tools: {json.dumps(tools)}}}}}}}\n"
    )


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (agent("Do {page.text}", "file__write"), [("TA104", "proven")]),
        (agent("Do {page.text}", "file__read", "file__write"), [("TA104", "proven")]),
        (agent("Do", "http__get", "file__write"), [("TA104", "possible")]),
        (agent("Do", "http__get", "file__read"), [("TA106", "possible")]),
        (agent("Do", "http__get"), []),
        ("- {tool: {name: tickets__add, args: {url: !expr page.text}}}\n", [("TA103", "possible")]),
        ("- {tool: {name: tickets__add, args: {filePath: !expr page.text}}}\n", [("TA102", "possible")]),
        ("- {tool: {name: tickets__add, args: {cmd: !expr page.text}}}\n", [("TA101", "possible")]),
        ("- {tool: {name: tickets__add, args: {title: !expr page.text}}}\n", []),
        ("- {tool: {name: shell, args: {command: ./load, stdin: !expr page.text}}}\n", [("TA101", "possible")]),
        ("- {tool: {name: shell, args: {command: [sh, -s], stdin: !expr page.text}}}\n", [("TA101", "proven")]),
        ("- {tool: {name: shell, args: {command: python3 run.py, stdin: ''}}}\n", []),
        ("- {tool: {name: shell, args: {command: xargs rm}}}\n", [("TA101", "proven")]),
        ("- {tool: {name: shell, args: {command: grep x | xargs rm}}}\n", [("TA101", "possible")]),
        ("- {tool: {name: shell, args: {command: ls, working_dir: !expr page.text}}}\n", [("TA102", "proven")]),
        ("- {tool: {name: file__read, args: {path: !expr page.text}}}\n", []),
    ],
)
def test_how_sure_a_finding_is(tmp_path: Path, step: str, expected: list[tuple[str, str]]) -> None:
    (tmp_path / ".mcp.json").write_text(json.dumps(SERVER))
    (tmp_path / "quire.toml").write_text('[agents.all]\ntools = ["file__read", "file__write", "http__get"]\n')
    assert confidences(found(tmp_path, pipeline(PAGE, step))) == expected


@pytest.mark.parametrize(
    ("permissions", "codes"),
    [
        ("<tool>team.look</tool>", []),
        ("<tool>team.look</tool><tool>team.post</tool>", ["TA104", "TA106"]),
        ("<tool>team.*</tool>", ["TA104", "TA106"]),
        ("<tool>rye.file-system.*</tool>", []),
        ("<tool>*</tool>", ["TA104", "TA106"]),
    ],
)
def test_tools_that_are_not_known_may_be_from_outside(tmp_path: Path, permissions: str, codes: list[str]) -> None:
    findings = found(tmp_path, directive(permissions, ""), ".ai/directives/team/greet.md")
    assert [one.code.id for one in findings] == codes


def test_the_help_says_where_a_path_stays(tmp_path: Path) -> None:
    write = "- {{tool: {{name: file__write, args: {{path: !expr {}, content: x}}}}}}\n"
    (inside,) = found(tmp_path, pipeline(PAGE, write.format("\"'out/' + page.text\"")))
    (anywhere,) = found(tmp_path, pipeline(PAGE, write.format("page.text")))
    assert "stays within out/*" in inside.help
    assert "stays within" not in anywhere.help


MEMORY = (
    '- {repeat: {init: "{past: []}", do: {steps: [{transform: {value: acc, output: state}}, %s'
    '{agent: {prompt: "{state.past} %s", output: text}}, {transform: {value: "{past: state.past + [text]}"}}]}, '
    'until: "count(acc.past) > 2", max: 4, output: best}}\n'
)
WRITE = "- {tool: {name: file__write, args: {path: out.md, content: !expr \"join(best.past, '')\"}}}\n"


@pytest.mark.parametrize("use", [WRITE, shell("['echo', first(best.past)]")])
def test_a_loop_is_not_a_source(tmp_path: Path, use: str) -> None:
    """real-work G1: a loop with a memory brings in what its steps bring in, and nothing else."""
    assert found(tmp_path, pipeline(MEMORY % ("", ""), use)) == []
    one, *_ = found(tmp_path, pipeline(MEMORY % (PAGE.strip("- \n") + ", ", "{page.text}"), use))
    assert one.message.startswith("http__get of step 1.do.2 ")


@pytest.mark.parametrize("depth", [1, 3, 4, 12])
def test_loops_in_each_other_are_not_a_source(tmp_path: Path, depth: int) -> None:
    """real-work G1, also where values of loops are not followed one by one."""

    def nested(inner: str, level: int) -> str:
        if not level:
            return inner
        keep = f"{{transform: {{value: acc, output: s{level}}}}}"
        body = f"{{steps: [{keep}, {nested(inner, level - 1)}]}}"
        return f"{{repeat: {{init: \"'a'\", do: {body}, until: acc == 'x', max: 2, on_max: keep}}}}"

    for inner, codes in (("{agent: {prompt: '{acc}'}}", []), (PAGE.strip("- \n"), ["TA101"])):
        text = pipeline(f"- {nested(inner, depth)}\n", shell("['echo', json(pipe)]"))
        assert [one.code.id for one in found(tmp_path, text)] == codes
