"""What is found out about a directive from its place and from the files around it."""

from __future__ import annotations

from pathlib import PurePath

import pytest
from tests.formats.directive.directives import METADATA, Around, codes_in, document

from quire.engine.interpreter.thread import hooks
from quire.formats.directive.check import check
from quire.formats.directive.item_references import documents_called
from quire.formats.directive.knowledge import check_knowledge
from quire.formats.directive.parse import parse
from quire.formats.resolver import CallTarget, Parent
from quire.plan.vocabulary import CONTROL, DECISIONS, HOOK_EVENTS, OPERATORS, SENT_EVENTS
from quire.source import Source

GOOD = document(METADATA)
CONTROLLING = f'primary="execute" item_type="tool" item_id="{CONTROL}"'


def said(text: str, around: Around | None = None) -> list[tuple[str, str, str, str]]:
    """Code, message, the text that it points at, and help."""
    source, around = Source.of(text, "greet.md"), around or Around()
    return [
        (one.code.id, one.message, source.text[one.span.start : one.span.end], one.help)
        for one in check(source, around, around.place)
    ]


def extending(parent: str) -> str:
    return GOOD.replace('version="1.0.0"', f'version="1.0.0" extends="{parent}"')


def hook(inside: str, event: str = "error") -> str:
    return document(f'{METADATA}<hooks><hook id="h" event="{event}">{inside}</hook></hooks>')


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        ([Parent("team/top", "")], []),
        ([Parent("team/top", "team/base")], []),
        (
            [],
            [("DR024", "unknown directive team/top", "it would be at .ai/directives/team/top.md")],
        ),
        ([Parent("team/tops", "")], [("DR024", "unknown directive team/top", "did you mean team/tops?")]),
        (
            [Parent("team/top", "team/roof")],
            [
                (
                    "DR024",
                    "unknown directive team/roof, which team/top extends",
                    "it would be at .ai/directives/team/roof.md",
                )
            ],
        ),
        (
            [Parent("team/top", "a.b")],
            [("DR024", "a.b is not an item's id", "correct the id, or the file that it means")],
        ),
        (
            [Parent("team/top", "team/greet")],
            [
                (
                    "DR025",
                    "extends goes round in a circle: team/greet → team/top → team/greet",
                    "let one of them extend none of these",
                )
            ],
        ),
        (
            [Parent("team/top", "team/roof"), Parent("team/roof", "team/top")],
            [
                (
                    "DR025",
                    "extends goes round in a circle: team/top → team/roof → team/top",
                    "let one of them extend none of these",
                )
            ],
        ),
    ],
)
def test_parents(parents: list[Parent], expected: list[tuple[str, str, str]]) -> None:
    found = said(extending("team/top"), Around(*parents))
    assert [(code, message, help) for code, message, _, help in found] == expected
    assert all(pointed == "team/top" for _, _, pointed, _ in found)


def test_a_long_circle_is_shortened() -> None:
    parents = [Parent(f"p{number}", f"p{number + 1}") for number in range(40)]
    (found,) = said(extending("p0"), Around(*parents, Parent("p40", "p0")))
    assert found[1].endswith("p0 → p1 → p2 → p3 → p4 → p5 → p6 → … → p0")


def test_without_surroundings_nothing_is_looked_for() -> None:
    text = extending("nobody").replace("</category>", "</category><context><before>nothing</before></context>")
    assert check(Source.of(text.replace("team<", "other<"))) == ()


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("<context><system>team/names</system></context>", []),
        ("<context><system>${inputs.who}</system></context>", []),
        ("<context><suppress>team/nobody</suppress></context>", [("DR116", "team/nobody", "there are: team/brought")]),
        ("<context><suppress>team/brought</suppress></context>", []),
        (
            "<context><before>team/names</before><suppress>team/nams</suppress></context>",
            [("DR116", "team/nams", "did you mean team/names?")],
        ),
        ("<context><before>team/old</before><suppress>team/old</suppress></context>", []),
        (
            "<context><before>team/nmaes</before><after>team/nmaes</after></context>",
            [("DR113", "team/nmaes", "did you mean team/names?")] * 2,
        ),
        (
            "<context><after>else/where</after></context>",
            [("DR113", "else/where", "it would be at .ai/knowledge/else/where.md")],
        ),
        (
            "<context><after>../names</after></context>",
            [("DR026", "../names", "correct the id, or the file that it means")],
        ),
        (
            '<hooks><hook id="h" event="thread_started"><action primary="fetch" item_type="knowledge" item_id="n" />'
            "</hook></hooks>",
            [
                (
                    "DR113",
                    '<action primary="fetch" item_type="knowledge" item_id="n" />',
                    "it would be at .ai/knowledge/n.md",
                )
            ],
        ),
        # What a hook looks for when it acts ends nothing.
        *(
            (
                f'<hooks><hook id="h" event="{event}"><action primary="fetch" item_type="knowledge" item_id="a.b" />'
                "</hook></hooks>",
                [
                    (
                        code,
                        '<action primary="fetch" item_type="knowledge" item_id="a.b" />',
                        "correct the id, or the file that it means",
                    )
                ],
            )
            for event, code in {"build_system_prompt": "DR026", "error": "DR113"}.items()
        ),
        (
            '<context><suppress>h</suppress></context><hooks><hook id="h" event="thread_started">'
            '<action primary="fetch" item_type="knowledge" item_id="n" /></hook></hooks>',
            [],
        ),
    ],
)
def test_knowledge(metadata: str, expected: list[tuple[str, str, str]]) -> None:
    found = said(document(METADATA + metadata))
    assert [(code, pointed, help) for code, _, pointed, help in found] == expected


