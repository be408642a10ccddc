"""The headers of a request: those that a document may set, and those that the user adds for one origin.

A document cannot set a secret header, because it would end up in documents and journals. The user names it in the
`quire.toml` of their own space, under `[http."HOST"]`; it is read here, below the gate, and nothing above sees it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.errors import ToolFailed
from quire.trust.secrets import looks_secret
from quire.workspace.host_headers import HostHeaders, name_problem, value_problem

if TYPE_CHECKING:
    from quire.values import Value


class OriginHeaders(Struct, frozen=True):
    """The user's headers by origin, with the environment that their variables come from."""

    tables: Sequence[HostHeaders] = ()
    environ: Mapping[str, str] = field(default_factory=dict)

    def of(self, scheme: str, host: str, port: int) -> dict[str, str]:
        """Return the headers for an origin. Raises `ToolFailed` if a variable is not set or cannot be sent."""
        found: dict[str, str] = {}
        for table in self.tables:
            if not table.is_for(scheme, host, port):
                continue
            if missing := table.missing(self.environ):
                listed = ", ".join(missing)
                raise ToolFailed(
                    f"the headers for {table.name} need {listed}, which is not set; nothing was sent", kind="arguments"
                )
            for name, text in table.filled(self.environ).items():
                if problem := value_problem(text):
                    # Not the value: it is a secret.
                    raise ToolFailed(
                        f"the header {name} for {table.name} {problem}; nothing was sent", kind="arguments"
                    )
                found[name] = text
        return found


def header_problem(name: str, value: object = "") -> str:
    """Return the reason why a document cannot set a header; empty if it can."""
    if problem := name_problem(name):
        return problem
    if looks_secret(name):
        way = 'put it under [http."HOST"] headers in the quire.toml of your own space'
        return f"the header {name} cannot be set by a document, which would hold a secret: {way}"
    problem = value_problem(str(value))
    return f"the header {name} cannot be set: it {problem}" if problem else ""


def sent_headers(usual: Mapping[str, str], given: Value, *, checked: bool = False) -> dict[str, str]:
    """Return headers with others in their place. Names are compared without case. Raises `ToolFailed`.

    `checked` headers are those of the user.
    """
    headers = dict(usual)
    for name, value in given.items() if isinstance(given, Mapping) else ():
        text = str(value)
        if not checked and (problem := header_problem(name, text)):
            raise ToolFailed(problem, kind="arguments")
        for other in [one for one in headers if one.lower() == name.lower()]:
            del headers[other]
        headers[name] = text
    return headers
