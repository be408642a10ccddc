"""QR codes of the page: read back by a decoder of others where one is installed, and by the rules of the standard."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest
from playwright.async_api import Page, expect
from tests.browser import Pages

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXTS = (
    "a",
    "http://127.0.0.1:8377/#token=abc",
    "https://quire.example.org/tools/q/1nfq5-abc/2/ask#token=" + "x" * 43,
    "ü€😀 <&>\"'",
    *("z" * length for length in (14, 15, 26, 62, 63, 106, 180, 213, 214, 331, 400, 500, 666)),
)
MODULES = "async text => (await import(new URL('static/t/app/parts/qr_dialog.js', document.baseURI))).qrModules(text)"
EXPONENTS = [1]
while len(EXPONENTS) < 255:
    EXPONENTS.append((EXPONENTS[-1] << 1) ^ (0x11D if EXPONENTS[-1] & 0x80 else 0))
BLOCKS = {1: (10, 1), 2: (16, 1), 3: (26, 1), 4: (18, 2), 5: (24, 2), 6: (16, 4), 7: (18, 4), 8: (22, 4), 9: (22, 5)}
BLOCKS |= {10: (26, 5), 11: (30, 5), 12: (22, 8), 13: (22, 9), 14: (24, 9), 15: (24, 10), 16: (28, 10), 17: (28, 11)}
BLOCKS |= {18: (26, 13), 19: (26, 14), 20: (26, 16)}
"""Level M by version: codewords for correction in a block, and blocks, as table 9 of ISO/IEC 18004 lists them."""
CENTRES: dict[int, tuple[int, ...]] = {
    7: (6, 22, 38),
    8: (6, 24, 42),
    9: (6, 26, 46),
    10: (6, 28, 50),
    11: (6, 30, 54),
    12: (6, 32, 58),
}
CENTRES |= {13: (6, 34, 62), 14: (6, 26, 46, 66), 15: (6, 26, 48, 70), 16: (6, 26, 50, 74), 17: (6, 30, 54, 78)}
CENTRES |= {18: (6, 30, 56, 82), 19: (6, 30, 58, 86), 20: (6, 34, 62, 90)}


async def _page(pages: Pages, stage: str) -> Page:
    page = await pages.open(stage)
    await expect(page.get_by_role("heading", name="Stage")).to_be_visible()
    return page


async def test_codes_are_read_back(pages: Pages, stage: str) -> None:
    page = await _page(pages, stage)
    for text in TEXTS:
        modules = await page.evaluate(MODULES, text)
        assert read(modules) == text, len(text)
        if find_spec("zxingcpp"):
            assert _seen(modules) == text
    assert await page.evaluate(MODULES, "z" * 667) is None


def _seen(modules: list[list[bool]]) -> str:
    """The text that a reader of pictures sees in a code, drawn with 4 pixels a module and a quiet zone."""
    zxingcpp = import_module("zxingcpp")  # used where it is installed; `read` is the check that always runs
    size = (len(modules) + 8) * 4
    pixels = bytearray(b"\xff" * (size * size))
    for y, row in enumerate(modules):
        for x, dark in enumerate(row):
            if dark:
                for line in range(4):
                    start = ((y + 4) * 4 + line) * size + (x + 4) * 4
                    pixels[start : start + 4] = b"\0" * 4
    found = zxingcpp.read_barcodes(memoryview(pixels).cast("B", (size, size)))
    return str(found[0].text) if found else ""


def read(modules: list[list[bool]]) -> str:
    """Read a code of level M by the rules of the standard. Fails on a wrong pattern, format or codeword."""
    size = len(modules)
    version = (size - 17) // 4
    mask = _format(modules)
    taken = _function_modules(version, size)
    bits = [modules[y][x] != _mask(mask, y, x) for y, x in _zigzag(size) if (y, x) not in taken]
    words = [int("".join("01"[bit] for bit in bits[at : at + 8]), 2) for at in range(0, len(bits) - 7, 8)]
    correction, blocks = BLOCKS[version]
    data = len(words) - correction * blocks
    short, longer = divmod(data, blocks)
    sizes = [short + (at >= blocks - longer) for at in range(blocks)]
    parts: list[list[int]] = [[] for _ in range(blocks)]
    source = iter(words)
    for at in range(max(sizes)):
        for block, count in zip(parts, sizes, strict=True):
            if at < count:
                block.append(next(source))
    for _ in range(correction):
        for block in parts:
            block.append(next(source))
    for block in parts:
        assert all(_syndrome(block, power) == 0 for power in range(correction)), "a block does not fit its correction"
    stream = "".join(f"{word:08b}" for block, count in zip(parts, sizes, strict=True) for word in block[:count])
    assert stream[:4] == "0100"
    width = 8 if version < 10 else 16
    length = int(stream[4 : 4 + width], 2)
    start = 4 + width
    return bytes(int(stream[start + 8 * at : start + 8 * at + 8], 2) for at in range(length)).decode()


def _format(modules: list[list[bool]]) -> int:
    size = len(modules)
    places = [(8, 0), (8, 1), (8, 2), (8, 3), (8, 4), (8, 5), (8, 7), (8, 8), (7, 8), (5, 8), (4, 8), (3, 8), (2, 8)]
    places += [(1, 8), (0, 8)]
    first = "".join("01"[modules[y][x]] for y, x in places)
    second = [(size - 1 - at, 8) for at in range(7)] + [(8, size - 8 + at) for at in range(8)]
    assert first == "".join("01"[modules[y][x]] for y, x in second), "the two formats differ"
    value = int(first, 2) ^ 0x5412
    rest = value
    for shift in range(14, 9, -1):
        if rest >> shift & 1:
            rest ^= 0x537 << (shift - 10)
    assert rest == 0, "the format is damaged"
    assert value >> 13 == 0, "not level M"
    assert modules[size - 8][8], "the dark module is missing"
    return value >> 10 & 7


def _function_modules(version: int, size: int) -> set[tuple[int, int]]:
    taken = {(y, 6) for y in range(size)} | {(6, x) for x in range(size)}
    taken |= {(y, x) for y in range(9) for x in range(9)}
    taken |= {(y, x) for y in range(9) for x in range(size - 8, size)}
    taken |= {(y, x) for y in range(size - 8, size) for x in range(9)}
    centres = CENTRES.get(version, () if version == 1 else (6, size - 7))
    for cy in centres:
        for cx in centres:
            if (cy, cx) not in ((6, 6), (6, size - 7), (size - 7, 6)):
                taken |= {(cy + y, cx + x) for y in range(-2, 3) for x in range(-2, 3)}
    if version >= 7:
        taken |= {(y, x) for y in range(6) for x in range(size - 11, size - 8)}
        taken |= {(y, x) for y in range(size - 11, size - 8) for x in range(6)}
    return taken


def _zigzag(size: int) -> list[tuple[int, int]]:
    places = []
    columns = [x for x in range(size - 1, -1, -1) if x != 6]
    for turn, at in enumerate(range(0, len(columns), 2)):
        rows = range(size) if turn % 2 else range(size - 1, -1, -1)
        places += [(y, x) for y in rows for x in columns[at : at + 2]]
    return places


def _mask(number: int, y: int, x: int) -> bool:
    match number:
        case 0:
            return (y + x) % 2 == 0
        case 1:
            return y % 2 == 0
        case 2:
            return x % 3 == 0
        case 3:
            return (y + x) % 3 == 0
        case 4:
            return (y // 2 + x // 3) % 2 == 0
        case 5:
            return y * x % 2 + y * x % 3 == 0
        case 6:
            return (y * x % 2 + y * x % 3) % 2 == 0
    return ((y + x) % 2 + y * x % 3) % 2 == 0


def _syndrome(block: list[int], power: int) -> int:
    """The value of the block as a polynomial at the given power of 2 in the field of 256 elements."""
    logs = {value: at for at, value in enumerate(EXPONENTS)}
    total = 0
    for word in block:
        total = (EXPONENTS[(logs[total] + power) % 255] if total else 0) ^ word
    return total
