"""Client of the cluster: ask Temporal to have a worker look at a run, list the workers of a queue, and explain why the
server refuses a connection.

Certificates and keys are checked before anything is sent. A file that cannot be read, or a certificate that is not
trusted, gives a one-line message; gRPC would report nested structures, some of which name no cause at all.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from quire.cluster.orders import HEARTBEAT_SECONDS, LOOK, WORKFLOW, Order
from quire.errors import CannotStart
from quire.installed import add_extra
from quire.wording import cut
from quire.workspace.consent import require_trusted

if TYPE_CHECKING:
    from temporalio.client import Client
    from temporalio.service import TLSConfig

    from quire.workspace.settings import ClusterSettings, Settings, TemporalAccess


CONNECT_SECONDS = 5.0
RPC = timedelta(seconds=5)
TASK = timedelta(seconds=5)
"""Time limit for a worker to decide the next action of a workflow. It takes milliseconds, unless the worker is gone."""


class Cluster:
    def __init__(self, client: Client, queue: str, heartbeat: float = HEARTBEAT_SECONDS) -> None:
        self.client = client
        self.queue = queue
        self._heartbeat = heartbeat

    @classmethod
    async def connect(cls, where: ClusterSettings) -> Cluster:
        """Connect to the cluster. Raises `CannotStart`."""
        return cls(await connect(where), where.task_queue, where.heartbeat)

    async def look(self, run: str, *, resume: bool = False, signal: bool = True) -> None:
        """Have a worker look at a run, whether or not the cluster already knows it. Without a signal an existing
        workflow gets no entry in its history, and does not look again. Raises `CannotStart`."""
        from temporalio.common import WorkflowIDConflictPolicy
        from temporalio.service import RPCError

        try:
            await self.client.start_workflow(
                WORKFLOW,
                Order(run, self._heartbeat),
                id=run,
                task_queue=self.queue,
                task_timeout=TASK,
                start_signal=LOOK if signal else None,
                start_signal_args=[resume] if signal else [],
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                rpc_timeout=RPC,
            )
        except (RPCError, RuntimeError) as error:
            raise CannotStart(f"Temporal did not take run {run}: {reason(error)}") from None


async def connect(where: ClusterSettings, seconds: float = CONNECT_SECONDS) -> Client:
    """Connect to Temporal. Raises `CannotStart` if it is not reached in time; `NoAccess` if trying again would not
    help."""
    if find_spec("temporalio") is None:
        raise CannotStart(f"a cluster needs the package temporalio: {add_extra('cluster')}")
    if not where.temporal:
        raise CannotStart(NOT_SET)
    from temporalio.client import Client
    from temporalio.service import RPCError

    tls, api_key = read_credentials(where.access)
    try:
        async with asyncio.timeout(seconds):
            return await Client.connect(where.temporal, namespace=where.namespace, tls=tls, api_key=api_key)
    except TimeoutError:
        raise CannotStart(f"Temporal at {where.temporal} does not answer") from None
    except (RuntimeError, RPCError, ValueError) as error:
        raise await asyncio.to_thread(refusal, error, where.temporal, where.access) from None


NOT_SET = (
    'no cluster is configured: set temporal = "HOST:PORT" in the table [cluster] of quire.toml, '
    'and url = "postgresql://…" in [store]'
)


def require_cluster(settings: Settings) -> ClusterSettings:
    """Return the cluster of a workspace. Raises `CannotStart` if there is none, `Untrusted` if the user has not agreed
    to it."""
    if not settings.cluster.temporal:
        raise CannotStart(NOT_SET)
    if not settings.store_url:
        raise CannotStart(
            "a cluster needs a store that its workers share: "
            'set url = "postgresql://…" in the table [store] of quire.toml'
        )
    if "cluster" in settings.requested:
        require_trusted(settings)
    return settings.cluster


def worker_identity() -> str:
    return f"quire {os.getpid()}@{socket.gethostname()}"


_MESSAGE = re.compile(r'message: "([^"]{1,500})"')
_PRESENTED = re.compile(r'(?:DnsName|IpAddress)\((?:\\"|")?([^()"\\]{1,200})(?:\\"|")?\)')
_HUNG_UP = ("transport error", "connection closed")
_LONGEST = 200
PROBE_SECONDS = 2.0


class NoAccess(CannotStart):
    """The server cannot be accessed with these credentials: trying again changes nothing."""


def read_credentials(access: TemporalAccess) -> tuple[TLSConfig | bool, str | None]:
    """Read the certificates and the API key from their files and the environment. The first is False if nothing is
    encrypted. Raises `NoAccess`."""
    if not access.encrypted:
        return False, None
    from temporalio.service import TLSConfig

    _check(access)
    tls = TLSConfig(
        server_root_ca_cert=_bytes("tls_ca", access.ca),
        domain=access.server_name,
        client_cert=_bytes("tls_cert", access.certificate),
        client_private_key=_bytes("tls_key", access.key),
    )
    return tls, _api_key(access)


def _check(access: TemporalAccess) -> None:
    """Check the files with Python's TLS, which says what is wrong with a file; Temporal's reports nothing until it
    connects."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name, file in (("tls_ca", access.ca), ("tls_cert", access.certificate)):
        if file is not None:
            # The file may contain text in any language around the certificates.
            plain = _text(name, file).replace("\ufffd", "?")
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=plain)
            except ssl.SSLError:
                raise NoAccess(f"{name}: {file} holds no certificate (in the form PEM)") from None
    if access.certificate is None or access.key is None:
        return
    if "ENCRYPTED" in (held := _text("tls_key", access.key)):
        raise NoAccess(f"tls_key: {access.key} is locked with a password, which cannot be given here")
    if "PRIVATE KEY" not in held:
        raise NoAccess(f"tls_key: {access.key} holds no private key (in the form PEM)")
    try:
        # Without `password` Python would ask for the password of an encrypted key on the terminal.
        context.load_cert_chain(access.certificate, access.key, password=lambda: b"")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise NoAccess(f"tls_key: {access.key} is not the key of the certificate {access.certificate}") from None
        raise NoAccess(f"tls_key: {access.key} holds no private key that can be used") from None


