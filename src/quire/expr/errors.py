"""Errors of expressions, each with its span, and the codes under which the document's reader reports them.

QuireError
└── ExpressionError
    ├── ExprSyntaxError      it is not an expression; found before anything runs
    │   └── NeedsDialect     it calls a function that only the Quire dialect has
    └── EvalError            it has no value for these bindings
"""

from __future__ import annotations

from quire.diagnostics import Code, Diagnostic, Severity
from quire.errors import QuireError
from quire.source import Span


class ExpressionError(QuireError):
    """An expression cannot be parsed or evaluated.

    `span` counts from the start of the expression. At the end of the text it is the one position after it.
    """

    def __init__(self, message: str, span: Span, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.help = help


class ExprSyntaxError(ExpressionError):
    pass


class NeedsDialect(ExprSyntaxError):
    """An expression of the seed's language calls a function of the Quire dialect."""


class EvalError(ExpressionError):
    pass


EXPRESSION_SYNTAX = Code(
    "EX001",
    "expression-syntax",
    Severity.ERROR,
    """The text is not an expression of the R1 language.

Values are numbers, quoted texts, true, false, null, lists and maps. Operators are `and or not`, `== != < > <= >=` and
`+ - * /`. The only calls are map, filter, all, any, find, count, sum, join and get; a document that says
`dialect: quire` has more functions.

Wrong:

    ctx.items[0]
    len(ctx.items)
    1 < ctx.n < 5

Right:

    find(ctx.items, item -> true)
    count(ctx.items)
    1 < ctx.n and ctx.n < 5""",
)

EXPRESSION_FAILED = Code(
    "EX002",
    "expression-failed",
    Severity.ERROR,
    """The expression is well formed, but has no value for what it was given.

A path insists: a missing key, or a member of something that is not a map, is a failure. `get` gives null, or a default,
instead. Operators take values of one kind; a boolean is not a number.

Wrong:

    ctx.review.notes + 1

Right:

    get(ctx, 'review.notes', '') + '!'""",
)

UNKNOWN_ESCAPE = Code(
    "EX003",
    "unknown-escape",
    Severity.LINT,
    """A backslash stands before a character that it does not change.

The backslash is dropped: `\\d` is the letter d. Escapes are `\\n`, `\\t`, `\\\\` and the two quotes.

Wrong:

    join(ctx.parts, '\\d')

Right:

    join(ctx.parts, '\\\\d')""",
)

REPEATED_KEY = Code(
    "EX004",
    "repeated-key",
    Severity.LINT,
    """A map names one key twice.

The last value counts, and the one before it is computed for nothing.

Wrong:

    {a: 1, a: 2}

Right:

    {a: 1, b: 2}""",
)

CODES = (EXPRESSION_SYNTAX, EXPRESSION_FAILED, UNKNOWN_ESCAPE, REPEATED_KEY)


def diagnostic(error: ExpressionError, offset: int = 0) -> Diagnostic:
    """Turn an error into a finding about the document in which the expression begins at `offset`."""
    code = EXPRESSION_SYNTAX if isinstance(error, ExprSyntaxError) else EXPRESSION_FAILED
    span = Span(error.span.start + offset, error.span.end + offset)
    return Diagnostic(code, error.message, span, help=error.help)
