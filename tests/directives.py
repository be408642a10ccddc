"""Texts of directives."""

from __future__ import annotations


def directive(
    name: str,
    permissions: str = "",
    body: str = "Do it.",
    *,
    title: str = "",
    description: str = "Does it.",
    category: str = "demo",
    author: str = "tests",
    tier: str = "low",
    meta: str = "",
    more: str = "",
    extends: str = "",
) -> str:
    """Return the text of a directive. `meta` has further elements of its metadata, `more` those that follow it."""
    lines = [
        f"<description>{description}</description>",
        f"<category>{category}</category>",
        f"<author>{author}</author>",
        f'<model tier="{tier}" />',
        *meta.splitlines(),
        *([f"<permissions>{permissions}</permissions>"] if permissions else []),
    ]
    head = "".join(f"    {line}\n" for line in lines)
    rest = "".join(f"  {line}\n" for line in more.splitlines())
    root = f'<directive name="{name}" version="1.0.0"{extends}>\n  <metadata>\n{head}  </metadata>\n{rest}</directive>'
    return f"# {title or name.capitalize()}\n\n```xml\n{root}\n```\n\n{body}\n"
