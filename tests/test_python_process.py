from __future__ import annotations

import os

import pytest

from quire.python_process import clean_environ, leave_current_folder


@pytest.mark.parametrize(
    ("given", "kept"),
    [("", None), (":/a", "/a"), ("/a::b:/c:.", "/a:/c"), ("src", None), ("/a", "/a")],
)
def test_only_absolute_entries_of_the_path_are_kept(given: str, kept: str | None) -> None:
    found = clean_environ({"PYTHONPATH": given.replace(":", os.pathsep), "HOME": "/h"})
    assert found.get("PYTHONPATH") == (kept and kept.replace(":", os.pathsep))
    assert (found["PYTHONSAFEPATH"], found["HOME"]) == ("1", "/h")


def test_relative_homes_are_dropped() -> None:
    assert clean_environ({"PYTHONHOME": "py", "PYTHONUSERBASE": "base"}) == {"PYTHONSAFEPATH": "1"}
    assert clean_environ({"PYTHONUSERBASE": "/base"})["PYTHONUSERBASE"] == "/base"


def test_the_current_folder_leaves_the_path() -> None:
    here = os.getcwd()  # noqa: PTH109
    path = [here, "", "/lib"]
    leave_current_folder(path, {"PYTHONPATH": ""})
    assert path == ["/lib"]
    wanted = [here, "/lib"]
    leave_current_folder(wanted, {"PYTHONPATH": here})
    assert wanted == [here, "/lib"], "the user named it"
