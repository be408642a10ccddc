"""GA1xx: effects that happen without a person's yes, and questions that do not protect as they seem to."""

from __future__ import annotations

from quire.diagnostics import Severity, make

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
    "Asking alone stops nothing: the answer is a value, and the steps after the question run whatever it is. Give the\n"
    "step a condition that only a yes fulfils, or end the run after a no.",
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
    "One yes opens the gate for every item of a list, or for every round of a loop.",
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
