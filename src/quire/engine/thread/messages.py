"""The words that a thread's model reads and that are ours: the frame around a directive, and what it is told later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.engine.thread.returns import escaped
from quire.plan.thread import Parameter
from quire.trust.capabilities import RETURN

START = "Carry out the directive above now: work through it step by step, with the tools that you are offered."
FINISH = f"When all of it is done, call {RETURN} with the outputs that it lists."


def directive_element(
    name: str, description: str, permissions: str, parts: Iterable[str], returns: str | None = None
) -> str:
    """The directive as its model gets it. `parts` are put in as they are, the empty ones left out."""
    written = escaped(name).replace('"', "&quot;")
    lines = [f'<directive name="{written}">']
    if description.strip():
        lines.append(f"<description>{escaped(description.strip())}</description>")
    lines += [part.strip("\n") for part in (permissions, *parts, returns or "") if part.strip()]
    return "\n".join([*lines, "</directive>"])


def closing_words(outputs: Sequence[Parameter]) -> str:
    return f"{START} {FINISH}" if outputs else START


def joined(blocks: Iterable[str]) -> str:
    """Blocks of text with a blank line between them."""
    return "\n\n".join(stripped for block in blocks if (stripped := block.strip("\n")).strip())


def nudge(outputs: Sequence[Parameter]) -> str:
    """What a model is told that has written text where work was expected of it."""
    if outputs:
        names = ", ".join(output.name for output in outputs)
        return f"Nothing has been returned yet. When you are done, call {RETURN} with: {names}."
    return "Carry the directive out with the tools that you have. If there is nothing left to do, say so."
