"""The certificate of a farm: its holders may send calls to the farm, and may answer them.

It is one file with a private key and a certificate signed by this key. Scheduler, workers and runs prove to
each other by TLS that they hold it, before any message is read. This matters because Dask's messages are
pickles: reading one can run code.
"""

import os
import stat
import tempfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from irgym.base.errors import FarmError, explained

if TYPE_CHECKING:
    from distributed import Security

_FIRST, _LAST = datetime(2000, 1, 1), datetime(9999, 12, 31, 23, 59, 59)
"""Validity of a certificate: unlimited, since clocks of machines differ; deleting the file revokes it."""


def default_certificate() -> Path:
    """Return the path of a user's certificate: `irgym/farm.pem` in `$XDG_CONFIG_HOME` or `~/.config`."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "irgym" / "farm.pem"


def make_certificate(path: Path) -> bool:
    """Make a certificate that only this user can read, unless it exists already.

    Returns:
        Whether it was made.

    Raises:
        FarmError: It cannot be written.
    """
    if os.path.lexists(path):
        return False
    with explained(f"{path} cannot be written", "name another file by --certificate", FarmError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=path.name, dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_pem())
            # Atomic, and it never replaces a certificate that was made in the meantime.
            with suppress(FileExistsError):
                path.hardlink_to(name)
                return True
            return False
        finally:
            Path(name).unlink()


def _pem() -> bytes:
    """Return a new private key and a certificate signed by it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "irgym farm")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FIRST)
        .not_valid_after(_LAST)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return secret + certificate.public_bytes(serialization.Encoding.PEM)


def security_of(certificate: Path | None) -> "Security":
    """Return Dask's settings for TLS among the holders of a certificate; for None, without TLS.

    Raises:
        FarmError: The certificate is missing, damaged, or readable by others.
    """
    import ssl  # slow to import, and not needed by commands without a farm

    from distributed import Security

    if certificate is not None:
        _check(certificate)
    file = None if certificate is None else str(certificate)
    # All settings are explicit, so that none comes from Dask's configuration.
    return Security(
        require_encryption=file is not None,
        tls_min_version=ssl.TLSVersion.TLSv1_3,
        tls_max_version=None,
        tls_ciphers=None,
        tls_ca_file=file,
        tls_client_cert=file,
        tls_client_key=file,
        tls_scheduler_cert=file,
        tls_scheduler_key=file,
        tls_worker_cert=file,
        tls_worker_key=file,
    )


def _check(path: Path) -> None:
    import ssl

    try:
        status = path.stat()
        if stat.S_ISREG(status.st_mode):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(path)
            context.load_cert_chain(path, password="")  # an encrypted key would ask for one
    except FileNotFoundError:
        raise FarmError(
            f"there is no certificate {path}: copy that of the farm to this place (irgym farm serve makes "
            "it), or name it by --certificate FILE or dask://HOST:PORT?certificate=FILE"
        ) from None
    except ssl.SSLError as error:
        raise FarmError(
            f"{path} is no certificate of a farm: copy it again, or delete it and run irgym farm serve"
        ) from error
    except OSError as error:
        raise FarmError(f"{path} cannot be read ({error.strerror}): name another certificate") from error
    if not stat.S_ISREG(status.st_mode):
        raise FarmError(f"{path} is no regular file: name another certificate")
    if status.st_mode & 0o077:
        raise FarmError(
            f"{path} is open to other users, who could run programs on the farm: chmod 600 it if you trust "
            "them, or delete it for a new one"
        )
