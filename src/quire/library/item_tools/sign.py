"""Sign items from inside a run, after a check, with the user's own key, and never with more authority than the run has.

Otherwise a run could write and sign a directive to get around its own permissions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING

from msgspec import Struct

from quire.errors import Denied, QuireError, ToolFailed
from quire.library.item_tools import error, item_type_of, missing, path_in_home, shown_path, space_of, unknown_type
from quire.library.items import FOLDERS, Entry, Item, ItemType, SpaceName, plural
from quire.library.signed_authority import Authority, SignedAuthority, authority_of, authority_of_run
from quire.library.verify import VerifiedItems, as_signable, read_thread
from quire.source import MAX_DOCUMENT_BYTES, Source
from quire.tools.builtin.file_search import PathPattern
from quire.trust.risk import project_risk
from quire.trust.sign_file import issues, warnings
from quire.trust.signatures import sign_text
from quire.trust.trusted_keys import own_key

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.budgets import Limits
    from quire.tools.builtin.files import Files
    from quire.trust.capabilities import Grants
    from quire.values import Value

MAX_BATCH = 1000


class Sign(Struct, frozen=True):
    """The action `sign`.

    `limits` are those of the calling thread, `run_id` is its run; `writer` returns the files of a space, with protected
    paths closed.
    """

    items: VerifiedItems
    grants: Grants
    limits: Limits | None
    writer: Callable[[SpaceName], Files]
    now: Callable[[], datetime]
    run_id: str = ""

    def run(self, arguments: Mapping[str, Value], effect_id: str) -> dict[str, Value]:
        item_type, item_id = item_type_of(arguments["item_type"]), str(arguments["item_id"])
        if item_type is None:
            return unknown_type(arguments["item_type"])
        if item_type not in FOLDERS:
            return error(f"a run signs directives and knowledge, not a {item_type}; sign it by hand: quire sign PATH")
        source = space_of(arguments.get("source"))
        if source == "system":
            return _immutable(item_type, item_id)
        if set(item_id) & set("*?["):
            return self._several(item_type, item_id, source, effect_id)
        item = self.items.spaces.find(item_type, item_id, source)
        if item is None:
            return missing(self.grants, "sign", item_type, item_id, source)
        return self._sign(item, effect_id)

    def _several(self, item_type: ItemType, pattern: str, source: SpaceName | None, effect_id: str) -> dict[str, Value]:
        """Sign each item by itself; one failure does not stop the others. Raises `Denied` if the run may sign none of
        them."""
        fitting = _fitting(pattern, self.items.spaces.entries(item_type, source or "project"))
        if not fitting:
            return error(f"no {plural(item_type)} fit {pattern}", item_type=item_type, item_id=pattern)
        if len(fitting) > MAX_BATCH:
            return error(f"{len(fitting):,} {plural(item_type)} fit {pattern}; sign at most {MAX_BATCH:,} at once")
        if not any(self.grants.allows("sign", item_type, entry.id) for entry in fitting):
            self.grants.require("sign", item_type, fitting[0].id)
        signed: list[Value] = []
        failed: list[Value] = []
        for entry in fitting:
            try:
                answer = self._sign(self.items.spaces.read(entry), effect_id)
            except (QuireError, ToolFailed) as problem:
                answer = error(str(problem))
            if answer["status"] == "signed":
                signed.append(entry.id)
            else:
                failed.append({"item_id": entry.id, "error": answer["error"], "issues": answer.get("issues", [])})
        counted = f"signed {len(signed)} of {len(fitting)}" + (f", {len(failed)} failed" if failed else "")
        return {
            "status": "completed",
            "item_type": item_type,
            "signed": signed,
            "failed": failed,
            "total": len(fitting),
            "summary": counted,
            "run": self.run_id,
            "effect": effect_id,
        }

    def _sign(self, item: Item, effect_id: str) -> dict[str, Value]:
        """Sign one item. Raises `Denied`, and `CannotStart` if there is no key."""
        if item.space == "system":
            return _immutable(item.type, item.id)
        self.grants.require("sign", item.type, item.id)
        settings = self.items.spaces.settings
        path, in_home = shown_path(item, settings), path_in_home(item, settings)
        if in_home is None:
            return error(f"{item.id} does not lie in the {item.space}'s own folder; sign it by hand: quire sign PATH")
        file = as_signable(item, settings.workspace.folder)
        source = Source.of(item.stored, str(item.path))
        if problems := issues(file, source):
            return error("validation failed", item_id=item.id, issues=list(problems), path=path)
        if item.type == "directive":
            self._require_less(item, path)
        key = own_key(settings)
        text = sign_text(item.stored, file.kind, file.id, key, self.now(), syntax=file.syntax)
        if len(text.encode()) > MAX_DOCUMENT_BYTES:
            return error(f"with a signature {path} is larger than {MAX_DOCUMENT_BYTES:,} bytes", item_id=item.id)
        # The checked text is the one that is signed: a file that was changed meanwhile is left alone.
        self.writer(item.space).swap(in_home, item.stored, text)
        hidden: list[Value] = list(warnings(file, source))
        return {
            "status": "signed",
            "item_type": item.type,
            "item_id": item.id,
            "source": item.space,
            "path": path,
            "key_id": key.key_id,
            "run": self.run_id,
            "effect": effect_id,
            **({"warnings": hidden} if hidden else {}),
        }

    def _require_less(self, item: Item, path: str) -> None:
        """Raise `Denied` for a directive with more authority than this run, or more than when it was last signed."""
        settings = self.items.spaces.settings
        authority = authority_of(read_thread(item), self.items)
        held = authority_of_run(self.grants, self.limits, project_risk(settings.workspace.folder))
        bounds = [("it may do what this run may not", held)]
        if before := SignedAuthority(self.items).find(item):
            bounds.append(("it may do more than when it was signed", before))
        bounds += self._hidden_by(item)
        for why, bound in bounds:
            if excess := authority.excess(bound):
                raise Denied(
                    f"permission denied: signing {item.id} is refused, because {why}: {', '.join(excess)}; "
                    f"take that out, or sign it by hand: quire sign {path}"
                )

    def _hidden_by(self, item: Item) -> Iterator[tuple[str, Authority]]:
        """Yield the directives with the same id in lower spaces, which this one would replace for all directives that
        extend them."""
        spaces: tuple[SpaceName, ...] = ("user", "system") if item.space == "project" else ("system",)
        for space in spaces:
            hidden = self.items.spaces.find("directive", item.id, space)
            if hidden is not None and hidden.id == item.id and self.items.verdict(hidden).ok:
                why = f"it may do more than the directive of that id in the {space} folder, which it would hide"
                yield why, authority_of(read_thread(hidden), self.items)


def _fitting(pattern: str, entries: list[Entry]) -> list[Entry]:
    """Return the entries that match: `demo/*` means those directly in `demo`, `demo/**` all below it, `a*` that name
    anywhere."""
    glob = PathPattern(pattern if "/" in pattern else f"**/{pattern}")
    return [entry for entry in entries if glob.is_match(reduce(glob.step, entry.id.split("/"), glob.start))]


def _immutable(item_type: str, item_id: str) -> dict[str, Value]:
    return error(
        f"built-in items are never signed; copy {item_id} to the project first: "
        f'rye_fetch(item_type="{item_type}", item_id="{item_id}", destination="project")',
        item_id=item_id,
    )
