"""A real workspace with real keys in which documents, models, tools and repositories behave as badly as they like.

Nothing is a stand-in but the model, which says what a test has it say: the gate, the files, the signatures, the journal
and the sandbox are those that a user has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.trust.known_keys import known_key

from quire.engine.driver.drive import DriveResult
from quire.engine.records import EffectRecord, Event, Status
from quire.library.document import load
from quire.models.scripted import Entry, ScriptedModel
from quire.runs.options import RunOptions
from quire.runs.runtime import Runtime
from quire.source import normalise
from quire.stores import open_store
from quire.trust.keys import SigningKey
from quire.trust.sign_file import signable
from quire.trust.signatures import sign_text
from quire.trust.trusted_keys import keep
from quire.values import Value, encode
from quire.workspace.configuration import load_settings
from quire.workspace.consent import confirm
from quire.workspace.locate import Workspace
from quire.workspace.settings import Settings

NOW = datetime(2026, 2, 10, 2, 0, tzinfo=UTC)
SECRET = "what lies outside of the workspace"
FILES = "<execute><tool>rye.file-system.*</tool></execute>"
THREADS = "<tool>rye.agent.threads.*</tool>"

Call = tuple[str, Mapping[str, Value]]
Reply = str | list[Call]
"""What the model says, or the tools that it calls."""


def directive(
    name: str,
    permissions: str | None = FILES,
    body: str = "Do it.",
    *,
    category: str = "",
    meta: str = "",
    more: str = "",
    extends: str = "",
) -> str:
    held = "" if permissions is None else f"<permissions>{permissions}</permissions>"
    parent = f' extends="{extends}"' if extends else ""
    return (
        f'# {name}\n\n```xml\n<directive name="{name}" version="1.0.0"{parent}><metadata><description>d</description>'
        f'<category>{category}</category><author>me</author><model tier="low" />{meta}{held}</metadata>{more}'
        f"</directive>\n```\n\n{body}\n"
    )


def knowledge(name: str, body: str) -> str:
    return f"```yaml\nname: {name}\ntitle: t\nversion: 1.0.0\nentry_type: note\n```\n\n{body}\n"


@dataclass
class Played:
    """A run that came to rest."""

    ended: DriveResult
    events: list[Event]
    effects: Sequence[EffectRecord]
    model: ScriptedModel
    id: str

    @property
    def told(self) -> list[str]:
        """What the model was told about each of its calls."""
        return [str(event.data["result"]) for event in self.events if event.type == "tool_told"]

    @property
    def kinds(self) -> list[str]:
        return [str(event.data["kind"]) for event in self.events if event.type == "tool_told"]

    @property
    def offered(self) -> list[str]:
        found = next(event.data["tools"] for event in self.events if event.type == "tools_offered")
        return [str(one) for one in found]  # type: ignore[union-attr]

    @property
    def warnings(self) -> list[str]:
        return [str(event.data["message"]) for event in self.events if event.type == "warning"]

    @property
    def dispatched(self) -> list[str]:
        """The paths of the tool calls that went well."""
        return [one.path for one in self.effects if one.kind == "tool" and one.state == "ok"]

    def everything(self) -> str:
        """All that is written down about it and all that was shown."""
        kept = [encode(one.value) + str(one.failure) for one in self.effects]
        shown = [f"{event.type} {encode(dict(event.data))}" for event in self.events]
        asked = [f"{call.system}{[message.content for message in call.messages]}" for call in self.model.calls]
        return "\n".join([*kept, *shown, *asked, str(self.ended)])


@dataclass
class Stage:
    """`work` is the workspace, `space` the user's own folder, `outside` what nobody may touch."""

    base: Path
    environ: dict[str, str] = field(default_factory=dict)
    key: SigningKey = field(default_factory=lambda: known_key(1))

    def __post_init__(self) -> None:
        self.work, self.space, self.outside = (self.base / name for name in ("work", "space", "outside"))
        (self.work / ".ai").mkdir(parents=True)
        self.outside.mkdir()
        (self.outside / "secret.txt").write_text(SECRET)
        self.environ = {"QUIRE_HOME": str(self.space), "PATH": "/usr/local/bin:/usr/bin:/bin", **self.environ}
        keep(self.settings, self.key, NOW)

    @property
    def settings(self) -> Settings:
        return load_settings(Workspace(self.work), self.environ)

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def sign(self, path: str, text: str, key: SigningKey | None = None) -> Path:
        """Puts a signed file there; whoever signs by hand does not look at what it may do."""
        item = signable(self.work / path, self.work)
        return self.write(path, sign_text(text, item.kind, item.id, key or self.key, NOW, syntax=item.syntax))

    def directive(self, item_id: str, permissions: str | None = FILES, body: str = "Do it.", **more: str) -> Path:
        category, _, name = item_id.rpartition("/")
        text = directive(name, permissions, body, category=category, **more)
        return self.sign(f".ai/directives/{item_id}.md", text)

    def knowledge(self, item_id: str, body: str) -> Path:
        return self.sign(f".ai/knowledge/{item_id}.md", knowledge(item_id.rpartition("/")[2], body))

    def confirm(self) -> None:
        confirm(self.settings)

    def runtime(self, model: ScriptedModel) -> Runtime:
        store = open_store(self.base / "quire.db", durability="process")
        return Runtime(self.settings, store, environ=self.environ, model=model)

    async def play(
        self,
        item_id: str,
        *replies: Reply,
        inputs: Mapping[str, Value] | None = None,
        allow: tuple[str, ...] = (),
        limits: Mapping[str, Value] | None = None,
        children: Mapping[str, Sequence[Reply]] | None = None,
        path: str = "",
    ) -> Played:
        """Runs a directive with the real gate; after its replies the model says `done`.

        `children` are the replies in threads of other directives, by a text in their first message.
        """
        model = scripted(*replies, children=children)
        runtime = self.runtime(model)
        try:
            document = load(self.work / (path or f".ai/directives/{item_id}.md"))
            run = await runtime.start(document, inputs or {}, RunOptions(allow=allow, limits=limits or {}))
            return await self._driven(runtime, model, run)
        finally:
            await runtime.close()

    async def resume(self, run: str, *replies: Reply) -> Played:
        model = scripted(*replies)
        runtime = self.runtime(model)
        try:
            return await self._driven(runtime, model, run)
        finally:
            await runtime.close()

    async def _driven(self, runtime: Runtime, model: ScriptedModel, run: str) -> Played:
        events: list[Event] = []
        ended = await runtime.drive(run, listen=events.append)
        return Played(ended, events, await runtime.store.effects(run), model, run)

    def print(self) -> dict[str, str]:
        """Every file there is, but for the journal and the notes of what is signed: to see that nothing was left
        behind."""
        found = {}
        notes = self.settings.user / "signed"
        for top in (self.work, self.space, self.outside):
            for file in sorted(top.rglob("*")):
                if file.is_symlink():
                    found[str(file)] = f"-> {file.readlink()}"
                elif file.is_file() and file.parent != notes:
                    found[str(file)] = hashlib.sha256(file.read_bytes()).hexdigest()
        return found


def scripted(*replies: Reply, children: Mapping[str, Sequence[Reply]] | None = None) -> ScriptedModel:
    entries = [_entry(one, child) for child, said in (children or {}).items() for one in (*said, "done")]
    return ScriptedModel([*entries, *(_entry(one) for one in replies), Entry(reply="done", is_default=True)])


def _entry(reply: Reply, contains: str | None = None) -> Entry:
    if isinstance(reply, str):
        return Entry(contains=contains, reply=reply)
    return Entry(contains=contains, calls=tuple(reply))


def execute(item_id: str, parameters: Mapping[str, Value] | None = None, **more: Value) -> Call:
    return "rye_execute", {"item_type": "tool", "item_id": item_id, "parameters": dict(parameters or {}), **more}


def fork(item_id: str, **more: Value) -> Call:
    return "rye_agent_threads_thread_directive", {"directive_id": item_id, **more}


def completed(played: Played) -> bool:
    return played.ended.status is Status.COMPLETED


def text_of(path: Path) -> str:
    return normalise(path.read_text())
