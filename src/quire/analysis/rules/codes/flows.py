"""TA1xx: values from outside that reach a place where they can do harm."""

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
