"""Which fence is the directive's."""

from __future__ import annotations

import pytest

from quire.formats.markdown import Fence, Missing, find_fence


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("```xml\na\n```\n", "a"),
        ("```xml  \na\n``` \n", "a"),
        ("```xml\n```\n", ""),
        ("x\n```xml\na\nb\n```\n```xml\nc\n```", "a\nb"),
        ("````markdown\n```xml\nno\n```\n````\n\n```xml\nyes\n```\n", "yes"),
        ("````\n```xml\nno\n```\n`````\n```xml\nyes\n```\n", "yes"),
        ("~~~\n```xml\nno\n```\n~~~\n```xml\nyes\n```\n", "yes"),
        ("```bash\nls\n```\n```xml\nyes\n```\n", "yes"),
        ("```XML\nno\n```\n```xml\nyes\n```\n", "yes"),
        ("  ```xml\nno\n  ```\n```xml\nyes\n```\n", "yes"),
        ("```xml\na\n  ```\n````\nb\n```", "a\n  ```\n````\nb"),
        ("```xml extra\nno\n```\n```xml\nyes\n```", "yes"),
        ("text ```xml\n```xml\nyes\n```", "yes"),
        ("    ```\n```xml\nyes\n```", "yes"),
    ],
)
def test_found(text: str, content: str) -> None:
    fence = find_fence(text, "xml")
    assert isinstance(fence, Fence)
    assert text[fence.content.start : fence.content.end] == content
    assert text[fence.whole.start :].startswith("```xml") and text[: fence.whole.end].rstrip().endswith("```")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "none"),
        ("# T\n\n<directive/>\n", "none"),
        ("```xml\na\n", "unclosed"),
        ("```xml", "unclosed"),
        ("```XML\na\n```\n", "other"),
        ("````\n```xml\na\n```\n", "hidden"),
        ("````\n```xml\na\n```\n````\n", "none"),
    ],
)
def test_missing(text: str, reason: str) -> None:
    fence = find_fence(text, "xml")
    assert isinstance(fence, Missing) and fence.reason == reason
