"""GA101 to GA106: each with documents that it finds, twins that it leaves alone, and mutants that the twins find."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest
from msgspec.structs import replace
from tests.analysis.refuse import KnownDocuments
from tests.analysis.rules.rule_cases import findings_of, proof_of

from quire.analysis import approvals, conditions
from quire.analysis.proof import prove
from quire.analysis.rules import RuleContext
from quire.analysis.rules import approvals as rules
from quire.diagnostics import Diagnostic, fix_of
from quire.library.document import read
from quire.source import Source

HEAD = "pipeline: p\ndialect: quire\ninput: {text: {type: string}, rows: {type: list, of: {type: string}}}\nsteps:\n"
DRAFT = '- agent: {prompt: "Write {text}", capabilities: {tools: []}, output: draft}\n'
PAGE = "- tool: {name: http__get, args: {url: 'https://x.org'}, output: page}\n"
AGAIN = '- agent: {prompt: "Shorten {draft}", capabilities: {tools: []}, output: draft}\n'


def ask(prompt: str = "!expr draft", more: str = ', default: "no"', output: str = ", output: ok") -> str:
    return f"- tool: {{name: ask, args: {{prompt: {prompt}, type: confirm{more}}}{output}}}\n"


def send(when: str = "", value: str = "draft") -> str:
    condition = f'when: "{when}", ' if when else ""
    return f"- shell: {{{condition}command: !expr \"['send', {value}]\", stdin: ''}}\n"


def pipeline(*steps: str) -> str:
    return HEAD + "".join(steps)


def playbook(*steps: str) -> str:
    numbered = "".join(f"## STEP {at}: Part\n\n{text}\n\n" for at, text in enumerate(steps, 1))
    return f"# Mail\n\n## SYSTEM\n\nYou write.\n\n{numbered}"


YES = "ok == 'yes'"
FAN = """- for_each:
    over: ctx.rows
    max_items: 7
    on_error: abort
    do: {}
    collect: {{transform: {{value: pipe}}}}
