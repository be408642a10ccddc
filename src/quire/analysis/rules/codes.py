"""The codes of the rules, family by family:

- TA: values from outside that reach a place where they can do harm.
- BD: amounts that nothing bounds, or that a limit of the engine cuts off.
- GA: effects that happen without a person's yes, and questions that do not protect as they seem to.
- DD: parts of documents that never run, never decide, or are never read.
- EV: permissions that are wider than a document needs, or that cannot be known.
- SE: secrets in documents, and private values that leave.
- RC: work that runs side by side and changes the same thing.
"""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_warning = partial(make, Severity.WARNING)
_lint = partial(make, Severity.LINT)

_SOURCES = (
    "From outside are pages and replies of servers, results and prompts of MCP servers that you have not marked as\n"
    "trusted, output of commands that may use the network, and everything that a model wrote after reading such text."
)

COMMAND = _warning(
    "TA101",
    "outside-to-command",
    "A value from outside becomes a command, an argument of a command, or its standard input.",
    f"{_SOURCES}\nSuch a text can name another file, add an option, or be run as code. Take a number, a truth value,\n"
    "or a word of an enum or of an anchored pattern (`^v[0-9]+$`) out of it with a schema, put `--` before words that\n"
    "are only data, or show the value to a person and run the command only after a yes.",
    'steps:\n  - {tool: {name: http__get, args: {url: "https://example.org/task"}, output: page}}\n'
    "  - {tool: {name: shell, args: {command: !expr \"['sh', '-c', page.text]\"}}}",
    'steps:\n  - {tool: {name: http__get, args: {url: "https://example.org/task"}, output: page}}\n'
    "  - {tool: {name: shell, args: {command: !expr \"['grep', '-c', '--', page.text, 'notes.md']\"}}}",
)
PATH = _lint(
    "TA102",
    "outside-to-path",
    "A value from outside chooses the file or the folder that a tool writes to.",
    f"{_SOURCES}\nFile tools never leave the workspace and keep away from protected places, but within it such a text\n"
    "can replace any file. Let the document name the file, or narrow the value to an enum, or write the folder and\n"
    "hold the value to an anchored pattern of plain words.",
    "- {tool: {name: file__write, args: {path: !expr page.json.name, content: !expr page.text}}}",
    "- {tool: {name: file__write, args: {path: page.txt, content: !expr page.text}}}",
)
ADDRESS = _warning(
    "TA103",
    "outside-to-address",
    "A value from outside chooses the host that a request goes to.",
    f"{_SOURCES}\nSuch a text can lead a request, with all that is sent, to any server. Write the host out in the\n"
    "document: `'https://example.org/items/' + item.id`.",
    "- {tool: {name: http__get, args: {url: !expr page.json.next}}}",
    "- {tool: {name: http__get, args: {url: !expr \"'https://example.org/items/' + page.json.next\"}}}",
)
POWERFUL_PROMPT = _warning(
    "TA104",
    "outside-to-powerful-prompt",
    "A model that may use writing tools is told a text from outside.",
    f"{_SOURCES}\nA model can take sentences of such a text for orders, and carry them out with its tools. Read the\n"
    "text in a step whose model has no tools, and pass on fields of a schema; or take the writing tools away.",
    'agent: {prompt: "File what matters of {page.text}", capabilities: {tools: [file__write]}}',
    'agent: {prompt: "What matters of {page.text}?", capabilities: {tools: []}}',
)
DECIDES = _lint(
    "TA105",
    "outside-decides",
    "A value from outside, or a model that has read one, decides whether an effect happens.",
    f"{_SOURCES}\nThe author of that text decides then. Ask a person before the effect, or decide on values of your\n"
    "own. In a job without people, write out all that the tool is given: then the author of the text can only decide\n"
    "whether, which `quire show` says. Or say in an allow comment why no person has to be asked.",
    "- {tool: {when: page.json.ready, name: shell, args: {command: !expr \"['./publish.sh', ctx.version]\"}}}",
    "- {tool: {name: ask, args: {prompt: Publish?, type: confirm, show: !expr page.json}, output: ok}}\n"
    "- {tool: {when: \"ok == 'yes'\", name: shell, args: {command: !expr \"['./publish.sh', ctx.version]\"}}}",
)
TRIFECTA = _warning(
    "TA106",
    "trifecta",
    "One model, or one step, has private values, text from outside, and a tool that sends something out, and no\n"
    "person is asked in between.",
    f"{_SOURCES}\nTogether they let a text from outside carry private values away. Take one of the three away: split\n"
    "the document so that the step that sends has not read the private values, or ask a person who is shown what is\n"
    "sent.",
    "agent: {prompt: Answer the mails, capabilities: {tools: [file__read, http__get]}}",
    "agent: {prompt: Answer the mails, capabilities: {tools: [file__read]}}",
)
ITEM = _warning(
    "TA107",
    "outside-to-item",
    "A value from outside chooses the directive, the tool, the knowledge or the prompt that is used.",
    f"{_SOURCES}\nSuch a text chooses what is run or read next. Write the id out, or choose between ids of the\n"
    "document.",
    '<action primary="execute" item_type="directive" item_id="${outputs.next}" />',
    '<action primary="execute" item_type="directive" item_id="team/next" />',
)


