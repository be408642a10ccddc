"""The connection `rye` with the three actions: fetch, execute and sign, as the gate and a model see them.

Each call is checked against the item that it turns out to mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.premises import TOOL_SECONDS
from quire.errors import Denied, QuireError, Refused, ToolFailed
from quire.library.item_tools.fetch import LIMIT, MAX_LIMIT
from quire.library.items import ITEM_TYPES, SPACES, SpaceName
from quire.tools.blocking import in_thread
from quire.tools.registry import ToolSpec
from quire.trust.capabilities import Grants, Primary, canonical

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.budgets import Limits
    from quire.engine.ports import EffectClass
    from quire.library.verify import VerifiedItems
    from quire.tools.builtin.files import Files
    from quire.values import Value
    from quire.workspace.settings import Settings


_ID: Value = {"type": "string", "description": "category/name, or the name alone where it is unique"}
_TYPE: Value = {"enum": list(ITEM_TYPES)}


def _spec(
    name: Primary, description: str, effect: EffectClass, required: tuple[str, ...], **properties: Value
) -> tuple[str, ToolSpec]:
    schema: Mapping[str, Value] = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return name, ToolSpec(f"rye/{name}", name, description, schema, effect)


FOR_DOCUMENTS = ("dry_run", "thread", "async")
"""Arguments of `execute` that have no meaning for tools."""


def for_tools_only(spec: ToolSpec) -> ToolSpec:
    """Return `execute` for a model that may execute tools only: fewer fields, because small models fill in every
    field."""
    fields = spec.schema["properties"]
    assert isinstance(fields, Mapping)  # noqa: S101  # written above
    left = {name: field for name, field in fields.items() if name not in FOR_DOCUMENTS}
    left["item_type"] = {"enum": ["tool"]}
    left["parameters"] = {"type": "object", "description": "the arguments of the tool, by name"}
    return replace(spec, description="Runs a tool by its id.", schema={**spec.schema, "properties": left})


ACTIONS: Mapping[str, ToolSpec] = dict(
    (
        _spec(
            "fetch",
            "Reads an item by its id, or searches for items by words (query and scope). With destination the item is "
            "also copied to that space.",
            "read",
            (),
            item_type=_TYPE,
            item_id=_ID,
            query={"type": "string", "description": "words to look for"},
            scope={"type": "string", "description": "the item type to search, such as directive or knowledge"},
            source={"enum": [*SPACES, "all"], "description": "look in this space only"},
            destination={"enum": ["project", "user"], "description": "copy the item to this space"},
            limit={
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LIMIT,
                "description": f"how many results of a query; {LIMIT} by default",
            },
        ),
        _spec(
            "execute",
            "Executes an item: runs a tool, pipeline or playbook with parameters, gives the directions of a directive "
            "(or runs it as a thread of its own with thread: fork), gives the text of a knowledge item.",
            "read",
            ("item_type", "item_id"),
            item_type=_TYPE,
            item_id=_ID,
            parameters={"type": "object", "description": "the inputs of the item, by name"},
            dry_run={"type": "boolean", "description": "only check the item and its inputs"},
            thread={"type": "string", "description": "inline (the default), or fork to run a directive by itself"},
            **{"async": {"type": "boolean", "description": "do not wait for a forked directive"}},
        ),
        _spec(
            "sign",
            "Checks a directive or knowledge item and signs it with the user's key. An id with * signs all that fit.",
            "write",
            ("item_type", "item_id"),
            item_type=_TYPE,
            item_id={"type": "string", "description": "category/name, or a pattern such as category/*"},
            source={"enum": list(SPACES), "description": "the space the item is in"},
        ),
    )
)


USER_FOLDER = "user:.ai"
"""The value of `--allow file__write=user:.ai`, which opens the items of the user folder and nothing else of it."""


def _now() -> datetime:
    return datetime.now(UTC)


def built_in_tools() -> list[ToolSpec]:
    from quire.tools.builtin import SPECS

    return [*sorted(SPECS.values(), key=lambda spec: spec.id), *ACTIONS.values()]


class ItemsConnection:
    """The actions on items, with the grants of the caller.

    `tools` returns those that `fetch` can describe; `run_id` is named in the answer of `sign`. `limits` are those of
    the calling thread. An action that cannot be done is answered with `{status: error, error: …}`, not raised. A
    missing capability raises `Denied`.
    """

    def __init__(
        self,
        settings: Settings,
        grants: Grants,
        *,
        limits: Limits | None = None,
        run_id: str = "",
        tools: Callable[[], list[ToolSpec]] = built_in_tools,
        now: Callable[[], datetime] = _now,
    ) -> None:
        self._settings = settings
        self._grants = grants
        self._limits = limits
        self._run_id = run_id
        self._tools = tools
        self._now = now

    def tool_id(self, tool: str) -> str:
        return canonical(tool) if "/" in canonical(tool) else f"rye/{tool}"

    def known(self, tool: str) -> ToolSpec | None:
        return ACTIONS.get(self.tool_id(tool).removeprefix("rye/"))

    def offered(self, spec: ToolSpec) -> ToolSpec:
        """Return the description for a model with these grants. The arguments that are accepted stay the same."""
        harmless = ("rye.fetch.", "rye.sign.", "rye.execute.tool.")
        tools_only = all(pattern.startswith(harmless) for pattern in self._grants.patterns)
        return for_tools_only(spec) if spec.name == "execute" and tools_only else spec

    async def tools(self, *, refresh: bool = False) -> Mapping[str, ToolSpec]:
        return ACTIONS

    def longest(self, tool: ToolSpec, arguments: Mapping[str, Value]) -> float:
        return TOOL_SECONDS.items

    async def call(self, tool: ToolSpec, arguments: dict[str, Value], effect_id: str) -> Value:
        return await in_thread(lambda: self._call(tool.name, arguments, effect_id))

    async def prompt(self, name: str) -> str:
        raise ToolFailed("items have no prompts")

    async def close(self) -> None:
        pass

    @property
    def warnings(self) -> list[str]:
        """Messages about items that were used in warn mode although their signature does not hold."""
        return list(self.items.warnings)

    @cached_property
    def items(self) -> VerifiedItems:
        from quire.library.verify import VerifiedItems

        return VerifiedItems.of(self._settings)

    def _call(self, action: str, arguments: dict[str, Value], effect_id: str) -> Value:
        try:
            return self._act(action, arguments, effect_id)
        except (Denied, ToolFailed):
            raise
        except Refused as refusal:
            return {"status": "error", "error": str(refusal), "error_type": "integrity"}
        except QuireError as problem:
            return {"status": "error", "error": str(problem)}

    def _act(self, action: str, arguments: dict[str, Value], effect_id: str) -> Value:
        if action == "fetch":
            from quire.library.item_tools.fetch import Fetch

            return Fetch(self.items, self._grants, self._described, self._tools, self._to_copy).run(arguments)
        if action == "execute":
            from quire.library.item_tools.fetch import Execute

            return Execute(self.items, self._grants, self._described).run(arguments)
        from quire.library.item_tools.sign import Sign

        sign = Sign(self.items, self._grants, self._limits, self._to_sign, self._now, self._run_id)
        return sign.run(arguments, effect_id)

    def replacing(self, directive: str) -> None:
        """Record the authority of a directive of the project, before a tool overwrites it."""
        from quire.library.signed_authority import SignedAuthority

        SignedAuthority(self.items).note_directive(directive)

    def note_signed(self) -> None:
        """Record the authority of all directives that are signed now."""
        from quire.library.signed_authority import SignedAuthority

        SignedAuthority(self.items).note_all()

    def _described(self, tool: str) -> ToolSpec | None:
        identity = canonical(tool)
        return next((spec for spec in self._tools() if spec.id == identity), None)

    def _to_copy(self, space: SpaceName) -> Files:
        """Return the files of a space with the rules of the file tools: `.ai` can be written only by grant."""
        from quire.tools.builtin.paths import new_run_with
        from quire.workspace.grants import reach_of

        folders = reach_of(self._grants).folders
        if space == "user":
            # Grants of folders refer to the workspace; the user folder has a name of its own.
            if USER_FOLDER not in folders:
                grant = f"--allow file__write={USER_FOLDER}"
                how = new_run_with(grant) if self._grants.declared else f"grant it with {grant}"
                raise Denied(f"permission denied: copying into your user folder needs a grant; {how}")
            return self._files(space, frozenset({".ai"}))
        return self._files(space, folders)

    def _to_sign(self, space: SpaceName) -> Files:
        """Return the files of a space for writing signatures. A caller that may sign an item may write into `.ai` for
        that."""
        return self._files(space, frozenset({".ai"}))

    def _files(self, space: SpaceName, folders: frozenset[str]) -> Files:
        from quire.tools.builtin.files import Files
        from quire.tools.builtin.paths import Places, Protection

        def signs(directive: str) -> bool:
            return space == "project" and self._grants.allows("sign", "directive", directive)

        if space == "user":
            self._settings.user.mkdir(parents=True, exist_ok=True)
            return Files(Places(self._settings.user), Protection(folders))
        protection = Protection(folders, signs=signs, declared=self._grants.place, replacing=self.replacing)
        return Files(Places(self._settings.workspace.folder, [self._settings.user]), protection)
