"""Keys in texts: gone whole, in every form, before anything is cut, shown, recorded or told."""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from tests.growth import within
from tests.security.stage import Call, Stage, completed

from quire.engine.ports import ModelCall
from quire.engine.records import Event
from quire.errors import ModelFailed
from quire.models.failures import Service, failure_of
from quire.models.redaction import Redacted
from quire.models.scripted import Entry, ScriptedModel
from quire.runs.options import RunOptions
from quire.tools.mcp_session import SHOWN, Tail
from quire.trust.secrets import Redactor, looks_secret, secrets_of
from quire.workspace.secrets import find_secrets

KEY = "sk-live-0123456789abcdefghijklmnopqrstuvwxyzABCDE"
LINES = ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC", "BKcwggSjAgEAAoIBAQDkZmFrZWZha2U")
PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", *LINES, "-----END PRIVATE KEY-----"])


def leaks(text: str, secret: str = KEY, least: int = 8) -> bool:
    """Whether any stretch of a secret is in a text."""
    return any(secret[at : at + least] in text for at in range(len(secret) - least + 1))


@pytest.mark.parametrize(
    "name",
    [
        *("GITHUB_PAT", "SENTRY_DSN", "NPM_AUTH", "SLACK_WEBHOOK", "SLACK_WEBHOOK_URL", "SIGNING_KEYS", "API_KEY_PROD"),
        *("SSH_PASSPHRASE", "TLS_PEM", "PRIVATE_STUFF", "DB_PASS", "MYSQL_PWD", "X-Api-Key", "apiKey", "stripeSecret"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    ["PWD", "OLDPWD", "HOME", "PATH", "SSH_AUTH_SOCK", "KEYBOARD", "PATTERN", "COMPASS", "KEY_FILE", "PASSENGER"],
)
def test_names_of_no_secrets(name: str) -> None:
    assert not looks_secret(name)


@pytest.mark.parametrize("value", ["true", "1", "dev", "none", "test", "12345", "secret", "disabled", "password", ""])
def test_trivial_values_garble_nothing(value: str) -> None:
    text = "true 1 dev none test 12345 secret disabled password"
    assert Redactor({"X_SECRET": value}).text(text) == text


def test_a_short_value_goes_as_a_whole_word() -> None:
    redactor = Redactor({"DB_PASSWORD": "hunt3r", "REGION": "eu-w1x"})
    assert redactor.text("pw=hunt3r; hunt3rs xhunt3r eu-w1x") == "pw=[redacted:DB_PASSWORD]; hunt3rs xhunt3r eu-w1x"


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("postgres://app:s3cret-p%40ss@db/x", "s3cret-p%40ss"),
        ("postgres://app:s3cret-p%40ss@db/x", "s3cret-p@ss"),
        ("https://ghp_0123456789abcdefghij@github.com/a/b", "ghp_0123456789abcdefghij"),
        ("https://host/hook?token=0123456789abcdef", "0123456789abcdef"),
    ],
)
def test_what_addresses_hold(value: str, secret: str) -> None:
    redactor = Redactor(secrets_of({"DATABASE_URL": value, "PLAIN_URL": "https://example.org/a?b=c"}))
    assert secret not in redactor.text(f"cannot log in with {secret}!")
    assert redactor.text("https://example.org/a?b=c") == "https://example.org/a?b=c"


@pytest.mark.parametrize(
    "text",
    [
        KEY,
        quote(f"a&{KEY}/+", safe=""),
        json.dumps({"a": KEY}),
        KEY.encode().hex(),
        *(base64.b64encode(b"x" * shift + KEY.encode() + b"more").decode() for shift in range(4)),
        base64.urlsafe_b64encode(f"user:{KEY}".encode()).decode(),
    ],
)
def test_forms_of_a_key(text: str) -> None:
    assert "[redacted:A_KEY]" in Redactor({"A_KEY": KEY}).text(f"it says {text}.")


@pytest.mark.parametrize("text", [PEM, *LINES, json.dumps(PEM), PEM.replace("\n", "\n    ")])
def test_lines_of_a_key(text: str) -> None:
    said = Redactor({"TLS_PEM": PEM}).text(f"key: {text}")
    assert not any(leaks(said, line) for line in LINES)


def test_keys_that_overlap_leave_nothing() -> None:
    redactor = Redactor({"A_KEY": "aaaabbbbcccc", "B_KEY": "ccccddddeeee"})
    assert redactor.text("<aaaabbbbccccddddeeee>") == "<[redacted:A_KEY]>"


def test_many_secrets_take_no_time() -> None:
    secrets = {f"N{number}_KEY": f"{number:06d}-{KEY}" for number in range(300)}
    redactor, text = Redactor(secrets), "not a secret, " * 70_000
    with within(5):
        assert redactor.text(text) == text
        values = [f"item {number}" for number in range(50_000)]
        assert redactor.value([*values, secrets["N7_KEY"]])[-1] == "[redacted:N7_KEY]"  # type: ignore[index]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_no_piece_of_a_stream_leaks(size: int) -> None:
    redactor = Redactor({"A_KEY": KEY, "B_KEY": f"{KEY}-longer", "DB_PASSWORD": "hunt3r"})
    text = f"sk-live is how it begins: {KEY}, then {KEY}-longer, hunt3r hunt3rs, sk-liv"
    stream = redactor.stream()
    pieces = [stream.add(text[at : at + size]) for at in range(0, len(text), size)]
    pieces.append(stream.end())
    assert "".join(pieces) == redactor.text(text)
    assert not leaks("".join(pieces).replace("sk-live is", ""))


