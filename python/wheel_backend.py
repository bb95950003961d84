#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheels of this folder: a backend for pip (PEP 517), and a command for scripts/package.

    python3 python/wheel_backend.py client OUTPUT_DIR
    python3 python/wheel_backend.py tap OUTPUT_DIR LIBRARY...

Needs the standard library, protoc and grpc_python_plugin (Debian: protobuf-compiler, protobuf-compiler-grpc). Files
have the date SOURCE_DATE_EPOCH, so that a build can be repeated. Code of protoc 3.21 runs with protobuf 3.20 and every
newer version, and code of newer ones does not run with older ones: others are refused.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PROTOC_VERSION = "3.21"
MESSAGES = ("vocabulary", "chunk", "stacks", "trigger", "agent_gateway", "certificate", "insight", "operator_service")
EARLIEST_ZIP_TIME = 315532800  # 1980, the first date that a zip can hold


class BuildError(Exception):
    """The wheel cannot be built; the text has the remedy."""


def version():
    """Returns the version of the project."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"^project\(neurontrace VERSION ([0-9.]+)", text, re.MULTILINE)[1]


def _program(name, package):
    path = shutil.which(name)
    if path is None:
        raise BuildError(f"there is no {name}; install Debian's {package}")
    return path


def generate(directory):
    """Writes neurontrace/v1 with the messages and the service into `directory`."""
    protoc = _program("protoc", "protobuf-compiler")
    plugin = _program("grpc_python_plugin", "protobuf-compiler-grpc")
    found = subprocess.run([protoc, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    if not found.startswith(PROTOC_VERSION + "."):
        raise BuildError(f"protoc is {found}; only {PROTOC_VERSION} makes code for protobuf 3.20 to 7")
    proto = ROOT / "proto"
    files = [str(proto / "neurontrace" / "v1" / f"{name}.proto") for name in MESSAGES]
    subprocess.run([protoc, "-I", str(proto), f"--python_out={directory}", f"--pyi_out={directory}",
                    f"--plugin=protoc-gen-grpc_python={plugin}", *files], check=True)
    subprocess.run([protoc, "-I", str(proto), f"--grpc_python_out={directory}",
                    f"--plugin=protoc-gen-grpc_python={plugin}", files[-1]], check=True)
    package = pathlib.Path(directory, "neurontrace", "v1")
    (package / "__init__.py").write_text('"""Generated from proto/neurontrace/v1."""\n', encoding="utf-8")


def _metadata(project, readme):
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version()}",
             f"Summary: {project['description']}", f"License: {project['license']['text']}",
             f"Requires-Python: {project['requires-python']}", "Description-Content-Type: text/markdown"]
    lines += [f"Requires-Dist: {need}" for need in project.get("dependencies", [])]
    for extra, needs in project.get("optional-dependencies", {}).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    return "\n".join(lines) + "\n\n" + readme


def _digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write_wheel(output, name, tag, files, metadata):
    """Writes a wheel of `files`, a dict of contents by path. Returns its path. The order and the dates are fixed."""
    stem = f"{name}-{version()}"
    info = f"{stem}.dist-info"
    is_pure = str(tag.endswith("-any")).lower()
    contents = dict(sorted(files.items()))
    contents[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    contents[f"{info}/METADATA"] = metadata.encode()
    contents[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: neurontrace\nRoot-Is-Purelib: {is_pure}\n"
                                 f"Tag: {tag}\n").encode()
    record = [f"{path},{_digest(data)},{len(data)}" for path, data in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), EARLIEST_ZIP_TIME))[:6]
    path = pathlib.Path(output, f"{stem}-{tag}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, data in contents.items():
            entry = zipfile.ZipInfo(member, date)
            entry.external_attr = (0o100755 if member.endswith(".so") else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return path


def _python_files(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(pathlib.Path(directory).rglob("*"))
            if path.suffix in (".py", ".pyi", ".typed") or path.name == "py.typed"}


def client_files():
    """Returns the contents of the client's package by path, with the generated messages."""
    files = {f"neurontrace/{path}": data for path, data in _python_files(HERE / "neurontrace").items()}
    with tempfile.TemporaryDirectory() as generated:
        generate(generated)
        files.update(_python_files(generated))
    return files


def build_client(output):
    """Builds the pure wheel of the client; returns its path."""
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    readme = (HERE / project["readme"]).read_text(encoding="utf-8")
    return write_wheel(output, "neurontrace", "py3-none-any", client_files(), _metadata(project, readme))


def platform_tag(libraries):
    """Returns the tag of the oldest glibc that has all symbols of the libraries: py3-none-manylinux_2_17_x86_64."""
    minor, machine = 17, None
    for library in libraries:
        header = subprocess.run(["readelf", "-h", "-W", library], capture_output=True, text=True, check=True).stdout
        found = re.search(r"Machine:\s+(.*)", header)[1]
        own = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}.get(found)
        if own is None or machine not in (None, own):
            raise BuildError(f"{library} is for {found}; the wheel is for one of x86-64 and AArch64")
        machine = own
        symbols = subprocess.run(["readelf", "-V", "-W", library], capture_output=True, text=True, check=True).stdout
        minor = max([minor, *(int(number) for number in re.findall(r"GLIBC_2\.(\d+)", symbols))])
    return f"py3-none-manylinux_2_{minor}_{machine}"


def build_tap(output, libraries):
    """Builds the platform wheel of the tap and other libraries that are preloaded into workers; returns its path."""
    project = {"name": "neurontrace-tap", "description": "The library of neurontrace that workers preload",
               "license": {"text": "Apache-2.0"}, "requires-python": ">=3.9"}
    files = {f"neurontrace_tap/{path}": data for path, data in _python_files(HERE / "neurontrace_tap").items()}
    for library in map(pathlib.Path, libraries):
        files[f"neurontrace_tap/{library.name}"] = library.read_bytes()
    if "neurontrace_tap/libneurontrace_tap.so" not in files:
        raise BuildError("name libneurontrace_tap.so of a release build")
    readme = "`python -m neurontrace_tap` prints the environment that a job needs.\n"
    return write_wheel(output, "neurontrace_tap", platform_tag(libraries), files, _metadata(project, readme))


# -- what pip calls (PEP 517) ------------------------------------------------------------------------------------------

def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return build_client(wheel_directory).name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", choices=("client", "tap"))
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("libraries", nargs="*")
    arguments = parser.parse_args()
    try:
        made = (build_tap(arguments.output, arguments.libraries) if arguments.wheel == "tap" else
                build_client(arguments.output))
    except BuildError as error:
        print(f"wheel_backend: {error}", file=sys.stderr)
        return 1
    print(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
