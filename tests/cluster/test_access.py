"""Temporal behind TLS, a client certificate and an API key: a real server behind a door of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.cluster.conftest import MakeTown
from tests.cluster.tls_door import Authority, Door, Pair
from tests.cluster.town import TemporalServer, marks_pipeline

from quire.cluster.client import NoAccess, connect, read_credentials
from quire.engine.records import Status
from quire.errors import CannotStart
from quire.workspace.settings import ClusterSettings, TemporalAccess

KEY = "castoria00tactic11"
"""Of letters that the doorkeeper can spell."""


@dataclass
class Street:
    """Doors with all the right and wrong papers."""

    ours: Authority
    theirs: Authority
    mine: Pair
    wrong: Pair
    plain: Door
    strict: Door
    keyed: Door
    expired: Door
    open: str

    def where(self, door: Door, **access: object) -> ClusterSettings:
        return ClusterSettings(door.address, access=TemporalAccess(**access))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def street(temporal: TemporalServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    folder = tmp_path_factory.mktemp("doors")
    ours, theirs = Authority(folder, "ours"), Authority(folder, "theirs")
    server = ours.issue("server")
    doors = (
        Door(temporal.address, server),
        Door(temporal.address, server, clients=ours),
        Door(temporal.address, server, api_key=KEY),
        Door(temporal.address, ours.issue("old", days=-1)),
    )
    yield Street(ours, theirs, ours.issue("me"), theirs.issue("me"), *doors, temporal.address)
    for door in doors:
        door.close()


async def test_who_has_the_right_papers_comes_in(street: Street, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_THE_DOOR", f" {KEY}\n")
    ca, mine = street.ours.cert, street.mine
    file = ca.with_name("key.txt")
    file.write_text(f"{KEY}\n")
    for where in (
        street.where(street.plain, ca=ca),
        street.where(street.plain, ca=ca, server_name="door"),
        street.where(street.strict, ca=ca, certificate=mine.cert, key=mine.key),
        street.where(street.keyed, ca=ca, api_key_env="KEY_OF_THE_DOOR"),
        street.where(street.keyed, ca=ca, api_key_file=file),
    ):
        assert await (await connect(where)).service_client.check_health()


Refused = tuple[Callable[[Street], ClusterSettings], str, bool]
REFUSED: dict[str, Refused] = {
    "CA of the system": (lambda at: at.where(at.plain, tls=True), "an authority that is not known here", True),
    "wrong CA": (lambda at: at.where(at.plain, ca=at.theirs.cert), "(tls_ca names who may)", True),
    "wrong name": (
        lambda at: at.where(at.plain, ca=at.ours.cert, server_name="cellar"),
        "its certificate is for 127.0.0.1, door (tls_server_name",
        True,
    ),
    "expired": (lambda at: at.where(at.expired, ca=at.ours.cert), "its certificate has expired", True),
    "no certificate": (
        lambda at: at.where(at.strict, ca=at.ours.cert),
        "refuses a client without a certificate (tls_cert and tls_key): certificate required",
        True,
    ),
    "certificate of somebody else's CA": (
        lambda at: at.where(at.strict, ca=at.ours.cert, certificate=at.wrong.cert, key=at.wrong.key),
        "theirs-me.pem: unknown ca",
        True,
    ),
    "no key": (lambda at: at.where(at.keyed, ca=at.ours.cert), "refuses us: who are you", True),
    "wrong key": (
        lambda at: at.where(at.keyed, ca=at.ours.cert, api_key_env="WRONG_KEY"),
        "refuses the API key: who are you",
        True,
    ),
    "TLS to who has none": (lambda at: replace(at.where(at.plain, tls=True), temporal=at.open), "speak TLS", True),
    "no TLS to who has it": (lambda at: at.where(at.plain), "does it want TLS?", False),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
async def test_who_has_the_wrong_ones_is_told_in_one_line(
    street: Street, case: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG_KEY", "crocroc")
    make, said, final = case
    with pytest.raises(CannotStart) as refused:
        await connect(make(street))
    line = str(refused.value)
    assert said in line and "\n" not in line and len(line) < 250
    assert isinstance(refused.value, NoAccess) is final
    assert "crocroc" not in line


def test_files_that_are_no_papers(street: Street, tmp_path: Path) -> None:
    nothing, text, locked = tmp_path / "nothing", tmp_path / "text", street.ours.issue("locked", password=b"x")
    text.write_bytes(b"hello \xff\n")
    empty = tmp_path / "empty"
    empty.write_text(" \n")
    mine, other = street.mine, street.wrong
    for access, said in (
        (TemporalAccess(ca=nothing), f"tls_ca: {nothing} cannot be read: No such file"),
        (TemporalAccess(ca=tmp_path), f"tls_ca: {tmp_path} cannot be read: Is a directory"),
        (TemporalAccess(ca=text), f"tls_ca: {text} holds no certificate"),
        (TemporalAccess(ca=mine.key), "holds no certificate"),
        (TemporalAccess(certificate=nothing, key=mine.key), f"tls_cert: {nothing} cannot be read"),
        (TemporalAccess(certificate=mine.key, key=mine.key), "tls_cert: "),
        (TemporalAccess(certificate=mine.cert, key=nothing), f"tls_key: {nothing} cannot be read"),
        (TemporalAccess(certificate=mine.cert, key=text), f"tls_key: {text} holds no private key"),
        (TemporalAccess(certificate=mine.cert, key=other.key), "is not the key of the certificate"),
        (TemporalAccess(certificate=locked.cert, key=locked.key), "is locked with a password"),
        (TemporalAccess(api_key_file=nothing), f"api_key_file: {nothing} cannot be read"),
        (TemporalAccess(api_key_file=empty), f"api_key_file: {empty} is empty"),
        (TemporalAccess(api_key_file=text), "holds no API key"),
        (TemporalAccess(api_key_env="THE_KEY"), "api_key_env: THE_KEY is not set in the environment"),
    ):
        with pytest.raises(NoAccess) as refused:
            read_credentials(access)
        assert said in str(refused.value) and "\n" not in str(refused.value)
    assert read_credentials(TemporalAccess()) == (False, None)


async def test_a_cluster_behind_a_door(street: Street, make_town: MakeTown) -> None:
    """Worker and client, certificate and key; the settings name the files relative to themselves."""
    door = Door(street.open, street.ours.issue("again"), clients=street.ours, api_key=KEY)
    town = make_town(
        door.address,
        cluster=f"""
            tls_ca = "{street.ours.cert}"
            tls_cert = "../papers/me.pem"
            tls_key = "../papers/me.key"
            api_key_env = "DOOR"
        """,
    )
    papers = town.folder.parent / "papers"
    papers.mkdir()
    (papers / "me.pem").write_bytes(street.mine.cert.read_bytes())
    (papers / "me.key").write_bytes(street.mine.key.read_bytes())
    town.environ["DOOR"] = KEY
    town.workers(1)
    (town.folder / "page.yaml").write_text(marks_pipeline(2, 0.0) + "- transform: {value: s1.label}\n")
    done = town.quire("run", "page.yaml", "--cluster")
    assert (done.returncode, done.stdout) == (0, "s1\n"), done.stderr
    assert door.opened >= 2
    run = (await town.runtime.store.list(limit=1))[0].id
    await town.reach([run], Status.COMPLETED)
    town.environ["DOOR"] = "rosaria"
    for verb in (["run", "page.yaml", "--cluster"], ["worker"]):
        refused = town.quire(*verb)
        said = f"Temporal at {door.address} refuses the API key: who are you"
        assert (refused.returncode, refused.stdout, said in refused.stderr) == (2, "", True), refused.stderr
        assert "rosaria" not in refused.stderr and len(refused.stderr.strip().splitlines()) == 1
    (papers / "me.key").unlink()
    for verb in (["run", "page.yaml", "--cluster"], ["worker"]):
        refused = town.quire(*verb)
        assert (refused.returncode, "me.key cannot be read: No such file" in refused.stderr) == (2, True)
    door.close()


async def test_the_options_of_a_worker(street: Street, make_town: MakeTown) -> None:
    """They go before the settings; what is configured for one server is not shown to another."""
    town = make_town(cluster='api_key_env = "NEVER_SET"\n')
    options = ["--temporal", street.strict.address, "--tls-ca", str(street.ours.cert)]
    refused = town.quire("worker", *options)
    assert (refused.returncode, "refuses a client without a certificate" in refused.stderr) == (2, True), refused.stderr
    refused = town.quire("worker")
    assert (refused.returncode, "NEVER_SET is not set in the environment" in refused.stderr) == (2, True)
    refused = town.quire("worker", *options, "--tls-cert", str(street.mine.cert))
    assert (refused.returncode, "tls_cert needs tls_key beside it" in refused.stderr) == (2, True), refused.stderr
    town.workers(1, *options, "--tls-cert", str(street.mine.cert), "--tls-key", str(street.mine.key))
