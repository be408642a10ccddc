# Publish a release: sh publish.sh VERSION. A real one would copy it to a server, with the token.
set -eu
: "${DEPLOY_TOKEN:?is not set}"
test -d "releases/$1" || { echo "release $1 does not exist" >&2; exit 1; }
cp -r "releases/$1/." live/
echo "$1" > live/VERSION
echo "$1" >> live/history.txt
