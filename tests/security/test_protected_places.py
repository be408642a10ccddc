"""Attempts to write what grants, runs later, or runs by itself: by another name, by a link, by moving folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.tools.built_in import House
from tests.tools.test_builtin_shell import needs_sandbox

from quire.errors import Denied, QuireError, ToolFailed
from quire.library.collect import collect
from quire.tools.builtin import protected_places
from quire.tools.builtin.paths import ASKING, CLOSED, Protection
from quire.tools.builtin.protected_places import ProtectedPlaces
from quire.tools.builtin.shell import Shell

FOLDERS = {".github", ".vscode", ".husky", "node_modules", ".devcontainer", ".cargo", ".ai", ".git", ".quire", ".venv"}
EVIL = "evil"


def names(rows: tuple[object, ...]) -> list[str]:
    return [name for row in rows for name in row.names]  # type: ignore[attr-defined]


def path_of(name: str) -> str:
    name = f"some{name[1:]}" if name.startswith("*") else name.replace("*", "x")
    return f"{name}/x" if name in FOLDERS else name


async def refused(house: House, path: str, *allow: str) -> str:
    before = {file: file.read_bytes() for file in house.folder.rglob("*") if file.is_file()}
    with pytest.raises(QuireError) as error:
        await house.call("file__write", *allow, path=path, content=EVIL)
    after = {file: file.read_bytes() for file in house.folder.rglob("*") if file.is_file()}
    assert after == before
    return str(error.value)


@pytest.mark.parametrize("folder", ["", "sub/deep/"])
@pytest.mark.parametrize("name", names(CLOSED))
async def test_closed_names_are_written_by_no_grant(house: House, name: str, folder: str) -> None:
    for allow in ((), ("file__write=.",), (f"file__write={folder}{name}",)):
        assert "is protected; no tool may write it" in await refused(house, folder + path_of(name), *allow)


@pytest.mark.parametrize("folder", ["", "sub/deep/"])
@pytest.mark.parametrize("name", names(ASKING))
async def test_what_runs_by_itself_is_written_by_a_grant_alone(house: House, name: str, folder: str) -> None:
    path = folder + path_of(name)
    said = await refused(house, path)
    grant = said.partition("--allow ")[2].partition(",")[0]
    assert grant.startswith("file__write=")
    await refused(house, path.upper())
    for allow in (grant, "file__write=."):
        assert await house.call("file__write", allow, path=path, content="x")
        (house.folder / path).unlink()


# fmt: off
NAMES_OF_L2 = [
    ".hg/hgrc", ".jj/repo/config.toml", ".pylintrc", "mypy.ini", ".pdbrc", ".gdbinit", ".irbrc", "eslint.config.js",
    ".prettierrc.js", "vite.config.js", "jest.config.js", ".mocharc.js", ".yarn/plugins/x.cjs", ".aider.conf.yml",
    "AGENTS.md", "CLAUDE.md", ".cursorrules", ".windsurfrules", ".clinerules", ".clinerules/x.md", ".kiro/x.md",
    "opencode.json", "lefthook.yaml", "lefthook.toml", ".gitlab-ci.yaml", "taskfile.dist.yml", "tox.toml",
    "pytest.toml",
    "Cargo.toml", "mvnw", "CMakeLists.txt", "Dockerfile", "compose.yaml", "deno.json", "bunfig.toml", "composer.json",
    ".lvimrc", ".run/x.run.xml", ".claude/settings.json", ".cursor/rules/x.mdc",
]
# fmt: on


@pytest.mark.parametrize("folder", ["", "deep/er/"])
@pytest.mark.parametrize("name", NAMES_OF_L2)
async def test_names_that_run_by_themselves_or_that_agents_obey_need_a_grant(
    house: House, name: str, folder: str
) -> None:
    """Security L2: all of these were written by default."""
    said = await refused(house, folder + name)
    assert "--allow file__write=" in said or "no grant opens it" in said


@pytest.mark.parametrize(
    "path",
    [
        "report.md",
        "data/out.yaml",
        "src/app.py",
        "environment.yml",
        "sub/playbooks/notes.md",
        "makefile.txt",
        "docs/agents.txt",
        "config.js",
        "x.json",
    ],
)
async def test_ordinary_work_needs_no_grant(house: House, path: str) -> None:
    assert await house.call("file__write", path=path, content="a: x\n")
    assert await house.call("file__edit", path=path, old="x", new="y")


@pytest.mark.parametrize(
    "path", ["playbooks/a.playbook.md", "playbooks/a.txt", "Playbooks/x.md", "a.playbook.md", "deep/a.PLAYBOOK.md"]
)
async def test_playbooks_are_protected_like_pipelines(house: House, path: str) -> None:
    house.write(path, "# Old\n")
    await refused(house, path)
    await refused(house, f"{path}.new.playbook.md")


async def test_a_pipeline_right_in_the_workspace_is_not_rewritten(house: House) -> None:
    house.write("moving.yaml", "pipeline: moving\nsteps: []\n")
    house.write("values.yaml", "a: 1\n")
    assert "--allow file__write=moving.yaml" in await refused(house, "moving.yaml")
    assert await house.call("file__write", path="values.yaml", content="a: 2\n")
    assert await house.call("file__write", "file__write=moving.yaml", path="moving.yaml", content="x")


STEPS = "# Report\n\n## STEP 1: Run\n\nDo it.\n"
PIPELINE = "pipeline: evil\nsteps: []\n"
PLANTED = [
    ("report.md", STEPS),
    ("deep/REPORT.MD", STEPS),
    ("notes.markdown", STEPS),
    ("report.md", STEPS.replace("\n", "\r")),
    ("report.md", f"\ufeff{STEPS}"),
    ("evil.yaml", PIPELINE),
    ("deep/evil.yml", PIPELINE),
    ("evil.yaml", "{pipeline: evil, steps: []}\n"),
]


@pytest.mark.parametrize(("path", "text"), PLANTED)
async def test_a_run_does_not_write_a_document_that_runs_later(house: House, path: str, text: str) -> None:
    """security L3: `report.md` with a step was listed, offered in the page and run with the server's `--allow`."""
    (house.folder / path).parent.mkdir(parents=True, exist_ok=True)
    with pytest.raises(Denied, match="is a document that runs later"):
        await house.call("file__write", path=path, content=text)
    with pytest.raises(Denied, match="is a document that runs later"):
        await house.call("file__write", files=[{"path": path, "content": text}])
    house.write(path, "harmless\n")
    with pytest.raises(Denied, match=r"grant it with --allow file__write="):
        await house.call("file__edit", path=path, old="harmless\n", new=text)
    listed = await house.call("file__read", path=path, line_ids=True)
    line = str(listed).partition("]")[0].removeprefix("[LID:")
    with pytest.raises(Denied):
        await house.call("file__edit_lines", path=path, changes=[{"line_id": line, "new_content": text}])
    wanted, _ = collect([str(house.folder)])
    assert wanted == []
    assert await house.call("file__write", f"file__write={path}", path=path, content=text)
    wanted, _ = collect([str(house.folder)])
    assert [one.path.name for one in wanted] == [Path(path).name]


