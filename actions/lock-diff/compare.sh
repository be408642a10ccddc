#!/usr/bin/env bash
# Write what the documents may newly do since the commit $BASE into the summary of the job and $RUNNER_TEMP/lock-diff.md.
set -euo pipefail

# -I: a module of the pull request must not be imported here. Without QUIRE_PYTHON, `quire` is that of the job.
quire() { if [ -n "${QUIRE_PYTHON:-}" ]; then "$QUIRE_PYTHON" -I -m quire "$@"; else command quire "$@"; fi; }

# git would read it as an option.
case "$BASE" in -*) echo "::error::base is a branch or a commit, and must not begin with -"; exit 2 ;; esac
base="$RUNNER_TEMP/base.lock"
if ! git cat-file -e "$BASE^{commit}" 2>/dev/null; then
  git fetch --quiet --depth=1 -- origin "$BASE"
  BASE=FETCH_HEAD
fi
git show "$BASE:quire.lock" > "$base" 2>/dev/null || : > "$base"
quire lock --diff "$base" --format json > "$RUNNER_TEMP/lock-diff.json"
{
  echo "<!-- quire lock diff -->"
  echo "### What the documents of this change may do"
  echo
  quire lock --diff "$base" --format markdown
} > "$RUNNER_TEMP/lock-diff.md"
cat "$RUNNER_TEMP/lock-diff.md" >> "$GITHUB_STEP_SUMMARY"
"${QUIRE_PYTHON:-python3}" -I -c 'import json, sys; print("wider=" + str(json.load(open(sys.argv[1]))["wider"]).lower())' \
  "$RUNNER_TEMP/lock-diff.json" >> "$GITHUB_OUTPUT"
