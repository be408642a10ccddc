"""The API of documents: the list, the parts of one, checking, saving, prompts and what a run would do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from tests.directives import directive
from tests.server.served import Served, served

from quire.cli.check import command as check_verb
from quire.cli.show import command as show_verb
from quire.operations.documents import FIELDS
from quire.server.site import SiteOptions

RELEASE = """# Release notes

Writes release notes and asks before they go out.

## INPUTS

- `version` (string): The version that is released
- `audience` (enum: users, developers): Who reads them
- `notes` (text): What changed
- `year` (number: 2026): The year
- `loud` (boolean: false): With exclamation marks

## STEP 1: Draft

Write release notes for {{version}} of {{year}} for {{audience}}: {{notes}}

## STEP 2: Decide

@elicit(confirm, "Publish the notes?")

## STEP 3: Announce

Announce {{version}}.
"""
BROKEN = """# Broken

## INPUTS

- `topic` (string): What to write about
- `topic` (text): Again

## STEP 1: Read

Write about {{topic}} and {{nothing_of_that_name}}.
"""
TRIAGE = """pipeline: triage
description: Sorts tickets.
steps:
  - for_each:
      over: ctx.tickets
      max_items: 50
      on_error: continue
      do: {agent: {prompt: "Sort {item}"}}
      collect: {transform: {value: pipe}}
      output: sorted
"""
SHELL = """# Count

## STEP 1: Count the lines

