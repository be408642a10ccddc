"""What a signature covers, in which order it is looked at, and what is said about it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.growth import within
from tests.trust.known_keys import known_key

from quire.source import normalise
from quire.trust.signature_line import Syntax
from quire.trust.signatures import Kind, Verification, is_signed, key_of, sign_text, verify_text
from quire.trust.trusted_keys import TrustedKey, TrustedKeys

NOW = datetime(2026, 2, 10, 2, 0, tzinfo=UTC)
KEY = known_key(1, "me")
OTHER = known_key(2, "other")
TRUSTED = TrustedKeys.of([TrustedKey(KEY.public)])

DIRECTIVE = """# T

```xml
<directive name="d" version="1.0.0">
  <metadata>
    <category>demo</category>
  </metadata>
</directive>
```

Do it.
"""
KINDS: list[tuple[Kind, str, str]] = [
    ("directive", "demo/d", DIRECTIVE),
    ("knowledge", "demo/k", "```yaml\nname: k\n```\nBody\n"),
    ("playbook", "notes/tagline.playbook.md", "# T\n\n## STEP 1: A\n\nx\n"),
    ("pipeline", "pipelines/p.yaml", "pipeline: p\nsteps: []\n"),
]


def outcome(text: str, kind: Kind = "directive", item: str = "demo/d", trusted: TrustedKeys = TRUSTED) -> Verification:
    return verify_text(text, kind, item, trusted).outcome


def signed(kind: Kind = "directive", item: str = "demo/d", text: str = DIRECTIVE) -> str:
    return sign_text(text, kind, item, KEY, NOW)


@pytest.mark.parametrize(("kind", "item", "text"), KINDS)
def test_what_was_signed_verifies_and_nothing_else_does(kind: Kind, item: str, text: str) -> None:
    done = signed(kind, item, text)
    verdict = verify_text(done, kind, item, TRUSTED)
    assert (verdict.outcome, verdict.key_id, verdict.message) == (Verification.OK, KEY.key_id, "")
    assert done.partition("\n")[2] == text, "the rest of the file is untouched"
    assert (is_signed(done, kind), is_signed(text, kind)) == (True, False)
    assert outcome(text, kind, item) is Verification.UNSIGNED
    assert outcome(done + "\n", kind, item) is Verification.MODIFIED
    assert outcome(done[:-1], kind, item) is Verification.MODIFIED
    assert outcome(done, kind, item, TrustedKeys()) is Verification.UNTRUSTED
    assert outcome(done, kind, item, TrustedKeys.of([TrustedKey(KEY.public)], [KEY.key_id])) is Verification.REVOKED


def test_the_line_has_the_form_of_the_guide() -> None:
    line = signed().partition("\n")[0]
    fields = r"rye:signed:2026-02-10T02:00:00Z:[a-f0-9]{64}:[A-Za-z0-9_-]{86}==:[a-f0-9]{16}"
    assert re.fullmatch(f"<!-- {fields} -->", line)
    line = signed("pipeline", "a b/ü.yaml", "pipeline: p\n").partition("\n")[0]
    assert re.fullmatch(rf"# {fields}\|pipeline:a%20b/%C3%BC\.yaml", line)


def test_the_signature_of_a_directive_is_made_over_the_hash_in_hex() -> None:
    """So that any other program that knows the form can check it."""
    import base64
    import hashlib

    line, _, rest = signed().partition("\n")
    *_, digest, signature, _ = line.removesuffix(" -->").split(":")
    assert digest == hashlib.sha256(rest.encode()).hexdigest()
    assert KEY.public.verifies(base64.urlsafe_b64decode(signature), digest.encode("ascii"))


def test_the_time_is_utc_whatever_the_clock_shows() -> None:
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    assert sign_text(DIRECTIVE, "directive", "demo/d", KEY, east) == signed()


@pytest.mark.parametrize(
    "before",
    [
        "",
        signed().partition("\n")[0] + "\n",
        "<!-- rye:signed:TIMESTAMP:HASH:SIGNATURE:KEYID -->\n",
        "<!-- rye:signed:2026-02-10T02:00:00Z:placeholder:unsigned:unsigned -->\n",
        "<!-- rye:signed:broken\n",
        2 * (signed().partition("\n")[0] + "\n"),
    ],
)
def test_signing_again_replaces_the_line(before: str) -> None:
    assert signed(text=before + DIRECTIVE) == signed()


def test_a_line_below_blank_lines_is_replaced_too() -> None:
    again = signed(text="\n \n" + signed())
    assert (outcome(again), again.count("rye:signed:")) == (Verification.OK, 1)


@pytest.mark.parametrize(("mark", "end"), [("\ufeff", "\n"), ("", "\r\n"), ("\ufeff", "\r\n"), ("", "\r")])
def test_all_other_bytes_stay_and_line_ends_do_not_matter(mark: str, end: str) -> None:
    text = mark + DIRECTIVE.replace("\n", end)
    done = signed(text=text)
    line, _, rest = done.partition(end)
    assert mark + rest == text
    assert line.startswith(mark + "<!-- rye:signed:")
    assert outcome(normalise(done)) is Verification.OK
    assert normalise(done) == signed(), "the same text has the same signature"


@pytest.mark.parametrize(
    ("moved_kind", "moved_item", "as_"),
    [
        ("playbook", "other.playbook.md", "playbook notes/tagline.playbook.md"),
        ("knowledge", "notes/tagline.playbook.md", "playbook notes/tagline.playbook.md"),
        ("directive", "notes/tagline.playbook.md", "playbook notes/tagline.playbook.md"),
    ],
)
def test_another_place_or_kind_has_its_own_reason(moved_kind: Kind, moved_item: str, as_: str) -> None:
    kind, item, text = KINDS[2]
    verdict = verify_text(signed(kind, item, text), moved_kind, moved_item, TRUSTED)
    assert verdict.outcome is Verification.MISPLACED
    assert f"was signed as {as_}," in verdict.message


@pytest.mark.parametrize("item", ["demo/e", "d", "other/d", "demo/x/d"])
def test_a_directive_is_bound_by_its_own_name(item: str) -> None:
    verdict = verify_text(signed(), "directive", item, TRUSTED)
    assert verdict.outcome is Verification.MISPLACED
    assert "was signed as directive demo/d" in verdict.message
    assert outcome(signed(), "knowledge", "demo/d") is Verification.MISPLACED


@pytest.mark.parametrize(
    "text", ["no fence at all\n", "```xml\n<directive/>\n```\n", "```xml\n<other name='d'/>\n```\n", "```xml\n<di"]
)
def test_a_directive_that_names_nothing_has_no_place(text: str) -> None:
    assert outcome(signed(text=text)) is Verification.MISPLACED


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda line: line.replace("2026-02-10", "2031-12-24"), Verification.OK),
        (lambda line: line.replace("2026-02-10", "2026-13-40"), Verification.MALFORMED),
        (lambda line: line.replace("2026-02-10T02:00:00Z", "yesterday"), Verification.MALFORMED),
        (lambda line: re.sub("[0-9a-f]{64}", "0" * 64, line), Verification.MODIFIED),
        (lambda line: re.sub("[0-9a-f]{64}", "0" * 63, line), Verification.MALFORMED),
        (lambda line: re.sub("([0-9a-f]{64})", lambda found: found[1].upper(), line), Verification.MALFORMED),
        (lambda line: line.replace(KEY.key_id, "0123456789abcdef"), Verification.UNTRUSTED),
        (lambda line: line.replace(KEY.key_id, KEY.key_id[:-1]), Verification.MALFORMED),
        (lambda line: re.sub(":[^:]{86}==:", f":{'A' * 86}==:", line), Verification.BAD_SIGNATURE),
        (lambda line: re.sub(":[^:]{86}==:", ":AAAA:", line), Verification.BAD_SIGNATURE),
        (lambda line: re.sub(":[^:]{86}==:", ":A:", line), Verification.BAD_SIGNATURE),
        (lambda line: re.sub(":[^:]{86}==:", ":$$:", line), Verification.MALFORMED),
        (lambda line: re.sub(":[^:]{86}==:", "::", line), Verification.MALFORMED),
        (lambda line: line.replace(" -->", "|github@me -->"), Verification.OK),
        (lambda line: line.replace(" -->", "|github@me and more -->"), Verification.MALFORMED),
        (lambda line: line.replace(" -->", "|knowledge:demo/d -->"), Verification.BAD_SIGNATURE),
        (lambda line: line.replace(" -->", "|directive:demo/d -->"), Verification.BAD_SIGNATURE),
        (lambda line: line + " ", Verification.MALFORMED),
        (lambda line: " " + line, Verification.MALFORMED),
        (lambda line: "\u200b" + line, Verification.MALFORMED),
        (lambda line: "\ufeff" + line, Verification.MALFORMED),
        (lambda line: line.replace("<!-- ", "<!--"), Verification.MALFORMED),
        (lambda line: line.replace("-->", "--> evil -->"), Verification.MALFORMED),
        (lambda line: line[:60], Verification.MALFORMED),
        (lambda line: f"\n{line}", Verification.UNSIGNED),
        (lambda line: f"# Title\n{line}", Verification.UNSIGNED),
        (lambda line: f"{line}\n{line}", Verification.STACKED),
        (lambda line: f"{line}\n\n<!-- rye:signed:anything", Verification.STACKED),
        (lambda line: "<!-- rye:signed:TIMESTAMP:HASH:SIGNATURE:KEYID -->", Verification.UNSIGNED),
        (lambda line: "<!-- rye:signed:2026-02-10T02:00:00Z:placeholder:unsigned:unsigned -->", Verification.UNSIGNED),
        (lambda line: "# " + line.removeprefix("<!-- ").removesuffix(" -->"), Verification.UNSIGNED),
    ],
)
def test_edits_of_the_line(change: object, expected: Verification) -> None:
    line, _, rest = signed().partition("\n")
    assert callable(change)
    assert outcome(f"{change(line)}\n{rest}") is expected


def test_the_signature_of_somebody_else_under_a_trusted_id() -> None:
    theirs = sign_text(DIRECTIVE, "directive", "demo/d", OTHER, NOW)
    assert outcome(theirs) is Verification.UNTRUSTED
    assert outcome(theirs.replace(OTHER.key_id, KEY.key_id)) is Verification.BAD_SIGNATURE


def test_examples_of_signatures_further_down_are_content() -> None:
    text = DIRECTIVE + "\n```markdown\n<!-- rye:signed:TIMESTAMP:HASH:SIGNATURE:KEYID -->\n```\n"
    assert outcome(signed(text=text)) is Verification.OK
    assert signed(text=text).count("rye:signed:") == 2


@pytest.mark.parametrize(
    ("text", "trusted", "words"),
    [
        (DIRECTIVE, TRUSTED, ["directive demo/d is unsigned", "quire sign .ai/directives/demo/d.md"]),
        ("\n" + signed(), TRUSTED, ["line 1 only", "line 2"]),
        (signed() + "x", TRUSTED, ["modified since it was signed", "quire sign"]),
        (signed(), TrustedKeys(), [f"quire trust add {KEY.key_id}", "untrusted", "quire sign"]),
        (signed(), TrustedKeys.of([], [KEY.key_id]), ["revoked", "quire sign"]),
        (signed()[:60], TRUSTED, ["malformed", "quire sign"]),
    ],
)
def test_every_refusal_says_how_to_go_on(text: str, trusted: TrustedKeys, words: list[str]) -> None:
    message = verify_text(text, "directive", "demo/d", trusted).message
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_messages_name_the_file_as_the_user_does() -> None:
    assert "quire sign x/p.yaml" in verify_text("pipeline: p\n", "pipeline", "p.yaml", TRUSTED, path="x/p.yaml").message
    assert "quire sign .ai/knowledge/k.yaml" in verify_text("a: 1\n", "knowledge", "k", TRUSTED, syntax="yaml").message


@pytest.mark.parametrize("syntax", ["markdown", "yaml"])
def test_knowledge_has_two_forms(syntax: Syntax) -> None:
    done = sign_text("name: k\n", "knowledge", "demo/k", KEY, NOW, syntax=syntax)
    assert done.startswith("#" if syntax == "yaml" else "<!--")
    assert outcome(done, "knowledge", "demo/k") is Verification.OK
    assert verify_text(done, "knowledge", "demo/k", TRUSTED, syntax=syntax).ok
    other: Syntax = "markdown" if syntax == "yaml" else "yaml"
    assert not verify_text(done, "knowledge", "demo/k", TRUSTED, syntax=other).ok
    assert (key_of(done, syntax), key_of(done, other)) == (KEY.key_id, None)


texts = st.text(st.characters(codec=None), max_size=80)


@settings(deadline=None)
@given(texts, st.sampled_from(["knowledge", "playbook", "pipeline"]), st.text(min_size=1, max_size=20))
def test_any_text_and_any_name_can_be_signed_and_verified(text: str, kind: Kind, item: str) -> None:
    done = sign_text(text, kind, item, KEY, NOW)
    assert outcome(done.removeprefix("\ufeff"), kind, item) is Verification.OK
    assert outcome(sign_text(done, kind, item, KEY, NOW).removeprefix("\ufeff"), kind, item) is Verification.OK
    assert outcome(done.removeprefix("\ufeff"), kind, item + "x") is Verification.MISPLACED


@settings(deadline=None)
@given(texts, texts)
def test_verifying_never_raises(first: str, rest: str) -> None:
    for kind in ("directive", "knowledge", "playbook", "pipeline"):
        for opening in ("", "<!-- rye:signed:", "# rye:signed:"):
            assert outcome(f"{opening}{first}\n{rest}", kind) is not Verification.OK


def test_hostile_first_lines_are_read_quickly() -> None:

    with within(5):
        for line in ("<!--" * 50_000, " " * 200_000, "<!-- rye:signed:" + ":" * 200_000, "#" * 200_000):
            assert outcome(line) is not Verification.OK
            assert sign_text(line, "playbook", "x", KEY, NOW)
