"""Running one command: a text by `/bin/sh -c`, a list as it is. Its output is text; the gate makes a value of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.errors import Denied, ToolFailed
from quire.tools.blocking import in_thread
from quire.tools.builtin.protected import Protection, shown_path
from quire.tools.builtin.protected_survey import Survey, put_aside
from quire.tools.sandbox import sandboxed, scrubbed
from quire.tools.sandbox_watch import Watch
from quire.values import Value, encode
from quire.workspace.settings import SandboxSettings

if TYPE_CHECKING:
    import asyncio

MAX_OUTPUT = 1_000_000
SECONDS = 60.0
_TAIL = 2000
_KEPT = 65_536
"""More than the end that is shown: secrets are taken out before the cut."""

_GRACE = 1.0
_SHOWN = 10


class Shell(Struct, frozen=True):
    """`sandbox` false is the user's own word: then a command has the user's home folder and environment, but for the
    variables in `withheld`. `private` are folders that a command must not see, `variables` those that it gets."""

    workspace: Path
    protection: Protection
    environ: Mapping[str, str]
    private: Sequence[Path] = ()
    network: bool = False
    sandbox: bool = True
    seconds: float = SECONDS
    limits: SandboxSettings = field(default_factory=SandboxSettings)
    variables: frozenset[str] = frozenset()
    withheld: frozenset[str] = frozenset()
    redact: Callable[[str], str] = lambda text: text
    """Takes secrets out of what a command wrote, before that is cut."""

    async def run(self, arguments: Mapping[str, Value], folder: str = "") -> str:
        """What the command wrote, without the last line end. `folder` is one of the workspace to run in.

        Raises `ToolFailed` or `Denied`.
        """
        line, given = _line(arguments["command"]), _stdin(arguments.get("stdin"))
        if folder:
            # From inside of the sandbox: a folder that somebody swaps for a link leads nowhere else.
            line = ["/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh", f"./{folder}", *line]
        seconds = float(arguments.get("timeout", self.seconds))  # type: ignore[arg-type]  # the schema says integer
        if not self.sandbox:
            return await self._output(line, given, seconds)
        root = self.workspace.resolve()
        before = await in_thread(lambda: Survey.of(root, self.protection))
        command = await in_thread(lambda: self._sandboxed(line, before))
        try:
            with Watch(self.limits, network=self.network) as watch:
                value = await self._output(watch.told(command), given, seconds, watch)
        except BaseException:
            put_aside(root, before.changes())
            raise
        if changes := await in_thread(before.changes):
            raise _refused(before.protection, changes, put_aside(root, changes))
        return value

    def _environ(self) -> dict[str, str]:
        if self.sandbox:
            return scrubbed(self.environ, "/tmp", self.variables)  # noqa: S108
        return {name: value for name, value in self.environ.items() if name not in self.withheld - self.variables}

    def _sandboxed(self, line: Sequence[str], before: Survey) -> list[str]:
        return sandboxed(
            line,
            before.root,
            read_only=before.read_only(),
            hidden=[folder for folder in self.private if folder.is_dir()],
            network=self.network,
        )

    async def _output(self, command: Sequence[str], given: bytes, seconds: float, watch: Watch | None = None) -> str:
        import asyncio

        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self.workspace,
                env=self._environ(),
                start_new_session=True,
                pass_fds=watch.passed if watch else (),
            )
        )
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # It may run already, and asyncio would end the command alone, not what that has started.
            with suppress(OSError, ValueError):
                await _end(await starting, watch)
            raise
        except (OSError, ValueError) as error:
            raise ToolFailed(f"the command cannot be started: {error}", kind="exit") from None
        releasing = asyncio.ensure_future(in_thread(lambda: watch.released(seconds))) if watch else None
        try:
            async with asyncio.timeout(seconds):
                output, errors = await _talk(process, given)
        except TimeoutError:
            raise ToolFailed(f"the command took longer than {seconds:g} s and was ended", kind="timeout") from None
        finally:
            await _end(process, watch, releasing)
        if watch:
            watch.check()
        if process.returncode:
            raise ToolFailed(_ended(process.returncode, self.redact(_text(errors or output))), kind="exit")
        return _output(output)


def _refused(protection: Protection, changes: Sequence[str], moved: Sequence[str]) -> Denied:
    """The places are bound read-only where they exist; new ones can only be found afterwards."""
    shown = [shown_path(path) for path in moved[:_SHOWN]]
    listed = ", ".join([*shown, *(["…"] if len(moved) > _SHOWN else [])]) or "(it cannot be renamed)"
    grants = list(dict.fromkeys(filter(None, map(protection.grant_for, changes[:_SHOWN]))))
    advice = f"; {' '.join(grants)} opens the place" if grants else ""
    return Denied(f"permission denied: the command made what no tool may make; it was put aside as {listed}{advice}")


def _line(command: Value) -> list[str]:
    return ["/bin/sh", "-c", command] if isinstance(command, str) else [str(part) for part in command]  # type: ignore[union-attr]


def _stdin(given: Value) -> bytes:
    """A text as it is; anything else as JSON."""
    return b"" if given is None else (given if isinstance(given, str) else encode(given)).encode()


async def _talk(process: asyncio.subprocess.Process, given: bytes) -> tuple[bytes, bytes]:
    """All that it writes, and the end of what it complains about.

    Is over when the command is: what it left running in the background is ended, and if that holds the pipes
    open all the same, it is not waited for.
    """
    import asyncio

    assert process.stdin and process.stdout and process.stderr  # noqa: S101  # they are pipes, see above
    output, errors = bytearray(), bytearray()

    async def feed(pipe: asyncio.StreamWriter) -> None:
        try:
            pipe.write(given)
            await pipe.drain()
        except (BrokenPipeError, ConnectionResetError):
            return  # It need not read what it is given.
        finally:
            pipe.close()

    async def listen(pipe: asyncio.StreamReader) -> None:
        while piece := await pipe.read(65_536):
            output.extend(piece)
            if len(output) > MAX_OUTPUT:
                raise ToolFailed(f"the command wrote more than {MAX_OUTPUT:,} bytes and was ended", kind="too_large")

    async def complaints(pipe: asyncio.StreamReader) -> None:
        while piece := await pipe.read(65_536):
            errors.extend(piece)
            del errors[:-_KEPT]

    async def end() -> None:
        await _exited(process)
        _kill(process.pid)

    async def both(out: asyncio.StreamReader, err: asyncio.StreamReader) -> None:
        await asyncio.gather(listen(out), complaints(err))

    listening = asyncio.create_task(both(process.stdout, process.stderr))
    ending, feeding = asyncio.create_task(end()), asyncio.create_task(feed(process.stdin))
    try:
        await asyncio.wait({listening, ending}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({listening}, timeout=_GRACE)
        if listening.done():
            listening.result()
        await ending
        return bytes(output), bytes(errors)
    finally:
        for task in (listening, ending, feeding):
            task.cancel()
        await asyncio.gather(listening, ending, feeding, return_exceptions=True)


async def _exited(process: asyncio.subprocess.Process) -> None:
    """Not `wait()`: on some releases it also waits for the pipes, which something in the background may hold."""
    import asyncio

    pause = 0.001
    while process.returncode is None:
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.05)


async def _end(
    process: asyncio.subprocess.Process, watch: Watch | None, releasing: asyncio.Future[None] | None = None
) -> None:
    """The whole group, whatever came before: nothing of a command outlives its call."""
    import asyncio

    _kill(process.pid)
    await _exited(process)
    if watch is not None:
        watch.end()
        if releasing is None:
            releasing = asyncio.ensure_future(in_thread(lambda: watch.released(0)))
        await releasing
        await watch.emptied()
    # Closes our ends of the pipes, whoever holds the others.
    process._transport.close()  # type: ignore[attr-defined]


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _text(said: bytes) -> str:
    return said[-_KEPT:].decode("utf-8", "replace")


def _ended(status: int, said: str) -> str:
    how = f"ended with status {status}" if status > 0 else f"was killed by signal {-status}"
    words = said[-_TAIL:].strip()
    return f"the command {how}" + (f":\n{words}" if words else "")


def _output(output: bytes) -> str:
    return output.decode("utf-8", "replace").removesuffix("\n")