@pytest.mark.parametrize(
    ("path", "text"),
    [("report.md", "# Report\n\n## Step by step\n\n```\n## STEP 1: x\n```\n"), ("v.yaml", "a: 1\n"), ("x.txt", STEPS)],
)
async def test_ordinary_reports_are_written_without_a_grant(house: House, path: str, text: str) -> None:
    assert await house.call("file__write", path=path, content=text)


def link(house: House, name: str, target: str) -> None:
    place = house.folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target.format(workspace=house.folder.name))


LINKS = [
    ("prompts", "texts", "texts/a.md"),
    ("playbooks", "texts/more", "texts/more/a.md"),
    ("quire.toml", "conf/q.toml", "conf/q.toml"),
    (".mcp.json", "conf/m.json", "conf/m.json"),
    (".ai", "space", "space/directives/a.md"),
    ("pipelines", "../{workspace}/flows", "flows/a.yaml"),
    ("sub/.git", "../store", "store/hooks/pre-commit"),
    (".github", "ci", "ci/workflows/x.yml"),
    (".git", "one", "two/hooks/pre-commit"),
]


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize(("name", "target", "path"), LINKS)
async def test_a_protected_name_protects_what_it_leads_to(
    house: House, name: str, target: str, path: str, there: bool
) -> None:
    """Also where has no value yet: the file that is made would be read by the protected name."""
    if there:
        house.write(path, "old")
    link(house, name, target)
    if target == "one":
        link(house, "one", "two")
    await refused(house, path)


