# SPDX-License-Identifier: Apache-2.0
"""Receives the files of an export. What the aggregator sends is checked before anything is written."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import re
import shutil
import tempfile
from typing import BinaryIO

from .errors import CallFailed, NeurontraceError
from .v1 import operator_service_pb2 as messages
from .wire import Connection

# Format and ending of a path, the longer of two that fit first.
ENDINGS = (
    ("perfetto", ".pftrace"), ("events", ".jsonl"), ("summary-json", "summary.json"), ("summary-text", ".txt"),
    ("chrome-json", ".trace.json"), ("parquet", ".parquet"), ("json", ".json"),
)
DIRECTORY_FORMATS = ("parquet", "xspace")
FILES_MAX = 65_536  # as the aggregator's
NAME_BYTES_MAX = 512
_PART = re.compile(r"(?!\.\.?$)[A-Za-z0-9._=+@,-]+")


@dataclasses.dataclass(frozen=True)
class Exported:
    """The result of an export."""

    path: pathlib.Path  # the file, or the directory of the formats parquet and xspace
    files: tuple[pathlib.Path, ...]
    bytes: int
    incomplete: bool  # the capture lacks events, or the files lack stored ones
    verdict: str  # which
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def format_of(path: str | pathlib.Path) -> tuple[str, bool]:
    """Returns the format that a path's ending names, Perfetto's by default, and whether it is compressed with gzip.

    >>> format_of("a.trace.json.gz"), format_of("tables.parquet"), format_of("b")
    (('chrome-json', True), ('parquet', False), ('perfetto', False))
    """
    name = str(path)
    is_gzip = name.endswith(".gz")
    name = name[:-3] if is_gzip else name
    return next((format_name for format_name, ending in ENDINGS if name.endswith(ending)), "perfetto"), is_gzip


def check_name(name: str) -> pathlib.PurePosixPath:
    """Returns the relative path of a file, or fails: a name must not lead out of the directory of the export.

    >>> check_name("../x")
    Traceback (most recent call last):
    ...
    neurontrace.errors.NeurontraceError: the aggregator sent the file name '../x', which is not a relative path
    """
    if len(name) > NAME_BYTES_MAX or not all(_PART.fullmatch(part) for part in name.split("/")):
        raise NeurontraceError(f"the aggregator sent the file name {name[:200]!r}, which is not a relative path")
    return pathlib.PurePosixPath(name)


class _Receiver:
    """The files of one export, in the order in which the aggregator begins them; several are open at a time."""

    def __init__(self, directory: pathlib.Path, stack: contextlib.ExitStack):
        self._directory = directory
        self._stack = stack
        self._open: dict[int, BinaryIO] = {}
        self.files: list[pathlib.Path] = []
        self.bytes = 0

    def take(self, reply: messages.ExportReply) -> None:
        kind = reply.WhichOneof("reply")
        if kind == "file":
            self._begin(reply.file_number, reply.file)
        elif kind in ("data", "file_end"):
            file = self._open.get(reply.file_number)
            if file is None:
                raise NeurontraceError(f"the aggregator sent data of file {reply.file_number}, which is not open")
            if kind == "data":
                file.write(reply.data)
                self.bytes += len(reply.data)
            else:
                self._open.pop(reply.file_number).close()
        elif kind == "held_differs":
            raise NeurontraceError("the aggregator compared files that this client does not have")

    def _begin(self, number: int, name: str) -> None:
        if number != len(self.files) or number >= FILES_MAX:
            raise NeurontraceError(f"the aggregator sent file {number} after {len(self.files)} others; its version and "
                                   "that of this package do not fit")
        path = self._directory / check_name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._open[number] = self._stack.enter_context(open(path, "xb"))
        self.files.append(path)

    def check_closed(self) -> None:
        if self._open:
            raise NeurontraceError("the aggregator ended the export before all of its files were complete")


def download(connection: Connection, request: messages.ExportRequest, directory: pathlib.Path) -> Exported:
    """Receives an export into an empty directory. Raises `CallFailed`, `NeurontraceError` or OSError; what was received
    until then remains there."""
    done: messages.ExportDone | None = None
    with contextlib.ExitStack() as stack:
        receiver = _Receiver(directory, stack)
        for reply in connection.stream("Export", request):
            receiver.take(reply)
            if reply.WhichOneof("reply") == "done":
                done = reply.done
        receiver.check_closed()
    if done is None:
        raise CallFailed("the aggregator ended the export without its result; export again", "DATA_LOSS")
    return Exported(directory, tuple(receiver.files), receiver.bytes, done.capture_incomplete, done.verdict,
                    tuple(done.warnings), tuple(done.notes))


def save(connection: Connection, request: messages.ExportRequest, path: pathlib.Path, is_directory: bool) -> Exported:
    """Receives an export beside `path` and moves it there when it is complete. Replaces a file, but not a directory."""
    if is_directory and path.exists():
        raise NeurontraceError(f"{path} exists; name a new directory, or delete this one")
    if not is_directory and path.is_dir():
        raise NeurontraceError(f"{path} is a directory; name a file in it, such as {path / 'trace.pftrace'}")
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as temporary:
        part = pathlib.Path(temporary, "export")
        part.mkdir()
        made = download(connection, request, part)
        if is_directory:
            part.rename(path)
            files = tuple(path / file.relative_to(part) for file in made.files)
            return dataclasses.replace(made, path=path, files=files)
        if len(made.files) != 1:
            raise NeurontraceError(f"the aggregator sent {len(made.files)} files instead of one")
        shutil.move(str(made.files[0]), path)
        return dataclasses.replace(made, path=path, files=(path,))
