"""A real Firefox for tests of the page, driven over WebDriver BiDi. Each tab belongs to a user of its own and fails its
test on an error of the console (those of policies too) and on a request to another origin."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from tests.browser import WIDE, origin
from websockets.asyncio.client import ClientConnection, connect

PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
WITHOUT_FIREFOX = "no Firefox: install firefox-esr or firefox"
PATIENCE = 30.0
LEFT = "AbortError: The operation was aborted"
"""An answer that has not come when its page is left."""
NOWHERE = {"proxyType": "manual", "httpProxy": "127.0.0.1:9", "sslProxy": "127.0.0.1:9"}
"""A proxy that does not exist, for each request that would leave the machine."""
KEYS = {"Enter": "\ue007", "Control": "\ue009", "Escape": "\ue00c", "End": "\ue010", "Home": "\ue011"}
KEYS |= {"ArrowLeft": "\ue012", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}
FIND = """(selector, text) => {
  const all = root => [...root.querySelectorAll("*")].flatMap(e => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e]);
  const words = e => [e.innerText, e.value, e.getAttribute("aria-label")].join("\\n").toLowerCase();
  const shown = all(document).filter(e => e.matches(selector) && e.checkVisibility({ visibilityProperty: true }));
  const element = shown.find(e => words(e).includes(text.toLowerCase()));
  element?.scrollIntoView({ block: "nearest" });
  return element;
}"""


@asynccontextmanager
async def firefox(profile: Path) -> AsyncIterator[Firefox]:
    """Start the browser without windows and with an empty profile."""
    assert PROGRAM, WITHOUT_FIREFOX
    with (output := profile / "output").open("wb") as file:
        options = ("--headless", "--no-remote", "--remote-debugging-port=0", "--profile", str(profile))
        process = await asyncio.create_subprocess_exec(PROGRAM, *options, stdout=file, stderr=file)
    try:
        while not (address := output.read_text().partition("BiDi listening on ")[2].partition("\n")[0]):
            assert process.returncode is None, output.read_text()
            await asyncio.sleep(0.05)
        async with connect(f"{address}/session", max_size=None, proxy=None) as socket:
            browser = Firefox(socket)
            listening = asyncio.create_task(browser.listen())
            await browser.send("session.new", capabilities={"alwaysMatch": {"proxy": NOWHERE}})
            await browser.send("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
            yield browser
            await browser.send("browser.close")
            await listening
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@dataclass(slots=True)
class Firefox:
    """A connection to the browser. `faults` are those of its pages since the last tab."""

    socket: ClientConnection
    answers: list[asyncio.Future[Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    home: str = ""

    async def send(self, method: str, **params: Any) -> Any:
        self.answers.append(answer := asyncio.get_running_loop().create_future())
        await self.socket.send(json.dumps({"id": len(self.answers) - 1, "method": method, "params": params}))
        async with asyncio.timeout(PATIENCE):
            return await asyncio.shield(answer)

    async def listen(self) -> None:
        """Take answers and events until the connection ends."""
        async for text in self.socket:
            match json.loads(text):
                case {"type": "success", "id": number, "result": result}:
                    self.answers[number].set_result(result)
                case {"type": "error", "id": number, "message": message}:
                    self.answers[number].set_exception(RuntimeError(message))
                case {"method": "log.entryAdded", "params": {"level": "error", "text": message}}:
                    if LEFT not in message:
                        self.faults.append(f"console: {message}")
                case {"method": "network.beforeRequestSent", "params": {"request": {"url": url}}}:
                    if not url.startswith(("data:", "blob:", "about:")) and origin(url) != self.home:
                        self.faults.append(f"a request left for {url}")

    @asynccontextmanager
    async def tab(self, url: str, *, width: int = WIDE, height: int = 900) -> AsyncIterator[Tab]:
        """Open a page as a user without storage, and fail on its faults."""
        self.home, self.faults = origin(url), []
        user = (await self.send("browser.createUserContext"))["userContext"]
        context = (await self.send("browsingContext.create", type="tab", userContext=user))["context"]
        size = {"width": width, "height": height}
        await self.send("browsingContext.setViewport", context=context, viewport=size)
        tab = Tab(self, context)
        try:
            await tab.go(url)
            yield tab
        finally:
            await self.send("browser.removeUserContext", userContext=user)
        assert not self.faults, "\n".join(self.faults)


@dataclass(slots=True)
class Tab:
    """`find`, `click` and `gone` take the first visible element of a selector with a text, also in shadow roots."""

    browser: Firefox
    context: str

    async def go(self, url: str) -> None:
        await self.browser.send("browsingContext.navigate", context=self.context, url=url, wait="complete")

    async def call(self, function: str, *arguments: str) -> Any:
        """Call a function of JavaScript, and return its result as BiDi writes it."""
        values = [{"type": "string", "value": argument} for argument in arguments]
        call = {"functionDeclaration": function, "arguments": values, "awaitPromise": True}
        answer = await self.browser.send("script.callFunction", target={"context": self.context}, **call)
        assert answer["type"] == "success", answer["exceptionDetails"]["text"]
        return answer["result"]

    async def value(self, expression: str) -> Any:
        return json.loads((await self.call(f"async () => JSON.stringify([await ({expression})])"))["value"])[0]

    async def find(self, selector: str, text: str = "", *, gone: bool = False) -> Any:
        deadline = monotonic() + PATIENCE
        while ("sharedId" in (element := await self.call(FIND, selector, text))) is gone:
            if monotonic() > deadline:
                page = await self.value("location.pathname + '\\n' + document.body.innerText")
                raise AssertionError(f"{selector} {text!r}, {gone=}: {page}")
            await asyncio.sleep(0.03)
        return element

    async def gone(self, selector: str, text: str = "") -> None:
        await self.find(selector, text, gone=True)

    async def click(self, selector: str, text: str = "") -> None:
        element = {"type": "element", "element": await self.find(selector, text)}
        move = {"type": "pointerMove", "x": 0, "y": 0, "origin": element}
        await self._perform("pointer", [move, *({"type": f"pointer{way}", "button": 0} for way in ("Down", "Up"))])

    async def type(self, text: str) -> None:
        await self._perform("key", [{"type": f"key{way}", "value": key} for key in text for way in ("Down", "Up")])

    async def press(self, chord: str) -> None:
        """Press a key, or several at once: `Control+s`."""
        keys = [KEYS.get(key, key) for key in chord.split("+")]
        up = [{"type": "keyUp", "value": key} for key in reversed(keys)]
        await self._perform("key", [{"type": "keyDown", "value": key} for key in keys] + up)

    async def _perform(self, kind: str, actions: list[dict[str, Any]]) -> None:
        source = {"type": kind, "id": kind, "actions": actions}
        await self.browser.send("input.performActions", context=self.context, actions=[source])