def test_a_hostile_file_is_looked_at_for_a_while() -> None:
    items = "".join(f"<after>k{number}</after>" for number in range(3_000))
    found = said(document(f"{METADATA}<context>{items}</context>"))
    assert [code for code, *_ in found] == ["DR113"] * 200


def test_what_a_parent_suppresses_is_not_missed() -> None:
    text = extending("team/top").replace("</category>", "</category><context><before>old</before></context>")
    assert [code for code, *_ in said(text, Around(Parent("team/top", "")))] == ["DR113"]
    assert said(text, Around(Parent("team/top", "", ("old",)))) == []


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        (GOOD, "team/greet.md", []),
        (GOOD, "team/hello.md", [("DR205", "greet", 'write name="hello", or rename the file')]),
        (GOOD, "greet.md", [("DR205", "team", "write <category></category>, or move the file")]),
        (GOOD, "a/b/greet.md", [("DR205", "team", "write <category>a/b</category>, or move the file")]),
        (GOOD.replace("1.0.0", "1.0"), "team/greet.md", [("DR207", "1.0", 'write version="1.0.0"')]),
        (
            GOOD.replace('name="greet"', 'name="Greet-it"'),
            "team/Greet-it.md",
            [("DR206", "Greet-it", "begin with a verb, such as deploy_staging")],
        ),
        (
            GOOD.replace('tier="low"', 'tier="low" parallel="2"'),
            "team/greet.md",
            [("DR208", "2", 'write parallel="true", or leave it out')],
        ),
    ],
)
def test_what_signing_refuses(text: str, place: str, expected: list[tuple[str, str, str]]) -> None:
    found = said(text, Around(place=place))
    assert [(code, pointed, help) for code, _, pointed, help in found] == expected


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        *((f'<action {CONTROLLING}><param name="action">{one}</param></action>', []) for one in DECISIONS),
        (f'<action {CONTROLLING}><param name="action">${{outputs.action}}</param></action>', []),
        (
            f'<action {CONTROLLING}><param name="action">retri</param></action>',
            [("DR105", "retri", "did you mean retry?")],
        ),
        (
            f'<action {CONTROLLING}><param name="action" value="Stop" /></action>',
            [("DR105", "Stop", f"known: {', '.join(DECISIONS)}")],
        ),
        (
            f'<action><execute item_type="tool" item_id="{CONTROL}" action="skp" /></action>',
            [("DR105", "skp", "did you mean skip?")],
        ),
        (
            f"<action {CONTROLLING} />",
            [("DR112", f"<action {CONTROLLING} />", 'write <param name="action">retry</param>')],
        ),
        (
            '<action primary="execute" item_type="tol" item_id="rye/file-system/ls" />',
            [("DR105", "tol", "did you mean tool?")],
        ),
        ('<action primary="execute" item_type="${inputs.kind}" item_id="x" />', []),
    ],
)
def test_words_of_hook_actions(inside: str, expected: list[tuple[str, str, str]]) -> None:
    found = [(code, pointed, help) for code, _, pointed, help in said(hook(inside)) if code != "DR202"]
    assert found == expected


@pytest.mark.parametrize("event", tuple(HOOK_EVENTS))
def test_events_that_nothing_sets_off(event: str) -> None:
    text = hook(f'<action {CONTROLLING}><param name="action">fail</param></action>', event)
    assert [code for code, *_ in said(text)] == (["DR105"] if event not in SENT_EVENTS else [])


def test_the_engine_has_every_operator() -> None:
    assert set(OPERATORS) == set(hooks.OPERATORS)


def test_documents_that_are_called() -> None:
    calls = (
        '`rye_execute(item_type="pipeline", item_id="price", parameters={"item_id": "x"})`\n'
        '`rye_execute(item_type="playbook", item_id="{input:which}")`\n'
        '`rye_fetch(item_type="directive", item_id="team/other")`\n'
        '`rye_execute(item_type="tool", item_id="rye/bash", parameters={"directive_id": "no"})`\n'
        '`rye_execute(item_type="tool", item_id="rye/agent/threads/spawn_thread", '
        'parameters={"directive_id": "team/child"})`\n'
    )
    inside = '<process><execute item_type="playbook" item_id="letter" /></process>'
    action = '<action primary="execute" item_type="directive" item_id="team/warn" />'
    text = document(f'{METADATA}<hooks><hook id="h" event="error">{action}</hook></hooks>', inside, calls)
    assert [wanted for wanted, _ in documents_called(parse(Source.of(text)).partial)] == [
        CallTarget("price", "pipeline"),
        CallTarget("team/child", "directive"),
        CallTarget("letter", "playbook"),
        CallTarget("team/warn", "directive"),
    ]


