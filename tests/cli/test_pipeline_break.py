"""A pipeline that stops after a step, and a store that is changed there."""

from __future__ import annotations

from pathlib import Path

import pytest

from quire.cli import main

PAGE = """pipeline: add
steps:
  - transform: {value: "1", output: a}
  - transform: {value: "2", output: b}
  - transform: {value: "[ctx.a, ctx.b]"}
"""


@pytest.mark.parametrize(("given", "value"), [("41", "41"), ("words", '"words"'), ('{"x": [1]}', '{"x":[1]}')])
def test_a_store_is_changed_at_a_stop(
    workspace: Path, capsys: pytest.CaptureFixture[str], given: str, value: str
) -> None:
    (workspace / "add.yaml").write_text(PAGE)
    assert main(["run", "add.yaml", "--break", "1", "--break", "2"]) == 4
    assert main(["resume", "last", "--set", f"a={given}"]) == 4
    capsys.readouterr()
    assert main(["resume", "last"]) == 0
    assert capsys.readouterr().out.replace("\n", "").replace(" ", "") == f"[{value},2]".replace(" ", "")


def test_a_store_that_the_document_never_mentions(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (workspace / "add.yaml").write_text(PAGE)
    assert main(["run", "add.yaml", "-q", "--break", "1"]) == 4
    capsys.readouterr()
    assert main(["resume", "last", "--set", "zzz=1"]) == 2
    assert capsys.readouterr().err == "quire: --set zzz: the document never mentions zzz\n"
    (workspace / "add.yaml").write_text(PAGE.replace("[ctx.a, ctx.b]", "ctx"))
    assert main(["run", "add.yaml", "-q", "--break", "1"]) == 4
    assert main(["resume", "last", "-q", "--set", "zzz=1"]) == 0
    assert '"zzz": 1' in capsys.readouterr().out