def _api_key(access: TemporalAccess) -> str | None:
    if access.api_key_file is not None:
        name, key = f"api_key_file: {access.api_key_file}", _text("api_key_file", access.api_key_file).strip()
    elif access.api_key_env is not None:
        name, key = f"api_key_env: {access.api_key_env}", os.environ.get(access.api_key_env, "").strip()
    else:
        return None
    if not key:
        raise NoAccess(f"{name} {'is empty' if access.api_key_file else 'is not set in the environment'}")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise NoAccess(f"{name} holds no API key: it must be one word of plain characters")
    return key


def _bytes(name: str, file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as error:
        raise NoAccess(f"{name}: {file} cannot be read: {error.strerror or error}") from None


def _text(name: str, file: Path) -> str:
    return (_bytes(name, file) or b"").decode("ascii", "replace")


def refusal(error: BaseException, where: str, access: TemporalAccess) -> CannotStart:
    """Return the error for a failed connection: `NoAccess` if the network is not the cause. May connect to the server
    again, which takes a moment."""
    text, server = str(error), f"Temporal at {where}"
    if "InvalidCertificate(" in text:
        return NoAccess(f"{server} is not believed: {_distrust(text)}")
    if "InvalidContentType" in text:
        return NoAccess(f"{server} does not speak TLS: tls = false, if that is as it should be")
    if "code: Unauthenticated" in text or "code: PermissionDenied" in text:
        what = "the API key" if access.api_key_env or access.api_key_file else "us"
        return NoAccess(f"{server} refuses {what}: {reason(error)}")
    if any(words in text for words in _HUNG_UP):
        return _hung_up(where, access)
    return CannotStart(f"{server} cannot be reached: {reason(error)}")


def _hung_up(where: str, access: TemporalAccess) -> CannotStart:
    server = f"Temporal at {where}"
    if not access.encrypted:
        return CannotStart(f"{server} hangs up: does it want TLS? (tls = true in the table [cluster])")
    if alert := _alert(where, access):
        mine = access.certificate
        what = f"the certificate {mine}" if mine else "a client without a certificate (tls_cert and tls_key)"
        return NoAccess(f"{server} refuses {what}: {alert}")
    return CannotStart(f"{server} hangs up after the handshake")


def _alert(where: str, access: TemporalAccess) -> str:
    """Return the TLS alert about our certificate; empty if there is none.

    In TLS 1.3 the server sends it after the handshake, when gRPC may already have stopped reading; so this connects
    once more.
    """
    host, _, port = where.rpartition(":")
    host = host.strip("[]")
    try:
        context = ssl.create_default_context(cafile=access.ca)
        context.set_alpn_protocols(["h2"])
        if access.certificate is not None:
            context.load_cert_chain(access.certificate, access.key)
        with (
            socket.create_connection((host, int(port)), PROBE_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=access.server_name or host) as asking,
        ):
            asking.recv(1)
    except ssl.SSLError as error:
        return (error.reason or "").rpartition("ALERT_")[2].replace("_", " ").lower() if "ALERT" in str(error) else ""
    except (OSError, ValueError):
        return ""
    return ""


def _distrust(text: str) -> str:
    if "UnknownIssuer" in text:
        return "its certificate is signed by an authority that is not known here (tls_ca names who may)"
    if "NotValidForName" in text:
        names = ", ".join(_PRESENTED.findall(text.partition("presented")[2])) or "another name"
        return f"its certificate is for {names} (tls_server_name says which to expect)"
    if "Expired" in text:
        return "its certificate has expired"
    return f"its certificate is wrong ({text.partition('InvalidCertificate(')[2][:60].rstrip(' })')})"


def reason(error: BaseException) -> str:
    """Return gRPC's message in one line; it is often wrapped in a whole structure."""
    text = str(error).strip()
    messages = _MESSAGE.findall(text)
    first = messages[-1] if messages else text.split("\n")[0]
    return cut(first, _LONGEST, _LONGEST)
