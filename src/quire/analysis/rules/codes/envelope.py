"""EV101 to EV104: permissions that are wider than a document needs, or that cannot be known."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_lint = partial(make, Severity.LINT)

UNUSED_GRANT = _lint(
    "EV101",
    "unused-grant",
    "An agent is given a tool that it can never use, or that it is given twice.",
    "`capabilities` only narrows the tools of the identity under `[agents]` in `quire.toml`: a tool that the identity\n"
    "does not have is not offered to the model. DR302 asks the same about the permissions of directives, and PL103\n"
    "names tools that do not exist.",
    '# quire.toml: [agents.reader] tools = ["file__read"]\n'
    "- agent: {identity: reader, prompt: hi, capabilities: {tools: [file__read, file__write]}}",
    '# quire.toml: [agents.reader] tools = ["file__read"]\n'
    "- agent: {identity: reader, prompt: hi, capabilities: {tools: [file__read]}}",
)
WILDCARD_GRANT = _lint(
    "EV102",
    "wildcard-grant",
    "A model may use every tool that fits a pattern, and some of them change something.",
    "A server can add tools later, and they fit as well. Name the tools that the step needs. Patterns in the\n"
    "permissions of directives are signed by a person; DR117 reports those that cover everything there is.",
    '- agent: {prompt: hi, capabilities: {tools: ["tickets__*"]}}',
    "- agent: {prompt: hi, capabilities: {tools: [tickets__list, tickets__create]}}",
)
INCOMPLETE = _lint(
    "EV103",
    "incomplete",
    "A document that is called leads to one that is not found, or the document does too much to list all of it.",
    "Then nothing is proven of it: bounds are infinite and the envelope is not all. A document that is called\n"
    "directly and not found is PL101 or PB225.",
    "- call: {pipeline: report}  # which calls mial, and there is no mial",
    "- call: {pipeline: report}  # which calls mail",
)
NETWORK_SHELL = _lint(
    "EV104",
    "network-shell",
    "A command that a model or the caller of the document can change runs with the network.",
    "`shell=network` or `shell=unsandboxed` is allowed for every run in your `quire.toml`, so such a command can send\n"
    "files of the workspace anywhere. Allow it for single runs (`--allow shell=network`), or write the command out.",
    "- shell: {command: !expr \"'curl ' + ctx.address\"}",
    "- tool: {name: http__get, args: {url: !expr ctx.address}}",
)
