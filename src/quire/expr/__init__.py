"""R1, the expression language of pipelines: read once into a tree with spans, compiled to closures, evaluated often.

It is total. Evaluating ends, within limits on depth, work and size, in a value or in an `EvalError` that points at
characters of the expression. There are no variables to change, no calls but the nine combinators, no input or output.
"""

from quire.expr.compile import Compiled, compile
from quire.expr.errors import EvalError, ExpressionError, ExprSyntaxError
from quire.expr.kinds import python_text
from quire.expr.parse import parse
from quire.expr.syntax import RESERVED, Expression, Read, reads

__all__ = [
    "RESERVED",
    "Compiled",
    "EvalError",
    "ExprSyntaxError",
    "Expression",
    "ExpressionError",
    "Read",
    "compile",
    "parse",
    "python_text",
    "reads",
]