async def test_a_reply_that_quotes_a_key(tmp_path: Path) -> None:
    stage = Stage(tmp_path, environ={"OPENAI_API_KEY": KEY})
    stage.write("p.playbook.md", "# P\n\n## STEP 1: A\n\nSay it. {{who}}\n\n## STEP 2: B\n\nAgain.\n")
    model = ScriptedModel([Entry(reply=f"The key is {KEY}, or {KEY[:20]}.", is_default=True)])
    runtime = stage.runtime(model)
    events: list[Event] = []
    from quire.library.document import load

    try:
        run = await runtime.start(load(stage.work / "p.playbook.md"), {}, RunOptions())
        ended = await runtime.drive(run, listen=events.append)
        view = await runtime.view(run)
    finally:
        await runtime.close()
    shown = "".join(str(event.live.get("text", "")) for event in events if event.type == "delta")
    stored = b"".join(file.read_bytes() for file in stage.base.glob("quire.db*")).decode("utf-8", "replace")
    for text in (shown, stored, str(ended), str(view), str([call.messages for call in model.calls])):
        assert not leaks(text.replace(KEY[:20], ""), KEY)
    assert "[redacted:OPENAI_API_KEY]" in shown and "[redacted:OPENAI_API_KEY]" in stored


async def test_a_call_that_quotes_a_key(tmp_path: Path) -> None:
    stage = Stage(tmp_path, environ={"OPENAI_API_KEY": KEY})
    stage.directive("main")
    calls: list[Call] = [("rye_file_system_write", {"path": "a.txt", "content": f"key={KEY}"})]
    played = await stage.play("main", calls)
    assert completed(played) and not leaks(played.everything())
    assert (stage.work / "a.txt").read_text() == "key=[redacted:OPENAI_API_KEY]"


async def test_a_model_that_complains_with_a_key() -> None:
    class Complaining:
        name = "m"

        async def complete(self, call: ModelCall, on_delta: object) -> None:
            raise ModelFailed(f"refused {KEY}", kind="refused")

    model = Redacted(Complaining(), Redactor({"A_KEY": KEY}))  # type: ignore[arg-type]
    with pytest.raises(ModelFailed) as failed:
        await model.complete(ModelCall("", ()), lambda piece: None)
    assert failed.value.message == str(failed.value) == "refused [redacted:A_KEY]"


@pytest.mark.parametrize("before", ["", "x" * 260, "x" * 290, "x" * 299, " " * 1_960, "\n" * 1_980, " " * 1_990])
def test_a_service_that_quotes_a_key_at_the_cut(before: str) -> None:
    """Blanks go before the text is shown: a cut behind two thousand of them was a cut in the key."""
    error = ModelHTTPError(503, "m", {"error": {"message": f"{before}{KEY}"}})
    message = failure_of(error, "m", Service((KEY,))).message
    assert not leaks(message) and len(message) < 400, message


def test_the_last_words_of_a_server_are_cut_after_that() -> None:
    redact = Redactor({"A_KEY": KEY}).text
    for kept in range(1, len(KEY) + 1, 7):
        tail = Tail()
        tail.stream.write(KEY + "y" * (SHOWN - kept))
        tail.stream.flush()
        tail.started()
        assert not leaks(tail.text(redact, wait=5.0))


async def test_a_line_of_a_file_that_is_cut(tmp_path: Path) -> None:
    stage = Stage(tmp_path, environ={"OPENAI_API_KEY": KEY})
    stage.directive("main")
    for before in range(380, 520, 20):
        stage.write(f"f{before}.txt", "find " + "x" * before + KEY)
    played = await stage.play("main", [("rye_file_system_grep", {"pattern": "find"})])
    assert completed(played) and not leaks(played.everything())


async def test_a_command_that_fails_at_length(tmp_path: Path) -> None:
    stage = Stage(tmp_path, environ={**os.environ, "OPENAI_API_KEY": KEY, "QUIRE_HOME": str(tmp_path / "space")})
    stage.write("leak.py", f"import sys; sys.stderr.write({KEY!r} + 'y' * 1960); sys.exit(3)")
    stage.write(
        "p.yaml", f"pipeline: p\nsteps:\n- tool: {{name: shell, args: {{command: ['{sys.executable}', 'leak.py']}}}}\n"
    )
    from quire.library.document import load

    runtime = stage.runtime(ScriptedModel([]))
    try:
        run = await runtime.start(load(stage.work / "p.yaml"), {}, RunOptions(allow=("shell=unsandboxed",)))
        ended = await runtime.drive(run)
    finally:
        await runtime.close()
    assert ended.failure is not None and "status 3" in ended.failure.message
    assert not leaks(ended.failure.message), ended.failure.message


def test_the_environment_is_looked_through_once() -> None:
    environ = {"DATABASE_URL": "sqlite:///x.db", "HTTP_PROXY": "http://u:pr0xy-pass@h:1", "LOG_URL": "https://h/"}
    assert find_secrets(environ) == {"HTTP_PROXY": "http://u:pr0xy-pass@h:1"}
