from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quire.errors import CannotStart, NoModel
from quire.models.choose import MODEL_BY_KEY, ModelSettings, ProviderSettings, choose_model, ollama_models, ollama_url
from quire.models.open import open_model

if TYPE_CHECKING:
    from tests.models.conftest import Stub

NOWHERE = {"OLLAMA_HOST": "127.0.0.1:9", "QUIRE_MODELS": "/nonexistent"}
CONFIG = ModelSettings(default="mine:big", tiers={"low": "mine:small"})


@pytest.mark.parametrize(
    ("asked", "document", "config", "environ", "spec", "reason"),
    [
        ("a:b", "c:d", CONFIG, {"OPENAI_API_KEY": "k"}, "a:b", "--model"),
        (None, "c:d", CONFIG, {"OPENAI_API_KEY": "k"}, "c:d", "the document"),
        ("low", None, CONFIG, {}, "mine:small", "--model, tier low"),
        (None, "low", CONFIG, {}, "mine:small", "the document, tier low"),
        (None, None, CONFIG, {"OPENAI_API_KEY": "k"}, "mine:big", "[models] default"),
        (None, None, ModelSettings(), {"OPENAI_API_KEY": "k"}, MODEL_BY_KEY["OPENAI_API_KEY"], "OPENAI_API_KEY is set"),
        (
            None,
            None,
            ModelSettings(),
            {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"},
            MODEL_BY_KEY["ANTHROPIC_API_KEY"],
            "ANTHROPIC_API_KEY is set",
        ),
        (None, "", ModelSettings(), {"GEMINI_API_KEY": "k"}, MODEL_BY_KEY["GEMINI_API_KEY"], "GEMINI_API_KEY is set"),
    ],
)
def test_the_order(
    asked: str | None, document: str | None, config: ModelSettings, environ: dict[str, str], spec: str, reason: str
) -> None:
    choice = choose_model(asked, document, config, {**NOWHERE, **environ})
    assert (choice.spec, choice.reason) == (spec, reason)


def test_ollama_comes_before_the_embedded_model(stub: Stub, tmp_path: Path) -> None:
    (tmp_path / "smollm2.gguf").write_bytes(b"GGUF")
    (tmp_path / "another.gguf").write_bytes(b"GGUF")
    models = [{"name": "nomic-embed-text"}, {"name": "kimi:1t-cloud"}, {"name": "qwen3:4b"}]
    stub.behaviours = [stub.refuse(200, {"models": [*models]})]
    environ = {"OLLAMA_HOST": stub.url.removesuffix("/v1"), "QUIRE_MODELS": str(tmp_path)}
    assert choose_model(None, None, ModelSettings(), environ).spec == "ollama:qwen3:4b"
    stub.behaviours = [stub.refuse(200, {"models": []})]
    assert choose_model(None, None, ModelSettings(), environ).spec == "local:smollm2"


@pytest.mark.parametrize("body", ["not json", "[]", json.dumps({"models": [1, {"name": None}]}), "{}"])
def test_a_strange_ollama_is_none(stub: Stub, body: str) -> None:
    stub.behaviours = [stub.refuse(200, body)]
    assert ollama_models({"OLLAMA_HOST": stub.url.removesuffix("/v1")}) == ()


def test_a_silent_ollama_is_not_waited_for(stub: Stub) -> None:
    stub.behaviours = [stub.hang]
    assert ollama_models({"OLLAMA_HOST": stub.url.removesuffix("/v1")}, timeout=0.05) == ()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":8000", "http://127.0.0.1:8000"),
        ("box:8000", "http://box:8000"),
        ("http://box", "http://box:11434"),
        ("https://box", "https://box:443"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("box:notaport", "http://box:11434"),
    ],
)
def test_ollama_url(host: str, url: str) -> None:
    assert ollama_url({"OLLAMA_HOST": host}) == url


def test_none_says_three_ways() -> None:
    with pytest.raises(NoModel) as caught:
        choose_model(None, None, ModelSettings(), NOWHERE)
    text = str(caught.value)
    assert caught.value.exit_code == 2
    assert text.count("\n  - ") == 3
    for way in ("ANTHROPIC_API_KEY", "quire model pull smollm2", "--model local:PATH.gguf", "base_url"):
        assert way in text


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("smolm2", "did you mean local:smollm2?"),
        ("antropic:claude-sonnet-5-5", "did you mean anthropic:claude-sonnet-5-5?"),
        ("claude-opus-5-5", "did you mean anthropic:claude-opus-5-5?"),
        ("local:smolm2", "did you mean local:smollm2?"),
        ("local:/nonexistent/x.gguf", "no model file at /nonexistent/x.gguf"),
        ("script:/nonexistent/x.json", "no script at /nonexistent/x.json"),
        ("http://127.0.0.1:1/v1", "say which model after a #"),
        ("https://me:sesame@host/v1#m", "an address holds no password and no query"),
        ("keyed:x", "set KEYED_KEY in the environment"),
        ("odd:x", "'ftp://x' is not an http or https address"),
        ("anthropic:claude-sonnet-5-5", "set ANTHROPIC_API_KEY in the environment"),
        ("groq:openai/gpt-oss-120b", "pip install 'pydantic-ai-slim[groq]'"),
    ],
)
def test_what_cannot_be_opened(spec: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pydantic_ai", reason='needs the extra "llm"')
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (tmp_path / "smollm2.gguf").write_bytes(b"GGUF")
    providers = {
        "keyed": ProviderSettings("http://127.0.0.1:1/v1", "KEYED_KEY"),
        "odd": ProviderSettings("ftp://x"),
    }
    with pytest.raises(CannotStart) as caught:
        open_model(spec, ModelSettings(providers=providers), {"QUIRE_MODELS": str(tmp_path)})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "missing", "says"),
    [
        ("openai:gpt-6.1-terra", "pydantic_ai", '"llm": make setup'),
        ("http://127.0.0.1:1/v1#x", "openai", '"llm": make setup'),
        ("local:FILE", "xllamacpp", '"local": make setup'),
    ],
)
def test_a_missing_extra_is_named(spec: str, missing: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    spec = spec.replace("FILE", str(tmp_path / "m.gguf"))
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from quire.models.open import open_model\n"
        "from quire.models.choose import ModelSettings\n"
        "from quire.errors import CannotStart\n"
        f"try: open_model({spec!r}, ModelSettings())\n"
        "except CannotStart as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert says in done.stdout


def test_a_runtime_that_cannot_be_loaded_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain machine may have the wheel and not the library it needs: the extra is installed then."""
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('libgomp.so.1: cannot open shared object file')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    with pytest.raises(CannotStart, match=r"libgomp\.so\.1: cannot open .*libgomp1") as caught:
        open_model(f"local:{tmp_path / 'm.gguf'}", ModelSettings())
    assert "pip install" not in str(caught.value)


def test_the_defaults_are_models_that_exist() -> None:
    models = pytest.importorskip("pydantic_ai.models", reason='needs the extra "llm"')
    assert set(MODEL_BY_KEY.values()) <= set(models.known_model_names())


def test_importing_is_light() -> None:
    program = (
        "import sys, quire.models, quire.cli.model\n"
        "heavy = {'pydantic_ai', 'xllamacpp', 'httpx2', 'openai', 'yaml', 'asyncio', 'rich', 'jsonschema_rs'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
