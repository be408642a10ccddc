"""R1, the expression language of pipelines: parsed into a tree with spans, compiled to closures, evaluated many times.

The language is total. Every evaluation ends, within limits on depth, work and size, in a value or in an `EvalError`
that points at characters of the expression. There are no mutable variables, no calls other than the nine combinators
and, in documents of the Quire dialect, the functions of `functions.py`, and no input or output.
"""

from quire.expr.compile import Compiled, compile
from quire.expr.errors import EvalError, ExpressionError, ExprSyntaxError, NeedsDialect
from quire.expr.parse import parse
from quire.expr.syntax import RESERVED, Expression, Read, reads
from quire.expr.values import python_text

__all__ = [
    "RESERVED",
    "Compiled",
    "EvalError",
    "ExprSyntaxError",
    "Expression",
    "ExpressionError",
    "NeedsDialect",
    "Read",
    "compile",
    "parse",
    "python_text",
    "reads",
]
