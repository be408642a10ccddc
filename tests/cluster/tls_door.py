"""A door in front of a Temporal server: TLS with a CA of our own, and a doorkeeper who asks for an API key.

It ends the encryption and hands every byte on. Of HTTP/2 it knows just enough to look at the headers of the first
request, and to turn somebody away in the words of gRPC.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import ssl
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADERS, _SETTINGS = 1, 4
# The codes of HPACK (RFC 7541, appendix B) for what a test's key is made of.
_CODES = {
    **dict(zip("012aceiost", (f"{code:05b}" for code in range(10)), strict=True)),
    " ": "010100",
    "r": "101100",
    "B": "1011101",
}


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates for this machine. `cert` is what others need to believe them."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._signed = self._sign(self._key, f"CA {name}", x509.BasicConstraints(ca=True, path_length=None))
        self.cert = folder / f"{name}.pem"
        self.cert.write_bytes(self._signed.public_bytes(Encoding.PEM))

    def issue(self, who: str, *, days: int = 2, password: bytes = b"") -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("door")])
        signed = self._sign(key, who, names, days=days)
        pair = Pair(self._folder / f"{self._name}-{who}.pem", self._folder / f"{self._name}-{who}.key")
        pair.cert.write_bytes(signed.public_bytes(Encoding.PEM))
        locked = BestAvailableEncryption(password) if password else NoEncryption()
        pair.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked))
        return pair

    def _sign(
        self, key: ec.EllipticCurvePrivateKey, who: str, extension: x509.ExtensionType, *, days: int = 2
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        issuer = f"CA {self._name}"
        builder = x509.CertificateBuilder(
            subject_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, who)]),
            issuer_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]),
            public_key=key.public_key(),
            serial_number=x509.random_serial_number(),
            not_valid_before=now - timedelta(days=9),
            not_valid_after=now + timedelta(days=days),
        )
        return builder.add_extension(extension, critical=False).sign(self._key, hashes.SHA256())


class Door:
    """Listens on loopback until `close`. `clients` is the CA of those who have to show a certificate."""

    def __init__(self, behind: str, shown: Pair, *, clients: Authority | None = None, api_key: str = "") -> None:
        host, _, port = behind.partition(":")
        self._behind = (host, int(port))
        self._api_key = api_key
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(shown.cert, shown.key)
        self._context.set_alpn_protocols(["h2"])
        if clients is not None:
            self._context.verify_mode = ssl.CERT_REQUIRED
            self._context.load_verify_locations(clients.cert)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.opened = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                found, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(found,), daemon=True).start()

    def _serve(self, found: socket.socket) -> None:
        with contextlib.suppress(OSError), self._context.wrap_socket(found, server_side=True) as client:
            first = self._first(client)
            if first is None:
                return
            self.opened += 1
            with socket.create_connection(self._behind) as server:
                server.sendall(first)
                threading.Thread(target=_pump, args=(server, client), daemon=True).start()
                _pump(client, server)

    def _first(self, client: ssl.SSLSocket) -> bytes | None:
        """What came up to the headers of the first request; None for one that was turned away."""
        if not self._api_key:
            return client.recv(65536)
        read = _Reader(client)
        read.exactly(len(_PREFACE))
        client.sendall(_frame(_SETTINGS, 0, 0, b""))
        while True:
            head = read.exactly(9)
            payload = read.exactly(int.from_bytes(head[:3]))
            if head[3] == _HEADERS:
                break
        if _huffman(f"Bearer {self._api_key}") in payload:
            return read.seen
        said = {b"content-type": b"application/grpc", b"grpc-status": b"16", b"grpc-message": b"who are you"}
        fields = b"".join(bytes([0, len(name)]) + name + bytes([len(text)]) + text for name, text in said.items())
        stream = int.from_bytes(head[5:9])
        client.sendall(_frame(_SETTINGS, 1, 0, b"") + _frame(_HEADERS, 5, stream, b"\x88" + fields))
        with contextlib.suppress(OSError):
            while client.recv(65536):
                pass
        return None


class _Reader:
    def __init__(self, client: ssl.SSLSocket) -> None:
        self._client = client
        self.seen = b""

    def exactly(self, count: int) -> bytes:
        got = b""
        while len(got) < count:
            more = self._client.recv(count - len(got))
            if not more:
                raise OSError("it hung up")
            got += more
        self.seen += got
        return got


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def _huffman(text: str) -> bytes:
    bits = "".join(_CODES[letter] for letter in text)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8)
