"""SE: find secrets that stand in a document, private values that leave, and reads of files that hold keys."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING

from quire.analysis.labels import Integrity, Privacy
from quire.analysis.rules import codes
from quire.analysis.rules.flows import flow, named, short, step_words, within_callee
from quire.analysis.rules.shown_values import Agreements
from quire.analysis.tool_flows import argv
from quire.diagnostics import Diagnostic
from quire.patterns import late_pattern
from quire.source import Span
from quire.trust.secrets import looks_secret

if TYPE_CHECKING:
    from quire.analysis.abstract_values import AbstractValue
    from quire.analysis.facts import EffectFact
    from quire.analysis.proof import Proof
    from quire.analysis.rules import RuleContext

_BEGINNINGS = {
    "sk-": late_pattern(r"sk-(?:[a-z]{2,10}-)?[A-Za-z0-9_-]{20,200}"),
    "gh": late_pattern(r"gh[opsur]_[A-Za-z0-9]{30,100}(?![A-Za-z0-9_-])"),
    "github_pat_": late_pattern(r"github_pat_[A-Za-z0-9_]{40,120}"),
    "glpat-": late_pattern(r"glpat-[A-Za-z0-9_-]{20,60}"),
    "xox": late_pattern(r"xox[abeprs]-[A-Za-z0-9-]{10,100}"),
    "AKIA": late_pattern(r"AKIA[A-Z0-9]{16}(?![A-Za-z0-9_-])"),
    "ASIA": late_pattern(r"ASIA[A-Z0-9]{16}(?![A-Za-z0-9_-])"),
    "AIza": late_pattern(r"AIza[A-Za-z0-9_-]{35}"),
    "npm_": late_pattern(r"npm_[A-Za-z0-9]{36}"),
    "hf_": late_pattern(r"hf_[A-Za-z0-9]{30,60}(?![A-Za-z0-9_-])"),
    "-----BEGIN ": late_pattern(r"-----BEGIN (?:[A-Z]{2,12} ){0,2}PRIVATE KEY-----"),
    "eyJ": late_pattern(r"eyJ[A-Za-z0-9_-]{10,500}\.eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{20,500}"),
    "http": late_pattern(r"https?://[A-Za-z0-9._~-]{1,60}:[^\s/@:{}$*<>\"']{6,100}@[A-Za-z0-9.-]{3,}"),
}
"""Keys that can be told by how they begin, private keys, signed tokens, and addresses with a password."""
_INSIDE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
"""Characters before which a key does not begin."""
_PLACEHOLDER = late_pattern(r"(?i)example|changeme|your[-_ ]|placeholder|dummy|redacted|x{4,}|\.{3}|…|(.)\1{7}")
_VALUE = late_pattern(r"(?:(?:Bearer|Basic|Token)\s+)?([A-Za-z0-9+/=_.~-]{12,400})")
_MOST = 20
"""Findings about the text of one document."""
_KEY_FILES = (
    *(".env", ".env.*", "*.env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx"),
    *("*.keystore", "*.jks", ".netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd"),
    *("credentials", "credentials.json", "credentials.*", "secrets.yaml", "secrets.yml", "secrets.json"),
    *("secrets.toml", "service-account*.json", ".vault-token", "shadow", "kubeconfig"),
)
_KEY_FOLDERS = frozenset((".ssh", ".aws", ".gnupg", ".kube", ".azure", ".gcloud"))
_HARMLESS = ("*.example", "*.sample", "*.template", "*.dist", "*.pub", "known_hosts", "authorized_keys")
_PATHS = ("path", "pattern", "glob", "include", "working_dir")


def check(proof: Proof, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield secrets of the document, private values that leave, and reads of key files."""
    spans = list(_literals(context.source.text))
    agreements = Agreements()
    for span, what in spans:
        yield _literal(span, what)
    for effect in proof.effects:
        yield from _leaves(effect, agreements, context)
        if effect.place.document:
            continue
        yield from _key_files(effect, context)
        for name, value in _named_constants(effect.arguments):
            start = context.source.text.find(value, effect.place.span.start)
            span = Span(start, start + len(value)) if start >= 0 else context.span(effect.place)
            if not any(literal.start <= span.start < literal.end for literal, _ in spans):
                yield _literal(span, f"a value for {name}")


