"""How deep, how long and how much work an expression may be. They are far from what people write, and near enough
that a hostile document costs a second or two and some hundred megabytes, not the process."""

from __future__ import annotations

MAX_LENGTH = 100_000
"""Characters of an expression."""

MAX_NESTING = 100
"""Brackets in brackets, and nodes in nodes of the tree: the compiler and the closures take a Python frame for each."""

MAX_STEPS = 5_000_000
"""Nodes that one evaluation may visit. What C loops do for us is charged at a fraction, by the size of its data."""

MAX_ITEMS = 1_000_000
"""Items in one list, and in all lists and maps of a result together."""

MAX_TEXT = 16_000_000
"""Characters in one text, and in all texts of a result together."""

MAX_DIGITS = 4_300
"""Python refuses to write longer integers, so they could not be stored."""

MAX_BITS = 14_284
"""The most bits that are certain to need no more than `MAX_DIGITS` digits."""
