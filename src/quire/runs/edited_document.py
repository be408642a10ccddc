"""A stored run as it would be with an edited document: the same inputs, models and limits, other texts.

Nothing is stored and nothing is performed, so signatures do not matter here: texts are read as they are. Documents that
the edited one calls are those of the workspace; one that the workspace does not have is the one that the run pinned.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quire.engine.inputs import kept_inputs, run_inputs
from quire.engine.records import EffectRecord
from quire.engine.request_hashes import request_hash
from quire.errors import BadInputs, CannotStart, Refused, StepFailed
from quire.library.callees import document_from_pin, pinned
from quire.library.document import Document, read
from quire.library.step_models import choose_step_models, pinned_step_models, read_step_models
from quire.library.texts import read_prompt_files
from quire.plan.nodes import SEMANTICS_VERSION
from quire.plan.uses import called_names
from quire.runs.pins import PinnedRun, PinnedState, pinned_profiles
from quire.runs.prompts import texts_of
from quire.source import Source, read_source
from quire.trust.capabilities import Grants
from quire.workspace.grants import reaching

if TYPE_CHECKING:
    from quire.engine.interpreter.thread.compose import Bundle
    from quire.engine.records import RunRow
    from quire.engine.requests import Load
    from quire.library.callees import Callee
    from quire.plan.nodes import Plan, StepModel
    from quire.runs.outcome import RunView
    from quire.runs.runtime import Runtime
    from quire.values import Value


def document_in_place(source: Source, row: RunRow, pins: PinnedState, rules: int = SEMANTICS_VERSION) -> Document:
    """Read the document that is to replace that of a run. Raises `CannotStart` if it cannot."""
    if row.format == "pipeline" and pins.declared:
        try:
            return document_from_pin(source, row.format, pins.declared, pins.key, rules)
        except StopIteration:
            raise CannotStart(f"{source.name} has no pipeline {pins.declared}, which the run is of") from None
    document = read(source, rules)
    if document.format != row.format:
        raise CannotStart(f"{source.name} is a {document.format}, and run {row.id} is of a {row.format}")
    return document


class MissingInputs(BadInputs):
    """The edited document needs inputs that a stored run does not have."""


class EditedDocument:
    """One file of a document, to be walked in place of the text that stored runs pinned."""

    def __init__(self, runtime: Runtime, path: Path) -> None:
        """Read the file. Raises `Unreadable`, and `BadDocument` for a text that cannot run."""
        self._runtime = runtime
        self._source = read_source(path)
        self._path = path
        self._folder = path.resolve().parent
        self._files: dict[str, Mapping[str, str]] = {}
        self._callees: dict[tuple[str, bool, bool], Mapping[str, Callee]] = {}
        self._readings: dict[tuple[str, str, str, int], Document] = {}
        self._whole: Document | None = None

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def whole(self) -> Document:
        """The document of the file; of a file with several pipelines, the first."""
        if self._whole is None:
            self._whole = read(self._source)
        return self._whole

    def document(self, row: RunRow, pins: PinnedState) -> tuple[Document, int]:
        """Return the document in place of a run's, and the rules that it runs by: those of the run, unless the new text
        means something else under the rules of today. Raises `CannotStart` if it cannot be a document of the run."""
        now = self._read(row, pins, SEMANTICS_VERSION)
        if pins.semantics_version == SEMANTICS_VERSION:
            return now, SEMANTICS_VERSION
        then = self._read(row, pins, pins.semantics_version)
        return (then, pins.semantics_version) if then.plan == now.plan else (now, SEMANTICS_VERSION)

    def _read(self, row: RunRow, pins: PinnedState, rules: int) -> Document:
        key = (row.format, pins.declared, pins.key, rules)
        if key not in self._readings:
            self._readings[key] = document_in_place(self._source, row, pins, rules)
        document = self._readings[key]
        document.runnable()
        return document

    async def pinned(self, old: RunView) -> PinnedRun:
        """Return a stored run with the edited document. Raises `MissingInputs` if the document needs inputs that the
        run does not have, and `CannotStart` and `Refused`."""
        row, pins = old.row, old.pins
        document, rules = self.document(row, pins)
        plan = document.runnable()
        texts = {document.sha256: document.source.text}
        callees = self._called(plan, pins)
        others = {name: stored for name, stored in pins.callees.items() if name not in callees}
        for callee in callees.values():
            source = Source.of(callee.text, "")
            texts[source.sha256] = source.text
        pins = replace(
            pins,
            document=document.sha256,
            declared=document.declared,
            key=document.key,
            callees={**others, **pinned(callees)},
            profiles={**pinned_profiles(self._runtime.agents()), **pins.profiles},
            files={**pins.files, **self._prompt_files(document, callees)},
            steps=self._step_models(old, document, callees),
            semantics_version=rules,
        )
        try:
            pins = replace(pins, inputs=run_inputs(plan, kept_inputs(plan, pins.inputs), one_line=False))
        except BadInputs as error:
            raise MissingInputs(error.problems, error.inputs) from None
        if plan.thread:
            pins = await self._as_thread(plan, pins, texts)

        async def text(digest: str) -> str:
            return texts[digest] if digest in texts else await self._runtime.store.text(digest)

        row = replace(row, title=plan.title, document=document.name, pins=pins.as_json())
        return await self._runtime.pinned(row, text)

    def load(self, request: Load) -> EffectRecord | None:
        """Read a prompt of the workspace, or a file beside the document, as it is now."""
        if request.scheme not in ("file", "library"):
            return None
        try:
            text = texts_of(self._runtime.settings, self._folder)(request)
        except StepFailed:
            return None
        return None if text is None else EffectRecord(request.path, "load", "ok", request_hash(request), 0.0, text)

    def _called(self, plan: Plan, pins: PinnedState) -> Mapping[str, Callee]:
        key = (pins.declared, pins.one_model, pins.shelf)
        if key not in self._callees:
            self._callees[key] = self._reachable(plan, pins)
        return self._callees[key]

    def _reachable(self, plan: Plan, pins: PinnedState) -> Mapping[str, Callee]:
        """Find the documents that a plan can call. Where they may not run here, as those of an imported run that others
        signed, the pinned ones are taken."""
        try:
            return self._runtime.callees(one_model=pins.one_model, shelf=pins.shelf).reachable(plan)
        except Refused as error:
            if not set(called_names(plan)) <= set(pins.callees):
                raise
            self._runtime.notice(f"warning: the called documents are taken as the runs pinned them: {error}")
            return {}

    def _prompt_files(self, document: Document, callees: Mapping[str, Callee]) -> Mapping[str, str]:
        if document.declared not in self._files:
            plans = (document.runnable(), *(callee.plan for callee in callees.values()))
            self._files[document.declared] = read_prompt_files(plans, self._folder)
        return self._files[document.declared]

    def _step_models(self, old: RunView, document: Document, callees: Mapping[str, Callee]) -> dict[str, Value]:
        """Return the models of the steps of playbooks: those that the run pinned, except for steps whose choice the
        edit itself has changed. An edited called document gets those of a new run."""
        pins = old.pins
        steps: dict[str, Value] = {}
        for name, stored in pins.steps.items():
            if name and (
                name not in callees or _sha256(pins.callees.get(name)) == Source.of(callees[name].text, "").sha256
            ):
                steps[name] = stored
        for name, callee in callees.items():
            if name not in steps and name not in pins.callees:
                steps[name] = pinned_step_models(self._chosen(callee.plan, callee.source.name, pins))
        plan, before = document.runnable(), old.document.runnable()
        now, then = (self._chosen(version, old.row.document, pins) for version in (plan, before))
        recorded = read_step_models(pins.steps.get("", {}))
        paths = {step.label: path for path, step in before.steps()}
        chosen = {}
        for path, step in plan.steps():
            was = paths.get(step.label)
            unchanged = was is not None and now.get(path) == then.get(was)
            if (model := recorded.get(was or "") if unchanged else now.get(path)) is not None:
                chosen[path] = model
        steps[""] = pinned_step_models(chosen)
        return {name: models for name, models in steps.items() if models}

    def _chosen(self, plan: Plan, file: str, pins: PinnedState) -> Mapping[str, StepModel]:
        """Return the models that the steps of a playbook would have in a new run."""
        budget = self._runtime.models.context_budget
        settings = self._runtime.settings
        return choose_step_models(plan, file, settings, pins.model, one_model=pins.one_model, budget=budget).steps

    async def _as_thread(self, plan: Plan, pins: PinnedState, texts: dict[str, str]) -> PinnedState:
        """Return the pins of a directive: its inputs, its texts, and the permissions that it has now."""
        from quire.engine.interpreter.thread.compose import Bundle
        from quire.engine.interpreter.thread.setup import set_up
        from quire.plan.thread import THREAD_PATH

        before = Bundle.of(await self._runtime.store.text(pins.bundle))
        bundle = self._bundle(plan, pins, before)
        source = Source.of(bundle.encoded(), "bundle")
        texts[source.sha256] = source.text
        setup = set_up(bundle, pins.inputs, THREAD_PATH, overrides=pins.limits)
        grants = frozenset(setup.grants) | reaching(Grants.of(pins.grants))
        return replace(pins, bundle=source.sha256, grants=tuple(sorted(grants)))

    def _bundle(self, plan: Plan, pins: PinnedState, before: Bundle) -> Bundle:
        """Compose the texts of a directive from the edited file and the workspace, and from those that the run pinned
        where the workspace does not have them."""
        from quire.library.directives import BundleBuilder
        from quire.library.items import Item, Spaces
        from quire.library.verify import VerifiedItems
        from quire.models.tiers import thread_model
        from quire.trust.trusted_keys import TrustedKeys

        settings = self._runtime.settings
        items = VerifiedItems(Spaces(settings), TrustedKeys.load(settings), "warn")
        builder = BundleBuilder(settings, items, self._runtime.environ, model=False)
        text = self._source.text
        leaf = Item(before.item_id, "directive", "project", self._path.resolve(), text, text)
        bundle = builder.gathered(leaf)
        bundle = replace(
            bundle,
            directives={**before.directives, **bundle.directives},
            knowledge={**before.knowledge, **bundle.knowledge},
            hooks=bundle.hooks or before.hooks,
            warnings=before.warnings,
            rules=before.rules,
        )
        if pins.one_model or plan.thread is None:
            return bundle
        if plan.thread.model == _model_wanted(before):
            return replace(bundle, model=before.model, settings=before.settings)
        # With a default, the choice never asks a service which models it has.
        models = replace(settings.models, default=pins.model or before.model)
        choice = thread_model(plan.thread.model, models, self._runtime.environ)
        return replace(bundle, model=choice.spec, settings=choice.settings.as_value())


def _model_wanted(bundle: Bundle) -> Mapping[str, str] | None:
    from quire.engine.interpreter.thread.compose import BundleResolver

    thread = BundleResolver(bundle).directive(bundle.item_id)
    return thread.model if thread else None


def _sha256(pinned_callee: Value) -> str:
    return str(pinned_callee.get("sha256", "")) if isinstance(pinned_callee, Mapping) else ""
