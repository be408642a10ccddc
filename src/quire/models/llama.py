"""The embedded runtime (`xllamacpp`): one loaded model per file and process, one generation at a time; and JSON Schemas
rewritten for its grammars.

The package has no type stubs and prints a lot unless told not to, so everything that is known about it stays here.
Traps, all met: a schema as `response_format` together with an assistant prefix does not start (the same schema as a
grammar does); an exception in the callback disappears; the callback stops the generation by returning true; an HTTP
listener on a free loopback port always comes with the server, so it gets a random key that is not given to anyone.

Two traps of schemas. One with a keyword that the grammars do not know (`not`, `uniqueItems`, most formats, overlapping
`oneOf`) is not refused: the reply simply is not forced. And a small model that may continue does so, with ever more
fields or ever deeper objects. So unknown keywords are left out, which only loosens the shape (the caller checks the
result anyway), and texts, lists, fields and free-form values get a limit.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from quire.errors import CannotStart, ModelFailed
from quire.installed import add_extra
from quire.models.choose import CONTEXT_TOKENS
from quire.schema_limits import TooCostly, measured
from quire.values import Value, encode

if TYPE_CHECKING:
    from quire.engine.conversation import Offered


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
        text: str = import_runtime().json_schema_to_grammar(encode(schema))
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
    import_runtime()
    with _loading:
        return _loaded.setdefault(path, LlamaRuntime(path))


def import_runtime() -> Any:
    """Return the package `xllamacpp`. Raises `CannotStart` with the command that installs it."""
    try:
        return import_module("xllamacpp")
    except ModuleNotFoundError:
        raise CannotStart(f'a local model needs the extra "local": {add_extra("local")}') from None
    except ImportError as error:
        # A plain machine may lack libgomp, which the wheel does not bring.
        raise CannotStart(f"the runtime of local models cannot be loaded: {error} (on Debian: libgomp1)") from None


def _load(path: Path) -> LlamaServer:
    runtime = import_runtime()
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


ITEMS, FIELDS, DEPTH = 20, 20, 3
LONGEST, MOST_ITEMS, MOST_FIELDS = 20_000, 500, 200
"""Limits on limits: a grammar writes each repetition out, so a schema with `"minItems": 1e9` would take all memory."""

MAX_PARTS = 5_000
"""Most parts that a schema may have, with its references written out, to be forced at all."""

ARGUMENT_TEXT = 8000
"""Characters; more than the tokens of a call have room for. A text that continues too long then fails the call: it must
not be cut and used, as half of a file would be."""

_KEPT = (
    *("type", "enum", "const", "anyOf", "allOf", "pattern", "required", "items", "prefixItems", "properties"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "additionalProperties"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "$defs", "definitions"),
)
_MOST = {
    "minLength": LONGEST,
    "maxLength": LONGEST,
    "minItems": MOST_ITEMS,
    "maxItems": MOST_ITEMS,
    "minProperties": MOST_FIELDS,
    "maxProperties": MOST_FIELDS,
}
_LONG_REPETITION = re.compile(r"\{\d{3,}|\{\d*,\d{3,}|\}[^\[\]]*\{")
_FORMATS = ("date", "time", "date-time", "email", "uuid")
_SAYS_SOMETHING = ("type", "enum", "const", "anyOf", "allOf", "properties")


def forcible(schema: Mapping[str, Value] | None) -> bool:
    """Tell whether a whole reply can be forced into the schema: services that force a reply force an object."""
    return schema is not None and schema.get("type") == "object" and is_small(schema)


def is_small(schema: Mapping[str, Value]) -> bool:
    """Tell whether the schema is small enough for a grammar, and for a service that writes references out."""
    try:
        measure = measured(schema)
    except TooCostly:
        return False
    return measure.evaluations is None or measure.evaluations <= MAX_PARTS


def shaped(schema: Mapping[str, Value], *, texts: int, place: str = "#") -> dict[str, Value]:
    """Rewrite a schema.

    `texts` is the longest that a text without a limit of its own may be, `place` the location of the schema in a bigger
    one.
    """
    shaping = _Shaping(texts, place, schema)
    ways = [shaping.part({**way, "type": "object"}) for way in _either(schema)]
    return ways[0] if len(ways) == 1 else {"anyOf": ways}


def _either(schema: Mapping[str, Value]) -> list[Mapping[str, Value]]:
    """Return the alternatives of a schema in which one field stands in for others (`if` it is present, `else` these are
    required).

    A small model that may fill both fills both, so each alternative has its own fields alone.
    """
    match schema:
        case {"if": {"required": [str(instead)]}, "else": {"required": [*required]}, "properties": Mapping() as fields}:
            if '"$ref"' in encode(schema):
                return [schema]  # its references would no longer point to the right places
        case _:
            return [schema]
    usual = {name: field for name, field in fields.items() if name != instead}
    other = {name: field for name, field in fields.items() if name not in required}
    return [
        {**schema, "properties": usual, "required": required},
        {**schema, "properties": other, "required": [instead]},
    ]


def choice(
    tools: Sequence[Offered], answer: Mapping[str, Value] | None, *, texts: int, loose: bool = False
) -> dict[str, Value]:
    """Return the schema of one tool call or the answer: a text, or a value of the `answer` schema.

    If `loose`, any arguments are accepted.
    """
    parts: dict[str, Value] = {}
    ways: list[Value] = []
    for number, tool in enumerate(tools):
        name = f"tool{number}"
        place = f"#/$defs/{name}"
        free = loose or not is_small(tool.schema)
        parts[name] = _free(DEPTH)[-1] if free else shaped(tool.schema, texts=ARGUMENT_TEXT, place=place)
        ways.append(_record({"tool": {"const": tool.name}, "args": {"$ref": place}}))
    last: Value = {"type": "string", "minLength": 1, "maxLength": ARGUMENT_TEXT}
    if answer is not None:
        parts["answer"], last = shaped(answer, texts=texts, place="#/$defs/answer"), {"$ref": "#/$defs/answer"}
    return {"anyOf": [*ways, _record({"answer": last})], "$defs": parts}


class _Shaping(Struct, frozen=True):
    texts: int
    place: str
    root: Mapping[str, Value]

    def part(self, schema: Value, *, closed: bool = True) -> dict[str, Value]:
        """Rewrite one part.

        `closed` objects have no fields but those that they name; the parts of an `allOf` cannot be closed.
        """
        if not isinstance(schema, Mapping):
            return self.anything()
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return {"$ref": self.place + reference[1:]} if self._leads_somewhere(reference) else self.anything()
        if "oneOf" in schema and "anyOf" not in schema:
            schema = {**schema, "anyOf": schema["oneOf"]}
        shape: dict[str, Value] = {key: schema[key] for key in _KEPT if key in schema}
        if schema.get("format") in _FORMATS:
            shape["format"] = schema["format"]
        for key, most in _MOST.items():
            limit = shape.get(key)
            if isinstance(limit, int | float) and not 0 <= limit <= most:
                # A maximum is lowered; a minimum beyond the limit is dropped, and the caller checks the result.
                del shape[key]
                if key.startswith("max") and limit > most:
                    shape[key] = most
        if isinstance(pattern := shape.get("pattern"), str) and (
            len(pattern) > 500 or _LONG_REPETITION.search(pattern)
        ):
            del shape["pattern"]
        if not any(key in shape for key in _SAYS_SOMETHING):
            return {**shape, **self.anything()}
        if "type" not in shape and "properties" in shape:
            shape["type"] = "object"
        types = shape.get("type")
        kinds = (types,) if isinstance(types, str) else tuple(types) if isinstance(types, Sequence) else ()
        if "enum" not in shape and "const" not in shape:
            self._limit(shape, kinds, closed)
        for key in ("anyOf", "allOf"):
            if isinstance(ways := shape.get(key), Sequence):
                shape[key] = [self.part(way, closed=closed and key == "anyOf") for way in ways]
        for key in ("$defs", "definitions"):
            if isinstance(named := shape.get(key), Mapping):
                shape[key] = {name: self.part(definition) for name, definition in named.items()}
        return shape

    def _limit(self, shape: dict[str, Value], kinds: Sequence[Value], closed: bool) -> None:
        if "string" in kinds and "pattern" not in shape and "format" not in shape:
            shape.setdefault("maxLength", self.texts)
        if "array" in kinds:
            shape.setdefault("maxItems", ITEMS)
            if isinstance(first := shape.get("prefixItems"), Sequence):
                shape["prefixItems"] = [self.part(item) for item in first]
            if shape.get("items") is not False:
                shape["items"] = self.part(shape.get("items"))
        if "object" in kinds:
            self._limit_fields(shape, closed)

    def _limit_fields(self, shape: dict[str, Value], closed: bool) -> None:
        fields, more = shape.get("properties"), shape.get("additionalProperties")
        if isinstance(fields, Mapping):
            named = {name: self.part(field) for name, field in fields.items()}
            required = shape.get("required")
            if closed and isinstance(required, Sequence):
                named.update({str(name): self.anything() for name in required if name not in named})
            shape["properties"] = named
        if isinstance(more, Mapping):
            shape["additionalProperties"] = self.part(more)
        elif isinstance(fields, Mapping):
            shape.pop("additionalProperties", None)
            if closed:
                shape["additionalProperties"] = False
        elif more is not False and closed and "anyOf" not in shape and "allOf" not in shape:
            shape["additionalProperties"] = self.anything()
        if shape.get("additionalProperties") is not False and closed:
            shape.setdefault("maxProperties", FIELDS)

    def _leads_somewhere(self, reference: str) -> bool:
        if not reference.startswith("#") or "/oneOf/" in reference:
            return False
        here: Value = self.root
        for key in reference.split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")
            if isinstance(here, Mapping) and key in here:
                here = here[key]
            elif isinstance(here, Sequence) and key.isdigit() and int(key) < len(here):
                here = here[int(key)]
            else:
                return False
        return isinstance(here, Mapping)

    def anything(self) -> dict[str, Value]:
        return {"anyOf": _free(DEPTH, self.texts)}


def _free(depth: int, texts: int = ARGUMENT_TEXT) -> list[Value]:
    """Return the schemas of every kind of value; the last is the object."""
    kinds: list[Value] = [{"type": "string", "maxLength": texts}]
    kinds += [{"type": kind} for kind in ("number", "boolean", "null")]
    if depth:
        inner: Value = {"anyOf": _free(depth - 1, texts)}
        kinds.append({"type": "array", "items": inner, "maxItems": ITEMS})
        kinds.append({"type": "object", "additionalProperties": inner, "maxProperties": FIELDS})
    return kinds


def _record(fields: Mapping[str, Value]) -> dict[str, Value]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
