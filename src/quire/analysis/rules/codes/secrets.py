"""SE1xx: secrets in documents, and private values that leave."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_warning = partial(make, Severity.WARNING)

LITERAL = _warning(
    "SE101",
    "literal-secret",
    "A document contains a key, a token or a password.",
    "Documents are shared, versioned, signed and sent to models. Revoke the secret, and let a header or a server take\n"
    "it from the environment: `[http]` in your own settings, `${VAR}` in `.mcp.json`, `shell=env:NAME` for commands.",
    '- {tool: {name: http__get, args: {url: "https://api.example.org", headers: {X-Api-Key: 8f4bd61c9e2a47d3}}}}',
    '- {tool: {name: http__get, args: {url: "https://api.example.org"}}}',
)
LEAVES = _warning(
    "SE102",
    "private-to-outside",
    "A private value is given to a tool that sends it out, and no person is asked before.",
    "Private are knowledge, files of `[privacy]`, results of servers that you have marked so, and everything that a\n"
    "model wrote after reading them. Ask a person who is shown the value, or do not pass it on.",
    "- {tool: {name: file__read, args: {path: secrets/rates.csv}, output: rates}}\n"
    '- {tool: {name: http__send, args: {method: POST, url: "https://example.org", json: !expr rates}}}',
    "- {tool: {name: file__read, args: {path: secrets/rates.csv}, output: rates}}\n"
    "- {tool: {name: ask, args: {prompt: Send it?, type: confirm, show: !expr rates}, output: ok}}\n"
    '- {tool: {when: "ok == \'yes\'", name: http__send, args: {method: POST, url: "https://example.org", '
    "json: !expr rates}}}",
)
KEY_FILES = _warning(
    "SE103",
    "reads-key-files",
    "A step reads a file that usually holds keys or passwords.",
    "Its contents go into the journal of the run, and to a model that reads the result. Secrets that Quire knows are\n"
    "removed from both, but it does not know those in a file. Let the command that needs the key read it by itself.",
    "- {tool: {name: file__read, args: {path: .env}, output: settings}}",
    "- {tool: {name: shell, args: {command: ./deploy.sh}}}",
)
