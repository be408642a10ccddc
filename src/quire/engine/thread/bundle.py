"""All the texts that a directive is composed from, as they were when it was looked up.

A run pins them; a thread that is started in the middle of a run gets them by one journaled `Load`. Either way
composing again gives the same thread, whatever happens to the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from quire.engine.thread.hooks import read_hooks_yaml
from quire.errors import BadDocument
from quire.plan.thread import THREAD_RULES, Hook, Thread
from quire.source import Source
from quire.values import Value, decode, encode


@dataclass(frozen=True, slots=True)
class Bundle:
    """Directives, and the bodies of knowledge items, by the ids that they were referred to by; what was not found is
    not in it.

    `hooks` is the text of the project's own hooks, `model` what the directive's `<model>` stood for (empty: the
    run's own). `warnings` are what was said when the items were verified, `places` where the permissions of each
    directive stand. `rules` are those that the thread follows.
    """

    item_id: str
    directives: Mapping[str, str]
    knowledge: Mapping[str, str] = field(default_factory=dict)
    hooks: str = ""
    model: str = ""
    warnings: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    rules: int = THREAD_RULES

    def encoded(self) -> str:
        return encode(
            {
                "item_id": self.item_id,
                "directives": dict(self.directives),
                "knowledge": dict(self.knowledge),
                "hooks": self.hooks,
                "model": self.model,
                "warnings": list(self.warnings),
                "places": dict(self.places),
                "rules": self.rules,
            }
        )

    @classmethod
    def of(cls, text: str) -> Bundle:
        stored = cast("Mapping[str, Value]", decode(text))
        return cls(
            str(stored["item_id"]),
            cast("Mapping[str, str]", stored["directives"]),
            cast("Mapping[str, str]", stored["knowledge"]),
            str(stored["hooks"]),
            str(stored["model"]),
            tuple(cast("list[str]", stored["warnings"])),
            cast("Mapping[str, str]", stored["places"]),
            cast("int", stored.get("rules", 1)),
        )

    def project_hooks(self) -> tuple[Hook, ...]:
        return read_hooks_yaml(self.hooks, "hooks.yaml")[0] if self.hooks else ()


class BundleResolver:
    """Reads the texts of a bundle for composing. What stands in it has been verified."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle

    def directive(self, item_id: str) -> Thread | None:
        text = self._bundle.directives.get(item_id)
        if text is None:
            return None
        # lxml is imported by whoever reads a directive, and by nobody else.
        from quire.formats.directive.lower import thread
        from quire.formats.directive.parse import parse

        read = parse(Source.of(text, f"{item_id}.md")).directive
        if read is None:
            raise BadDocument(f"the directive {item_id} has errors: quire check shows them")
        return thread(read)

    def knowledge(self, item_id: str) -> str | None:
        return self._bundle.knowledge.get(item_id)
