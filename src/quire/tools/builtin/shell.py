"""Running one command: a text by `/bin/sh -c`, a list as it is. Its output is JSON where it can be, else text."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quire.errors import Denied, ToolFailed
from quire.tools.builtin.protected import Protection, put_aside
from quire.tools.sandbox import sandboxed, scrubbed
from quire.tools.threads import in_thread
from quire.values import InvalidValue, Value, decode, encode

if TYPE_CHECKING:
    import asyncio

MAX_OUTPUT = 1_000_000
SECONDS = 60.0
_TAIL = 2000


@dataclass(frozen=True, slots=True)
class Shell:
    """`sandbox` false is the user's own word. `private` are folders that a command must not see."""

    workspace: Path
    protection: Protection
    environ: Mapping[str, str]
    private: Sequence[Path] = ()
    network: bool = False
    sandbox: bool = True
    seconds: float = SECONDS

    async def run(self, arguments: Mapping[str, Value]) -> Value:
        """Raises `ToolFailed` or `Denied`."""
        line, given = _line(arguments["command"]), _stdin(arguments.get("stdin"))
        if not self.sandbox:
            return await self._output(line, given)
        root = self.workspace.resolve()
        before = self.protection.at_the_top(root)
        command = await in_thread(lambda: self._sandboxed(line, root))
        try:
            value = await self._output(command, given)
        except BaseException:
            self._put_aside(root, before)
            raise
        if moved := self._put_aside(root, before):
            raise Denied(
                f"permission denied: the command made what no tool may make; it was put aside as {', '.join(moved)}"
            )
        return value

    def _sandboxed(self, line: Sequence[str], root: Path) -> list[str]:
        return sandboxed(
            line,
            root,
            read_only=sorted(self.protection.read_only(root)),
            hidden=[folder for folder in self.private if folder.is_dir()],
            network=self.network,
        )

    def _put_aside(self, root: Path, before: Mapping[str, object]) -> list[str]:
        """What was there is bound read-only; what was not can only be found afterwards, right in the workspace."""
        now = self.protection.at_the_top(root)
        return put_aside(root, (name for name, what in now.items() if before.get(name) != what))

    async def _output(self, command: Sequence[str], given: bytes) -> Value:
        import asyncio

        home = "/tmp" if self.sandbox else str(self.workspace)  # noqa: S108
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self.workspace,
                env=scrubbed(self.environ, home),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ToolFailed(f"the command cannot be started: {error}", kind="exit") from None
        try:
            async with asyncio.timeout(self.seconds):
                output, errors = await _talk(process, given)
        except TimeoutError:
            raise ToolFailed(f"the command took longer than {self.seconds:g} s and was ended", kind="timeout") from None
        finally:
            await _end(process)
        if process.returncode:
            raise ToolFailed(_ended(process.returncode, errors or output[-_TAIL:]), kind="exit")
        return _value(output)


def _line(command: Value) -> list[str]:
    return ["/bin/sh", "-c", command] if isinstance(command, str) else [str(part) for part in command]  # type: ignore[union-attr]


def _stdin(given: Value) -> bytes:
    """A text as it is; anything else as JSON."""
    return b"" if given is None else (given if isinstance(given, str) else encode(given)).encode()


async def _talk(process: asyncio.subprocess.Process, given: bytes) -> tuple[bytes, bytes]:
    """All that it writes, and the end of what it complains about. Ends with the command itself, not with what
    the command left running in the background."""
    import asyncio

    assert process.stdin and process.stdout and process.stderr  # noqa: S101  # they are pipes, see above

    async def feed(pipe: asyncio.StreamWriter) -> None:
        try:
            pipe.write(given)
            await pipe.drain()
        except (BrokenPipeError, ConnectionResetError):
            return  # It need not read what it is given.
        finally:
            pipe.close()

    async def output(pipe: asyncio.StreamReader) -> bytes:
        kept = bytearray()
        while piece := await pipe.read(65_536):
            kept += piece
            if len(kept) > MAX_OUTPUT:
                raise ToolFailed(f"the command wrote more than {MAX_OUTPUT:,} bytes and was ended", kind="too_large")
        return bytes(kept)

    async def complaints(pipe: asyncio.StreamReader) -> bytes:
        kept = b""
        while piece := await pipe.read(65_536):
            kept = (kept + piece)[-_TAIL:]
        return kept

    async def end() -> None:
        await process.wait()
        _kill(process.pid)

    tasks = [
        asyncio.ensure_future(output(process.stdout)),
        asyncio.ensure_future(complaints(process.stderr)),
    ]
    others = [asyncio.ensure_future(feed(process.stdin)), asyncio.ensure_future(end())]
    try:
        kept, said = await asyncio.gather(*tasks)
        await process.wait()
        return kept, said
    finally:
        for task in (*tasks, *others):
            task.cancel()
        await asyncio.gather(*tasks, *others, return_exceptions=True)


async def _end(process: asyncio.subprocess.Process) -> None:
    """The whole group, whatever came before: nothing of a command outlives its call."""
    import asyncio

    _kill(process.pid)
    await asyncio.shield(process.wait())


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _ended(status: int, said: bytes) -> str:
    how = f"ended with status {status}" if status > 0 else f"was killed by signal {-status}"
    words = said.decode("utf-8", "replace").strip()
    return f"the command {how}" + (f":\n{words}" if words else "")


def _value(output: bytes) -> Value:
    text = output.decode("utf-8", "replace")
    try:
        return decode(text)
    except InvalidValue:
        return text.removesuffix("\n")
