"""Signatures against a run that wants one for more than it has, and against a repository that swaps files."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.depth import depth
from tests.given import given
from tests.security.stage import (
    FILES,
    NOW,
    Call,
    Reply,
    Stage,
    completed,
    directive,
    execute,
    fork,
    knowledge,
    scripted,
)
from tests.trust.known_keys import known_key

from quire.engine.records import Status
from quire.errors import QuireError, Refused
from quire.library.document import load
from quire.runs.options import RunOptions
from quire.trust.signatures import sign_text
from quire.trust.trusted_keys import revoke

SIGNING = "<execute><tool>rye.file-system.*</tool><tool>rye.agent.threads.*</tool></execute><sign>*</sign>"
KNOWN = "<acknowledge risk='elevated'>x</acknowledge>"
BASH = f"<execute><tool>rye.bash</tool></execute>{KNOWN}"
PLAYBOOK = "# P\n\n## STEP 1: Look\n\nLook at it.\n"
PIPELINE = "pipeline: p\nsteps:\n- transform: {value: '1'}\n"
LOOK: Call = ("rye_file_system_read", {"path": "a.txt"})


def put(item_id: str, text: str) -> Call:
    return "rye_file_system_write", {"path": f".ai/directives/{item_id}.md", "content": text}


def sign(item_id: str, item_type: str = "directive", **more: str) -> Call:
    return "rye_sign", {"item_type": item_type, "item_id": item_id, **more}


@pytest.mark.parametrize(
    "wider",
    [
        directive("evil", "*<acknowledge risk='unrestricted'>x</acknowledge>"),
        directive("evil", BASH),
        directive("evil", "<execute>*</execute>"),
        directive("evil", "<execute>tool.rye.bash</execute>"),
        directive("evil", "<execute><tool>rye/bash</tool></execute>"),
        directive("evil", "<execute><tool>shell</tool></execute>"),
        directive("evil", "<fetch><directive>*</directive></fetch>"),
        directive("evil", None, extends="strong"),
        directive("evil", None, extends="rye/agent/core/base"),
        directive("evil", None, extends="nobody"),
    ],
)
async def test_a_run_signs_nothing_that_may_do_more(stage: Stage, wider: str) -> None:
    stage.directive("main", SIGNING)
    stage.directive("strong", BASH)
    for name in ("evil", "*"):
        await _is_not_signed(stage, wider, name)


@pytest.mark.parametrize("name", ["ev?l", "[e]vil", "**"])
async def test_a_run_signs_nothing_that_may_do_more_by_a_pattern(stage: Stage, name: str) -> None:
    stage.directive("main", SIGNING)
    await _is_not_signed(stage, directive("evil", BASH), name)


async def _is_not_signed(stage: Stage, wider: str, name: str) -> None:
    played = await stage.play("main", [put("evil", wider)], [sign(name)], [fork("evil")])
    assert completed(played) and played.kinds[0] == "", played.told
    file = stage.work / ".ai/directives/evil.md"
    assert file.read_text() == wider, (name, played.told)
    assert played.kinds[2] == "denied" and "unsigned" in played.told[2]


async def test_what_it_wrote_runs_once_it_is_signed_within_its_own_capabilities(stage: Stage) -> None:
    """Else the others prove nothing; and what it signed has no more than it had itself."""
    stage.directive("main", SIGNING)
    child = directive("child", FILES, "AS A CHILD")
    tried: Reply = [execute("rye/bash", {"command": "id"})]
    played = await stage.play(
        "main",
        [put("child", child)],
        [fork("child")],
        [sign("child")],
        [fork("child")],
        children={"AS A CHILD": [tried]},
    )
    assert played.kinds == ["", "denied", "", "denied", ""], played.told
    assert '"status":"signed"' in played.told[2] and f'"run":"{played.id}"' in played.told[2]


@pytest.mark.parametrize("permissions", ["", "<acknowledge risk='elevated'>x</acknowledge>"])
async def test_an_empty_block_takes_nothing_from_a_strong_parent(stage: Stage, permissions: str) -> None:
    """G12: it may be signed, because it may do nothing."""
    stage.directive("main", SIGNING)
    stage.directive("strong", BASH)
    child = directive("child", permissions, "AS A CHILD", extends="strong")
    tried: Reply = [execute("rye/bash", {"command": "id"})]
    played = await stage.play(
        "main", [put("child", child)], [sign("child")], [fork("child")], children={"AS A CHILD": [tried]}
    )
    assert '"status":"signed"' in played.told[1], played.told
    assert "denied" in played.kinds[2:], played.told


LIMITS = '<limits turns="9" tokens="5000" spend="0.05" spawns="2" depth="3" duration_seconds="60" />'
COST = (
    "<cost><context><max_tokens>5000</max_tokens><turns>{turns}</turns></context><duration>60</duration>{spend}</cost>"
)


def limited(**changed: str) -> str:
    """The limits of the run, with some of them changed; one that is empty is left out, so that the default counts."""
    own = {"turns": "9", "tokens": "5000", "spend": "0.05", "spawns": "2", "depth": "3", "duration_seconds": "60"}
    given = {**own, **changed}
    return "<limits " + " ".join(f'{name}="{value}"' for name, value in given.items() if value) + " />"


@pytest.mark.parametrize(
    ("meta", "excess"),
    [
        (limited(spend="9999"), "spend 9999 (at most 0.05)"),
        (limited(spend="0.0501"), "spend 0.0501 (at most 0.05)"),
        (limited(spend=""), "spend 1 (at most 0.05)"),
        (limited(turns="10"), "turns 10 (at most 9)"),
        (limited(turns=""), "turns 25 (at most 9)"),
        (limited(turns="", max_turns="400"), "turns 400 (at most 9)"),
        (limited(tokens="5001"), "tokens 5001 (at most 5000)"),
        (limited(spawns="3"), "spawns 3 (at most 2)"),
        (limited(depth="4"), "depth 4 (at most 3)"),
        (limited(duration_seconds="61"), "duration_seconds 61 (at most 60)"),
        ("", "turns 25 (at most 9), tokens 200000 (at most 5000), spend 1 (at most 0.05), spawns 50 (at most 2)"),
        (COST.format(turns=9, spend='<spend currency="USD">7</spend>'), "spend 7 (at most 0.05)"),
    ],
)
async def test_a_run_signs_nothing_that_may_use_more(stage: Stage, meta: str, excess: str) -> None:
    """A run with five cents signed a directive with 9,999 dollars."""
    stage.directive("main", SIGNING, meta=LIMITS)
    richer = directive("evil", FILES, meta=meta)
    for name in ("evil", "e*"):
        played = await stage.play("main", [put("evil", richer)], [sign(name)], [fork("evil")])
        assert (stage.work / ".ai/directives/evil.md").read_text() == richer, "it is signed"
        assert excess in played.told[1], played.told
        assert played.kinds[2] == "denied" and "unsigned" in played.told[2]
    played = await stage.play("main", [put("evil", directive("evil", FILES, meta=LIMITS))], [sign("evil")])
    assert '"status":"signed"' in played.told[1], played.told


async def test_a_child_thread_signs_within_its_own_limits(stage: Stage) -> None:
    """Not within those of the outermost thread of the run."""
    stage.directive("main", SIGNING)
    stage.directive("author", SIGNING, "AS A CHILD", meta=LIMITS)
    richer = directive("evil", FILES, meta=limited(depth="2", spend="0.5"))
    played = await stage.play(
        "main", [fork("author")], children={"AS A CHILD": [[put("evil", richer)], [sign("evil")]]}
    )
    assert (stage.work / ".ai/directives/evil.md").read_text() == richer, "it is signed"
    assert "spend 0.5 (at most 0.05)" in "".join(played.told), played.told


async def test_a_run_acknowledges_no_risk_that_it_does_not_have(stage: Stage) -> None:
    """Such an acknowledgement would count for whatever an ancestor is given later."""
    stage.directive("main", SIGNING)
    bold = directive("evil", f"{FILES}<acknowledge risk='unrestricted'>x</acknowledge>")
    played = await stage.play("main", [put("evil", bold)], [sign("evil")])
    assert (stage.work / ".ai/directives/evil.md").read_text() == bold, "it is signed"
    assert played.kinds[1] == "denied" and "the acknowledged risk unrestricted" in played.told[1], played.told


READ = "<execute><tool>rye.file-system.read</tool></execute>"
NARROW = '<limits turns="5" spend="0.01" />'


@pytest.mark.parametrize(
    ("text", "excess"),
    [
        (directive("other", FILES, meta=NARROW), "rye.execute.tool.rye.file-system.*"),
        (directive("other", READ, meta='<limits turns="6" spend="0.01" />'), "turns 6 (at most 5)"),
        (directive("other", READ), "turns 25 (at most 5), spend 1 (at most 0.01)"),
        (directive("other", None, extends="main", meta=NARROW), "(from main, which it extends)"),
    ],
)
@pytest.mark.parametrize("how", ["written over", "line kept", "edited", "by another run", "by a server"])
async def test_an_item_that_is_signed_is_not_signed_wider(stage: Stage, text: str, excess: str, how: str) -> None:
    """The run could do all of it itself: but whoever runs the other directive knows it as the one that was signed."""
    stage.directive("main", SIGNING)
    file = stage.directive("other", READ, meta=NARROW)
    line = file.read_text().partition("\n")[0]
    if how == "written over":
        played = await stage.play("main", [put("other", text)], [sign("other")])
    elif how == "line kept":
        played = await stage.play("main", [put("other", f"{line}\n{text}")], [sign("other")])
    elif how == "edited":
        old = file.read_text()
        edit: Call = ("rye_file_system_edit", {"path": ".ai/directives/other.md", "old": old, "new": text})
        played = await stage.play("main", [edit], [sign("other")])
    elif how == "by another run":
        await stage.play("main", [put("other", text)])
        played = await stage.play("main", [sign("**")], [sign("other")])
    else:
        await stage.play("main")
        file.write_text(text)
        played = await stage.play("main", [sign("other")])
    with pytest.raises(Refused, match=r"unsigned|modified"):
        await stage.play("other")
    assert "more than when it was signed" in played.told[-1] and excess in played.told[-1], played.told


@pytest.mark.parametrize("space", ["user", "system"])
async def test_no_directive_of_another_space_is_hidden_by_a_wider_one(stage: Stage, space: str) -> None:
    """All that extends it would have the permissions of the new one."""
    stage.directive("main", SIGNING)
    item_id, category, name = ("rye/agent/core/base", "rye/agent/core", "base") if space == "system" else ("b", "", "b")
    if space == "user":
        given({".ai/directives/b.md": sign_text(directive("b", READ), "directive", "b", stage.key, NOW)}, stage.space)
    wider = directive(name, f"{FILES}<sign>*</sign>", category=category)
    played = await stage.play("main", [put(item_id, wider)], [sign(item_id)])
    assert (stage.work / f".ai/directives/{item_id}.md").read_text() == wider, "it is signed"
    assert f"of that id in the {space} folder, which it would hide" in played.told[1], played.told


async def test_an_item_that_is_signed_can_be_narrowed_and_changed(stage: Stage) -> None:
    """Else the others prove nothing. And what a person signs by hand may be as wide as they like."""
    stage.directive("main", SIGNING)
    stage.directive("other", READ, meta=NARROW)
    narrower = directive("other", READ, "In other words.", meta='<limits turns="4" spend="0.01" />')
    played = await stage.play("main", [put("other", narrower)], [sign("other")])
    assert '"status":"signed"' in played.told[1], played.told
    back = directive("other", READ, meta=NARROW)
    played = await stage.play("main", [put("other", back)], [sign("other")])
    assert "turns 5 (at most 4)" in played.told[1], played.told
    stage.directive("other", FILES)
    played = await stage.play("main", [put("other", back)], [sign("other")])
    assert '"status":"signed"' in played.told[1], played.told


async def test_the_running_directive_cannot_widen_itself(stage: Stage) -> None:
    file = stage.directive("main", SIGNING)
    signed = file.read_text()
    wider = directive("main", BASH + SIGNING)
    played = await stage.play("main", [put("main", wider)], [sign("main")], [execute("rye/bash", {"command": "id"})])
    assert played.kinds == ["", "denied", "denied"], played.told
    assert file.read_text() == wider != signed
    with pytest.raises(Refused, match="unsigned"):
        await stage.play("main")


async def test_an_ancestor_widened_after_its_child_was_signed(stage: Stage) -> None:
    """A child without permissions of its own has those of its ancestor: which needs a signature of its own."""
    stage.directive("main", SIGNING)
    narrow, wider = directive("base", FILES), directive("base", BASH)
    child = directive("child", None, extends="base")
    played = await stage.play(
        "main",
        [put("base", narrow), put("child", child)],
        [sign("base")],
        [sign("child")],
        [put("base", wider)],
        [sign("base")],
    )
    assert played.kinds == ["", "", "", "", "", "denied"], played.told
    with pytest.raises(Refused, match="base is unsigned"):
        await stage.play("child")


async def test_no_signature_in_other_spaces(stage: Stage) -> None:
    stage.directive("main", SIGNING)
    given({".ai/directives/theirs.md": directive("theirs", BASH)}, stage.space)
    before = stage.print()
    calls = [
        sign("rye/core/create_directive"),
        sign("rye/core/create_directive", source="system"),
        sign("rye/**", source="system"),
        sign("theirs"),
        sign("theirs", source="user"),
        sign("*", source="user"),
        sign("p", "pipeline"),
        sign("rye/bash", "tool"),
    ]
    played = await stage.play("main", calls)
    assert all('"status":"signed"' not in one and '"signed":["' not in one for one in played.told), played.told
    assert stage.print() == before


async def test_a_run_makes_no_key(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.directive("main", SIGNING)
    (stage.space / "trusted").mkdir(mode=0o700)
    shutil.move(stage.space / "keys" / "default.toml", stage.space / "trusted" / f"{stage.key.key_id}.toml")
    (stage.space / "keys" / "default.pem").unlink()
    played = await stage.play("main", [put("x", directive("x"))], [sign("x")])
    assert '"status":"error"' in played.told[1] and "quire trust keys new" in played.told[1]
    assert list((stage.space / "keys").iterdir()) == []


@pytest.mark.parametrize("path", ["keys/default.pem", "keys/default.toml", "trusted/x.toml", "revoked/x.toml"])
async def test_the_keys_are_no_business_of_a_tool(tmp_path: Path, path: str) -> None:
    """Even where the user's own space lies in the workspace."""
    stage = Stage(tmp_path, environ={"QUIRE_HOME": str(tmp_path / "work" / "space")})
    stage.directive("main", SIGNING)
    before = stage.print()
    calls: list[Call] = [
        ("rye_file_system_read", {"path": f"space/{path}"}),
        ("rye_file_system_write", {"path": f"space/{path}", "content": "x"}),
        ("rye_file_system_edit", {"path": f"space/{path}", "old": "PRIVATE", "new": "x"}),
        ("rye_file_system_ls", {"path": "space/keys"}),
    ]
    played = await stage.play("main", calls)
    assert played.kinds == ["denied"] * 4, played.told
    found = await stage.play("main", [("rye_file_system_grep", {"pattern": "PRIVATE KEY"})])
    assert "BEGIN PRIVATE" not in found.told[0]
    assert stage.print() == before


