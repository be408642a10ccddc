"""`quire triggers` as a user types it, and a server that fires."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
import time
from pathlib import Path

import pytest
from tests.processes import started, wait_until
from tests.runs.trigger_place import Place

from quire.cli import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    place.configure(often='every = "1s"', rare='cron = "0 6 1 1 *"')
    monkeypatch.setenv("QUIRE_HOME", str(place.home))
    monkeypatch.chdir(place.work)
    return place


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out


def test_from_the_settings_to_a_run(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triggers"]) == 0
    assert re.search(r"rare +it is not enabled", told(capsys))
    assert main(["triggers", "check", "rare"]) == 0
    assert "cron: 0 6 1 1 *" in (shown := told(capsys)) and "-01-01T06:00:00Z" in shown and "script:" in shown
    assert main(["triggers", "enable", "rare"]) == 2  # nobody is there to ask
    assert "--yes" in capsys.readouterr().err
    assert main(["triggers", "enable", "rare", "--yes"]) == 0
    assert main(["triggers", "rare", "--json"]) == 0
    shown = told(capsys)
    (listed,) = json.loads(shown[shown.index('{\n  "triggers"') :])["triggers"]
    assert listed["enabled"] is True and listed["last"] is None and listed["next"][0].endswith("-01-01T06:00:00Z")
    assert main(["triggers", "tick"]) == 0 and told(capsys) == ""
    assert main(["triggers", "fire", "rare", "--json"]) == 0
    run = json.loads(told(capsys))["run"]
    assert main(["runs", run, "--output"]) == 0 and told(capsys) == "Hello.\n"
    assert main(["triggers", "fires", "rare", "--state", "started"]) == 0 and run in told(capsys)
    assert main(["triggers", "fires", "--state", "missed"]) == 0 and told(capsys) == ""
    assert main(["triggers", "disable", "rare"]) == 0
    assert main(["triggers", "fire", "rare"]) == 2
    assert "it is not enabled" in capsys.readouterr().err


def test_tick_claims_and_drives_what_is_due(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["triggers", "enable", "often", "--yes"]) == 0
    time.sleep(1.1)
    told(capsys)
    assert main(["triggers", "tick", "--json"]) == 0
    (run,) = json.loads(told(capsys))["runs"]
    assert (run["status"], run["title"]) == ("completed", "Hello")


def test_backfill_shows_the_price_and_asks(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure(rare='cron = "0 6 1 1 *"\nbudget = 0.25')
    assert main(["triggers", "enable", "rare", "--yes"]) == 0
    span = ["triggers", "backfill", "rare", "--from", "2023-06-01", "--to", "2026-01-01T06:00"]
    told(capsys)
    assert main([*span, "--dry-run"]) == 0
    times = [f"{year}-01-01T06:00:00Z" for year in (2024, 2025, 2026)]
    assert told(capsys).splitlines() == [*times, "3 runs of at most $0.25 each, $0.75 together"]
    assert main(span) == 2 and "--yes" in capsys.readouterr().err and rows(place) == []  # nobody is there to ask
    assert main([*span, "--yes", "--json"]) == 0
    shown = json.loads(told(capsys))
    assert [start["key"] for start in shown["fires"]] == times
    assert [row["status"] for row in rows(place)] == ["completed"] * 3
    assert main([*span, "--yes"]) == 0 and told(capsys) == "0 runs of at most $0.25 each, $0.00 together\n"
    assert main([*span, "--dry-run", "--json"]) == 0 and json.loads(told(capsys))["due"] == []
    assert main(["triggers", "backfill", "rare"]) == 2
    assert "needs --from TIME and --to TIME" in capsys.readouterr().err


def test_refusals_have_their_exit_code_and_all_reasons(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.configure(bad='run = "hello"\ncron = "0 0 30 2 *"\nzone = "Mars"')
    for words in (["check", "bad"], ["enable", "bad", "--yes"]):
        assert main(["triggers", *words]) == 6
        errors = capsys.readouterr().err
        assert "zone Mars does not exist" in errors and "input day is not mapped" in errors
    assert main(["triggers", "check", "nothing"]) == 2
    assert "unknown trigger nothing" in capsys.readouterr().err
    for words in (["tick", "now"], ["enable"], ["a", "b"], ["fires", "--yes"], ["tick", "--state", "missed"]):
        assert main(["triggers", *words]) == 2


def test_what_cannot_start_is_told_and_counts(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (place.work / "fails.json").write_text('[{"error": "no"}]')
    failing = f'run = "hello"\nevery = "1h"\nmodel = "script:{place.work}/fails.json"\ninputs = {{day = "x"}}'
    place.configure(fails=failing, asks='run = "asking"\nevery = "1h"', gone='every = "1s"')
    for name in ("fails", "asks", "gone"):
        assert main(["triggers", "enable", name, "--yes"]) == 0
    assert [main(["triggers", "fire", name]) for name in ("fails", "asks")] == [3, 4]
    (place.work / "hello.playbook.md").rename(place.work / "away")
    time.sleep(1.1)
    capsys.readouterr()
    assert main(["triggers", "tick"]) == 3
    assert re.search(r"quire: gone has failed, and is tried again: .*\bhello\b", capsys.readouterr().err)
    main(["doctor"])
    assert re.search(r"problem +trigger gone: starts nothing: unknown file.* hello", told(capsys))
    (place.home / "quire.toml").write_text("")
    assert main(["triggers"]) == 0
    assert re.search(r"gone +its settings are gone", told(capsys))
    assert [main(["triggers", "disable", "gone"]) for _ in range(2)] == [0, 2]
    assert "unknown trigger gone: " in capsys.readouterr().err


def test_names_and_reasons_cannot_forge_lines(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (place.work / "quire.toml").write_text('[triggers."x\\u001b[2J"]\nrun = "hello"\nevery = "1h"\n')
    assert main(["triggers"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_a_server_fires_and_drives(place: Place) -> None:
    assert main(["triggers", "enable", "often", "--yes"]) == 0
    environ = {**os.environ, "QUIRE_HOME": str(place.home)}
    command = [sys.executable, "-P", "-m", "quire", "serve", "--no-open", "--port", "0"]
    with started(command, cwd=place.work, env=environ):
        wait_until(lambda: any(row["status"] == "completed" for row in rows(place)))
    assert {row["source"] for row in rows(place)} == {"trigger:often"}


def rows(place: Place) -> list[dict[str, str]]:
    with sqlite3.connect(place.work / ".quire" / "quire.db") as database:
        found = database.execute("SELECT status, source FROM runs").fetchall()
    return [{"status": status, "source": source} for status, source in found]
