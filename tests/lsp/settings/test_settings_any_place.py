"""Every feature at every place of quire.toml, also of one that ends anywhere."""

from __future__ import annotations

from tests.depth import depth
from tests.lsp.editor import Editor
from tests.lsp.every_place import try_everything

TEXT = """\
models.default = "é👍"
[tools]
allow = [ "shell=network", # why
  'http__get' ]
[models.tiers]
low = {model = "x", a.b = {c = [1, 2]}}
[[odd."x.y"]]
text = '''
[no]
'''
z
"""


def test_no_place_raises(editor: Editor) -> None:
    try_everything(editor, "quire.toml", TEXT, range(0, len(TEXT) + 1, depth(3, 1)))


def test_no_end_of_the_text_raises(editor: Editor) -> None:
    for end in range(0, len(TEXT), depth(4, 1)):
        try_everything(editor, "quire.toml", TEXT[:end], [end])
