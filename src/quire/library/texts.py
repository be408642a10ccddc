"""Load texts that are named while a step runs: prompts, and the documents and knowledge that a thread asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from quire.engine.interpreter.call_document import Opened
from quire.errors import QuireError, Refused, StepFailed
from quire.library.callees import Callees, opened, pinned
from quire.values import Value, decode, encode

if TYPE_CHECKING:
    from quire.engine.interpreter.environment import Environment
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.ports import Loader, Store
    from quire.engine.requests import Load
    from quire.library.directives import BundleBuilder
    from quire.plan.nodes import Plan


class ItemLoader(Struct, frozen=True):
    """Loads items of the workspace by id and verifies them; other requests go to the loader of prompts."""

    store: Store
    run: str
    prompts: Loader
    gathering: Callable[[], BundleBuilder]
    callees: Callable[[], Callees]

    async def load(self, request: Load) -> str | None:
        if request.scheme == "letters":
            letters = [one for one in await self.store.letters(self.run) if one.sealed]
            return encode([one.text for one in letters[int(request.where) :]])
        if request.scheme == "leave":
            return ""  # nothing to load: the request only asks whether another thread may start
        if request.scheme not in ("directive", "knowledge", "document"):
            return await self.prompts.load(request)
        try:
            match request.scheme:
                case "directive":
                    bundle = self.gathering().called(request.where)
                    return bundle.encoded() if bundle else None
                case "knowledge":
                    return self.gathering().knowledge(request.where)
            return self._document(request.where)
        except Refused as error:
            raise StepFailed(str(error), kind="denied", path=request.path) from None
        except QuireError as error:
            raise StepFailed(str(error), kind="load", path=request.path) from None

    def _document(self, where: str) -> str | None:
        """Return a document with everything that it can call, as one text."""
        kind, _, name = where.partition(":")
        callees = self.callees()
        root = callees.find(name, kind)
        if root is None:
            return None
        all_of_them = {name: root, **callees.reachable(root.plan)}
        texts = {one: callee.text for one, callee in all_of_them.items()}
        return encode({"name": name, "documents": pinned(all_of_them), "texts": texts})


def open_document(text: str, setting: Environment) -> Opened:
    """Read a document loaded like this, ready to be called in the same setting."""
    loaded = cast("Mapping[str, Value]", decode(text))
    texts = cast("Mapping[str, str]", loaded["texts"])
    documents: dict[str, Plan] = {}
    bundles: dict[str, Bundle] = {}
    for name, stored in cast("Mapping[str, Mapping[str, Value]]", loaded["documents"]).items():
        plan, bundle = opened(stored, texts[name])
        documents[name] = plan
        if bundle is not None:
            bundles[name] = bundle
    return Opened(str(loaded["name"]), replace(setting, documents=documents, bundles=bundles))