REPOSITORIES = {
    "bare": {".git": "gitdir: ./.bare\n", ".bare/config": "x", ".bare/hooks/pre-commit": "x"},
    "worktree": {
        "main/.git": "gitdir: ../store/worktrees/main\n",
        "store/worktrees/main/commondir": "../..\n",
        "store/hooks/pre-commit": "x",
    },
    "hooks": {".git/config": "[core]\n\thooksPath = scripts/hooks\n", "scripts/hooks/pre-commit": "x"},
    "included": {".git/config": "[include]\n\tpath = ../team.conf\n", "team.conf": "x"},
}


@pytest.mark.parametrize("kind", REPOSITORIES)
async def test_what_a_repository_leads_to_is_protected(house: House, kind: str) -> None:
    for path, text in REPOSITORIES[kind].items():
        house.write(path, text)
    for path in REPOSITORIES[kind]:
        await refused(house, path)
    if kind == "hooks":
        await refused(house, "scripts/hooks/post-checkout")
    assert await house.call("file__write", path="scripts/x.py", content="x")


async def test_an_environment_under_another_name_is_protected(house: House) -> None:
    house.write("tools/env311/pyvenv.cfg", "home = /usr/bin\n")
    await refused(house, "tools/env311/lib/python3.11/site-packages/new.py")
    await refused(house, "tools/env311/bin/activate")
    assert await house.call("file__write", "file__write=tools/env311", path="tools/env311/x.py", content="x")


@pytest.mark.parametrize(
    ("path", "closed"),
    [
        ("srv/server.py", True),
        ("srv/helpers.py", True),
        ("srv/new.py", True),
        ("srv/new.so", True),
        ("srv/json/__init__.py", True),
        ("srv/__pycache__/helpers.cpython-311.pyc", True),
        ("SRV/Helpers.py", True),
        ("pkg/deep/module.py", True),
        ("beside_pkg.py", True),
        ("srv/notes.txt", False),
        ("srv/deep/other.py", False),
        ("src/app.py", False),
    ],
)
def test_what_confirmed_servers_load_is_closed_and_so_are_modules_beside(path: str, closed: bool) -> None:
    protection = Protection(granted=frozenset({"."}), closed=frozenset({"srv/server.py", "pkg"}))
    if not closed:
        protection.require(path.split("/"))
        return
    with pytest.raises(Denied, match="a confirmed server or tool module loads"):
        protection.require(path.split("/"))


async def shell(house: House, command: str, protection: Protection | None = None) -> object:
    return await Shell(house.folder, protection or Protection(), house.environ, seconds=20).run({"command": command})


