"""What the user has confirmed about workspaces, remembered in the user's own space.

An entry is a folder and the hash of all that its files request; when either differs, nothing is
confirmed. What a workspace requests is for `quire.workspace` to say: here it is only a hash.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from quire.errors import BadConfiguration

_VERSION = 1


@dataclass(frozen=True, slots=True)
class ConfirmedWorkspaces:
    """The file `trust/workspaces.json` below the user's space."""

    file: Path

    def has(self, folder: Path, fingerprint: str) -> bool:
        return self._read().get(_key(folder)) == fingerprint

    def get(self, folder: Path) -> str:
        """What is remembered of a folder; empty where nothing is."""
        return self._read().get(_key(folder), "")

    def add(self, folder: Path, fingerprint: str) -> None:
        self._write({**self._read(), _key(folder): fingerprint})

    def remove(self, folder: Path) -> bool:
        """False when there was nothing to take back."""
        known = self._read()
        if known.pop(_key(folder), None) is None:
            return False
        self._write(known)
        return True

    def _read(self) -> dict[str, str]:
        try:
            data = json.loads(self.file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise BadConfiguration(f"{self.file} cannot be read ({error}); delete it to be asked again") from None
        entries = data.get("workspaces") if isinstance(data, dict) and data.get("version") == _VERSION else None
        if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
            raise BadConfiguration(f"{self.file} is not a list of workspaces; delete it to be asked again")
        return entries

    def _write(self, entries: dict[str, str]) -> None:
        """Readers see the old file or the new one, and nobody but the user sees either."""
        import tempfile

        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # mkstemp makes the file 0600 from the start; a chmod afterwards would leave a gap.
            handle, name = tempfile.mkstemp(dir=self.file.parent, prefix=".workspaces-")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump({"version": _VERSION, "workspaces": entries}, file, indent=2, sort_keys=True)
                    file.write("\n")
                Path(name).replace(self.file)
            except BaseException:
                with suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            raise BadConfiguration(f"{self.file} cannot be written: {error.strerror or error}") from None


def _key(folder: Path) -> str:
    return str(folder.resolve())