@tool(quire, shell, {"command": ["wc", "-l", "a.txt"]})
"""
ENDLESS = TRIAGE.replace("      max_items: 50\n", "")
DOCUMENTS = {
    "release.playbook.md": RELEASE,
    "team/broken.playbook.md": BROKEN,
    "team/triage.yaml": TRIAGE,
    "count.playbook.md": SHELL,
    "unreadable.playbook.md": "",
}
EDIT = SiteOptions(edit=True)
GOOD = {"version": "2", "audience": "users", "notes": "All"}


async def _get(client: httpx2.AsyncClient, path: str, **more: Any) -> Any:
    answer = await client.get(path, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_the_list_has_every_document_with_its_state(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a secret")
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        (server.folder / "linked.playbook.md").symlink_to(tmp_path / "secret.txt")
        replies = server.script("s.json", ["Draft", "Out"])
        run = await server.start("release.playbook.md", inputs=GOOD, model=replies)
        found = await _get(client, "/documents")
        rows = {row["id"]: row for row in found["items"]}
        assert list(rows) == sorted({*DOCUMENTS, "linked.playbook.md"}) and found["total"] == 6
        release = rows["release.playbook.md"]
        assert release["title"] == "Release notes" and release["format"] == "playbook"
        assert release["bound"] == "2 model calls" and release["signature"]["state"] == "unsigned"
        assert release["last_run"]["id"] == run["id"] and release["runnable"]
        assert rows["team/triage.yaml"]["bound"] == "≤ 50 model calls"
        assert rows["team/broken.playbook.md"]["errors"] and not rows["team/broken.playbook.md"]["runnable"]
        assert rows["unreadable.playbook.md"]["error"] == "unreadable.playbook.md is empty"
        assert "leads out of the workspace" in rows["linked.playbook.md"]["error"]
        assert "a secret" not in json.dumps(await _get(client, "/documents/linked.playbook.md?fields=source"))
        assert found["counts"]["folders"] == {"team": 2} and found["counts"]["formats"]["pipeline"] == 1
        for query, expected in {
            "format=pipeline": ["team/triage.yaml"],
            "folder=team": ["team/broken.playbook.md", "team/triage.yaml"],
            "q=NOTES+release": ["release.playbook.md"],
            "finding=error": ["linked.playbook.md", "team/broken.playbook.md", "unreadable.playbook.md"],
            "limit=1&after=linked.playbook.md": ["release.playbook.md"],
        }.items():
            assert [row["id"] for row in (await _get(client, f"/documents?{query}"))["items"]] == expected
        server.write("new.playbook.md", RELEASE)
        (server.folder / "count.playbook.md").unlink()
        ids = [row["id"] for row in (await _get(client, "/documents"))["items"]]
        assert "new.playbook.md" in ids and "count.playbook.md" not in ids


async def test_a_document_has_the_parts_of_show_and_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        monkeypatch.chdir(server.folder)
        whole = f"?fields={','.join(FIELDS)}"
        answer = await client.get(f"/documents/release.playbook.md{whole}")
        found = answer.json()
        for id in ("release.playbook.md", "team/triage.yaml"):
            shown = json.loads(CliRunner().invoke(show_verb, [id, "--json"]).stdout)
            part = await _get(client, f"/documents/{id}{whole}")
            assert part["outline"] == {name: shown[name] for name in part["outline"]}
            assert {one["capability"] for one in part["envelope"]["capabilities"]} == {
                one["capability"] for one in shown["envelope"]["capabilities"]
            }
            for name, bound in shown["bounds"].items():
                assert name == "unknown" or bound.items() <= part["bounds"][name].items()
        checked = json.loads(CliRunner().invoke(check_verb, ["team/broken.playbook.md", "--json"]).stdout)
        assert (await _get(client, f"/documents/team/broken.playbook.md{whole}"))["diagnostics"] == checked
        inputs = found["inputs"]["properties"]
        assert inputs["audience"]["enum"] == ["users", "developers"]
        assert inputs["notes"]["x-lines"] and inputs["year"] == {
            "type": "number",
            "description": "The year",
            "default": 2026,
        }
        assert found["inputs"]["required"] == ["version", "audience", "notes"]
        assert "".join(_plain(line) + "\n" for line in found["source"]["lines"]) == RELEASE
        assert [(one["label"], one["asks_model"], bool(one["question"])) for one in found["steps"]] == [
            ("1", True, False),
            ("2", False, True),
            ("3", True, False),
        ]
        assert found["chart"]["nodes"]
        tag = {"If-None-Match": answer.headers["ETag"]}
        assert (await client.get(f"/documents/release.playbook.md{whole}", headers=tag)).status_code == 304
        server.write("release.playbook.md", RELEASE + "\nMore.\n")
        assert (await client.get(f"/documents/release.playbook.md{whole}", headers=tag)).status_code == 200
        broken = await _get(client, f"/documents/team/broken.playbook.md{whole}")
        assert broken["outline"] is None and broken["source"]["text"] == BROKEN


def _plain(line: str | list[list[str]]) -> str:
    return line if isinstance(line, str) else "".join(text for _, text in line)


WRONG: list[tuple[str, str, dict[str, Any] | None, int, str]] = [
    ("GET", "/documents/releese.playbook.md", None, 404, "release.playbook.md"),
    ("GET", "/documents/../team-home/keys", None, 404, ""),
    ("GET", "/documents/..%2Fsecret.playbook.md", None, 404, ""),
    ("GET", "/documents/quire.toml", None, 404, ""),
    ("GET", "/documents/release.playbook.md?fields=sauce", None, 422, "there are source, outline"),
    ("POST", "/documents/check", {"text": "x", "path": "../x.playbook.md"}, 422, "not a path"),
    ("POST", "/documents/team/broken.playbook.md/preflight", {}, 422, "cannot run"),
    ("POST", "/documents/release.playbook.md/preview", {"step": "9"}, 422, "unknown step 9"),
    ("POST", "/documents/release.playbook.md/preview", {"step": "2"}, 422, "asks no model"),
    ("POST", "/documents/release.playbook.md/preflight", {"allow": ["shell"]}, 422, "quire serve --allow shell"),
    ("GET", "/codes/PB999", None, 404, ""),
]


async def test_wrong_requests(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        for method, path, body, status, words in WRONG:
            answer = await client.request(method, path, json=body)
            assert answer.status_code == status, (path, answer.text)
            assert words in answer.text


async def test_a_text_is_checked_without_saving_it(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        answer = await client.post(
            "/documents/check", json={"text": RELEASE + "\n{{nobody}}\n", "path": "a.playbook.md"}
        )
        found = answer.json()
        assert found["diagnostics"][0]["code"].startswith("PB") and found["outline"]["title"]
        assert found["bounds"]["model_calls"]["most"] == 2
        code = await _get(client, f"/codes/{found['diagnostics'][0]['code']}")
        assert code["explanation"] and code["command"].startswith("quire check --explain PB")
        assert not (server.folder / "a.playbook.md").exists()


async def _saved(client: httpx2.AsyncClient, id: str, text: str, tag: str) -> httpx2.Response:
    return await client.put(f"/documents/{id}", json={"text": text}, headers={"If-Match": tag} if tag else {})


async def test_saving_needs_the_option_and_the_version_that_was_read(tmp_path: Path) -> None:
    id = "release.playbook.md"
    async with served(tmp_path / "off", DOCUMENTS) as server, server.client() as client:
        tag = (await client.get(f"/documents/{id}")).headers["ETag"]
        answer = await _saved(client, id, RELEASE, tag)
        assert answer.status_code == 403 and answer.json()["code"] == "editing-off"
    async with served(tmp_path / "on", DOCUMENTS, options=EDIT) as server, server.client() as client:
        file = server.folder / id
        file.write_bytes(RELEASE.replace("\n", "\r\n").encode())
        file.chmod(0o640)
        tag = (await client.get(f"/documents/{id}?fields=source")).headers["ETag"]
        for given, status in (("", 428), ("*", 428), ('"0123"', 412)):
            assert (await _saved(client, id, RELEASE, given)).status_code == status
        changed = RELEASE.replace("Announce", "Tell")
        answer = await _saved(client, id, changed, tag)
        assert answer.status_code == 200 and answer.json()["source"]["text"] == changed
        assert file.read_bytes() == changed.replace("\n", "\r\n").encode()
        assert file.stat().st_mode & 0o777 == 0o640
        assert (await _saved(client, id, RELEASE, tag)).status_code == 412
        assert (await _saved(client, id, changed + "\n", answer.headers["ETag"])).status_code == 200
        assert list(server.folder.glob(".quire-*")) == []


NOT_SAVED = [
    ("quire.toml", "[tools]\nallow = ['shell']\n", 404),
    ("new.playbook.md", RELEASE, 404),
    (".quire/x.playbook.md", RELEASE, 404),
    ("notes.md", "# Notes\n", 404),
    ("release.playbook.md", "  \n", 422),
    ("release.playbook.md", "x" * 200_001, 422),
    ("release.playbook.md", "# A\0\n", 422),
    ("team/triage.yaml", "steps: []\n", 422),
    ("linked.playbook.md", RELEASE, 422),
]


async def test_only_documents_are_saved(tmp_path: Path) -> None:
    (tmp_path / "outside.md").write_text(RELEASE)
    documents = {**DOCUMENTS, "notes.md": "# Notes\n"}
    async with served(tmp_path / "team", documents, options=EDIT) as server, server.client() as client:
        (server.folder / "linked.playbook.md").symlink_to(tmp_path / "outside.md")
        names = ("quire.toml", "notes.md", *DOCUMENTS)
        before = {name: (server.folder / name).read_bytes() for name in names}
        for id, text, status in NOT_SAVED:
            tag = (await client.get(f"/documents/{id}")).headers.get("ETag", '"x"')
            assert (await _saved(client, id, text, tag)).status_code == status, id
            assert {name: (server.folder / name).read_bytes() for name in names} == before
            assert (tmp_path / "outside.md").read_text() == RELEASE


async def test_two_editors_at_once_do_not_lose_a_text(tmp_path: Path) -> None:
    id = "release.playbook.md"
    async with (
        served(tmp_path / "team", DOCUMENTS, options=SiteOptions(edit=True)) as server,
        server.client() as client,
    ):
        tag = (await client.get(f"/documents/{id}")).headers["ETag"]
        texts = [RELEASE + f"\nVersion {one}.\n" for one in range(6)]
        answers = await asyncio.gather(*(_saved(client, id, text, tag) for text in texts))
        won = [text for text, answer in zip(texts, answers, strict=True) if answer.status_code == 200]
        assert len(won) == 1 and (server.folder / id).read_text() == won[0]
        assert {answer.status_code for answer in answers} == {200, 412}


async def test_a_preview_is_what_a_model_would_be_told(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS) as server, server.client() as client:
        answer = await client.post(
            "/documents/release.playbook.md/preview",
            json={"step": "1", "inputs": {**GOOD, "version": "2.0", "year": "soon", "notes": "Faster"}},
        )
        found = answer.json()
        assert "for 2.0 of 2026 for users: Faster" in json.dumps(found["prompt"])
        assert found["inputs"] == {"year": 'input year: "soon" is not a number'}
        empty = (await client.post("/documents/release.playbook.md/preview", json={"step": "1"})).json()
        assert "no value for version" in empty["notes"][0] and empty["inputs"] == {}
        agent = (await client.post("/documents/team/triage.yaml/preview", json={"step": "1/for_each"})).json()
        assert "Sort [item]" in json.dumps(agent["prompt"])


async def _preflight(server: Served, id: str, **body: Any) -> Any:
    async with server.client() as client:
        answer = await client.post(f"/documents/{id}/preflight", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()


async def test_a_preflight_says_what_a_run_does_at_most_and_starts_nothing(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS, options=SiteOptions(allow=("http__get",))) as server:
        model = server.script("s.json", ["Draft", "Out"])
        id, good = "release.playbook.md", {**GOOD, "notes": "@home it's faster"}
        found = await _preflight(server, id, inputs={"loud": "maybe", "color": "red"}, model=model)
        assert found["inputs"] == {
            "version": "missing input version (string): The version that is released",
            "audience": "missing input audience (one of users, developers): Who reads them",
            "notes": "missing input notes (text): What changed",
            "loud": 'input loud: "maybe" is not true or false',
            "color": "unknown input color: the document declares version, audience, notes, year, loud",
        }
        assert not found["ready"]
        found = await _preflight(server, id, inputs=good, model=model, breakpoints=["1"], answers={"2": "yes"})
        assert found["ready"] and found["model"]["name"] == model
        assert found["bounds"]["sentence"] == "makes 2 model calls, asks 1 question"
        assert found["price"]["most"] is None and "is not known" in found["price"]["why"]
        assert found["command"] == (
            "quire run release.playbook.md -i version=2 -i audience=users "
            f"-i 'notes=@@home it'\"'\"'s faster' --model {model} "
            "--break 1 --answer 2=yes --allow http__get"
        )
        wrong = await _preflight(server, id, inputs=good, model=model, breakpoints=["7"], answers={"2": "perhaps"})
        assert len(wrong["problems"]) == 2 and not wrong["ready"]
        budget = await _preflight(server, id, inputs=good, model="local:nowhere.gguf", budget=1)
        assert not budget["ready"] and budget["problems"]
        denied = await _preflight(server, "count.playbook.md")
        assert denied["denied"] and denied["envelope"]["capabilities"][0]["command"] == "quire serve --allow shell"
        assert denied["model"] is None and denied["bounds"]["sentence"] == "makes no model calls and 1 tool call"
        many = await _preflight(server, "team/triage.yaml", inputs={"tickets": [1, 2, 3]}, model=model)
        assert many["bounds"]["model_calls"] == {"least": 0, "most": 3, "words": "≤ 3 model calls"}
        none = await _preflight(server, "team/triage.yaml", model=model)
        assert none["missing"] == ["tickets"] and none["bounds"]["model_calls"]["most"] == 50
        async with server.client() as client:
            assert (await client.get("/runs")).json()["items"] == []


async def test_a_price_is_a_bound_or_is_said_to_be_unknown(tmp_path: Path) -> None:
    script, home = tmp_path / "team" / "s.json", tmp_path / "team-home"
    home.mkdir()
    (home / "quire.toml").write_text(f'[models.prices."script:{script}"]\ninput = 1.0\noutput = 2.0\nwindow = 9000\n')
    model = f"script:{script}"
    async with served(tmp_path / "team", {**DOCUMENTS, "endless.yaml": ENDLESS}) as server:
        server.script("s.json", ["Draft", "Out"])
        found = await _preflight(server, "release.playbook.md", inputs=GOOD, model=model)
        # Two replies of 16,384 tokens, and what the calls read: nothing but the window bounds an earlier reply.
        assert found["price"]["most"] == found["proof"]["numbers"]["money"]["most"] > 2 * 4096 * 2e-6
        assert "reads at most 9,000 tokens a call" in found["price"]["why"]
        cheap = await _preflight(server, "release.playbook.md", inputs=GOOD, model=model, budget=0.01)
        assert cheap["ready"] and cheap["budget"] == 0.01
        endless = await _preflight(server, "endless.yaml", model=model)
        assert endless["price"]["most"] == endless["proof"]["numbers"]["money"]["most"]
        assert "100 model calls of the most expensive kind" in endless["price"]["why"]
        other = await _preflight(server, "release.playbook.md", inputs=GOOD, model=server.script("t.json", []))
        assert other["price"]["most"] is None and "is not known" in other["price"]["why"]
        (home / "quire.toml").write_text(f'[models.prices."script:{script}"]\ninput = 1.0\noutput = 2.0\n')
    async with served(tmp_path / "team", {**DOCUMENTS, "endless.yaml": ENDLESS}) as server:
        server.script("s.json", ["Draft", "Out"])
        unbounded = await _preflight(server, "release.playbook.md", inputs=GOOD, model=model)
        assert unbounded["price"]["most"] is None and "the window of script:" in unbounded["price"]["why"]
        assert unbounded["proof"]["numbers"]["money"]["most"] is None
        local = await _preflight(server, "count.playbook.md")
        assert local["price"] == {"most": None, "why": None} and local["model"] is None


async def test_a_run_is_granted_what_the_server_was_started_with(tmp_path: Path) -> None:
    async with served(tmp_path / "team", DOCUMENTS, options=SiteOptions(allow=("http__get",))) as server:
        model = server.script("s.json", ["Draft", "Out"])
        run = await server.start("release.playbook.md", inputs=GOOD, model=model)
        row = await server.site.runtime.row(run["id"])
        assert row.pins["allow"] == ["http__get"]


DIRECTIVE = directive(
    "greet",
    "<execute><tool>rye.file-system.*</tool></execute>",
    """<process>
  <step name="greet"><action>Greet {input:guest}.</action></step>