REPLACED = [
    ("sub/.git/hooks/old", "mv sub old; mkdir -p sub/.git/hooks; echo evil > sub/.git/hooks/x", "sub/.git"),
    ("a/b/quire.toml", "mv a old; mkdir -p a/b; echo evil > a/b/quire.toml", "a/b/quire.toml"),
    ("a/conftest.py", "mv a old; mkdir a; echo evil > a/conftest.py", "a/conftest.py"),
    ("a/env/pyvenv.cfg", "mv a old; mkdir -p a/env; echo evil > a/env/activate", "a/env"),
    ("x", "mkdir -p new/deep/.git/hooks; echo evil > new/deep/.git/hooks/x", "new/deep/.git"),
    ("x", "mkdir new; echo evil > new/package.json", "new/package.json"),
    ("x", "mkdir new; echo evil > new/QUIRE.toml", "new/QUIRE.toml"),
    ("x", "mkdir -p 'new/.g\u200bit'; echo evil > 'new/.g\u200bit/config'", "new/.g\u200bit"),
    ("x", "mkdir staged; echo evil > staged/a.yaml; mv staged pipelines", "pipelines"),
    ("x", "ln -s /etc deep; mkdir y; mv deep y/.vscode", "y/.vscode"),
    ("x", "mkdir d; echo evil > d/Makefile; (sleep 0.2; mkdir -p d/.git) & echo", "d/Makefile"),
]


@needs_sandbox
@pytest.mark.parametrize("end", ["true", "exit 3", "kill -9 $$"])
@pytest.mark.parametrize(("existing", "command", "place"), REPLACED)
async def test_no_protected_place_is_made_or_exchanged(
    house: House, existing: str, command: str, place: str, end: str
) -> None:
    house.write(existing, "old")
    with pytest.raises((Denied, ToolFailed)) as error:
        await shell(house, f"{command}; {end}")
    if end == "true":
        assert "put aside as" in str(error.value)
    assert not os.path.lexists(house.folder / place)
    aside = [path for path in (house.folder / place).parent.iterdir() if ".refused-" in path.name]
    assert aside, "nothing is lost"


@needs_sandbox
async def test_two_protected_places_cannot_be_swapped(house: House) -> None:
    house.write("a/.git/config", "a")
    house.write("b/.git/config", "b")
    with pytest.raises(Denied, match="put aside"):
        await shell(house, "mv a t; mv b a; mv t b")
    assert not (house.folder / "a" / ".git").exists()


@needs_sandbox
async def test_a_folder_with_protected_places_may_be_moved(house: House) -> None:
    house.write("pkg/conftest.py", "old")
    house.write("pkg/module.py", "old")
    assert await shell(house, "mv pkg other; echo new > other/module.py; echo done") == "done"
    assert (house.folder / "other" / "conftest.py").read_text() == "old"


@needs_sandbox
@pytest.mark.parametrize(("name", "target", "path"), LINKS)
async def test_what_a_protected_link_leads_to_is_read_only_in_the_sandbox(
    house: House, name: str, target: str, path: str
) -> None:
    file = house.write(path, "old")
    link(house, name, target)
    if target == "one":
        link(house, "one", "two")
    await shell(house, f"echo evil > {path}; echo evil > {path}x; rm -rf {path}; mv {path} y; true")
    assert file.read_text() == "old"
    assert not file.with_name(f"{file.name}x").exists() or path in ("conf/q.toml", "conf/m.json")


@needs_sandbox
@pytest.mark.parametrize(
    "command",
    [
        "mkdir conf; echo evil > conf/q.toml",
        "mkdir other; echo evil > other/q.toml; mv other conf",
        "rm quire.toml; ln -s other quire.toml; echo evil > other",
        "ln -s other conf; mkdir other; echo evil > other/q.toml",
    ],
)
async def test_a_protected_link_to_nothing_is_not_filled(house: House, command: str) -> None:
    link(house, "quire.toml", "conf/q.toml")
    with pytest.raises(Denied, match="put aside"):
        await shell(house, command)
    assert not (house.folder / "quire.toml").exists()


@needs_sandbox
async def test_a_link_in_the_middle_is_not_turned(house: House) -> None:
    house.write("real/texts/a.md", "old")
    link(house, "middle", "real")
    link(house, "prompts", "middle/texts")
    with pytest.raises(Denied, match="put aside"):
        await shell(house, "mkdir -p evil/texts; echo evil > evil/texts/a.md; rm middle; ln -s evil middle")
    assert not (house.folder / "prompts").exists()


