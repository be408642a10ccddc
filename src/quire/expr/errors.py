"""What can be wrong with an expression, always with the characters it is about.

QuireError
└── ExpressionError
    ├── ExprSyntaxError      it is not an expression; found before anything runs
    └── EvalError            it has no value for these bindings
"""

from __future__ import annotations

from quire.errors import QuireError
from quire.source import Span


class ExpressionError(QuireError):
    """`span` counts from the start of the expression. At the end of the text it is the one place behind it."""

    def __init__(self, message: str, span: Span, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.help = help


class ExprSyntaxError(ExpressionError):
    pass


class EvalError(ExpressionError):
    pass
