"""Comments that hide findings: `quire: allow CODE because "reason"`, in the comment of the format.

A comment is read only where the format itself skips comments, so it never changes the prompt that a model is sent. The
rules for the places are in `comments`; reading the words of a comment and hiding findings is in `allows`.
"""

from __future__ import annotations
