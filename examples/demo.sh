#!/bin/sh
# Runs a small playbook on a real model, in the terminal. Called by `make demo [MODEL=…]` from the root of the project.
set -eu

cd "$(dirname "$0")/.."
quire=.venv/bin/quire
document=examples/hello/hello.playbook.md
model=${1:-}

say() {
    printf '%s\n' "$*" >&2
}

# Quire's own choice: a key in the environment, quire.toml, a local Ollama, a model that was pulled.
has_model() {
    .venv/bin/python -c '
import sys
from quire.errors import NoModel
from quire.runs.runtime import Runtime
try:
    Runtime.open().choose_model(None)
except NoModel:
    sys.exit(1)
'
}

if [ -z "$model" ] && ! has_model; then
    say "No model is configured, so this fetches a small one that runs in this process (98 MB, once)."
    "$quire" model pull smollm2
fi

say "This is the playbook, $document:"
say ""
"$quire" show "$document" >&2
say ""
say "And this is a run of it:"
say ""
set -- run "$document" --unattended
if [ -n "$model" ]; then
    set -- "$@" --model "$model"
fi
QUIRE_DEMO=1 "$quire" "$@"
say ""
say "Done. What to try next:"
say ""
say "  .venv/bin/quire runs last                       the steps of that run, with time and tokens"
say "  .venv/bin/quire runs last --prompt 2            what the model was told in step 2"
say "  .venv/bin/quire serve                           the same in your browser: documents, runs, questions"
say "  .venv/bin/quire new playbook first              begin a playbook of your own"
say "  make demo MODEL=anthropic:claude-sonnet-5-5     the same on a large model; needs ANTHROPIC_API_KEY"
say ""
say "The language: docs/reference/playbooks.md. More examples: examples/README.md."