def _literal(span: Span, what: str) -> Diagnostic:
    help = "revoke it, and let a header or a server take it from the environment"
    return Diagnostic(codes.LITERAL, f"the document contains {what} that looks like a secret", span, help=help)


def _literals(text: str) -> Iterator[tuple[Span, str]]:
    """Yield the places of keys that can be told by their form. The keys themselves are never shown."""
    count = 0
    for beginning, pattern in _BEGINNINGS.items():
        at = text.find(beginning)
        while at >= 0 and count < _MOST:
            match = pattern.match(text, at) if at == 0 or text[at - 1] not in _INSIDE else None
            if match and not _PLACEHOLDER.search(match[0]):
                count += 1
                yield Span(at, match.end()), "an address with a password" if beginning == "http" else "a text"
            at = text.find(beginning, match.end() if match else at + len(beginning))


def _named_constants(values: Mapping[str, AbstractValue], depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the literal texts of arguments, and of fields in them, whose names say that they are secret."""
    for name, value in values.items():
        constant = value.constant if value.is_constant else None
        if isinstance(constant, str) and looks_secret(name) and _seems_secret(constant):
            yield name, constant
        elif value.fields and depth < 4:
            yield from _named_constants(value.fields, depth + 1)


def _seems_secret(text: str) -> bool:
    match = _VALUE.fullmatch(text.strip())
    if match is None or _PLACEHOLDER.search(text):
        return False
    return bool(re.search(r"[0-9]", match[1]) and re.search(r"[A-Za-z]", match[1]))


def _leaves(effect: EffectFact, agreements: Agreements, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield a finding for a private value that is sent out. With text from outside it is one of TA106."""
    if not effect.tool.sends_out:
        return
    label = effect.given
    trace = label.private_trace
    if label.privacy < Privacy.PRIVATE or label.integrity >= Integrity.OUTSIDE or trace is None:
        return
    if within_callee(trace, effect.place) or agreements.questions(effect):
        return
    name = short(effect.tool.name)
    message = f"{named(trace)} is private and leaves with {name} of {step_words(effect.place.way)}"
    shown = f"{name} sends out"
    help = "ask a person who is shown the value, or do not pass it on"
    confidence = effect.tool.certain and not effect.by_model
    yield flow(codes.LEAVES, message, effect, trace, shown, context, help, "proven" if confidence else "possible")


def _key_files(effect: EffectFact, context: RuleContext) -> Iterator[Diagnostic]:
    """Yield a finding for a file of keys that a step names."""
    if effect.by_model or (effect.tool.kind == "built-in" and effect.tool.effect != "read"):
        return
    words: list[str] = []
    if effect.tool.kind == "shell" and (command := effect.arguments.get("command")) is not None:
        parts = argv(command) or [command]
        words = [word for part in parts if part.is_constant for word in re.split(r"[\s;|&<>'\"=]+", str(part.constant))]
    elif effect.tool.kind == "built-in":
        values = [effect.arguments[name] for name in _PATHS if name in effect.arguments]
        words = [value.constant for value in values if value.is_constant and isinstance(value.constant, str)]
    for word in words:
        if _holds_keys(word):
            help = "let the program that needs the key read it by itself"
            message = f"step {effect.place.way} reads {word[:100]}, which usually holds keys"
            yield Diagnostic(codes.KEY_FILES, message, context.span(effect.place), help=help, confidence="possible")
            return


def _holds_keys(path: str) -> bool:
    name = posixpath.basename(path.rstrip("/"))
    if _matches(_HARMLESS).match(name):
        return False
    return bool(_matches(_KEY_FILES).match(name)) or not _KEY_FOLDERS.isdisjoint(path.split("/")[:-1])


@lru_cache(maxsize=2)
def _matches(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))
