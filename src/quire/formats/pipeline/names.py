"""The rule for names of pipelines, schemas, fields, stores, branches and identities."""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*+")
RULE = "a name begins with a letter or _ and goes on with letters, digits, _ and -, all of them ASCII"


def is_name(text: str) -> bool:
    return NAME.fullmatch(text) is not None