_note = partial(make, Severity.NOTE)

_FAN = (
    "pipeline: p\nsteps:\n  - for_each:\n      over: ctx.files\n{limit}      on_error: abort\n"
    "      do: {{tool: {{name: file__read, args: {{path: !expr item}}}}}}\n"
    "      collect: {{transform: {{value: pipe}}}}"
)
_BOARD = (
    "pipeline: p\nsteps:\n  - for_each:\n      over: ctx.readers\n{limit}      on_error: abort\n"
    '      do: {{agent: {{prompt: "Read as {{item}}"}}}}\n      collect: {{transform: {{value: pipe}}}}'
)

UNBOUNDED_FAN = _lint(
    "BD101",
    "unbounded-fan",
    "A fan-out or a loop with tools or model calls goes through a list whose length nothing in the document limits.",
    "The list comes from an input, a tool or a model, so one run may do the work ten thousand times: only there does\n"
    "the engine stop it. `max_items` at the step, or `max_items` of the input or the schema field that has the list,\n"
    "says how many are meant. A step with parallel items whose model calls may pass the limit of a run is BD105.",
    _FAN.format(limit=""),
    _FAN.format(limit="      max_items: 100\n"),
)
UNBOUNDED_REPLY = _lint(
    "BD102",
    "unbounded-reply",
    "Nothing limits how much a model writes, so no amount of tokens or money can be proven.",
    "`[runs] reply_tokens` in `quire.toml` limits every reply, and `max_tokens` those of one agent. One of them\n"
    "always holds with the engine of today, so only a model that keeps to neither is reported.",
    "[runs]\nreply_tokens = 0",
    "[runs]\nreply_tokens = 4096",
)
UNBOUNDED_TURN = _lint(
    "BD103",
    "unbounded-turn",
    "Nothing limits the number of calls, questions or threads, or their time.",
    "A thread has turns, spawns and a duration; an agent has turns and 200 calls in each; each call has a time-out.\n"
    "The finding names the one that is missing and the line that sets it.",
    '<limits turns="8"/>',
    '<limits turns="8" duration_seconds="600"/>',
)
CANNOT_COMPLETE = make(
    Severity.ERROR,
    "BD104",
    "cannot-complete",
    "Every run that completes makes more model calls than a run may make.",
    "The run would stop in the middle, after it was paid for, so it does not start. `max_pipeline_spawns` under\n"
    "`[safety.spawn]` in `quire.toml` is the limit. A pipeline of which that is certain without the directives that\n"
    "it calls is PL116.",
    "- for_each:\n    items: [a, b, c, d]\n    on_error: abort\n    do: {call: {pipeline: ask_reviewer}}\n"
    "    collect: {transform: {value: pipe}}",
    "- for_each:\n    items: [a, b]\n    on_error: abort\n    do: {call: {pipeline: ask_reviewer}}\n"
    "    collect: {transform: {value: pipe}}",
)
MAY_STOP = _lint(
    "BD105",
    "may-stop-midway",
    "A run can need more model calls than it may make; then it stops in the middle.",
    "`max_pipeline_spawns` under `[safety.spawn]` in `quire.toml` is the limit. The message says from which size of\n"
    "an input on. Limit the list with `max_items`, or raise the limit. A pipeline that only turns with\n"
    "tools, corrections of replies and further tries bring above the limit is not reported.",
    _BOARD.format(limit=""),
    _BOARD.format(limit="      max_items: 20\n"),
)
UNPRICED = _note(
    "BD106",
    "unpriced",
    "The price of a model is not known, so the money of a run is not known either.",
    "It is shown as `unpriced`, never as 0. `quire show` and `quire lock` look for prices; `quire check` does not. A\n"
    "table of your own quire.toml sets the price, in dollars per million tokens.",
    '[models]\ndefault = "https://models.example.org/large"',
    '[models.prices."https://models.example.org/large"]\ninput = 3\noutput = 15',
)
OLD_PRICE = _note(
    "BD107",
    "old-price",
    "The price of a model was last looked at more than 120 days ago.",
    "Prices change. A newer version of the price list (the package `genai-prices`) or a price of your own\n"
    "with its date is more certain. `quire show` and `quire lock` say so; `quire check` loads no prices.",
    '[models.prices."anthropic:claude-sonnet-4-5"]\ninput = 3\noutput = 15\ndate = 2025-01-31',
    '[models.prices."anthropic:claude-sonnet-4-5"]\ninput = 3\noutput = 15\ndate = 2026-10-12',
)


