#!/usr/bin/env bash
# The steps of ../action.yml: `documents.sh check|test|lock|run`. All values come from variables of the environment.
set -euo pipefail

# -I: a module of the repository must not be imported here.
quire() { "$QUIRE_PYTHON" -I -m quire "$@"; }

# Not `mapfile`: the bash of macOS does not have it.
paths=()
while IFS= read -r path; do
  path="${path%$'\r'}"
  [ -z "$path" ] || paths+=("$path")
done <<< "${PATHS:-}"

case "$1" in
  check)
    strict=()
    [ "$STRICT" != true ] || strict=(--strict)
    quire check --format github ${strict[@]+"${strict[@]}"} -- "${paths[@]:-.}"
    ;;
  test)
    if [ -z "$(find . -name '*.test.yaml' -print -quit)" ]; then
      echo "::notice::There are no document tests (*.test.yaml) in this repository."
      exit 0
    fi
    quire test --format github -- "${paths[@]:-.}"
    ;;
  lock)
    # A lock that a pull request removes still holds it.
    if [ -z "$(find . -name quire.lock -print -quit)" ] && ! [ -s "$RUNNER_TEMP/base.lock" ]; then
      echo "::notice::There is no quire.lock in this repository. \`quire lock\` writes it."
      exit 0
    fi
    quire check --locked --format github -- "${paths[@]:-.}"
    ;;
  run)
    printf '%s' "$INPUTS" > "$RUNNER_TEMP/quire-inputs.json"
    # With an ending: Quire would choose one.
    result="$RUNNER_TEMP/quire-result.txt"
    rm -f "$result"
    model=()
    [ -z "$MODEL" ] || model=("--model=$MODEL")
    # What a model wrote may be printed with an error; the service must not read it as a command.
    token="$("$QUIRE_PYTHON" -I -c 'import secrets; print(secrets.token_hex(16))')"
    echo "::stop-commands::$token"
    status=0
    quire run --quiet --unattended "--budget=$BUDGET" ${model[@]+"${model[@]}"} \
      --inputs "$RUNNER_TEMP/quire-inputs.json" --out "$result" -- "$RUN" || status=$?
    echo "::$token::"
    [ ! -e "$result" ] || echo "result=$result" >> "$GITHUB_OUTPUT"
    exit "$status"
    ;;
esac
