# SPDX-License-Identifier: Apache-2.0
"""Builds the client's wheel for the tests of this process, and puts it in front of the import path: tests see the files
that users install."""

import importlib.util
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests" / "e2e")]

import suite  # noqa: E402 — in the folders above
import wheel_backend  # noqa: E402

_directory = tempfile.TemporaryDirectory(prefix="neurontrace-wheel-")
WHEEL = wheel_backend.build_client(_directory.name)
sys.path.insert(0, str(WHEEL))



def _is_there(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package that has it
        return False


HAS_GRPC = _is_there("grpc") and _is_there("google.protobuf")
needs_grpc = suite.needs_of_setup(not HAS_GRPC, "no grpcio and protobuf in build/python: see scripts/setup")