"""
SEND_ITEM = "{shell: {when: ok == 'yes', stdin: '', command: !expr \"['send', item]\"}}"
ASK_ITEM = (
    '{steps: [tool: {name: ask, args: {prompt: !expr item, type: confirm, default: "no"}, output: ok}, '
    + SEND_ITEM[1:-1]
    + "]}"
)
TOOL = '@tool(quire, shell, {"command": ["send", "{{draft}}"]})'

FIRING: dict[str, tuple[str, str]] = {
    "a model writes an argument": ("GA101", pipeline(DRAFT, send())),
    "a model decides": (
        "GA101",
        "schema: Kind\nfields:\n  kind: {type: enum, values: [a, b]}\n---\n"
        + pipeline(
            '- agent: {prompt: "Sort {text}", capabilities: {tools: []}, schema: Kind, output: found}\n',
            send("found.kind == 'a'", "text"),
        ),
    ),
    "a page": ("GA101", pipeline(PAGE, "- tool: {name: http__send, args: {url: 'https://y.org', json: !expr page}}\n")),
    "only after a no": ("GA101", pipeline(DRAFT, ask(), send("ok == 'no'"))),
    "in another arm": (
        "GA101",
        pipeline(
            DRAFT,
            "- match: {on: text, cases: {a: {steps: ["
            + ask()[2:-1]
            + ", stop: {when: ok != 'yes'}]}}, default: 'null'}\n",
            send(),
        ),
    ),
    "an answer that nothing reads": ("GA102", pipeline(DRAFT, ask(), send())),
    "an answer that is compared with another word": ("GA102", pipeline(DRAFT, ask(), send("ok != 'No'"))),
    "an answer beside another way": ("GA102", pipeline(DRAFT, ask(), send("ok == 'yes' or text == ''"))),
    "a text that is only compared with a no": (
        "GA102",
        pipeline(DRAFT, ask().replace("confirm", "input"), "- stop: {when: ok == 'no'}\n", send()),
    ),
    "a confirmation of a playbook": (
        "GA102",
        playbook("Write it.\n\n@output(draft)", '@elicit(confirm, "{{draft}}", default:"no")', TOOL),
    ),
    "a question without values": ("GA103", pipeline(DRAFT, ask("Send it?"), send(YES))),
    "a question about another value": ("GA103", pipeline(DRAFT, ask("!expr rows"), send(YES, "text"))),
    "a question about another part": ("GA103", pipeline(PAGE, ask("!expr page.status"), send(YES, "page.body"))),
    "a question about what a model wrote on from": (
        "GA103",
        pipeline(DRAFT, ask(), AGAIN.replace("output: draft", "output: final"), send(YES, "final")),
    ),
    "a value that is written again": ("GA104", pipeline(DRAFT, ask(), AGAIN, send(YES))),
    "a value that is written again in one case": (
        "GA104",
        pipeline(DRAFT, ask(), AGAIN.replace("{prompt", "{when: text != '', prompt"), send(YES)),
    ),
    "one yes for all items": ("GA105", pipeline(ask("!expr rows"), FAN.format(SEND_ITEM))),
    "no default": (
        "GA106",
        playbook(
            "Write it.\n\n@output(draft)",
            '@elicit(confirm, "{{draft}}")',
            f'```if __elicit_step_2 == "yes"```\n\n### STEP 3a: Send\n\n{TOOL}\n\n```endif```',
        ),
    ),
    "a yes as default": ("GA106", pipeline(DRAFT, ask(more=', default: "yes"'), send(YES))),
    "a first option": (
        "GA106",
        pipeline(
            DRAFT,
            "- tool: {name: ask, args: {prompt: !expr draft, type: select, options: [send, keep]}, output: ok}\n",
            send("ok == 'send'"),
        ),
    ),
}
CLEAN: dict[str, str] = {
    "a confirm of a pipeline without a default, which fails": pipeline(DRAFT, ask(more=""), send(YES)),
    "a yes before it": pipeline(DRAFT, ask(), send(YES)),
    "an end after a no": pipeline(DRAFT, ask(), "- stop: {when: ok != 'yes'}\n", send()),
    "a command from outside, which TA101 finds": pipeline(PAGE, send(value="page.text")),
    "a decision from outside, which TA105 finds": pipeline(PAGE, send("page.status == 200", "text")),
    "arguments of the caller": pipeline(send(value="text")),
    "a model decides about a constant command": "schema: Kind\nfields:\n  kind: {type: enum, values: [a, b]}\n---\n"
    + pipeline(
        '- agent: {prompt: "Sort {text}", capabilities: {tools: []}, schema: Kind, output: found}\n',
        send("found.kind == 'a'", "'all'"),
        "- shell: {when: \"found.kind == 'b'\", command: [git, diff, --stat]}\n",
    ),
    "a tool that only writes files": pipeline(
        DRAFT, "- tool: {name: file__write, args: {path: a, content: !expr draft}}\n"
    ),
    "a tool that only reads": pipeline(DRAFT, "- tool: {name: file__read, args: {path: !expr draft}}\n"),
    "a question about something else": pipeline(
        ask("With a greeting?"),
        "- agent: {when: ok == 'yes', prompt: \"Greet {text}\", capabilities: {tools: []}, output: draft}\n",
        "- tool: {name: file__write, args: {path: a, content: hello}}\n",
    ),
    "an answer that chooses words": pipeline(
        ask("With a greeting?"),
        "- transform: {value: \"ok == 'yes' and 'Hello' or ''\", output: words}\n",
        "- tool: {name: file__write, args: {path: a, content: !expr words}}\n",
    ),
    "an answer that is written with everything else": pipeline(
        ask("With a greeting?"), "- tool: {name: file__write, args: {path: a, content: !expr json(ctx)}}\n"
    ),
    "the arm of a no": pipeline(
        DRAFT,
        ask(),
        "- match: {on: ok, cases: {'yes': {steps: [" + send()[2:-1] + "]}, "
        "'no': {steps: [tool: {name: file__write, args: {path: a, content: !expr draft}}]}}}\n",
    ),
    "a summary is shown": pipeline(
        DRAFT,
        '- agent: {prompt: "Sum up {draft}", capabilities: {tools: []}, output: summary}\n',
        ask("!expr summary"),
        send(YES),
    ),
    "a part is sent": pipeline(
        DRAFT, ask(), '- transform: {value: "slice(draft, 0, 9)", output: part}\n', send(YES, "part")
    ),
    "written again under another name": pipeline(
        DRAFT, ask(), AGAIN.replace("output: draft", "output: other"), send(YES)
    ),
    "asked again": pipeline(DRAFT, ask(), AGAIN, ask(output=", output: sure"), send("ok == 'yes' and sure == 'yes'")),
    "not a no": pipeline(DRAFT, ask(), send("not (ok == 'no')")),
    "the arm of all other answers": playbook(
        "Write it.\n\n@output(draft)",
        '@elicit(confirm, "{{draft}}", default:"no")\n@output(ok)',
        '```if ok == "no"```\n\n### STEP 3a: Stay\n\nSay why.\n\n'
        f"```else```\n\n### STEP 3b: Go\n\n{TOOL}\n\n```endif```",
    ),
    "an answer that is not a no": playbook(
        "Write it.\n\n@output(draft)",
        '@elicit(confirm, "{{draft}}", default:"no")\n@output(ok)',
        f'```if ok != "no"```\n\n### STEP 3a: Go\n\n{TOOL}\n\n```endif```',
    ),
    "a yes for each item": pipeline(FAN.format(ASK_ITEM)),
    "a list of one": pipeline(ask("!expr rows"), FAN.format(SEND_ITEM).replace("max_items: 7", "max_items: 1")),
    "a playbook that asks": playbook(
        "Write it.\n\n@output(draft)",
        '@elicit(confirm, "{{draft}}", default:"no")',
        f'```if __elicit_step_2 == "yes"```\n\n### STEP 3a: Send\n\n{TOOL}\n\n```endif```',
    ),
}


def name_of(text: str) -> str:
    return "p.playbook.md" if text.startswith("#") else "p.yaml"


def found(text: str) -> list[Diagnostic]:
    return findings_of("approvals", text, name_of(text))


@pytest.mark.parametrize(("code", "text"), FIRING.values(), ids=FIRING)
def test_it_finds(code: str, text: str) -> None:
    assert [one.code.id for one in found(text)] == [code]


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN)
def test_it_leaves_alone(text: str) -> None:
    assert [(one.code.id, one.message) for one in found(text)] == []


CHAIN = (conditions, approvals, rules)
"""Modules of the rules, each with those that it imports before it."""
MUTANTS: list[tuple[ModuleType, str, str]] = [
    # GA101
    (rules, "if is_serious(effect) and not is_constant(effect) and", "if not is_constant(effect) and"),
    (rules, "and not is_constant(effect) and decided_from_outside(effect)", "and not is_constant(effect)"),
    (rules, "and not is_constant(effect) and", "and"),
    (rules, "rank >= Tier.ELEVATED.rank", "rank > Tier.ELEVATED.rank"),
    (rules, "and not _is_flow(effect)", ""),
    (rules, "if any(condition.label.chosen >= Integrity.OUTSIDE for condition in effect.conditions):", "if False:"),
    (rules, 'elif gate.verdict != "never"', 'elif gate.verdict == "open"'),
    (
        approvals,
        "condition.label.chosen >= MODEL for condition in effect.conditions",
        "False for condition in effect.conditions",
    ),
    (approvals, "return max(label.integrity, label.chosen) >= MODEL", "return False"),
    # GA102
    (rules, 'return not self._search.prevented(conditions, {question: "yes"})', "return True"),
    (rules, 'return not self._search.prevented(conditions, {question: "yes"})', "return False"),
    (rules, 'question.kind == "input" and self._search', "False and self._search"),
    (rules, 'return question.kind == "confirm" and not self._is_used(question)', "return False"),
    (rules, 'return question.kind == "confirm" and not self._is_used(question)', 'return question.kind == "confirm"'),
    # GA103
    (rules, "yield from self._blind(gate)", "pass"),
    (rules, "self._derivations.are_related(shown, used, effect)", "bool(shown & used)"),
    (rules, "(shown and (not is_here", "(not (not is_here"),
    # GA104
    (rules, "int(version) < int(used[name])", "False"),
    (rules, "int(version) < int(used[name])", "True"),
    (rules, "if name in fresh:", "if False:"),
    # GA105
    (rules, "_place(fan) not in around and not", "True and not"),
    (
        rules,
        "if not outside or (often := self._often(outside)).as_number in (0, 1)",
        "if not outside or (often := self._often(outside)) is None",
    ),
    (rules, "if not outside or (often := self._often(outside)).as_number in (0, 1)", "if True"),
    # GA106
    (rules, "if not opens_by_itself(gate, self._search):", "if True:"),
    (rules, "if not opens_by_itself(gate, self._search):", "if False:"),
    (approvals, 'question.kind == "confirm" and question.place.format == "pipeline"', "False"),
    (
        approvals,
        "return unattended_answer(question.kind, question.options, question.default)",
        "return question.default",
    ),
    # Gates: the refusal decides, whatever is asked.
    (approvals, 'words: tuple[str, ...] = ("no",)', 'words: tuple[str, ...] = ("yes",)'),
    (approvals, "return words if all(", "return words if any("),
    (approvals, "if self.refusals(fact, tuple(by_question[fact])))", "if True)"),
    (conditions, "return True in own and all(False in one for one in earlier)", "return True in own"),
    (conditions, "if condition.holds:", "if True:"),
    (conditions, "return frozenset(not one for one in found) if times % 2 else found", "return found"),
    (
        conditions,
        'deciding, other = operator == "or", operator == "and"',
        'deciding, other = operator == "and", operator == "or"',
    ),
    (conditions, '(operator == "==") for text in texts', "True for text in texts"),
    (conditions, "found.add(python_text(one) == label)", "found.add(True)"),
]


def fresh(mutated: ModuleType, old: str, new: str) -> ModuleType:
    """Return the rules, made anew with one condition replaced."""
    made: dict[str, object] = {}
    module = rules
    for original in CHAIN:
        source = inspect.getsource(original)
        if original is mutated:
            assert old in source, f"no such condition: {old}"
            source = source.replace(old, new)
        module = ModuleType(original.__name__)
        exec(compile(source, "<mutant>", "exec"), module.__dict__)
        vars(module).update({name: made[name] for name in made if name in vars(module)})
        made |= {
            name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
        }
    return module


def outcome(module: ModuleType, text: str) -> list[str]:
    context = RuleContext(Source.of(text, name_of(text)))
    return [one.code.id for one in module.check(proof_of(text, name_of(text)), context)]


CASES = [*((text, [code]) for code, text in FIRING.values()), *((text, list[str]()) for text in CLEAN.values())]


@pytest.mark.parametrize(("module", "old", "new"), MUTANTS, ids=[f"{new} for {old}" for _, old, new in MUTANTS])
def test_a_case_finds_the_mutant(module: ModuleType, old: str, new: str) -> None:
    mutant = fresh(module, old, new)
    assert any(outcome(mutant, text) != expected for text, expected in CASES)


@pytest.mark.parametrize(
    ("effect", "tier", "serious"),
    [
        ("write", "elevated", True),
        ("write", "unrestricted", True),
        ("write", "write", False),
        ("idempotent", "elevated", False),
        ("read", "elevated", False),
    ],
)
def test_serious_effects_reach_out_and_cannot_be_repeated(effect: str, tier: str, serious: bool) -> None:
    (fact,) = proof_of(pipeline(send(value="text"))).effects
    tool = replace(fact.tool, effect=effect, tier=tier)
    assert rules.is_serious(replace(fact, tool=tool)) == serious


FIXED = {
    "a flow": pipeline(DRAFT, ask(), send()),
    "lines": pipeline(DRAFT, ask(), "- shell:\n    command: !expr \"['send', draft]\"\n    stdin: ''\n"),
    "a store with a hyphen": pipeline(DRAFT, ask(output=", output: go-on"), send()),
    "a default in a flow": FIRING["a first option"][1],
    "a default in lines": pipeline(
        DRAFT,
        "- tool:\n    name: ask\n    args:\n      prompt: !expr draft\n      type: select\n"
        "      options: [send, keep]\n    output: ok\n",
        send("ok == 'send'"),
    ),
    "a default of a playbook": playbook(
        "Write it.\n\n@output(draft)",
        '@elicit(confirm, "{{draft}}")',
        f'```if __elicit_step_2 == "yes"```\n\n### STEP 3a: Send\n\n{TOOL}\n\n```endif```',
    ),
}


@pytest.mark.parametrize("text", FIXED.values(), ids=FIXED)
def test_a_fix_leaves_nothing_to_find(text: str) -> None:
    (finding,) = found(text)
    fix = fix_of(Source.of(text), finding)
    assert fix is not None
    assert not fix.safe
    for edit in fix.edits:
        text = text[: edit.span.start] + edit.new + text[edit.span.end :]
    assert found(text) == []


def test_a_store_with_a_hyphen_is_read_with_get() -> None:
    text = FIXED["a store with a hyphen"]
    fix = fix_of(Source.of(text), found(text)[0])
    assert fix is not None
    assert [edit.new for edit in fix.edits] == ["when: \"get(ctx, 'go-on') == 'yes'\", "]


NOT_FIXED = {
    "a pipeline without conditions": "pipeline: p\nsteps:\n" + DRAFT + ask() + send().replace(", stdin: ''", ""),
    "an answer that is written again": pipeline(
        DRAFT, ask(), "- transform: {value: \"'later'\", output: ok}\n", send()
    ),
}


@pytest.mark.parametrize("text", NOT_FIXED.values(), ids=NOT_FIXED)
def test_no_fix_where_a_condition_would_not_be_right(text: str) -> None:
    (finding,) = (one for one in found(text) if one.code.id == "GA102")
    assert fix_of(Source.of(text), finding) is None


def test_messages_use_the_names_of_the_author() -> None:
    (finding,) = found(FIRING["a value that is written again"][1])
    assert finding.message == "step 4 uses another draft than step 2 has shown"
    assert [one.message for one in finding.related] == ["step 2 shows draft", "step 3 writes draft again"]
    (finding,) = found(FIRING["one yes for all items"][1])
    assert finding.message == "one yes to step 1 lets step 2.do run shell 7 times"
    (finding,) = found(FIRING["a model writes an argument"][1])
    assert finding.message == "step 2 runs shell without a person's yes, and command depends on a model (1)"


CALLED = {
    "a callee that asks and sends": (
        "- call: {pipeline: first, pass: {text: text}}\n",
        DRAFT + ask(more=', default: "yes"') + send(YES),
        [],
    ),
    "a callee that sends the draft of a model of its own": (
        "- call: {pipeline: first, pass: {text: text}}\n",
        DRAFT + send(),
        [],
    ),
    "a callee that sends the draft of the caller": (
        DRAFT + "- call: {pipeline: first, pass: {text: draft}}\n",
        send(value="text"),
        ["GA101"],
    ),
    "a yes before the call": (
        DRAFT + ask() + "- call: {when: ok == 'yes', pipeline: first, pass: {text: draft}}\n",
        send(value="text"),
        [],
    ),
    "a yes in the callee for two steps of the caller": (
        DRAFT + "- call: {pipeline: first, pass: {text: draft}, output: ok}\n" + send(YES) + send(YES),
        ask("!expr text", more=', default: "yes"', output=""),
        ["GA106"],
    ),
}


@pytest.mark.parametrize(("steps", "callee", "codes"), CALLED.values(), ids=CALLED)
def test_a_finding_is_about_the_document_that_causes_it(steps: str, callee: str, codes: list[str]) -> None:
    text = pipeline(steps)
    callee = f"pipeline: first\ndialect: quire\ninput: {{text: {{type: string}}}}\nsteps:\n{callee}"
    plans = {name: read(Source.of(one, f"{name}.yaml")).plan for name, one in (("main", text), ("first", callee))}
    known = {name: plan for name, plan in plans.items() if plan is not None}
    proof = prove(known["main"], KnownDocuments(known))
    assert [one.code.id for one in rules.check(proof, RuleContext(Source.of(text, "p.yaml")))] == codes
