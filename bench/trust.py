"""What a permission check and a verified chain of documents cost.

    python -m bench.trust

The chain is what a thread begins with: five directives and twenty knowledge items, each with a signature by a key that
is trusted. Only the verifying is measured here, on texts that are already in memory. The best block counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from bench.rows import Row, show
from quire.trust import keys, signatures
from quire.trust.capabilities import Grants
from quire.trust.keys import SigningKey
from quire.trust.signatures import Verification, sign_text, verify_text
from quire.trust.trusted_keys import TrustedKey, TrustedKeys

BLOCKS = 15
CHECKS = 3_000
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)

GRANTS = Grants.of(
    [
        *(f"rye.execute.tool.team.tools-{number}.*" for number in range(55)),
        *(f"rye.execute.tool.mcp.server.tool_{number}" for number in range(40)),
        *(f"rye.fetch.knowledge.*.topic-{number}" for number in range(5)),
    ]
)

DIRECTIVE = """# Step {name}

Does its part.

```xml
<directive name="{name}" version="1.0.0">
  <metadata>
    <description>Does its part</description>
    <category>demo</category>
    <author>bench</author>
    <model tier="low" />
    <permissions><execute><tool>rye.file-system.*</tool></execute></permissions>
  </metadata>
</directive>
```

<process>
{lines}
</process>
"""


def best(work: Callable[[], object], times: int) -> float:
    """Seconds for one call, in the best of several blocks."""
    blocks = []
    for _ in range(BLOCKS):
        started = time.perf_counter()
        for _ in range(times):
            work()
        blocks.append((time.perf_counter() - started) / times)
    return min(blocks)


def checks() -> list[Row]:
    rows = []
    for name, item, allowed in (
        ("allowed by an exact grant", "mcp/server/tool_39", True),
        ("allowed by a wildcard", "team/tools-54/deep/one", True),
        ("denied", "rye/bash", False),
    ):
        assert GRANTS.allows("execute", "tool", item) is allowed

        def check(item: str = item) -> bool:
            return GRANTS.allows("execute", "tool", item)

        micros = best(check, CHECKS) * 1e6
        rows.append(Row(f"capability check at 100 grants: {name}", micros, "µs", "at most 5", micros <= 5))
    denied = "rye.fetch.knowledge.project.deploy.rules"
    micros = best(lambda: GRANTS.covers(denied), CHECKS) * 1e6
    rows.append(Row("the same, past every wildcard in the middle", micros, "µs", "at most 5", micros <= 5))
    return rows


def chain() -> list[Row]:
    key = SigningKey.generate("bench")
    trusted = TrustedKeys.of([TrustedKey(key.public, "bench", "own")])
    lines = "\n".join(f'  <step name="s{number}">Do thing number {number}.</step>' for number in range(60))
    signed = [
        (
            sign_text(DIRECTIVE.format(name=f"d{at}", lines=lines), "directive", f"demo/d{at}", key, MOMENT),
            f"demo/d{at}",
        )
        for at in range(5)
    ]
    knowledge = [
        (sign_text(f"# Item {at}\n\n" + "A line of knowledge.\n" * 200, "knowledge", f"demo/k{at}", key, MOMENT), at)
        for at in range(20)
    ]

    def verify() -> None:
        for text, item_id in signed:
            assert verify_text(text, "directive", item_id, trusted).outcome is Verification.OK
        for text, at in knowledge:
            assert verify_text(text, "knowledge", f"demo/k{at}", trusted).outcome is Verification.OK

    def verify_anew() -> None:
        # As the first time in a process.
        signatures._declared.cache_clear()
        keys._verifies.cache_clear()
        verify()

    first, again = best(verify_anew, 1) * 1e3, best(verify, 5) * 1e3
    return [
        Row("verifying 5 directives and 20 knowledge items", first, "ms", "at most 10", first <= 10),
        Row("the same texts once more", again, "ms", "at most 2", again <= 2),
    ]


def measure() -> list[Row]:
    return [*checks(), *chain()]


if __name__ == "__main__":
    show("trust", measure())