_ASK = '- tool: {name: ask, args: {prompt: !expr draft, type: confirm, default: "no"}, output: approved}\n'
_DRAFT = '- agent: {prompt: "Answer {ctx.mail}", output: draft}\n'
_SEND = "- shell: {command: !expr \"['sendmail', ctx.to, draft]\"}"
_SEND_AFTER_YES = "- shell: {when: approved == 'yes', command: !expr \"['sendmail', ctx.to, draft]\"}"

UNGATED_EFFECT = make(
    Severity.WARNING,
    "GA101",
    "ungated-effect",
    "A tool that reaches out of the workspace or starts programs changes something, a model or an outsider has a say\n"
    "in it, and no person has said yes before.",
    "A model can be wrong, and a text from outside can be an attack. Ask a person who sees what is about to happen,\n"
    "and let the step run only after a yes. Confirmations that a user asks for on the command line do not count:\n"
    "another user may not. The tools of a directive are a matter of its permissions, and not meant. A value from\n"
    "outside that becomes a command or an address is reported by TA101 and TA103 instead. If the document writes out\n"
    "all that the tool is given, a model can only decide whether it runs: `quire show` says so.",
    _DRAFT + _SEND,
    _DRAFT + _ASK + _SEND_AFTER_YES,
)
ANSWER_IGNORED = make(
    Severity.WARNING,
    "GA102",
    "answer-ignored",
    "A question stands before an effect, but the effect happens after a *no* as well.",
    "Asking alone stops nothing: the answer is a value, and the steps after the question run after a *no* too. Give\n"
    "the step a condition that only a yes fulfils, or end the run after a no.",
    _DRAFT + _ASK + _SEND,
    _DRAFT + _ASK + "- stop: {when: approved != 'yes'}\n" + _SEND,
)
BLIND_GATE = make(
    Severity.LINT,
    "GA103",
    "blind-gate",
    "The question before an effect shows none of the values that the effect uses.",
    "A person who does not see what is sent, run or written agrees to anything. Put the value, or a summary of it,\n"
    "into the question. A value counts as shown if it was computed from one that is shown, and the other way round.",
    _DRAFT + _ASK.replace("!expr draft", "Send it?") + _SEND_AFTER_YES,
    _DRAFT + _ASK + _SEND_AFTER_YES,
)
STALE_GATE = make(
    Severity.WARNING,
    "GA104",
    "stale-gate",
    "A value that a question showed is written again between the yes and the effect that uses it.",
    "The yes was for the value that the person saw. Ask after the last change, or keep the new value under another\n"
    "name.",
    _DRAFT + _ASK + '- agent: {prompt: "Shorten {draft}", output: draft}\n' + _SEND_AFTER_YES,
    _DRAFT + '- agent: {prompt: "Shorten {draft}", output: draft}\n' + _ASK + _SEND_AFTER_YES,
)
ONE_YES_FOR_MANY = make(
    Severity.NOTE,
    "GA105",
    "one-yes-for-many",
    "One approval counts for every item of a list, or for every round of a loop.",
    "That is often meant. If each of them has to be looked at, ask inside of the loop.",
    _ASK.replace("!expr draft", "!expr ctx.mails")
    + "- for_each:\n    over: ctx.mails\n    max_items: 20\n    on_error: abort\n"
    "    do: {shell: {when: approved == 'yes', command: !expr \"['sendmail', item.to, item.text]\"}}\n"
    "    collect: {transform: {value: pipe}}",
    "- for_each:\n    over: ctx.mails\n    max_items: 20\n    on_error: abort\n    do:\n      steps:\n"
    '        - tool: {name: ask, args: {prompt: !expr item.text, type: confirm, default: "no"}, output: approved}\n'
    "        - shell: {when: approved == 'yes', command: !expr \"['sendmail', item.to, item.text]\"}\n"
    "    collect: {transform: {value: pipe}}",
)
OPENS_ITSELF = make(
    Severity.LINT,
    "GA106",
    "opens-itself",
    "If no person answers the question before an effect, the effect happens: its default is the yes, or it has none.",
    "A question that expires takes its default. With `--unattended` every question does, and one without a default is\n"
    "answered with yes (`confirm` of a playbook) or with its first option (`select`). Give it the default that stops\n"
    "the effect.",
    _ASK.replace('"no"', '"yes"') + _SEND_AFTER_YES,
    _ASK + _SEND_AFTER_YES,
)


