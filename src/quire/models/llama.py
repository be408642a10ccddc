"""The embedded runtime (`xllamacpp`): one loaded model per file and process, one generation at a time.

The package has no type stubs and prints a lot unless told not to, so everything that is known about it stays here.
Traps, all met: a schema as `response_format` together with an assistant prefix does not start (the same schema as a
grammar does); a schema with a keyword that the grammars do not know forces nothing and reports nothing (`grammar`
leaves such keywords out); an exception in the callback disappears; the callback stops the generation by returning true;
an HTTP listener on a free loopback port always comes with the server, so it gets a random key that is not given to
anyone.
"""

from __future__ import annotations

import os
import secrets
import stat
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from quire.errors import CannotStart, ModelFailed
from quire.models.choose import CONTEXT_TOKENS
from quire.values import Value, encode

PROMPT_BATCH = 256
"""Tokens of the prompt per report. It also determines how long a cancelled call keeps the processor busy."""

Callback = Callable[[Any], bool]


class LlamaServer(Protocol):
    @property
    def listening_address(self) -> str: ...

    def handle_chat_completions(self, prompt: Mapping[str, object], callback: Callback) -> object: ...


class LlamaRuntime:
    """A model file and the one thread that may use it: calls queue up there and can be cancelled there too."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="quire-model")
        self._server: LlamaServer | None = None

    def generate(self, request: Mapping[str, object], callback: Callback) -> None:
        """Run a generation; called in the worker thread. Chunks, and errors of the runtime, arrive at the callback."""
        if self._server is None:
            self._server = _load(self.path)
        self._server.handle_chat_completions(request, callback)

    def grammar(self, schema: Mapping[str, Value]) -> str:
        text: str = _xllamacpp().json_schema_to_grammar(encode(schema))
        return text


_loaded: dict[Path, LlamaRuntime] = {}
_loading = threading.Lock()


def runtime_for(path: Path) -> LlamaRuntime:
    """Return the runtime of a file; loading waits for the first call.

    Raises `CannotStart` for a file that cannot be a model.
    """
    try:
        # Opening a pipe would wait for a writer.
        if not stat.S_ISREG(path.stat().st_mode):
            raise CannotStart(f"{path} is not a regular file")
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise CannotStart(f"no model file at {path}") from None
    except OSError as error:
        raise CannotStart(f"{path} cannot be read: {error.strerror or error}") from None
    path = path.resolve()
    if magic != b"GGUF":
        raise CannotStart(f"{path} is not a GGUF model file")
    _xllamacpp()
    with _loading:
        return _loaded.setdefault(path, LlamaRuntime(path))


def _xllamacpp() -> Any:
    try:
        return import_module("xllamacpp")
    except ModuleNotFoundError:
        raise CannotStart('a local model needs the extra "local": pip install "quire[local]"') from None
    except ImportError as error:
        # A plain machine may lack libgomp, which the wheel does not bring.
        raise CannotStart(f"the runtime of local models cannot be loaded: {error} (on Debian: libgomp1)") from None


def _load(path: Path) -> LlamaServer:
    runtime = _xllamacpp()
    params = runtime.CommonParams()
    params.model.path = str(path)
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.n_batch = PROMPT_BATCH
    params.verbosity = -1
    params.use_jinja = True
    params.enable_reasoning = 0
    params.cpuparams.n_threads = max(1, (os.cpu_count() or 2) - 1)
    params.api_keys = [secrets.token_hex(32)]
    params.endpoint_slots = False
    params.ui = False
    try:
        server: LlamaServer = runtime.Server(params)
    except RuntimeError:
        raise ModelFailed(
            f"{path} cannot be loaded: the file is damaged, of an unknown kind, or too big for this machine",
            kind="bad_model",
        ) from None
    return server
