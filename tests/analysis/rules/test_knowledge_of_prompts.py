"""Knowledge that the engine puts into the prompt of a thread is private, whoever names it; that of Quire is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.directives import directive as directive_text
from tests.given import given

from quire.library.check import DocumentCheck
from quire.source import Source

KNOWLEDGE = """```yaml
name: rates
title: Rates
category: team
version: 1.0.0
author: desk
entry_type: reference
```

A night is 90.
"""
HOOK = """<hooks><hook id="rates" event="thread_started">
  <action primary="fetch" item_type="knowledge" item_id="team/rates" /></hook></hooks>"""
SEND, CHILD = "<tool>rye.http.send</tool>", "<directive>team/base</directive>"


def directive(name: str, more: str = "", extends: str = "", permissions: str = SEND) -> str:
    meta = f'<limits turns="6" tokens="4096" />\n<permissions><execute>{permissions}</execute></permissions>\n{more}'
    return directive_text(name, "", "Tell the guest.", category="team", meta=meta, extends=extends)


def findings(folder: Path, text: str, base: str = "") -> list[str]:
    own = folder / ".ai" / "directives" / "team"
    own.mkdir(parents=True)
    given({".ai/knowledge/team/rates.md": KNOWLEDGE}, folder)
    given({"base.md": base or directive("base"), "tell_guest.md": text}, own)
    found = DocumentCheck().of(Source.of(text, str(own / "tell_guest.md")))
    assert not [one for one in found if one.severity == "error"], found
    return [one.message for one in found if one.code.id == "TA106"]


pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("place", ["system", "before", "after"])
def test_knowledge_of_the_context_may_leave(tmp_path: Path, place: str) -> None:
    context = f"<context><{place}>team/rates</{place}></context>"
    (message,) = findings(tmp_path, directive("tell_guest", context))
    assert "private values (knowledge team/rates of the thread)" in message


@pytest.mark.parametrize("more", [HOOK, "<context><system>team/rates</system></context>"])
def test_knowledge_of_a_hook_or_a_parent_may_leave(tmp_path: Path, more: str) -> None:
    text = directive("tell_guest", extends=' extends="team/base"')
    assert findings(tmp_path, text, directive("base", more))


def test_a_child_tells_what_it_knows(tmp_path: Path) -> None:
    context = "<context><system>team/rates</system></context>"
    text = directive("tell_guest", permissions=SEND + CHILD)
    assert findings(tmp_path, text, directive("base", context))


@pytest.mark.parametrize(
    "more",
    [
        "",
        "<context><system>rye/agent/core/Identity</system></context>",
        "<context><system>team/rates</system><suppress>team/rates</suppress></context>",
    ],
)
def test_other_knowledge_is_not_private(tmp_path: Path, more: str) -> None:
    assert findings(tmp_path, directive("tell_guest", more)) == []