def test_a_circle_is_shown_at_the_call_that_enters_it() -> None:
    call = '`rye_execute(item_type="pipeline", item_id="lead_back")`'
    found = [one for one in said(document(METADATA, "", f"{call}\n{call}")) if one[0] == "DR114"]
    assert [(message, pointed) for _, message, pointed, _ in found] == [
        ("team/greet can reach itself: team/greet → lead_back → team/greet", call[1:-1])
    ]


def test_a_directive_that_cannot_be_read_is_only_read() -> None:
    assert codes_in(extending("nobody").replace("</metadata>", ""), Around()) == codes_in(
        extending("nobody").replace("</metadata>", "")
    )


KNOWLEDGE = 'name: "names"\ntitle: Names\nversion: "1.0.0"\nentry_type: reference\ncategory: team\n'


@pytest.mark.parametrize(
    ("name", "place", "pointed"),
    [
        ("names.md", "team/names.md", []),
        ("names.md", "team/other.md", ['"names"']),
        ("names.md", "names.md", ["team"]),
        ("names.yaml", "a/other.yaml", ['"names"', "team"]),
    ],
)
def test_places_of_knowledge(name: str, place: str, pointed: list[str]) -> None:
    text = KNOWLEDGE if name.endswith(".yaml") else f"```yaml\n{KNOWLEDGE}```\n\nname: Ada.\n"
    found = check_knowledge(Source.of(text, name), PurePath(place))
    assert [(one.code.id, text[one.span.start : one.span.end]) for one in found] == [("KN104", one) for one in pointed]
    assert check_knowledge(Source.of(text, name)) == ()


def running(item_id: str, event: str) -> str:
    return hook(f'<action primary="execute" item_type="directive" item_id="{item_id}" />', event)


@pytest.mark.parametrize(("event", "code"), [("limit", "DR115"), ("directive_return", "DR027")])
@pytest.mark.parametrize(
    ("item_id", "message", "help"),
    [
        ("team/base", "", ""),
        ("team/bas", "unknown directive team/bas", "did you mean team/base?"),
        (
            "team/changed",
            "the directive team/changed was changed since it was signed",
            "look at it, then sign it again",
        ),
        ("a.b", "a.b is not an item's id", "correct the id, or the file that it means"),
        ("${inputs.which}", "", ""),
        ("team/{input:which?}", "", ""),
    ],
)
def test_directives_that_hooks_run(event: str, code: str, item_id: str, message: str, help: str) -> None:
    """G5: a checker that is not there, or must not be used, keeps the directive from starting."""
    found = [(one, words, more) for one, words, _, more in said(running(item_id, event)) if one != "DR202"]
    assert found == ([(code, message, help)] if message else [])


def test_knowledge_that_judges_the_outputs_has_to_be_there() -> None:
    text = hook('<action primary="fetch" item_type="knowledge" item_id="team/nmaes" />', "directive_return")
    assert [one[0] for one in said(text)] == ["DR027"]


def test_permissions_for_everything_need_a_word() -> None:
    """S7: `check` says before the run that the directive does not start."""
    acknowledged = '<acknowledge risk="unrestricted">Sets up machines.</acknowledge>'
    found = {
        inside: [code for code, _ in codes_in(document(f"<permissions>{inside}</permissions>"), Around())]
        for inside in ("*", f"*{acknowledged}", "<execute>*</execute>")
    }
    assert ["DR117" in codes for codes in found.values()] == [True, False, False]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ('value="notjson"', ["DR105"]),
        ("value='[1, 2]'", []),
        ("value='[1, 2'", ["DR105"]),
        ("", ["DR105"]),
        ('value="true"', ["DR105"]),
    ],
)
def test_the_operator_in_wants_a_list(value: str, found: list[str]) -> None:
    text = hook(
        f'<condition path="turn" op="in" {value} /><action {CONTROLLING}><param name="action">fail</param></action>'
    )
    assert [one[0] for one in said(text)] == found


def test_the_help_of_a_hook_without_event_names_all_that_happen() -> None:
    (found,) = [one for one in said(hook(f'<action {CONTROLLING} action="fail" />', "")) if one[0] == "DR112"]
    assert found[3] == f"events are {', '.join(SENT_EVENTS)}"


def test_an_input_in_a_hook_has_to_be_declared() -> None:
    """S6: inputs are filled into the parameters of hooks, so a misspelt one is found there too."""
    inside = f'<action {CONTROLLING}><param name="action">fail</param><param name="message">%s</param></action>'
    assert "DR108" in [one[0] for one in said(hook(inside % "{input:whoo}"))]
    assert "DR108" not in [one[0] for one in said(hook(inside % "{input:whoo|nobody} ${inputs.whoo}"))]
