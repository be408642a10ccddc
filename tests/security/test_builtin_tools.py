"""What the built-in tools must not do, whatever they are asked for."""

from __future__ import annotations

import gzip
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.given import given
from tests.tools.built_in import House
from tests.tools.test_builtin_shell import needs_sandbox
from tests.tools.web import Server, get

from quire.engine.requests import ToolRequest
from quire.errors import BadConfiguration, Denied, ToolFailed
from quire.runs.workspace_gate import open_gate
from quire.tools.builtin import paths
from quire.tools.builtin.files import Files
from quire.tools.builtin.http_request import Hosts, is_public, look_up
from quire.tools.builtin.paths import Place, Places, Protection, fold
from quire.trust.capabilities import Grants
from quire.workspace.configuration import load_settings
from quire.workspace.grants import default_grants, reach_of
from quire.workspace.locate import Workspace

SECRET = "the contents of a file outside"


@pytest.fixture
def house(tmp_path: Path) -> House:
    given({"outside/secret.txt": SECRET}, tmp_path)
    built = House(tmp_path)
    (built.folder / "out").symlink_to(tmp_path / "outside")
    (built.folder / "up").symlink_to("../outside")
    (built.folder / "file").symlink_to("../outside/secret.txt")
    (built.folder / "long").symlink_to("a/../../outside")
    built.write("a/x.txt", "inside")
    (built.folder / "absolute").symlink_to(built.folder / "a")
    (built.folder / "root").symlink_to("/")
    return built


OUTSIDE = [
    "../outside/secret.txt",
    "a/../../outside/secret.txt",
    "/etc/passwd",
    "out/secret.txt",
    "up/secret.txt",
    "long/secret.txt",
    "file",
    "root/etc/passwd",
    "a\0/../../outside/secret.txt",
    "x" * 5000,
    "//etc/passwd",
    "a/./../../outside/secret.txt",
]


@pytest.mark.parametrize("path", OUTSIDE)
async def test_nothing_outside_is_read_or_written(house: House, path: str) -> None:
    with pytest.raises(ToolFailed):
        await house.call("file__read", path=path)
    with pytest.raises(ToolFailed):
        await house.call("file__write", path=path, content="changed")
    with pytest.raises(ToolFailed):
        await house.call("file__edit", path=path, old="the", new="changed")
    with pytest.raises(ToolFailed):
        await house.call("file__grep", path=path, pattern=".")
    outside = house.folder.parent / "outside"
    assert [file.read_text() for file in outside.iterdir()] == [SECRET]


async def test_links_that_stay_inside_are_followed(house: House) -> None:
    assert await house.call("file__read", path="absolute/x.txt") == "inside"
    assert await house.call("file__write", path="absolute/y.txt", content="y") == {
        "path": "a/y.txt",
        "bytes": 1,
        "created": True,
    }


async def test_a_folder_of_a_similar_name_is_not_the_workspace(house: House) -> None:
    beside = house.folder.with_name("work-beside")
    given({"x.txt": SECRET}, beside)
    with pytest.raises(ToolFailed, match="outside of the workspace"):
        await house.call("file__read", path=str(beside / "x.txt"))


@pytest.mark.parametrize("pattern", ["../**", "**/../../outside/*", "/etc/*", "a/../../*", "..", "\0", "/"])
async def test_patterns_stay_inside(house: House, pattern: str) -> None:
    with pytest.raises(ToolFailed, match="pattern"):
        await house.call("file__glob", pattern=pattern)


async def test_searches_do_not_follow_links(house: House) -> None:
    pytest.importorskip("re2")
    found = await house.call("file__glob", pattern="**/*.txt")
    assert found == ["a/x.txt"]
    assert await house.call("file__grep", pattern="contents") == {"matches": [], "truncated": False}
    with pytest.raises(ToolFailed, match="outside of the workspace"):
        await house.call("file__list", path="out")


