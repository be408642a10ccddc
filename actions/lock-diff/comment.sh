#!/usr/bin/env bash
# Write $RUNNER_TEMP/lock-diff.md as a comment of pull request $NUMBER of $REPOSITORY, or over the comment of last time.
set -euo pipefail

comments="repos/$REPOSITORY/issues/$NUMBER/comments"
body="$RUNNER_TEMP/lock-diff-comment.md"
# A comment has at most 65,536 characters; a row that is cut would not be seen as one.
more='**There is more than a comment holds:** the summary of the job has all of it.'
awk -v more="$more" '{ size += length($0) + 1; if (size > 60000) { print "\n" more; exit } print }' \
  "$RUNNER_TEMP/lock-diff.md" > "$body"
# Only a comment of a bot or of the team is written again: its author can change it afterwards.
mine='select(.body | startswith("<!-- quire lock diff -->"))
  | select(.user.type == "Bot" or (.author_association | IN("OWNER", "MEMBER", "COLLABORATOR")))'
old="$(gh api --paginate "$comments" --jq ".[] | $mine | .id" | head -n 1)"
if [ -n "$old" ]; then
  gh api --method PATCH "repos/$REPOSITORY/issues/comments/$old" --field "body=@$body" --silent
else
  gh api --method POST "$comments" --field "body=@$body" --silent
fi