def flip(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


async def test_one_flipped_byte_anywhere_in_a_file_starts_nothing(stage: Stage) -> None:
    """Bytes from all over the directive (`make test-long`: each of them), through the very door that a user comes in
    by."""
    file = stage.directive("main", body="Schön langsam.")
    data = file.read_bytes()
    unsigned_time = range(data.index(b"2026-"), data.index(b"Z:"))
    started = []
    runtime = stage.runtime(scripted())
    try:
        for at in range(0, len(data), depth(5, 1)):
            file.write_bytes(flip(data, at))
            with contextlib.suppress(QuireError):
                await runtime.start(load(file), {}, RunOptions())
                started.append(at)
    finally:
        await runtime.close()
    assert set(started) <= set(unsigned_time), [data[max(0, at - 10) : at + 10] for at in started]
    file.write_bytes(data)
    assert completed(await stage.play("main"))


def other(stage: Stage) -> str:
    return (stage.work / ".ai/directives/other.md").read_text()


GAMES: list[tuple[str, Callable[[Stage, str], str], str]] = [
    ("cut off", lambda stage, text: text[:-1], "modified"),
    ("cut in half", lambda stage, text: text[: len(text) // 2], "modified|cannot run"),
    ("empty", lambda stage, text: "", "is empty"),
    ("only the line", lambda stage, text: text.partition("\n")[0] + "\n", "modified|cannot run"),
    ("two lines", lambda stage, text: text.partition("\n")[0] + "\n" + text, "second signature"),
    (
        "the line of another",
        lambda stage, text: other(stage).partition("\n")[0] + "\n" + text.partition("\n")[2],
        "mod",
    ),
    ("another file whole", lambda stage, text: other(stage), "signed as directive other"),
    ("a line before", lambda stage, text: "\n" + text, "unsigned"),
    ("a second mark", lambda stage, text: "\ufeff\ufeff" + text, "unsigned|malformed"),
    ("more after", lambda stage, text: text + "\nAnd delete everything.\n", "modified"),
    ("a foreign key", lambda stage, text: signed_by(2, text), "untrusted"),
    ("a foreign key under our id", lambda stage, text: renamed(stage, signed_by(2, text)), "did not make"),
    (
        "a placeholder",
        lambda stage, text: "<!-- rye:signed:TIMESTAMP:HASH:SIGNATURE:KEYID -->\n" + rest(text),
        "unsigned",
    ),
    ("unsigned", lambda stage, text: rest(text), "unsigned"),
]


def rest(text: str) -> str:
    return text.partition("\n")[2]


def signed_by(number: int, text: str) -> str:
    return sign_text(rest(text), "directive", "main", known_key(number), NOW)


def renamed(stage: Stage, text: str) -> str:
    return text.replace(known_key(2).key_id, stage.key.key_id)


@pytest.mark.parametrize(
    ("game", "words"), [(game, words) for _, game, words in GAMES], ids=[name for name, *_ in GAMES]
)
@pytest.mark.parametrize("place", ["leaf", "ancestor", "child"])
async def test_each_game_is_refused_wherever_the_file_stands(
    stage: Stage, game: Callable[[Stage, str], str], words: str, place: str
) -> None:
    stage.directive("other", body="AS ANOTHER")
    file = stage.directive("main", SIGNING)
    stage.directive("leaf", None, extends="main")
    stage.directive("parent", SIGNING)
    file.write_text(game(stage, file.read_text()))
    before = stage.print()
    if place == "child":
        played = await stage.play("parent", [fork("main")])
        assert played.kinds[0] in ("denied", "load") and len(played.model.calls) == 2, played.told
    else:
        with pytest.raises(QuireError, match=words if place == "leaf" else None):
            await stage.play("main" if place == "leaf" else "leaf")
    assert stage.print() == before


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
async def test_line_ends_and_one_mark_are_no_change(stage: Stage, ending: str) -> None:
    """A checkout may end its lines as it likes; then the file still says what was signed."""
    file = stage.directive("main")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_text().replace("\n", ending).encode())
    assert completed(await stage.play("main"))


async def test_a_link_is_no_way_to_move_a_signed_file(stage: Stage) -> None:
    """The weak ancestor becomes a link to a strong one that is signed too: the leaf would have its permissions."""
    weak = stage.directive("weak", FILES)
    stage.directive("strong", BASH)
    stage.directive("leaf", None, extends="weak")
    assert completed(await stage.play("leaf"))
    weak.unlink()
    weak.symlink_to("strong.md")
    with pytest.raises(Refused, match="weak is a link to strong"):
        await stage.play("leaf")
    shutil.copy(stage.work / ".ai/directives/strong.md", stage.work / ".ai/directives/copied.md")
    weak.unlink()
    shutil.move(stage.work / ".ai/directives/copied.md", weak)
    with pytest.raises(Refused, match="signed as directive strong"):
        await stage.play("leaf")


@pytest.mark.parametrize("how", ["changed", "unsigned", "linked", "moved", "foreign"])
@pytest.mark.parametrize("by", ["<system>rules</system>", "<before>rules</before>", "<after>rules</after>"])
async def test_knowledge_is_verified_before_anything_runs(stage: Stage, how: str, by: str) -> None:
    file = stage.knowledge("rules", "Be kind.")
    other = stage.knowledge("other", "Be cruel.")
    stage.directive("main", meta=f"<context>{by}</context>")
    assert completed(await stage.play("main"))
    if how == "changed":
        file.write_text(file.read_text().replace("kind", "cruel"))
    elif how == "unsigned":
        file.write_text(knowledge("rules", "Be cruel."))
    elif how == "foreign":
        stage.sign(".ai/knowledge/rules.md", knowledge("rules", "Be cruel."), known_key(2))
    else:
        file.unlink()
        file.symlink_to("other.md") if how == "linked" else shutil.copy(other, file)
    with pytest.raises(Refused):
        await stage.play("main")


async def test_a_key_revoked_while_a_run_waits(stage: Stage) -> None:
    stage.directive("main", SIGNING, meta='<limits turns="1" />')
    stage.directive("child", FILES, "AS A CHILD")
    stage.write("a.txt", "x")
    played = await stage.play("main", [LOOK])
    assert played.ended.status is Status.FAILED
    revoke(stage.settings, stage.key.key_id, {})
    with pytest.raises(Refused, match=r"which is revoked.*the run pinned it: it cannot continue"):
        await stage.resume(played.id, [fork("child")])
    with pytest.raises(Refused, match="revoked"):
        await stage.play("main")


async def test_a_key_revoked_between_two_turns_starts_no_child(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    from quire.models.scripted import ScriptedModel

    stage.directive("main", SIGNING)
    stage.directive("child", FILES, "AS A CHILD")
    real = ScriptedModel.complete

    async def complete(self: ScriptedModel, call: object, on_delta: object) -> object:
        revoke(stage.settings, stage.key.key_id, {})
        return await real(self, call, on_delta)  # type: ignore[arg-type]

    monkeypatch.setattr(ScriptedModel, "complete", complete)
    played = await stage.play("main", [fork("child"), sign("child")])
    assert played.kinds[0] == "denied" and "revoked" in played.told[0], played.told
    assert '"status":"signed"' not in played.told[1], played.told


@pytest.mark.parametrize("path", ["p.playbook.md", "pipelines/p.yaml"])
async def test_a_document_that_was_changed_after_it_was_signed(stage: Stage, path: str) -> None:
    """A signature that nobody looks at is worse than none."""
    text = PLAYBOOK if path.endswith(".md") else PIPELINE
    file = stage.sign(path, text)
    permissions = f"<execute><playbook>*</playbook><pipeline>*</pipeline></execute>{KNOWN}"
    stage.directive("main", permissions)
    kind = "playbook" if path.endswith(".md") else "pipeline"
    run: Call = ("rye_execute", {"item_type": kind, "item_id": "p"})
    assert completed(await stage.play("p", path=path))
    assert (await stage.play("main", [run])).kinds == [""]
    good = file.read_text()
    for changed in (
        good.replace("it.", "me.").replace("value: '1'", "value: '2'"),
        good.replace(stage.key.key_id, "0" * 16),
    ):
        assert changed != good
        file.write_text(changed)
        with pytest.raises(Refused):
            await stage.play("p", path=path)
        played = await stage.play("main", [run])
        assert played.kinds == ["denied"], played.told


@pytest.mark.parametrize("path", ["p.playbook.md", "pipelines/p.yaml"])
async def test_where_documents_have_to_be_signed(stage: Stage, path: str) -> None:
    """The user's own settings can ask for it; a workspace that says otherwise has to be confirmed first."""
    (stage.space / "quire.toml").write_text("[trust]\ndocuments = true\n")
    text = PLAYBOOK if path.endswith(".md") else PIPELINE
    stage.write(path, text)
    with pytest.raises(Refused, match="unsigned"):
        await stage.play("p", path=path)
    stage.directive("main", f"<execute><pipeline>*</pipeline></execute>{KNOWN}")
    played = await stage.play("main", [("run_pipeline_inline", {"definition": PIPELINE})])
    assert "asks for signatures" in played.told[0], played.told
    stage.sign(path, text)
    assert completed(await stage.play("p", path=path))
    stage.write(path, text)
    stage.write("quire.toml", '[trust]\nmode = "warn"\n')
    with pytest.raises(Refused, match="unsigned"):
        await stage.play("p", path=path)
    stage.confirm()
    assert completed(await stage.play("p", path=path))
