"""Endpoints of farms: the host, port and certificate of a scheduler, and the addresses that name them."""

import re
import shlex
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote

from irgym.base.errors import FarmError
from irgym.measure.farm.certificate import default_certificate

_HOST = r"[\w.-]+|\[[0-9A-Fa-f:.]+\]"


@dataclass(frozen=True)
class Endpoint:
    """The place where a farm's scheduler listens, and the certificate that proves its identity.

    Attributes:
        host: Name or number of the host; an IPv6 number in brackets.
        port: TCP port, 1 to 65535.
        certificate: File that all members of the farm hold; None for a farm without TLS, which trusts anyone
            who reaches it.
    """

    host: str
    port: int
    certificate: Path | None = field(default_factory=default_certificate)

    @property
    def url(self) -> str:
        """The address in Dask's notation."""
        return f"{'tcp' if self.certificate is None else 'tls'}://{self.host}:{self.port}"

    @property
    def address(self) -> str:
        """The address with its options, as `parse_endpoint` takes it."""
        if self.certificate is None:
            return f"{self}?insecure=1"
        default = self.certificate == default_certificate()
        return str(self) if default else f"{self}?certificate={quote(str(self.certificate))}"

    @property
    def how(self) -> str:
        """Words for messages about a farm without TLS, with a blank before them; empty with TLS."""
        return " without TLS" if self.certificate is None else ""

    @property
    def flags(self) -> str:
        """The options for commands, with a blank before them; empty for the defaults."""
        if self.certificate is None:
            return " --insecure"
        default = self.certificate == default_certificate()
        return "" if default else f" --certificate {shlex.quote(str(self.certificate))}"

    @property
    def serving(self) -> str:
        """The command that starts the scheduler."""
        here = self.host in ("127.0.0.1", "localhost", "[::1]")
        return f"irgym farm serve {'' if here else f'{self.host}:'}{self.port}{self.flags}"

    @property
    def working(self) -> str:
        """The command that starts a worker of the farm."""
        return f"irgym worker {self}{self.flags}"

    def __str__(self) -> str:
        return f"dask://{self.host}:{self.port}"


def parse_endpoint(address: str, certificate: Path | None = None, insecure: bool = False) -> Endpoint:
    """Parse `dask://HOST:PORT`, optionally followed by `?certificate=FILE` or `?insecure=1`.

    Args:
        address: The address.
        certificate: Certificate from a command's option.
        insecure: Whether a command's option says to do without TLS.

    Raises:
        FarmError: The address is malformed, or options exclude each other.
    """
    place, _, query = address.partition("?")
    host, port = _place(place.removeprefix("dask://")) if place.startswith("dask://") else ("", 0)
    if not port:
        raise FarmError(f"{address!r} is no address of a farm: write dask://HOST:PORT")
    options = parse_options(address, query, ("certificate", "insecure"), "dask://HOST:PORT?certificate=FILE")
    file = options.get("certificate", "?")
    if options.get("insecure", "1") != "1" or not file or not file.isprintable():
        raise FarmError(f"{address!r} is malformed: write dask://HOST:PORT?certificate=FILE, or ?insecure=1")
    if options and (insecure or certificate is not None):
        raise FarmError(f"{address!r} already says which certificate to use: leave out the other option")
    named = Path(options["certificate"]) if "certificate" in options else certificate
    return _endpoint(host, port, named, insecure or "insecure" in options)


def parse_listening(address: str, certificate: Path | None = None, insecure: bool = False) -> Endpoint:
    """Parse `PORT`, which means this machine only, or `HOST:PORT`; for the options see `parse_endpoint`.

    Raises:
        FarmError: The address is malformed, or options exclude each other.
    """
    host, port = _place(address if ":" in address else f"127.0.0.1:{address}")
    if not port:
        raise FarmError(
            f"{address!r} is no place to listen: write PORT, or HOST:PORT to be reached from other machines"
        )
    return _endpoint(host, port, certificate, insecure)


def _place(text: str) -> tuple[str, int]:
    """Return host and port; the port is 0 if the text is malformed."""
    match = re.fullmatch(rf"({_HOST}):([0-9]{{1,5}})", text)
    return (match[1], int(match[2])) if match and int(match[2]) <= 65535 else ("", 0)


def _endpoint(host: str, port: int, certificate: Path | None, insecure: bool) -> Endpoint:
    if insecure and certificate is not None:
        raise FarmError(
            f"a farm at {host}:{port} has a certificate or is insecure, not both: leave out one option"
        )
    if insecure:
        return Endpoint(host, port, None)
    if certificate is None:
        return Endpoint(host, port)
    return Endpoint(host, port, certificate.expanduser().absolute())


def parse_options(address: str, query: str, known: Collection[str], example: str) -> dict[str, str]:
    """Return the options of an address, from the part behind the question mark.

    Raises:
        FarmError: An option is unknown, malformed, or given twice.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise FarmError(f"{address!r} is malformed: write options as in {example}") from error
    chosen: dict[str, str] = {}
    for name, text in pairs:
        if name not in known or name in chosen:
            wrong = "is given twice" if name in chosen else f"is no option of {address.partition('?')[0]}"
            raise FarmError(f"{name} {wrong}: choose among {', '.join(known)}")
        chosen[name] = text
    return chosen