def test_a_folder_swapped_for_a_link_in_between(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The link appears between the look and the opening: the worst moment."""
    places = Places(house.folder)
    real = paths._status

    def swap(name: str, at: int) -> os.stat_result | None:
        found = real(name, at)
        if name == "a":
            shutil.rmtree(house.folder / "a")
            (house.folder / "a").symlink_to("../outside")
        return found

    monkeypatch.setattr(paths, "_status", swap)
    with pytest.raises(ToolFailed, match="not a folder"):
        Files(places, Protection()).read({"path": "a/secret.txt"})


def test_a_file_swapped_for_a_link_in_between(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    places, real = Places(house.folder), Places.locate
    target = house.folder / "a" / "x.txt"

    @contextmanager
    def swap(self: Places, path: str, *, to_write: Protection | None = None) -> Iterator[Place]:
        with real(self, path, to_write=to_write) as place:
            target.unlink()
            target.symlink_to(house.folder.parent / "outside" / "secret.txt")
            yield place

    monkeypatch.setattr(Places, "locate", swap)
    with pytest.raises(ToolFailed):
        Files(places, Protection()).read({"path": "a/x.txt"})
    target.unlink()
    target.write_text("inside")
    with pytest.raises(ToolFailed):
        Files(places, Protection()).write({"path": "a/x.txt", "content": "changed"})
    assert (house.folder.parent / "outside" / "secret.txt").read_text() == SECRET


def test_a_file_swapped_for_a_link_just_before_it_is_opened(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    target, real = house.folder / "a" / "x.txt", Place.status

    def swap(self: Place) -> os.stat_result | None:
        found = real(self)
        target.unlink()
        target.symlink_to(house.folder.parent / "outside" / "secret.txt")
        return found

    monkeypatch.setattr(Place, "status", swap)
    with pytest.raises(ToolFailed):
        Files(Places(house.folder), Protection()).read({"path": "a/x.txt"})


CLOSED = [
    "quire.toml",
    "pyproject.toml",
    ".mcp.json",
    ".quire/quire.db",
    ".git/hooks/pre-commit",
    ".venv/lib/x.pth",
    "sub/.git/config",
    "sub/quire.toml",
    ".ai/config/capability_risk.yaml",
    ".ai/keys/trusted.pem",
    ".GIT/config",
    "Quire.TOML",
    ".git /config",
    "quire.toml.",
    ".g\u200cit/config",
    "\uff0egit/config",
    "GIT~1/config",
    ".ai/Config/x",
]


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize("allow", [(), ("*",), ("file__write=.ai", "file__write=.git", "file__write=quire.toml")])
async def test_some_files_are_closed_to_all_tools(house: House, path: str, allow: tuple[str, ...]) -> None:
    before = sorted(house.folder.rglob("*"))
    with pytest.raises(Denied, match="no tool may write it"):
        await house.call("file__write", *allow, path=path, content="x")
    assert sorted(house.folder.rglob("*")) == before, "no folder was made on the way"


async def test_closed_files_through_links(house: House) -> None:
    config = house.write(".git/config", "old")
    (house.folder / "innocent").symlink_to(".git")
    (house.folder / "b").symlink_to("innocent")
    (house.folder / "c.txt").symlink_to(".git/config")
    for path in ("innocent/config", "b/config", "c.txt", "a/../.git/config"):
        with pytest.raises((Denied, ToolFailed)):
            await house.call("file__write", path=path, content="new")
        with pytest.raises((Denied, ToolFailed)):
            await house.call("file__edit", path=path, old="old", new="new")
    os.link(config, house.folder / "hard.txt")
    await house.call("file__write", path="hard.txt", content="new")
    assert config.read_text() == "old"


@pytest.mark.parametrize(
    ("path", "folder"),
    [
        ("prompts/x.md", "prompts"),
        ("pipelines/a/b.yaml", "pipelines"),
        (".ai/directives/x.md", ".ai"),
        ("Prompts/x.md", "prompts"),
        ("sub/.ai/x.md", "sub/.ai"),
        ("more/texts/x.md", "more/texts"),
    ],
)
async def test_folders_of_documents_need_an_explicit_grant(house: House, path: str, folder: str) -> None:
    house.environ["QUIRE_HOME"] = str(house.folder.parent / "space")
    house.write("quire.toml", '[prompts]\nfolders = ["more/texts"]\n')
    for allow in ((), ("file__write",), ("rye/file-system/*",), ("*",)):
        if allow == ("*",) and path.startswith(".ai/directives"):
            continue  # Whoever may do everything may sign directives, and so write them.
        with pytest.raises(Denied, match=f"needs a grant for the folder {folder}; grant it with --allow file__write="):
            await house.call("file__write", *allow, path=path, content="x")
    assert await house.call("file__write", f"file__write={folder}", path=path, content="x")
    assert await house.call("file__edit", f"file__write={folder}/", path=path, old="x", new="y")
    # A folder elsewhere of the same name is nothing special.
    assert await house.call("file__write", path="docs/prompts/x.md", content="x")


async def test_who_may_sign_a_directive_may_write_it(house: House) -> None:
    settings = load_settings(Workspace(house.folder), house.environ)
    writes = "rye.execute.tool.rye.file-system.*"

    async def write(path: str, *grants: str) -> object:
        gate = open_gate(settings, Grants.of([writes, *grants]), house.environ)
        return await gate.call(ToolRequest("1", "1", "", "file__write", {"path": path, "content": "x"}), "e")

    assert await write(".ai/directives/demo/one.md", "rye.sign.directive.demo.*")
    for path, grant in [
        (".ai/directives/demo/one.md", "rye.sign.directive.other.*"),
        (".ai/directives/demo/one.txt", "rye.sign.directive.*"),
        (".ai/knowledge/demo/one.md", "rye.sign.directive.*"),
        (".ai/directives/demo/one.md", "rye.sign.knowledge.*"),
    ]:
        with pytest.raises(Denied):
            await write(path, grant)


async def test_the_users_own_space_is_not_even_read(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.environ["QUIRE_HOME"] = str(house.folder / "space")
    house.write("space/keys/mine.txt", SECRET)
    (house.folder / "s").symlink_to("space")
    for path in ("space/keys/mine.txt", "s/keys/mine.txt", "space/new.txt"):
        with pytest.raises(Denied, match="your user folder"):
            await house.call("file__read", path=path)
        with pytest.raises(Denied, match="your user folder"):
            await house.call("file__write", path=path, content="x")
    with pytest.raises(Denied):
        await house.call("file__list", path="space")
    assert await house.call("file__glob", pattern="**/*.txt") == []


def test_a_home_folder_is_no_workspace_for_the_file_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"QUIRE_HOME": str(tmp_path / "space")}
    (tmp_path / "me" / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    read = "rye.execute.tool.rye.file-system.read"
    for folder, granted in [("me/project", True), ("me", False), (".", False)]:
        settings = load_settings(Workspace(tmp_path / folder), environ)
        assert default_grants(settings).covers(read) is granted
        assert default_grants(settings, ["file__read"]).covers(read)


@pytest.mark.parametrize(
    "allow", ["shell=everything", "http__get=", "http__get=*.com", "http__get=http://x/", "file__write=../x", "shell="]
)
def test_a_reach_that_makes_no_sense(house: House, allow: str) -> None:
    with pytest.raises(BadConfiguration, match="cannot allow"):
        default_grants(load_settings(Workspace(house.folder), house.environ), [allow])


def test_no_wildcard_reaches_further(house: House) -> None:
    settings = load_settings(Workspace(house.folder), house.environ)
    for allow in ("*", "rye.*", "rye.reach.*", "rye.reach.shell.unsandboxed", "rye.execute.tool.rye.bash.unsandboxed"):
        reach = reach_of(default_grants(settings, [allow]))
        assert (reach.unsandboxed, reach.hosts, reach.folders) == (False, frozenset(), frozenset())
    assert not reach_of(default_grants(settings, ["http__get", "shell"])).network
    assert reach_of(default_grants(settings, ["rye/web/*"])).network
    # Kept when a run goes on, and never more than before.
    then = default_grants(settings, ["shell=unsandboxed", "http__get=localhost:1", "file__write=prompts"])
    assert reach_of(then.narrow(then)) == reach_of(then)
    assert not reach_of(default_grants(settings, ["shell"]).narrow(then)).unsandboxed


def test_a_server_cannot_take_the_name_of_a_built_in_tool(house: House) -> None:
    for name, what in [("quire", "the built-in tools"), ("rye", "directives and knowledge")]:
        house.write(".mcp.json", f'{{"mcpServers": {{"{name}": {{"command": "x"}}}}}}')
        with pytest.raises(BadConfiguration, match=f"stands for {what}"):
            load_settings(Workspace(house.folder), house.environ)
    house.write(".mcp.json", '{"mcpServers": {"file": {"command": "x"}}}')
    settings = load_settings(Workspace(house.folder), house.environ)
    for allow, granted in [("shell", "rye.bash"), ("rye/bash", "rye.bash"), ("http__get", "rye.web.fetch")]:
        grants = default_grants(settings, [allow])
        assert grants.covers(f"rye.execute.tool.{granted}")
        assert not any(".mcp." in pattern for pattern in grants.patterns)


@pytest.mark.parametrize("name", [".git", ".GIT", ".Git.", ".git ", "\u200d.git", ".\u2060git"])
def test_folding(name: str) -> None:
    assert fold(name) == ".git"


INSIDE = [
    "127.0.0.1",
    "127.255.1.1",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12::1",
    "ff02::1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "100::1",
    "fec0::1",
    "nonsense",
]


@pytest.mark.parametrize("address", INSIDE)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700::1111", "2a00:1450::1"])
def test_addresses_that_are(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "[::1]", "0.0.0.0", "2130706433", "0x7f000001", "127.1", "017700000001", "localhost", "①②⑦.⓪.⓪.①"],
)
async def test_every_spelling_of_loopback_is_refused(house: House, server: Server, host: str) -> None:
    with pytest.raises((Denied, ToolFailed)) as refused:
        await house.call("http__get", "http__get", url=f"http://{host}:{server.port}/")
    assert "not a public address" in str(refused.value) or "cannot be found" in str(refused.value)
    assert server.seen == []


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["::ffff:127.0.0.1"]])
def test_a_name_that_leads_inside(server: Server, addresses: list[str]) -> None:
    with pytest.raises(Denied, match=r"innocent\.org is at .* not a public address"):
        get(server, "http://innocent.org/", {"innocent.org": addresses})
    assert server.seen == []


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("http://127.0.0.1/", Denied),
        ("http://inside.org/", Denied),
        ("//inside.org/", Denied),
        ("http://[::1]/", Denied),
        ("file:///etc/passwd", ToolFailed),
        ("gopher://x/", ToolFailed),
    ],
)
def test_redirects_are_checked_too(server: Server, location: str, error: type[Exception]) -> None:
    server.answers["/"] = (302, {"Location": location}, b"")
    inside = {"inside.org": ["10.0.0.1"], "127.0.0.1": ["127.0.0.1"], "::1": ["::1"]}
    with pytest.raises(error):
        get(server, "http://example.com/", inside)
    assert len(server.seen) == 1


def test_redirects_end(server: Server) -> None:
    server.answers["/"] = (302, {"Location": "/"}, b"")
    with pytest.raises(ToolFailed, match="more than 5 redirects"):
        get(server, "http://example.com/")
    assert len(server.seen) == 6


def test_the_address_that_was_checked_is_the_one_that_is_used(server: Server) -> None:
    """A name that changes its answer: the second look-up never happens."""
    from quire.tools.builtin.http_request import HttpFetch

    asked: list[str] = []
    dialled: list[str] = []

    def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["93.184.216.34"] if len(asked) == 1 else ["127.0.0.1"]

    def dial(address: str, port: int, timeout: float) -> socket.socket:
        dialled.append(address)
        return socket.create_connection(("127.0.0.1", server.port), timeout)

    HttpFetch(Hosts(frozenset(), True, resolve), dial).get({"url": "http://rebinding.org/"})
    assert (asked, dialled) == (["rebinding.org"], ["93.184.216.34"])


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, b"x" * 1_000_001),
        ({"Content-Encoding": "gzip"}, gzip.compress(b"\n" * 50_000_000, 1)),
    ],
    ids=["large", "bomb"],
)
def test_large_answers(server: Server, headers: dict[str, str], body: bytes) -> None:
    server.answers["/"] = (200, headers, body)
    with pytest.raises(ToolFailed, match="more than 1,000,000 bytes"):
        get(server, "http://example.com/")


def test_binary_and_unknown_packing(server: Server) -> None:
    server.answers["/"] = (200, {"Content-Type": "image/png"}, b"\x89PNG\0\0")
    with pytest.raises(ToolFailed, match="not text but image/png"):
        get(server, "http://example.com/")
    server.answers["/"] = (200, {"Content-Encoding": "br"}, b"x")
    with pytest.raises(ToolFailed, match="packed as br"):
        get(server, "http://example.com/")
    server.answers["/"] = (200, {"Content-Encoding": "gzip"}, b"no gzip")
    with pytest.raises(ToolFailed, match="cannot be unpacked"):
        get(server, "http://example.com/")


def test_stopping_ends_a_server_that_never_finishes() -> None:
    from quire.tools.builtin.http_request import HttpFetch

    with socket.create_server(("127.0.0.1", 0)) as silent:
        fetch = HttpFetch(
            Hosts(frozenset({"127.0.0.1"}), False, look_up),
            lambda address, port, timeout: socket.create_connection(silent.getsockname(), timeout),
        )
        failures: list[str] = []

        def run() -> None:
            try:
                fetch.get({"url": "http://127.0.0.1/"})
            except ToolFailed as error:
                failures.append(error.message)

        thread = threading.Thread(target=run)
        thread.start()
        accepted, _ = silent.accept()
        with accepted:
            accepted.recv(10)
            fetch.stop()
            thread.join(10)
    assert failures == ["http://127.0.0.1: stopped"]


@needs_sandbox
async def test_the_sandbox_hides_the_home_folder_and_the_keys(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path.home()
    house.environ |= {"OPENAI_API_KEY": "sk-very-secret", "HOME": str(home), "LC_ALL": "C.UTF-8", "MY_DATA": "x"}
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-other-secret")
    shown = str(
        await house.call("shell", "shell", command="env; ls -a $HOME; ls -a /home /root 2>&1; cat /proc/*/environ")
    )
    assert "secret" not in shown
    assert "MY_DATA" not in shown
    assert "LC_ALL=C.UTF-8" in shown
    assert await house.call("shell", "shell", command=f"ls -A {home} 2>/dev/null | wc -l") == 0
    outside = house.folder.parent / "outside"
    assert await house.call("shell", "shell", command=f"ls {outside} 2>/dev/null || echo nothing") == "nothing"
    assert await house.call("shell", "shell", command="cat /etc/shadow 2>/dev/null || echo nothing") == "nothing"


@needs_sandbox
async def test_the_sandbox_hides_the_users_own_space(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.environ["QUIRE_HOME"] = str(house.folder / "space")
    key = house.write("space/keys/mine.txt", SECRET)
    assert await house.call("shell", "shell", command="ls -A space | wc -l; echo x > space/y; rm -rf space/keys") == 0
    assert key.read_text() == SECRET
    assert not (house.folder / "space" / "y").exists()


@needs_sandbox
async def test_the_sandbox_has_no_network_and_no_privileges(house: House, server: Server) -> None:
    code = f"import socket; socket.create_connection(('127.0.0.1', {server.port}), 5); print('reached')"
    reach = f'python3 -c "{code}" 2>/dev/null || echo refused'
    assert await house.call("shell", "shell", command=reach) == "refused"
    assert await house.call("shell", "shell", "http__get", command=reach) == "refused"
    if Path("/usr/bin/python3").exists() or Path("/usr/local/bin/python3").exists():
        assert await house.call("shell", "shell=network", command=reach) == "reached"
    status = str(await house.call("shell", "shell", command="cat /proc/self/status"))
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    pids = await house.call("shell", "shell", command="ls -d /proc/[0-9]* | wc -l")
    assert isinstance(pids, int)
    assert pids < 8, "the processes of the machine are not there"


@needs_sandbox
async def test_the_sandbox_writes_the_workspace_and_nothing_else(house: House) -> None:
    marker = f"quire-{os.getpid()}"
    command = f"touch made; touch /tmp/{marker}; touch /usr/{marker} /etc/{marker} /{marker} 2>/dev/null; echo done"
    assert await house.call("shell", "shell", command=command) == "done"
    assert (house.folder / "made").exists()
    for folder in ("/tmp", "/usr", "/etc", "/"):
        assert not Path(folder, marker).exists()
    # A link that leads out leads nowhere there.
    assert await house.call("shell", "shell", command="cat file out/secret.txt 2>/dev/null; echo") == ""


@needs_sandbox
@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("quire.toml", "echo x >> quire.toml"),
        ("quire.toml", "rm -f quire.toml; echo x > quire.toml"),
        ("quire.toml", "mv quire.toml old"),
        ("quire.toml", "echo x > new; mv new quire.toml"),
        ("quire.toml", "ln quire.toml hard; echo x >> hard"),
        (".git/hooks/pre-commit", "echo x > .git/hooks/pre-commit"),
        (".git/hooks/pre-commit", "rm -rf .git"),
        (".git/hooks/pre-commit", "mv .git gone; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit"),
        ("sub/.git/config", "echo x > sub/.git/config"),
        ("sub/.git/config", "mv sub moved; echo x > moved/.git/config; mv moved sub"),
        (".venv/x.pth", "echo x > .venv/x.pth"),
        ("prompts/p.md", "echo x > prompts/p.md"),
        (".ai/config/r.yaml", "echo x > .ai/config/r.yaml"),
    ],
)
async def test_protected_files_are_read_only_in_the_sandbox(house: House, path: str, command: str) -> None:
    file = house.write(path, "# old\n")
    assert await house.call("shell", "shell", command=f"{{ {command}; }} 2>/dev/null; cat {path}; true") in (
        "# old",
        "",
    )
    assert file.read_text() == "# old\n"


@needs_sandbox
async def test_a_granted_folder_can_be_written_in_the_sandbox(house: House) -> None:
    house.write(".ai/config/r.yaml", "old")
    house.write("prompts/p.md", "old")
    command = "echo new > prompts/p.md; echo new > .ai/x; echo new > .ai/config/r.yaml; true"
    await house.call("shell", "shell", "file__write=prompts", "file__write=.ai", command=command)
    assert (house.folder / "prompts/p.md").read_text() == "new\n"
    assert (house.folder / ".ai/x").read_text() == "new\n"
    assert (house.folder / ".ai/config/r.yaml").read_text() == "old"


@needs_sandbox
@pytest.mark.parametrize("end", ["true", "exit 3"])
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("echo '[tools]' > quire.toml", "quire.toml"),
        ("mkdir -p .git/hooks", ".git"),
        ("mkdir x; mv x .AI", ".AI"),
        ("ln -s /etc .venv", ".venv"),
        ("rm link; mkdir .quire", ".quire"),
    ],
)
async def test_what_is_made_in_a_protected_place_is_put_aside(house: House, command: str, name: str, end: str) -> None:
    (house.folder / "link").symlink_to("a")
    with pytest.raises((Denied, ToolFailed)):
        await house.call("shell", "shell", command=f"{command}; {end}")
    names = [entry.name for entry in house.folder.iterdir()]
    assert name not in names
    assert any(entry.startswith(f"{name}.refused-") for entry in names), "nothing is lost"


@needs_sandbox
async def test_a_protected_link_cannot_be_exchanged(house: House) -> None:
    house.write("elsewhere/config", "old")
    (house.folder / ".git").symlink_to("elsewhere")
    with pytest.raises(Denied, match="put aside"):
        await house.call("shell", "shell", command="rm .git; mkdir .git; echo x > .git/config")
    assert not (house.folder / ".git").exists()


@needs_sandbox
async def test_the_sandbox_refuses_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(tmp_path)
    monkeypatch.setenv("HOME", str(house.folder))
    with pytest.raises(Denied, match="holds your home folder"):
        await house.call("shell", "shell", command="echo x")
