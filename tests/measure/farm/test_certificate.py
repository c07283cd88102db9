"""Certificates are private files that are made once, and refused if they are not in order."""

import os
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import pytest
from cryptography.hazmat.primitives import serialization

from irgym.base.errors import FarmError
from irgym.measure.farm.certificate import make_certificate, security_of


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "farm.pem"
    assert make_certificate(path)
    return path


def test_only_the_user_can_read_it(tmp_path: Path):
    before = os.umask(0)
    try:
        assert make_certificate(tmp_path / "new" / "farm.pem")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "new" / "farm.pem").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["farm.pem"]


def test_one_that_is_there_is_never_replaced(certificate: Path):
    before = certificate.read_bytes()
    assert not make_certificate(certificate)
    assert certificate.read_bytes() == before
    dangling = certificate.with_name("link.pem")
    dangling.symlink_to("nowhere")
    assert not make_certificate(dangling)
    with pytest.raises(FarmError, match="there is no certificate"):
        security_of(dangling)


def test_one_of_many_concurrent_makers_makes_it(tmp_path: Path):
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(make_certificate, [tmp_path / "farm.pem"] * 16))
    assert made.count(True) == 1 and len(list(tmp_path.iterdir())) == 1
    security_of(tmp_path / "farm.pem")


def test_no_two_are_alike(certificate: Path, tmp_path: Path):
    make_certificate(tmp_path / "other.pem")
    assert (tmp_path / "other.pem").read_bytes() != certificate.read_bytes()


def _open_to_others(path: Path):
    path.chmod(0o640)


def _cut(path: Path):
    path.write_bytes(path.read_bytes()[:-100])


def _empty(path: Path):
    path.write_bytes(b"")


def _of_another_key(path: Path):
    make_certificate(path.with_name("other.pem"))
    key, other = path.read_bytes(), path.with_name("other.pem").read_bytes()
    path.write_bytes(key[: key.index(b"-----BEGIN CERT")] + other[other.index(b"-----BEGIN CERT") :])


def _with_a_password(path: Path):
    text = path.read_bytes()
    key = serialization.load_pem_private_key(text, None)
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    path.write_bytes(secret + text[text.index(b"-----BEGIN CERT") :])


def _gone(path: Path):
    path.unlink()


def _a_folder(path: Path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_open_to_others, "chmod 600"),
        (_cut, "is no certificate of a farm"),
        (_empty, "is no certificate of a farm"),
        (_of_another_key, "is no certificate of a farm"),
        (_with_a_password, "is no certificate of a farm"),
        (_gone, "copy that of the farm to this place"),
        (_a_folder, "no regular file"),
    ],
)
def test_a_bad_certificate_is_refused_in_one_sentence(certificate: Path, change, words: str):
    security_of(certificate)
    change(certificate)
    with pytest.raises(FarmError, match=words) as error:
        security_of(certificate)
    assert str(certificate) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("place", ["/dev/null/farm.pem", "/proc/farm.pem"])
def test_a_place_that_takes_none(place: str):
    with pytest.raises(FarmError, match=r"cannot be written .* name another file by --certificate"):
        make_certificate(Path(place))


def test_nothing_comes_from_dasks_configuration(certificate: Path, tmp_path: Path):
    make_certificate(tmp_path / "other.pem")
    other = str(tmp_path / "other.pem")
    roles = {role: {"cert": other, "key": other} for role in ("client", "scheduler", "worker")}
    tls = {"ca-file": other, "ciphers": "eNULL", "min-version": 1.2, "max-version": 1.2, **roles}
    with dask.config.set({"distributed.comm": {"require-encryption": False, "tls": tls}}):
        security, plain = security_of(certificate), security_of(None)
    assert security.require_encryption and security.tls_min_version == ssl.TLSVersion.TLSv1_3
    for role in roles:
        assert set(security.get_tls_config_for_role(role).values()) == {None, str(certificate)}
        assert set(plain.get_tls_config_for_role(role).values()) == {None}
