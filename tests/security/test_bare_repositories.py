"""Security N3: git takes any folder with `HEAD`, `objects` and `refs` for a repository, and starts what its `config`
names. Real git looks whether an attack gained something."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.tools.built_in import House
from tests.tools.test_builtin_shell import needs_sandbox

from quire.errors import Denied
from quire.tools.builtin.paths import Protection
from quire.tools.builtin.shell import Shell

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def repository(house: House) -> dict[str, str]:
    settings = "repositoryformatversion = 0\n\tbare = false\n\tworktree = ."
    return {
        "HEAD": "ref: refs/heads/main\n",
        "config": f'[core]\n\t{settings}\n\tfsmonitor = "touch {marker(house)}"\n',
        "objects/info/x": "x",
        "refs/heads/x.txt": "x",
    }


def marker(house: House) -> Path:
    return house.folder.parent / "gained"


def gains(house: House, folder: str = "docs") -> bool:
    """A prompt that shows the state of the folder runs git status."""
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "status"], cwd=house.folder / folder, env=environ, capture_output=True, check=False)
    return marker(house).exists()


@needs_git
def test_the_attack_is_one(house: House) -> None:
    for name, text in repository(house).items():
        house.write(f"docs/{name}", text)
    assert gains(house)


@needs_git
@pytest.mark.parametrize("order", [*itertools.permutations(range(4))])
async def test_no_order_of_writes_makes_a_repository(house: House, order: tuple[int, ...]) -> None:
    """`HEAD` before `objects` and after."""
    house.write("docs/readme.md")
    files, refused = list(repository(house).items()), []
    for name, text in (files[index] for index in order):
        try:
            await house.call("file__write", "file__write=.", path=f"docs/{name}", content=text)
        except Denied as denied:
            assert "a git repository); no tool may write it, and no grant opens it" in str(denied)
            refused.append(name)
    assert refused and not gains(house)


@needs_git
@pytest.mark.parametrize("order", [*itertools.permutations(range(5))])
async def test_a_folder_that_borrows_the_store_of_another_is_not_made(house: House, order: tuple[int, ...]) -> None:
    """`commondir` says where `objects`, `refs` and `config` are."""
    house.write("docs/readme.md")
    own = {"docs/HEAD": "ref: refs/heads/main\n", "docs/commondir": "../store\n"}
    store = {f"store/{name}": text for name, text in repository(house).items() if name != "HEAD"}
    files, refused = list({**own, **store}.items()), []
    for name, text in (files[index] for index in order):
        try:
            await house.call("file__write", path=name, content=text)
        except Denied:
            refused.append(name)
    assert refused and not gains(house)


async def test_an_existing_repository_is_closed_with_its_hooks(house: House) -> None:
    for name, text in repository(house).items():
        house.write(f"mirror.git/{name}", text)
    for name in ("hooks/post-update", "config", "HEAD", "objects/aa/bb", "packed-refs", "notes.md"):
        with pytest.raises(Denied, match="no grant opens it"):
            await house.call("file__write", "file__write=.", path=f"mirror.git/{name}", content="x")


@pytest.mark.parametrize(
    "paths",
    [
        ("src/config/app.json", "src/objects/ball.py", "src/refs/list.md"),
        ("app/config", "app/HEAD", "app/object/x"),
        ("game/objects/ball.py", "game/config.json", "game/header"),
    ],
)
async def test_folders_of_programs_stay_open(house: House, paths: tuple[str, ...]) -> None:
    for path in paths:
        await house.call("file__write", path=path, content="x")


def commands(house: House) -> dict[str, str]:
    files = repository(house)
    write = " && ".join(
        f"mkdir -p $(dirname $D/{name}) && printf '%s' '{text}' > $D/{name}" for name, text in files.items()
    )
    return {
        "in place": f"D=docs; {write}",
        "moved": f"D=t; mkdir t; {write}; mkdir -p docs/deep; mv t/* docs/; true",
        "links": f"D=t; mkdir t; {write}; cd docs; ln -s ../t/HEAD HEAD; ln -s ../t/config config; "
        "ln -s ../t/objects objects; ln -s ../t/refs refs; mv ../t/HEAD ../t/H; true",
        "deep": f"D=docs/a/b/c; mkdir -p $D; {write}",
        "ended badly": f"D=docs; {write}; kill -9 $$",
        "left behind": f"D=docs; {write}; chmod 311 docs; exit 0",
    }


@needs_git
@needs_sandbox
@pytest.mark.parametrize("way", ["in place", "moved", "links", "deep", "ended badly", "left behind"])
async def test_a_command_in_the_sandbox_leaves_no_repository(house: House, way: str) -> None:
    house.write("docs/readme.md")
    with pytest.raises(Exception, match=r"put aside as|killed|signal|status"):
        await Shell(house.folder, Protection(), house.environ, seconds=20).run({"command": commands(house)[way]})
    for folder in ("docs", "docs/a/b/c", "t"):
        if (house.folder / folder).is_dir():
            assert not gains(house, folder)
    assert any("refused-" in path.name for path in house.folder.rglob("*")), "nothing is lost"


@needs_git
@needs_sandbox
async def test_a_command_and_a_file_tool_make_none_together(house: House) -> None:
    files = repository(house)
    await house.call("file__write", path="docs/HEAD", content=files["HEAD"])
    await house.call("file__write", path="docs/config", content=files["config"])
    with pytest.raises(Denied, match=r"docs/HEAD\.refused-.*no grant opens the place"):
        await house.call("shell", "shell", command="mkdir -p docs/objects docs/refs")
    assert not gains(house)
    with pytest.raises(Denied, match="a git repository"):
        await house.call("file__write", path="docs/HEAD", content=files["HEAD"])


@needs_sandbox
async def test_an_existing_repository_is_read_only_in_the_sandbox_and_moves_with_its_folder(house: House) -> None:
    for name, text in repository(house).items():
        house.write(f"all/mirror.git/{name}", text)
    await house.call("shell", "shell", command="cd all/mirror.git; echo x > config; mkdir hooks; rm HEAD; true")
    assert {path.name for path in (house.folder / "all/mirror.git").iterdir()} == {"HEAD", "config", "objects", "refs"}
    assert (house.folder / "all/mirror.git/config").read_text() == repository(house)["config"]
    assert await house.call("shell", "shell", command="mv all other; echo done") == "done"