@needs_sandbox
async def test_a_second_name_of_a_protected_file_is_read_only(house: House) -> None:
    config = house.write("quire.toml", "# old\n")
    (house.folder / "docs").mkdir()
    os.link(config, house.folder / "docs" / "copy.toml")
    await shell(house, "echo evil > docs/copy.toml; echo evil >> docs/copy.toml; chmod 777 docs/copy.toml; true")
    assert config.read_text() == "# old\n"


@needs_sandbox
async def test_a_place_in_a_folder_that_cannot_be_listed_is_found(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root lists every folder, so the answer of the system is given here."""
    real = os.scandir

    def scandir(folder: Path) -> object:
        if Path(folder).name == "shut":
            raise PermissionError(13, "Permission denied")
        return real(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(Denied, match="put aside"):
        await shell(house, "mkdir -p shut/.git/hooks; chmod 311 shut")
    assert not (house.folder / "shut").exists()


@needs_sandbox
async def test_what_confirmed_servers_load_is_read_only_in_the_sandbox(house: House) -> None:
    protection = Protection(closed=frozenset({"srv/server.py"}))
    files = [house.write(f"srv/{name}", "old") for name in ("server.py", "helpers.py")]
    await shell(house, "for f in srv/*.py; do echo evil > $f; rm -f $f; done; mv srv/helpers.py x; true", protection)
    assert [file.read_text() for file in files] == ["old", "old"]
    with pytest.raises(Denied, match=r"put aside as srv/json\.py\.refused"):
        await shell(house, "echo evil > srv/json.py; echo fine > srv/notes.txt", protection)
    assert (house.folder / "srv" / "notes.txt").exists()


@needs_sandbox
async def test_the_message_names_the_grant_and_the_grant_opens(house: House) -> None:
    with pytest.raises(Denied, match=r"--allow file__write=app/package\.json opens the place"):
        await house.call("shell", "shell", command="mkdir app; echo '{}' > app/package.json")
    command = "echo '{}' > app/package.json; mkdir -p app/node_modules/x; echo done"
    assert await house.call("shell", "shell", "file__write=app", command=command) == "done"


@needs_sandbox
async def test_more_places_than_can_be_bound_are_refused(house: House) -> None:
    for number in range(1001):
        house.write(f"p{number}/Makefile")
    with pytest.raises(Denied, match="1,001 protected places, and 1,000 can be made read-only"):
        await shell(house, "echo x > y")
    assert not (house.folder / "y").exists()


def test_a_workspace_too_large_to_look_through_is_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected_places, "MAX_ENTRIES", 10)
    for number in range(11):
        house.write(f"d/{number}")
    with pytest.raises(Denied, match="more than 10 entries"):
        ProtectedPlaces.of(house.folder, Protection())


def test_links_in_a_circle_end(house: House) -> None:
    link(house, "prompts", "pipelines")
    link(house, "pipelines", "prompts")
    link(house, ".git", ".git")
    house.write("sub/.git", "gitdir: ../sub/.git\n")
    assert set(ProtectedPlaces.of(house.folder, Protection()).places) >= {"prompts", "pipelines", ".git", "sub/.git"}


@needs_sandbox
@pytest.mark.parametrize(
    "command",
    [
        "mkdir d; echo evil > d/Makefile; chmod 555 d",
        f"mkdir d; echo evil > d/{'x' * 240}.playbook.md",
    ],
)
async def test_a_place_that_resists_is_put_aside_all_the_same(house: House, command: str) -> None:
    with pytest.raises(Denied, match="put aside as d/"):
        await shell(house, command)
    (left,) = (house.folder / "d").iterdir()
    assert "refused-" in left.name


async def test_a_message_is_fit_to_be_shown_and_copied(house: House) -> None:
    said = await refused(house, "$(touch x)\x1b[2J\n/Makefile")
    assert "--allow 'file__write=$(touch x)?[2J?/Makefile'" in said
    assert "\x1b" not in said
