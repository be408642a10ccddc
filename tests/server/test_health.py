"""Health, models, trust and the page of the API: what they say, what they never say, and how they look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.async_api import expect
from tests.browser import Pages, check_looks
from tests.server.served import served
from tests.server.team_workspace import write_documents

from quire.cli.doctor import command as doctor_command
from quire.cli.trust import keys_command, trust_command
from quire.server.routes import ENDPOINTS

pytestmark = pytest.mark.asyncio(loop_scope="session")

MCP = '{"mcpServers": {"files": {"command": "files-server", "args": ["--key", "sk-secret-1234567890"]}}}'
SETTINGS = '[tools]\nallow = ["http__get"]\ndeny = ["shell"]\n'


async def test_the_api_says_what_the_command_line_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path / "team", {".mcp.json": MCP}, settings=SETTINGS) as server:
        monkeypatch.chdir(server.folder)
        monkeypatch.setenv("QUIRE_HOME", server.environ["QUIRE_HOME"])
        run = CliRunner()
        run.invoke(keys_command, ["new", "ada"])
        trust = await server.read("/trust")
        told = json.loads(run.invoke(trust_command, ["workspace", "--json"]).stdout)
        assert {key: trust[key] for key in told} == told
        assert (trust["trusted"], trust["command"]) == (False, "quire trust workspace")
        listed = json.loads(run.invoke(trust_command, ["list", "--json"]).stdout)
        assert [{key: one[key] for key in ("key_id", "state", "name")} for one in trust["keys"]] == listed
        assert trust["own"] == json.loads(run.invoke(keys_command, ["list", "--json"]).stdout)
        assert (trust["granted"], trust["denied"]) == (["http__get"], ["shell"])
        run.invoke(trust_command, ["workspace", "--yes"])
        assert (await server.read("/trust"))["trusted"] is True, "the page sees it without a restart"
        found = await server.read("/doctor")
        assert found["items"] == json.loads(run.invoke(doctor_command, ["--json"]).stdout)


async def test_no_secret_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-secret-1234567890"
    monkeypatch.setenv("ANTHROPIC_API_KEY", secret)
    settings = f'[models.providers.ours]\nbase_url = "https://user:{secret}@models.example/v1"\napi_key_env = "OURS"\n'
    async with served(tmp_path / "team", {".mcp.json": MCP}, settings=settings) as server:
        server.site.report("a line for the user")
        for path in ("/health", "/doctor", "/models", "/trust", "/"):
            assert secret not in json.dumps(await server.read(path)), path
        health = await server.read("/health")
        assert [one["text"] for one in health["log"]] == ["a line for the user"]
        assert (health["store"]["kind"], health["store"]["durability"], health["driving"]) == ("sqlite", "power", 0)
        (provider,) = (await server.read("/models"))["providers"]
        assert provider == {"name": "ours", "host": "models.example", "key": "OURS", "has_key": False}


async def test_the_page_of_the_api_has_every_endpoint_and_runs_nothing(tmp_path: Path) -> None:
    async with served(tmp_path / "team", {}) as server, server.client() as client:
        answer = await client.get("/docs")
        assert answer.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "<script" not in answer.text and "http-equiv" not in answer.text
        for endpoint in ENDPOINTS:
            assert f'id="{endpoint.name}"' in answer.text


async def test_the_pages_look_well(pages: Pages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with served(tmp_path / "team", {".mcp.json": MCP}, settings=SETTINGS) as server:
        page = await pages.open(server.at("/trust"))
        await expect(page.get_by_text("not agreed")).to_be_visible()
        await expect(page.get_by_text("quire trust workspace")).to_be_visible()
        assert await page.locator("main button:not(.command)").count() == 0, "a page must not be able to grant"
        await check_looks(page, "trust-unconfirmed")
        write_documents(server.folder)
        server.site.report("run 1abc: the connection was lost")
        await page.goto(server.at("/health"))
        await expect(page.get_by_text("the connection was lost")).to_be_visible()
        await expect(page.get_by_role("heading", name="Checks of this machine")).to_be_visible()
        await check_looks(page, "health")
        await page.get_by_role("link", name="The HTTP API of this server").click()
        await expect(page.get_by_text("/questions/answers", exact=True)).to_be_visible()
        await page.get_by_label("Filter").fill("fork")
        await expect(page.get_by_text("/questions/answers", exact=True)).to_be_hidden()
        await page.locator("summary").first.click()
        await check_looks(page, "api")