DEAD_ARM = _lint(
    "DD101",
    "dead-arm",
    "A branch of a choice can never be taken, because of the branches before it or the choice around it.",
    "Its steps never run. A `default` is meant too where the cases name every value that the schema allows: leave it\n"
    "out, and `check` says so when the schema gets another value. A case whose label the schema does not have is\n"
    "PL107, and a condition of a playbook on a value that the variable cannot have is PB206.",
    "- match:\n    on: ctx.kind\n    cases:\n      bill:\n"
    "        steps:\n          - match: {on: ctx.kind, cases: {letter: {pipeline: reply}}}",
    "- match:\n    on: ctx.kind\n    cases:\n      bill: {pipeline: pay}\n      letter: {pipeline: reply}",
)
UNREACHABLE = _lint(
    "DD102",
    "unreachable-step",
    "A step stands after one that always ends the pipeline.",
    "`stop` and `fail` without `when` end it each time, so the steps after them never run.",
    "- stop: {value: ctx.draft}\n- agent: {prompt: 'Improve {ctx.draft}'}",
    "- stop: {value: ctx.draft, when: ctx.is_good}\n- agent: {prompt: 'Improve {ctx.draft}'}",
)
CONSTANT_CONDITION = _lint(
    "DD103",
    "constant-condition",
    "A condition has the same outcome in every run.",
    "It reads nothing, compares a value with itself, or repeats a condition around it. Remove the condition, or\n"
    "the step that it guards. A loop that says `until: false` and keeps its last value runs a number of rounds, and\n"
    "is not meant.",
    "- agent: {prompt: hi, when: \"'a' == 'b'\"}",
    "- agent: {prompt: hi, when: \"ctx.kind == 'b'\"}",
)
UNREAD_STORE = _lint(
    "DD104",
    "unread-store",
    "The `output` of a step is read by no expression, no prompt and no call.",
    "The next step gets the value as `pipe` without it. Often another step reads a different name than was meant. The\n"
    "last step is left out, and so are pipelines that read `ctx` as a whole or a prompt from a file. PB204 says the\n"
    "same of playbooks; PL203 of an `output` inside of a `for_each` or a branch.",
    "- agent: {prompt: 'Sum up {ctx.text}', output: sumary}\n- agent: {prompt: 'Translate {ctx.text}'}",
    "- agent: {prompt: 'Sum up {ctx.text}', output: summary}\n- agent: {prompt: 'Translate {ctx.summary}'}",
)


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
    "permissions of directives are signed by a person; DR117 reports the patterns that cover everything.",
    '- agent: {prompt: hi, capabilities: {tools: ["tickets__*"]}}',
    "- agent: {prompt: hi, capabilities: {tools: [tickets__list, tickets__create]}}",
)
INCOMPLETE = _lint(
    "EV103",
    "incomplete",
    "A document that is called leads to one that is not found, or the document does too much to list all of it.",
    "Then nothing is proven of it: bounds are infinite and the permissions it needs are incomplete. A document that\n"
    "is called directly and not found is PL101 or PB225.",
    "- call: {pipeline: report}  # which calls mial, an unknown document",
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


SHARED_WRITE = make(
    Severity.WARNING,
    "RC101",
    "shared-write",
    "Two branches of a `parallel`, or all items of a `for_each`, write the same file or the same kept value.",
    "They run at the same time, so the last one wins, and which one that is differs from run to run. Let each of them\n"
    "write a place of its own, or return its result and write once after `collect`. Called documents count as\n"
    "well. A `for_each` with `max_parallel: 1` runs its items in order and is not meant.",
    "- for_each:\n    over: ctx.notes\n    max_items: 20\n    on_error: abort\n"
    "    do: {tool: {name: file__write, args: {path: out.md, content: !expr item.text}}}\n"
    "    collect: {transform: {value: pipe}}",
    "- for_each:\n    over: ctx.notes\n    max_items: 20\n    on_error: abort\n"
    "    do: {tool: {name: file__write, args: {path: !expr item.name, content: !expr item.text}}}\n"
    "    collect: {transform: {value: pipe}}",
)
