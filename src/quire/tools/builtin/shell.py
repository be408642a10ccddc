"""Run one command: a text with `/bin/sh -c`, a list directly. The output is text; the gate decodes it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from quire.engine.premises import SHELL_SECONDS
from quire.errors import Denied, ToolFailed
from quire.patterns import late_pattern
from quire.tools.blocking import in_thread
from quire.tools.builtin.paths import Protection, printable_path
from quire.tools.builtin.protected_places import ProtectedPlaces, put_aside
from quire.tools.sandbox import ALWAYS_PASSED, MAX_PLACES, sandboxed, scrubbed
from quire.tools.sandbox_watch import Watch
from quire.values import Value, text_or_json
from quire.wording import first_of
from quire.workspace.settings import SandboxSettings

if TYPE_CHECKING:
    import asyncio

MAX_OUTPUT = 1_000_000
_TAIL = 2000
ERRORS = 20_000
"""How many characters of stderr a result has at most: the last ones."""

_KEPT = 65_536
"""More than the part that is shown, because secrets are removed before the cut."""

_VARIABLE = late_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_STARTED = b"bwrap: "
_GRACE = 1.0
_SHOWN = 10


class Shell(Struct, frozen=True):
    """Runs commands in the workspace."""

    workspace: Path
    protection: Protection
    environ: Mapping[str, str]
    private: Sequence[Path] = ()
    """Folders that a command must not see."""
    network: bool = False
    sandbox: bool = True
    """False only if the user said so: then a command has the user's home folder and environment, except for the
    variables in `withheld`."""
    seconds: float = SHELL_SECONDS
    limits: SandboxSettings = field(default_factory=SandboxSettings)
    variables: frozenset[str] = frozenset()
    """Variables of the environment that a command gets."""
    withheld: frozenset[str] = frozenset()
    redact: Callable[[str], str] = lambda text: text
    """Removes secrets from the output of a command before it is cut."""

    async def run(self, arguments: Mapping[str, Value], folder: str = "") -> Value:
        """Run a command and return its output without the last line end; with `check: false` its status, output and
        errors. `folder` is a folder of the workspace to run in.

        Raises `ToolFailed` or `Denied`.
        """
        if problem := self.problem_with(arguments):
            raise problem
        command, stdin = arguments["command"], arguments.get("stdin")
        line = ["/bin/sh", "-c", command] if isinstance(command, str) else [str(part) for part in command]  # type: ignore[union-attr]
        data = b"" if stdin is None else text_or_json(stdin).encode()
        if folder:
            # Entered from inside the sandbox: a folder that is replaced by a link cannot lead out of it.
            line = ["/bin/sh", "-c", 'cd -- "$1" && shift && exec "$@"', "sh", f"./{folder}", *line]
        seconds = float(arguments.get("timeout", self.seconds))  # type: ignore[arg-type]  # the schema says integer
        start = _Start(data, self._environ(_names(arguments)), seconds, arguments.get("check") is not False)
        if not self.sandbox:
            return await self._output(line, start)
        root = self.workspace.resolve()
        before = await in_thread(lambda: ProtectedPlaces.of(root, self.protection))
        inside = await in_thread(lambda: self._sandboxed(line, before))
        try:
            with Watch(self.limits, network=self.network) as watch:
                value = await self._output(watch.told(inside), start, watch)
        except BaseException:
            put_aside(root, before.changes())
            raise
        if changes := await in_thread(before.changes):
            raise _refused(before.protection, changes, put_aside(root, changes))
        return value

    def problem_with(self, arguments: Mapping[str, Value]) -> ToolFailed | Denied | None:
        """Return the reason why a command would not be started: `env` names a variable that is not granted, or that is
        not set."""
        for name in _names(arguments) or ():
            if not _VARIABLE.fullmatch(name):
                return ToolFailed(f"env: {name[:100]!r} is not the name of a variable", kind="arguments")
            if not self._may_have(name):
                return Denied(
                    f"permission denied: the command asks for the variable {name}, which commands do not get; grant it "
                    f"with --allow shell=env:{name}, or under [tools] shell_env in the quire.toml of your user folder"
                )
            if name not in self.environ:
                return ToolFailed(f"the command asks for the variable {name}, which is not set", kind="arguments")
        return None

    def _may_have(self, name: str) -> bool:
        if name in self.variables:
            return True
        return name in ALWAYS_PASSED if self.sandbox else name not in self.withheld

    def _environ(self, names: Sequence[str] | None) -> dict[str, str]:
        """Return the environment of a command that asks for some of the granted variables, or, with None, gets all."""
        passed = self.variables if names is None else self.variables & set(names)
        if self.sandbox:
            return scrubbed(self.environ, passed)
        return {name: value for name, value in self.environ.items() if name not in self.withheld - passed}

    def _sandboxed(self, line: Sequence[str], before: ProtectedPlaces) -> list[str]:
        return sandboxed(
            line,
            before.root,
            read_only=before.read_only(MAX_PLACES),
            hidden=[folder for folder in self.private if folder.is_dir()],
            network=self.network,
        )

    async def _output(self, command: Sequence[str], start: _Start, watch: Watch | None = None) -> Value:
        import asyncio

        seconds = start.seconds
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self.workspace,
                env=start.environ,
                start_new_session=True,
                pass_fds=watch.passed if watch else (),
            )
        )
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            # It may be running already, and asyncio would end only the command, not its children.
            with suppress(OSError, ValueError):
                await _end(await starting, watch)
            raise
        except (OSError, ValueError) as error:
            raise ToolFailed(f"the command cannot be started: {error}", kind="exit") from None
        releasing = asyncio.ensure_future(in_thread(lambda: watch.released(seconds))) if watch else None
        try:
            async with asyncio.timeout(seconds):
                output, errors = await _talk(process, start.stdin)
        except TimeoutError:
            raise ToolFailed(f"the command took longer than {seconds:g} s and was ended", kind="timeout") from None
        finally:
            await _end(process, watch, releasing)
        if watch:
            watch.check()
        status = process.returncode or 0
        if status and (start.checked or (watch and errors.startswith(_NOT_STARTED))):
            # The status of bubblewrap, if it could not start the program, would look like the program's own.
            raise ToolFailed(_ended(status, self.redact(_text(errors or output))), kind="exit")
        if start.checked:
            return _output(output)
        err = self.redact(_text(errors))[-ERRORS:].removesuffix("\n")
        # A shell counts signals in the same way, and so does bubblewrap.
        code = status if status >= 0 else 128 - status
        return {"code": code, "out": _output(output), "err": err}


class _Start(Struct, frozen=True):
    """How one command is started."""

    stdin: bytes
    environ: Mapping[str, str]
    seconds: float
    checked: bool
    """False if a status other than 0 is a result."""


def _names(arguments: Mapping[str, Value]) -> list[str] | None:
    names = arguments.get("env")
    return [str(name) for name in names] if isinstance(names, list | tuple) else None


def _refused(protection: Protection, changes: Sequence[str], moved: Sequence[str]) -> Denied:
    """Return the error about new protected places. Existing ones are bound read-only; new ones can only be found
    afterwards."""
    listed = ", ".join(first_of([printable_path(path) for path in moved], _SHOWN)) or "(it cannot be renamed)"
    grants = list(dict.fromkeys(filter(None, map(protection.grant_for, changes[:_SHOWN]))))
    advice = f"; {' '.join(grants)} opens the place" if grants else "; no grant opens the place"
    return Denied(f"permission denied: the command made what no tool may make; it was put aside as {listed}{advice}")


async def _talk(process: asyncio.subprocess.Process, stdin: bytes) -> tuple[bytes, bytes]:
    """Return everything that the command writes to stdout, and the end of its stderr.

    Ends with the command: processes that it left in the background are killed, and if they hold the pipes open all the
    same, they are not waited for.
    """
    import asyncio

    assert process.stdin and process.stdout and process.stderr  # noqa: S101  # they are pipes, see above
    output, errors = bytearray(), bytearray()

    async def feed(pipe: asyncio.StreamWriter) -> None:
        try:
            pipe.write(stdin)
            await pipe.drain()
        except (BrokenPipeError, ConnectionResetError):
            return  # It need not read its input.
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
    """Wait for the process. Not `wait()`: on some releases it also waits for the pipes, which a background process may
    hold."""
    import asyncio

    pause = 0.001
    while process.returncode is None:
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.05)


async def _end(
    process: asyncio.subprocess.Process, watch: Watch | None, releasing: asyncio.Future[None] | None = None
) -> None:
    """Kill the whole process group in any case: nothing of a command outlives its call."""
    import asyncio

    _kill(process.pid)
    await _exited(process)
    if watch is not None:
        watch.end()
        if releasing is None:
            releasing = asyncio.ensure_future(in_thread(lambda: watch.released(0)))
        await releasing
        await watch.emptied()
    # Closes this end of the pipes, even if another process holds the other.
    process._transport.close()  # type: ignore[attr-defined]


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _text(output: bytes) -> str:
    return output[-_KEPT:].decode("utf-8", "replace")


def _ended(status: int, output: str) -> str:
    how = f"ended with status {status}" if status > 0 else f"was killed by signal {-status}"
    words = output[-_TAIL:].strip()
    return f"the command {how}" + (f":\n{words}" if words else "")


def _output(output: bytes) -> str:
    return output.decode("utf-8", "replace").removesuffix("\n")