</process>""",
    category="house",
    tier="general",
    more="""<inputs>
  <input name="guest" type="string" required="true">Who comes</input>
</inputs>""",
)


async def test_an_unsigned_directive_is_shown_and_its_run_refused_before_the_start(tmp_path: Path) -> None:
    id = ".ai/directives/house/greet.md"
    async with served(tmp_path / "team", {id: DIRECTIVE}) as server, server.client() as client:
        found = await _get(client, f"/documents/{id}?fields={','.join(FIELDS)}")
        assert found["format"] == "directive" and found["signature"]["refused"]
        assert found["outline"]["signatures"][0]["verdict"] == "unsigned"
        assert [one["granted_by"] for one in found["envelope"]["capabilities"]] != []
        for inputs in ({}, {"guest": "Ada"}):
            ahead = await _preflight(server, id, inputs=inputs, model=server.script("s.json", ["Hello"]))
            assert not ahead["ready"] and "is unsigned" in "".join([*ahead["problems"], *ahead["denied"]])
            assert bool(ahead["inputs"]) is not bool(inputs)
            assert ahead["limits"]["turns"]
        answer = await client.post(f"/documents/{id}/preview", json={"inputs": {"guest": "Ada"}})
        assert "Ada" in json.dumps(answer.json()["prompt"])


async def test_a_run_is_started_by_the_names_that_quire_run_takes(tmp_path: Path) -> None:
    """real-work M7: `POST /runs` took `pipelines/support.yaml` and not the name `support`."""
    one = "pipeline: support\nsteps:\n  - transform: {value: '1'}\n"
    documents = {
        "pipelines/support.yaml": one,
        "hello.playbook.md": '# Hello\n\n## STEP 1: Ask\n\n@elicit(confirm, "Go?")\n',
        "notes.txt": "secret",
    }
    async with served(tmp_path / "team", documents) as server, server.client() as client:
        for name in ("support", "pipelines/support.yaml", "hello", "hello.playbook.md"):
            answer = await client.post("/runs", json={"document": name})
            assert answer.status_code == 201, answer.text
        home = Path(server.environ["QUIRE_HOME"])
        for name in (
            "suport",
            "notes",
            "notes.txt",
            "../team/hello",
            str(server.folder / "hello.playbook.md"),
            f"{home}",
        ):
            answer = await client.post("/runs", json={"document": name})
            assert (answer.status_code, answer.json()["code"]) == (404, "no-such-document"), name


async def test_the_model_and_the_budget_of_the_server_hold_for_runs_that_name_none(tmp_path: Path) -> None:
    """real-work M7: `quire serve --model --budget`."""
    replies = tmp_path / "replies.json"
    replies.write_text('["one", "two"]')
    options = SiteOptions(model=f"script:{replies}", budget=0.5)
    document = {"say.playbook.md": "# Say\n\n## STEP 1: Say\n\nSay a word.\n"}
    async with served(tmp_path / "team", document, options=options) as server, server.client() as client:
        budgets = {}
        bodies: dict[str, dict[str, Any]] = {"none": {}, "own": {"budget": 2}, "unlimited": {"budget": None}}
        for name, more in bodies.items():
            answer = await client.post("/runs", json={"document": "say.playbook.md", **more})
            assert answer.status_code == 201, answer.text
            row = await server.site.runtime.row(answer.json()["id"])
            budgets[name] = row.pins.get("budget")
            assert row.pins["model"] == f"script:{replies}"
        assert budgets == {"none": 0.5, "own": 2, "unlimited": None}
