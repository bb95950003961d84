# SPDX-License-Identifier: Apache-2.0
"""How to reach the aggregator: arguments, else the environment, else the files of options of the `neurontrace` command.

docs/operator/configuration.md describes variables and files. Pure functions over an environment; only `find_settings`
reads files.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import pathlib
import sys
from typing import Any, Mapping

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from .errors import SettingsError

DEFAULT_ADDRESS = "127.0.0.1:9400"
SYSTEM_FILE = "/etc/neurontrace/config"
FILE_BYTES_MAX = 1 << 20  # as of the command: a larger file is no file of options

TRUE_WORDS = ("true", "on", "yes", "enable", "1")
FALSE_WORDS = ("false", "off", "no", "disable", "0")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Address and security of a connection; `find_settings` has checked that they fit each other."""

    address: str = DEFAULT_ADDRESS
    ca: str | None = None  # PEM files
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None  # in the server's certificate, if it differs from the address
    token_file: str | None = None  # a bearer token, read for every call
    insecure: bool = False  # allows plain text with other machines


# Field, name of the option in files, variable of the environment.
_SOURCES = (
    ("address", "aggregator", "NEURONTRACE_AGGREGATOR"),
    ("ca", "tls-ca", "NEURONTRACE_TLS_CA"),
    ("cert", "tls-cert", "NEURONTRACE_TLS_CERT"),
    ("key", "tls-key", "NEURONTRACE_TLS_KEY"),
    ("server_name", "tls-server-name", "NEURONTRACE_TLS_SERVER_NAME"),
    ("token_file", "token-file", "NEURONTRACE_TOKEN_FILE"),
    ("insecure", "insecure", "NEURONTRACE_INSECURE"),
)


def is_loopback(address: str) -> bool:
    """Returns whether HOST:PORT is certainly this machine. Compares texts only, as a name may resolve to any machine.

    >>> is_loopback("127.0.0.1:9400"), is_loopback("[::1]:9400"), is_loopback("127.example.org:9400")
    (True, True, False)
    """
    host = address.rpartition(":")[0]
    if host in ("localhost", "[::1]"):
        return True
    try:
        return host.startswith("127.") and ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        return False


def usual_files(environment: Mapping[str, str]) -> list[tuple[pathlib.Path, bool]]:
    """Returns the files of options and whether each must exist; later ones override earlier ones."""
    files = [(pathlib.Path(SYSTEM_FILE), False)]
    named = environment.get("NEURONTRACE_CONFIG")
    if named is not None:
        return files + ([(pathlib.Path(named), True)] if named else [])
    base = environment.get("XDG_CONFIG_HOME") or (environment.get("HOME", "") and environment["HOME"] + "/.config")
    return files + ([(pathlib.Path(base, "neurontrace", "config"), False)] if base else [])


def _read(path: pathlib.Path, must_exist: bool) -> dict[str, Any]:
    """Returns the options of a file; none if it does not exist and does not have to."""
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError as error:
        if not must_exist:
            return {}
        raise SettingsError(f"{path}: {error.strerror}; NEURONTRACE_CONFIG names it") from None
    except OSError as error:
        # It may contain values on which the user relies, so it is not skipped.
        raise SettingsError(f"{path}: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise SettingsError(f"{path} is larger than {FILE_BYTES_MAX} bytes, so it is not a file of options")
    try:
        return tomllib.loads(data.decode())
    except ValueError as error:  # of TOML and of UTF-8
        raise SettingsError(f"{path}: {error}") from None


def _from_file(path: pathlib.Path, must_exist: bool) -> dict[str, Any]:
    """Returns the fields that a file sets. Other keys belong to the command and are ignored."""
    options = _read(path, must_exist)
    found: dict[str, Any] = {}
    for field, option, _ in _SOURCES:
        if option not in options:
            continue
        value = options[option]
        wanted = bool if field == "insecure" else str
        if not isinstance(value, wanted) or value == "":
            kind = "true or false" if wanted is bool else "a quoted string that is not empty"
            raise SettingsError(f"{path}: {option} must be {kind}")
        found[field] = value
    return found


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, _, variable in _SOURCES:
        text = environment.get(variable, "")
        if not text:
            continue
        if field != "insecure":
            found[field] = text
        elif text.lower() in TRUE_WORDS + FALSE_WORDS:
            found[field] = text.lower() in TRUE_WORDS
        else:
            raise SettingsError(f"{variable}={text}: must be true or false")
    return found


def _check(settings: Settings) -> None:
    """Refuses what the command refuses: contradictions, and traffic that others could read."""
    host, colon, port = settings.address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise SettingsError(f"address {settings.address!r} must be HOST:PORT, such as {DEFAULT_ADDRESS}")
    if not (settings.ca or settings.cert or settings.key):
        if settings.token_file:
            raise SettingsError("token_file needs TLS, because a token is never sent in plain text; also pass ca")
        if not settings.insecure and not is_loopback(settings.address):
            raise SettingsError(
                f"{settings.address} is on another machine; without TLS anyone on the network can read traces and "
                "control captures: pass ca, cert and key, or insecure=True on a trusted network")
        return
    if settings.insecure:
        raise SettingsError("insecure and TLS exclude each other; omit insecure, or ca, cert and key")
    if bool(settings.cert) != bool(settings.key):
        raise SettingsError("cert and key must be given together")
    if not settings.ca:
        raise SettingsError("ca is missing; pass the certificate file of the authority that signed the aggregator's")


def find_settings(environment: Mapping[str, str] | None = None, **arguments: Any) -> Settings:
    """Returns the settings in effect. Arguments that are None are looked up.

    >>> find_settings({"NEURONTRACE_CONFIG": "", "NEURONTRACE_AGGREGATOR": "localhost:7000"}).address
    'localhost:7000'
    >>> find_settings({"NEURONTRACE_CONFIG": ""}, address="agg:9400")
    Traceback (most recent call last):
    ...
    neurontrace.errors.SettingsError: agg:9400 is on another machine; without TLS anyone on the network can read \
traces and control captures: pass ca, cert and key, or insecure=True on a trusted network
    """
    environment = os.environ if environment is None else environment
    values: dict[str, Any] = {}
    for path, must_exist in usual_files(environment):
        values.update(_from_file(path, must_exist))
    values.update(_from_environment(environment))
    values.update({name: value for name, value in arguments.items() if value is not None})
    settings = Settings(**values)
    _check(settings)
    return settings
