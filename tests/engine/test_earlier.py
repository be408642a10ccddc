"""The text that requests share is the text that each of them would have built, and hashes to the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quire.engine.conversation import Message
from quire.engine.earlier_results import Earlier, Entry, SystemText
from quire.engine.request_hashes import request_hash
from quire.engine.requests import ModelRequest
from quire.values import Value, fingerprint

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
entries = st.lists(st.builds(Entry, texts, texts, texts, st.booleans()), max_size=6)


def told(found: list[Entry], budget: int | None) -> str:
    """As it was built before, anew for every request."""
    parts = [entry.told() for entry in found]
    left_out = 0
    if budget is not None:
        room = budget
        for kept, text in enumerate(reversed(parts)):
            room -= len(text)
            if room < 0:
                left_out = len(parts) - kept
                break
    note = f"[The results of {left_out} earlier steps are left out: they do not fit.]\n\n" if left_out else ""
    return "Results of the earlier steps, oldest first:\n\n" + note + "\n\n".join(parts[left_out:])


@given(entries, entries, texts, texts, st.none() | st.integers(0, 60), st.integers(0, 6))
def test_the_same_text_and_the_same_hash(
    first: list[Entry], later: list[Entry], system: str, closing: str, budget: int | None, kept: int
) -> None:
    earlier = Earlier()
    for entry in first:
        earlier.append(entry)
    earlier.cut(kept)
    first = first[:kept]
    if not first:
        return
    shared = SystemText.of(system, earlier, budget, closing, rules=1)
    for entry in later:
        earlier.append(entry)  # what comes afterwards changes nothing
    built = "\n\n".join(part for part in (system, told(first, budget), closing) if part)
    assert shared.text() == built
    request = ModelRequest("1/model", "1", shared, (Message("user", "x"),), {"type": "object"})
    content: dict[str, Value] = {"system": built, "messages": [["user", "x"]], "closing": {"type": "object"}}
    assert request_hash(request) == fingerprint(["model", content])
    assert request.system == built


@given(entries, entries, texts, st.none() | st.integers(0, 60), st.sets(st.integers(0, 5)))
def test_chosen_results_are_the_text_of_these_alone(
    first: list[Entry], later: list[Entry], system: str, budget: int | None, picked: set[int]
) -> None:
    earlier = Earlier()
    for entry in first:
        earlier.append(entry)
    chosen = tuple(sorted(at for at in picked if at < len(first)))
    if not chosen:
        return
    shared = SystemText.of(system, earlier, budget, "", rules=1, chosen=chosen)
    for entry in later:
        earlier.append(entry)
    assert earlier.ends
    built = "\n\n".join(part for part in (system, told([first[at] for at in chosen], budget)) if part)
    assert shared.text() == built
    request = ModelRequest("1/model", "1", shared, (Message("user", "x"),))
    content: dict[str, Value] = {"system": built, "messages": [["user", "x"]], "closing": None}
    assert request_hash(request) == fingerprint(["model", content])
