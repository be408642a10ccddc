"""TS12x and TS13x: findings about files that are kept beside a test, snapshots and cassettes."""

from __future__ import annotations

from functools import partial

from quire.diagnostics import Severity, make

_error = partial(make, Severity.ERROR)
_warning = partial(make, Severity.WARNING)

SNAPSHOT_DIFFERS = _error(
    "TS120",
    "snapshot-differs",
    "A value differs from its snapshot.",
    "Look at the difference. If it is meant, `quire test --update` writes the new value.",
    "prompts: !snapshot   # the prompt of step 1 has changed",
    "prompts: !snapshot   # after quire test --update, and a look at the difference",
)
SNAPSHOT_NEW = _error(
    "TS121",
    "snapshot-new",
    "A snapshot that does not exist yet.",
    "`quire test` writes it on your machine. Under CI nothing is written, and the case fails: commit the file\n"
    "`x.test.snap.yaml`.",
    "output: !snapshot   # and no x.test.snap.yaml in the repository",
    "output: !snapshot   # and its entry in x.test.snap.yaml",
)
SNAPSHOT_UNREFERENCED = _error(
    "TS122",
    "snapshot-unreferenced",
    "A snapshot that no case looks at.",
    "Its case was renamed or removed, so it protects nothing. `quire test --update` removes it.",
    "a case that no longer exists:\n  output: Hello.",
    "greets:\n  output: Hello.",
)
CASSETTE_DRIFT = _error(
    "TS130",
    "cassette-drift",
    "The document asks something else than what was recorded.",
    "The recorded reply answers another question. Record again, keep the old reply with `--keep`, which marks it as\n"
    "stale, or undo the change. The finding shows the words that differ.",
    "cassette: true   # the prompt of step 1 has changed",
    "cassette: true   # after quire test --record",
)
CASSETTE_PARTIAL = _error(
    "TS131",
    "cassette-partial",
    "A recorded reply was not used.",
    "The document asks less than it did when the cassette was made.",
    "cassette: true   # step 3 no longer asks a model",
    "cassette: true   # after quire test --record",
)
CASSETTE_ORPHAN = _error(
    "TS132",
    "cassette-orphan",
    "Recordings of a case that does not exist.",
    "The case was renamed or removed. `quire test --record` takes them out.",
    "a case that no longer exists: [...]",
    "greets: [...]",
)
CASSETTE_OLD = _warning(
    "TS133",
    "cassette-old",
    "A recording is older than its `max_age`.",
    "Models change. Record it again, or raise `max_age`.",
    "max_age: 30d   # recorded 41 days ago",
    "max_age: 90d",
)
