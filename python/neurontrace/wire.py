# SPDX-License-Identifier: Apache-2.0
"""The connection to the aggregator's operator service, and the texts of its failures.

Imported when a `Client` is made and not before: gRPC starts threads, and a process that forks workers afterwards would
hang in them.
"""

from __future__ import annotations

import os
from typing import Any, Callable

import grpc

from .errors import CallFailed, NeurontraceError, SettingsError
from .settings import Settings
from .v1 import operator_service_pb2_grpc

TOKEN_BYTES_MAX = 8 << 10

# Texts of gRPC and OpenSSL in the message of a failed connection, and what to do about each. A wrong name is also a
# failed verification, so it is first.
_REMEDIES = (
    ("Hostname Verification", "the aggregator's certificate is issued for a different name; pass the name in it as "
                              "server_name"),
    ("certificate verify failed", "the aggregator's certificate has expired, or the authority in ca did not sign it"),
    ("CERTIFICATE_VERIFY_FAILED", "the aggregator's certificate has expired, or the authority in ca did not sign it"),
    ("WRONG_VERSION_NUMBER", "the aggregator does not use TLS; omit ca, cert and key"),
    ("wrong version number", "the aggregator does not use TLS; omit ca, cert and key"),
)


class _TokenFromFile(grpc.AuthMetadataPlugin):
    """Sends the token of a file, read again for each call, so that a rotated one needs no new client."""

    def __init__(self, path: str):
        self._path = path

    def __call__(self, context: Any, callback: Any) -> None:
        try:
            token = read_token(self._path)
        except SettingsError as error:
            callback((), error)
        else:
            callback((("authorization", "Bearer " + token),), None)


def _read_file(name: str, path: str, bytes_max: int = 1 << 20) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(bytes_max + 1)
    except OSError as error:
        raise SettingsError(f"{name} {path}: {error.strerror}") from None
    if not data.strip():
        raise SettingsError(f"{name} {path} is empty")
    if len(data) > bytes_max:
        raise SettingsError(f"{name} {path} is larger than {bytes_max} bytes")
    return data


def read_token(path: str) -> str:
    """Returns the token of a file without white space around it; it must be one line of visible ASCII."""
    token = _read_file("token_file", path, TOKEN_BYTES_MAX).strip()
    if any(not 0x21 <= byte <= 0x7e for byte in token):
        raise SettingsError(f"token_file {path} must contain one line of visible ASCII characters")
    return token.decode("ascii")


def _make_channel(settings: Settings) -> grpc.Channel:
    options: list[tuple[str, Any]] = [("grpc.max_receive_message_length", 64 << 20)]
    if not settings.ca:
        return grpc.insecure_channel(settings.address, options)
    if settings.server_name:
        options.append(("grpc.ssl_target_name_override", settings.server_name))
    credentials = grpc.ssl_channel_credentials(
        _read_file("ca", settings.ca),
        _read_file("key", settings.key) if settings.key else None,
        _read_file("cert", settings.cert) if settings.cert else None)
    if settings.token_file:
        read_token(settings.token_file)  # reports an unusable file now, not at the first call
        credentials = grpc.composite_channel_credentials(
            credentials, grpc.metadata_call_credentials(_TokenFromFile(settings.token_file)))
    return grpc.secure_channel(settings.address, credentials, options)


def _remedy(settings: Settings, text: str) -> str:
    for part, remedy in _REMEDIES:
        if part in text:
            return remedy
    if any(part in text for part in ("Socket closed", "Endpoint read failed", "reset", "recvmsg")):
        if settings.ca:
            return ("it closes the connection because the certificate is missing or not accepted; pass one that its "
                    "authority signed as cert and key")
        return "it may require TLS; pass ca, cert and key"
    return ("check that neurontrace-aggregator runs there, or pass another address to Client or in "
            "NEURONTRACE_AGGREGATOR")


class Connection:
    """One channel to the aggregator. Its calls may be made from any thread of the process that made it."""

    def __init__(self, settings: Settings, timeout: float):
        self._settings = settings
        self._timeout = timeout
        self._pid = os.getpid()
        self._channel = _make_channel(settings)
        self._stub = operator_service_pb2_grpc.OperatorServiceStub(self._channel)

    def close(self) -> None:
        """Ends all calls of the connection."""
        self._channel.close()

    def _method(self, name: str) -> Callable[..., Any]:
        if os.getpid() != self._pid:
            raise NeurontraceError(f"this Client was made in process {self._pid}, and gRPC does not work in a child "
                                   "that was forked since; make a Client in the child")
        return getattr(self._stub, name)

    def _failure(self, error: grpc.RpcError) -> CallFailed:
        code, text = error.code(), error.details() or "no message"
        if code not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            return CallFailed(text, code.name)
        return CallFailed(f"no answer from the aggregator at {self._settings.address}: {text}; "
                          f"{_remedy(self._settings, text)}", code.name)

    def call(self, name: str, request: Any, *, timeout: float | None = None, wait: bool = True) -> Any:
        """Makes a call and returns its reply. `wait`: an aggregator that is starting is waited for until the deadline.

        Raises `CallFailed`.
        """
        method = self._method(name)
        deadline = self._timeout if timeout is None else timeout
        try:
            return method(request, timeout=deadline, wait_for_ready=wait)
        except grpc.RpcError as error:
            if not wait or error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                raise self._failure(error) from None
            # A call that waits for a connection ends without the reason; one that does not wait fails with it.
            reason = self._reason()
            raise (reason or self._failure(error)) from None

    def _reason(self) -> CallFailed | None:
        from .v1 import operator_service_pb2
        try:
            self._stub.GetStatus(operator_service_pb2.GetStatusRequest(), timeout=2)
        except grpc.RpcError as error:
            return self._failure(error) if error.code() == grpc.StatusCode.UNAVAILABLE else None
        return None

    def stream(self, name: str, request: Any) -> Any:
        """Makes a call and yields its replies. Raises `CallFailed`, also between two replies."""
        replies = self._method(name)(request)
        try:
            yield from replies
        except grpc.RpcError as error:
            raise self._failure(error) from None
        finally:
            replies.cancel()
