# SPDX-License-Identifier: Apache-2.0
"""The tables of a capture: one Parquet export in a temporary directory, read with pyarrow or DuckDB.

docs/formats/parquet.md describes the tables.
"""

from __future__ import annotations

import pathlib
import re
import tempfile
from typing import TYPE_CHECKING, Any

from .errors import NeurontraceError
from .exports import Exported, download
from .v1 import operator_service_pb2 as messages
from .wire import Connection

if TYPE_CHECKING:
    import duckdb
    import pyarrow

_FILE = re.compile(r"([A-Za-z][A-Za-z0-9]*?)(?:_(\d+))?\.parquet")
SCHEMA_TABLE = "SchemaFields"


def _need(module: str, extra: str) -> Any:
    """Imports a module that an extra of this package brings."""
    import importlib
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise NeurontraceError(f"{error}; install it with: pip install 'neurontrace[{extra}]'") from None


class Tables:
    """The files of one export. Owns the directory, which is deleted with this object."""

    def __init__(self, connection: Connection, request: messages.ExportRequest):
        self._directory = tempfile.TemporaryDirectory(prefix="neurontrace-")
        self.exported: Exported = download(connection, request, pathlib.Path(self._directory.name))
        self._files: dict[str, list[tuple[int, pathlib.Path]]] = {}
        for path in self.exported.files:
            match = _FILE.fullmatch(path.name)
            if match is not None:
                self._files.setdefault(match[1], []).append((int(match[2] or 0), path))
        self._database: Any = None

    def _paths(self, table: str) -> list[str]:
        return [str(path) for _, path in sorted(self._files.get(table, []))]

    def _schema(self, table: str) -> "pyarrow.Schema":
        """Returns the columns of a table without rows, which has no file. Fails if there is no such table."""
        pyarrow = _need("pyarrow", "arrow")
        types = {"integer": pyarrow.int64(), "number": pyarrow.float64(), "boolean": pyarrow.bool_(),
                 "string": pyarrow.string(), "array": pyarrow.list_(pyarrow.string())}
        fields = self.arrow(SCHEMA_TABLE).to_pylist()
        columns = [pyarrow.field(field["field_name"],
                                 pyarrow.uint64() if field["field_format"] == "uint64" else types[field["field_type"]],
                                 nullable=not field["field_required"])
                   for field in fields if field["table_name"] == table]
        if not columns:
            known = ", ".join(sorted({field["table_name"] for field in fields}))
            raise NeurontraceError(f"there is no table {table!r}; the tables are {known}")
        return pyarrow.schema(columns)

    def arrow(self, table: str) -> "pyarrow.Table":
        """Returns a table, empty if it has no rows."""
        pyarrow = _need("pyarrow", "arrow")
        parquet = _need("pyarrow.parquet", "arrow")
        paths = self._paths(table)
        if not paths:
            return self._schema(table).empty_table()
        return pyarrow.concat_tables([parquet.read_table(path) for path in paths])

    def sql(self, query: str) -> "duckdb.DuckDBPyRelation":
        """Returns the result of a query in which each table is a view. It is read when it is used."""
        if self._database is None:
            self._database = self._open()
        return self._database.sql(query)

    def _open(self) -> "duckdb.DuckDBPyConnection":
        database = _need("duckdb", "sql").connect()
        for table in self._files:
            paths = ", ".join("'" + path.replace("'", "''") + "'" for path in self._paths(table))
            database.execute(f'CREATE VIEW "{table}" AS SELECT * FROM read_parquet([{paths}])')
        empty = database.execute(
            f'SELECT table_name, field_name, field_type, field_format FROM "{SCHEMA_TABLE}"').fetchall()
        types = {"integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN", "string": "VARCHAR",
                 "array": "VARCHAR[]"}
        columns: dict[str, list[str]] = {}
        for table, field, kind, form in empty:
            if table not in self._files:
                columns.setdefault(table, []).append(
                    f'"{field}" {"UBIGINT" if form == "uint64" else types[kind]}'.replace(";", ""))
        for table, fields in columns.items():
            database.execute(f'CREATE TABLE "{table}" ({", ".join(fields)})')
        return database
