# SPDX-License-Identifier: Apache-2.0
"""The tap as a wheel: puts `libneurontrace_tap.so` into an image by pip.

`python -m neurontrace_tap` prints the environment that a job needs; docs/user/python.md describes it.
"""

from __future__ import annotations

import os
import pathlib
from typing import Mapping

TAP = "libneurontrace_tap.so"
ANNOTATE = "libneurontrace_annotate.so"


def library(name: str = TAP) -> pathlib.Path | None:
    """Returns the path of a library of this wheel, or None if the wheel was built without it."""
    path = pathlib.Path(__file__).resolve().with_name(name)
    return path if path.exists() else None


def environment(present: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the variables to set, with the tap in front of the present LD_PRELOAD. A present NVTX_INJECTION64_PATH
    stays, as it names another tool of the user."""
    tap = library()
    assert tap is not None
    others = [part for part in present.get("LD_PRELOAD", "").split(":") if part and part != str(tap)]
    variables = {"LD_PRELOAD": ":".join([str(tap), *others])}
    annotations = library(ANNOTATE)
    if annotations is not None and not present.get("NVTX_INJECTION64_PATH"):
        variables["NVTX_INJECTION64_PATH"] = str(annotations)
    return variables
