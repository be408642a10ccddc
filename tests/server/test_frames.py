"""The frames draw what models wrote, say what is wrong with it, and follow the page's theme."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import FrameLocator, Page, expect
from tests.browser import Pages, axe, picture
from tests.depth import depth

from quire.server.assets import FRAME_KINDS

pytestmark = pytest.mark.asyncio(loop_scope="session")

LAST_MESSAGE = """() => new Promise(done => {
  addEventListener("message", ({ data }) => data === "last" && done());
  postMessage("last", "*");
})"""

CHART = {
    "type": "bar",
    "data": {"labels": ["a", "b"], "datasets": [{"label": "n", "data": [1, 2]}]},
    "options": {"animation": {"duration": 60000}},
}

BAD_CHARTS = [
    ("{type: 'bar', data: {}}", "This chart is not JSON, so it is not drawn: "),
    ("[1]", "A chart is a JSON object with `type` and `data`."),
    ('{"type": "cake", "data": {}}', "The type of a chart is one of bar, bubble"),
    ("x" * 2_000_001, "This is too large to be drawn."),
    ('{"type": "bar"}', "A chart is a JSON object with `type` and `data`."),
]

DIAGRAMS = [
    "flowchart LR\n A[Read] --> B{Good?}\n B -->|yes| C[Publish]\n B -->|no| A",
    "sequenceDiagram\n Alice->>Bob: Hello\n Bob-->>Alice: Hi",
    "classDiagram\n Animal <|-- Duck\n Animal : +int age",
    "stateDiagram-v2\n [*] --> Still\n Still --> Moving\n Moving --> [*]",
    "erDiagram\n CUSTOMER ||--o{ ORDER : places",
    "gantt\n dateFormat YYYY-MM-DD\n section A\n One :a1, 2026-01-01, 3d",
    'pie title Pets\n "Dogs" : 3\n "Cats" : 2',
    "mindmap\n root((Quire))\n  Runs\n  Documents",
    "timeline\n title T\n 2025 : one\n 2026 : two",
    "gitGraph\n commit\n branch b\n commit",
    "journey\n title Day\n section Go\n  Walk: 5: Me",
    "quadrantChart\n x-axis Low --> High\n A: [0.3, 0.6]",
    "xychart-beta\n x-axis [a, b]\n bar [1, 2]",
    "requirementDiagram\n requirement r {\n id: 1\n text: t\n risk: high\n verifymethod: test\n }",
    'C4Context\n Person(a, "A")',
    "sankey-beta\n\n a,b,3",
    "block-beta\n columns 1\n a",
    'packet-beta\n 0-15: "Source"',
    "kanban\n Todo\n  [Write]",
    "architecture-beta\n group api(cloud)[API]\n service db(database)[DB] in api",
    "---\nconfig:\n  layout: elk\n---\nflowchart TB\n A --> B",
]


async def test_diagrams_are_drawn_without_the_layout_that_is_left_out(pages: Pages, stage: str) -> None:
    page = await pages.open(stage)
    texts = DIAGRAMS[: depth(6, len(DIAGRAMS))]
    for at, text in enumerate(texts, start=1):
        frame = await _show(page, "mermaid", text)
        await expect(frame.locator(f"#place > svg#drawing-{at}"), text).to_be_visible()
    assert await page.locator(".frame-problem").count() == 0


async def test_a_diagram_that_is_wrong_says_where_and_the_next_is_drawn(pages: Pages, stage: str) -> None:
    page = await pages.open(stage)
    frame = await _show(page, "mermaid", "sequenceDiagram\n Alice ->-> ")
    await expect(page.locator(".frame-problem")).to_contain_text("Parse error on line 2")
    await expect(page.locator("iframe")).to_have_css("height", "0px")
    await _show(page, "mermaid", "sequenceDiagram\n Alice->>Bob: Hello")
    await expect(frame.locator("#place > svg")).to_be_visible()
    await expect(page.locator(".frame-problem")).to_have_count(0)


async def test_a_frame_is_as_high_as_its_drawing_and_follows_the_theme(pages: Pages, stage: str) -> None:
    page = await pages.open(stage)
    frame = await _show(page, "mermaid", "sequenceDiagram\n Alice->>Bob: Hello")
    drawing = frame.locator("#place > svg")
    await expect(drawing).to_be_visible()
    await expect(page.locator(".frame")).to_have_attribute("data-state", "drawn")
    drawn, given = await drawing.bounding_box(), await page.locator("iframe").bounding_box()
    assert drawn and given and abs(drawn["height"] - given["height"]) <= 1
    assert await axe(page) == []
    actor = frame.locator("rect.actor-top").first
    light = await actor.evaluate("actor => getComputedStyle(actor).fill")
    await page.emulate_media(color_scheme="dark")
    await expect(frame.locator("html")).to_have_attribute("data-theme", "dark")
    await expect(frame.locator("#drawing-2 rect.actor-top").first).not_to_have_css("fill", light)
    await page.evaluate("document.documentElement.dataset.theme = 'light'")
    await expect(frame.locator("html")).to_have_attribute("data-theme", "light")


async def test_a_chart_is_drawn_from_json(pages: Pages, stage: str) -> None:
    page = await pages.open(stage)
    frame = await _show(page, "chart", json.dumps(CHART))
    await expect(page.locator(".frame")).to_have_attribute("data-state", "drawn")
    await picture(page, "chart")
    inked = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)"
    assert await frame.locator("canvas").evaluate(inked)


async def test_a_chart_that_cannot_be_drawn_says_why(pages: Pages, stage: str) -> None:
    page = await pages.open(stage)
    for text, problem in BAD_CHARTS:
        await _show(page, "chart", text)
        await expect(page.locator(".frame-problem")).to_contain_text(problem)


async def test_html_is_shown_with_its_style(pages: Pages, stage: str) -> None:
    page = await pages.open(stage)
    frame = await _show(page, "html", "<style>body { background: rgb(1, 2, 3) }</style><p style='color: red'>Hello</p>")
    paragraph = frame.frame_locator("iframe").locator("p")
    await expect(paragraph).to_have_css("color", "rgb(255, 0, 0)")
    await expect(paragraph.locator("..")).to_have_css("background-color", "rgb(1, 2, 3)")


async def test_messages_of_others_are_ignored(pages: Pages, stage: str) -> None:
    page = await pages.open(stage)
    frame = await _show(page, "chart", json.dumps(CHART))
    await expect(page.locator(".frame")).to_have_attribute("data-state", "drawn")
    before = await page.locator("iframe").bounding_box()
    # The page talking to itself is not the frame, although the message is of the right form.
    await page.evaluate("postMessage({ type: 'size', turn: 1, height: 7 }, '*')")
    await page.evaluate("postMessage({ type: 'error', turn: 1, message: 'forged' }, '*')")
    # The frame talking to itself is not the page.
    await frame.locator("body").evaluate("postMessage({ turn: 9, text: 'nonsense', theme: 'dark' }, '*')")
    await page.evaluate("new Promise(done => { addEventListener('message', done); postMessage('last', '*') })")
    await frame.locator("body").evaluate(
        "new Promise(done => { addEventListener('message', done); postMessage(1, '*') })"
    )
    assert await page.locator("iframe").bounding_box() == before
    assert await page.locator(".frame-problem").count() == 0
    assert await frame.locator("html").get_attribute("data-theme") == "light"


async def test_a_frame_opened_directly_has_no_origin_and_draws_nothing(pages: Pages, stage: str) -> None:
    page = await pages.open(f"{stage}/frames/html")
    for kind in FRAME_KINDS:
        await page.goto(f"{stage}/frames/{kind}")
        assert await page.evaluate("origin") == "null"
        await page.evaluate("text => postMessage({ turn: 1, text, theme: 'dark' }, '*')", json.dumps(CHART))
        await page.evaluate(LAST_MESSAGE)
        assert await page.locator("#place").inner_html() == ""


async def _show(page: Page, kind: str, text: str) -> FrameLocator:
    await page.evaluate("([kind, text]) => show(kind, text)", [kind, text])
    return page.frame_locator("iframe")
