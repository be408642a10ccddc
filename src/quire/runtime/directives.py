"""What a directive needs before it runs: verified, composed, held to its permissions, its risks looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from quire.documents import Document
from quire.engine.thread.bundle import Bundle
from quire.engine.thread.interpret import PATH
from quire.engine.thread.setup import Setup
from quire.engine.thread.start import check_risk, set_up
from quire.errors import CannotStart, Refused
from quire.models.choose import Choice
from quire.models.tiers import thread_model
from quire.plan.nodes import Plan
from quire.plan.thread import Thread
from quire.runtime.bundles import Gathering
from quire.source import Source
from quire.trust.capabilities import Grants
from quire.trust.risk import project_risk
from quire.trust.signing import Outcome, verify_text
from quire.trust.trusted import TrustedKeys
from quire.trust.unsigned import require_granted
from quire.values import Value
from quire.workspace.grants import reaching
from quire.workspace.items import Item
from quire.workspace.requests import is_trusted, require_trusted
from quire.workspace.settings import Settings
from quire.workspace.spaces import Spaces
from quire.workspace.verified import VerifiedItems


@dataclass(frozen=True, slots=True)
class Started:
    """`source` is the text of the bundle, as it is pinned; `keys` signed what is in it."""

    setup: Setup
    bundle: Bundle
    source: Source
    grants: Grants
    keys: tuple[str, ...]

    @property
    def inputs(self) -> Mapping[str, Value]:
        return self.setup.composed.inputs


class Directives:
    """The directives of one workspace."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ

    def model_of(self, plan: Plan) -> Choice:
        """Which model the directive asks for, as far as it can be had here."""
        return thread_model(_thread(plan).model, self._settings.models, self._environ)

    def gathering(self, *, one_model: bool, granted: Grants | None = None) -> Gathering:
        """`granted` is what the user allows directives that nobody signed, None to only look at them.

        Raises `Untrusted`: files of the workspace say what is trusted, and the user has to agree to them first."""
        require_trusted(self._settings)
        items = VerifiedItems.of(self._settings)
        return Gathering(self._settings, items, self._environ, model=not one_model, granted=granted)

    def start(
        self,
        document: Document,
        given: Mapping[str, Value],
        limits: Mapping[str, Value],
        granted: Grants,
        *,
        one_model: bool,
    ) -> Started:
        """Raises `CannotStart` and `Refused`. `granted` is what the user has allowed: it counts where nobody signed."""
        gathering = self.gathering(one_model=one_model)
        bundle = gathering.gather("", self.item(document))
        if bundle is None:
            raise CannotStart(f"there is no directive {document.name}")
        return self._started(bundle, given, limits, granted, gathering)

    def again(
        self, bundle: Bundle, given: Mapping[str, Value], limits: Mapping[str, Value], granted: Grants
    ) -> Started:
        """The same for a directive that a run brought from elsewhere: what it may do is what its text may do here.

        Raises `Refused` where this workspace has no such text, so that nobody here has signed or read it."""
        gathering = self.gathering(one_model=True)
        here = gathering.gather(bundle.item_id)
        if here is None or (here.directives, here.knowledge, here.hooks) != (
            bundle.directives,
            bundle.knowledge,
            bundle.hooks,
        ):
            raise Refused(f"the run comes from elsewhere, and {bundle.item_id} is not the same here: it does not go on")
        return self._started(here, given, limits, granted, gathering)

    def _started(
        self,
        bundle: Bundle,
        given: Mapping[str, Value],
        limits: Mapping[str, Value],
        granted: Grants,
        gathering: Gathering,
    ) -> Started:
        setup = set_up(bundle, given, PATH, overrides=limits)
        project, composed = project_risk(self._settings.workspace.folder), setup.composed
        asked = [one.capability for one in composed.capabilities]
        risks = check_risk(asked, composed.acknowledged, project, setup.declared)
        if gathering.unsigned:
            reasons = {one.risk: one.reason for one in composed.acknowledged}
            require_granted(setup.id, asked, granted, project, reasons)
        bundle = replace(bundle, warnings=(*bundle.warnings, *risks))
        grants = Grants(frozenset(setup.grants) | reaching(granted))
        return Started(setup, bundle, Source.of(bundle.encoded(), "bundle"), grants, tuple(sorted(gathering.keys)))

    def compose(self, document: Document, given: Mapping[str, Value]) -> tuple[Bundle, Setup]:
        """For those who only look: raises as `start` does, and takes no risk into account."""
        bundle = self.gathering(one_model=True).gather("", self.item(document))
        if bundle is None:
            raise CannotStart(f"there is no directive {document.name}")
        return bundle, set_up(bundle, given, PATH)

    def item(self, document: Document) -> Item:
        """The item that a file is. Raises `CannotStart` for one in no space: nobody could refer to it, or sign it."""
        path = Path(document.name).resolve()
        spaces = Spaces(self._settings)
        for root in spaces.roots("directive"):
            folder = root.real()
            if folder is not None and path.is_relative_to(folder):
                found = spaces.find("directive", path.relative_to(folder).with_suffix("").as_posix(), root.space)
                if found is not None:
                    return found
        raise CannotStart(f"{document.name} is in no space: directives live below .ai/directives of a workspace")

    def granted_now(self, grants: Iterable[str], keys: Iterable[str], now: Grants) -> Grants:
        """Return the grants of the start, without those that reach further than the user allows now.

        `keys` are the keys that signed the directive. Raises `Refused` if one of them is not trusted any more."""
        start = Grants.of(grants)
        if self._requires_signatures():
            trusted = TrustedKeys.load(self._settings)
            for key in keys:
                if trusted.find(key) is None:
                    raise Refused(
                        f"the key {key} that signed this directive is not trusted any more: it does not go on"
                    )
        return Grants((start.patterns - reaching(start)) | (reaching(start) & reaching(now)))

    def verify_again(self, bundles: Iterable[Bundle]) -> None:
        """Verifies the pinned directives of a run by the keys that are trusted now. Raises `Refused`.

        That each of them is in its place was verified at the start, by the files that were there."""
        if not self._requires_signatures():
            return
        trusted, spaces = TrustedKeys.load(self._settings), Spaces(self._settings)
        for item_id, text in (pair for bundle in bundles for pair in bundle.directives.items()):
            verdict = verify_text(text, "directive", item_id, trusted)
            if verdict.ok or verdict.outcome is Outcome.MISPLACED:
                continue
            built_in = spaces.find("directive", item_id, "system")
            if built_in is None or built_in.text != text:
                raise Refused(f"{verdict.message} (the run pinned it so: it does not go on)")

    def _requires_signatures(self) -> bool:
        """A workspace that the user has not confirmed does not switch them off."""
        return self._settings.trust.mode == "require" or not is_trusted(self._settings)


def _thread(plan: Plan) -> Thread:
    (step,) = plan.body.steps
    assert isinstance(step.work, Thread)  # noqa: S101  # a directive is one thread
    return step.work
