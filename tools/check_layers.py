#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when an #include (or a .proto import) points against the layers of tools/layers.txt.

    tools/check_layers.py             check the repository this script is in
    tools/check_layers.py --root DIR  check another tree with the same layout
    tools/check_layers.py --list      print what each folder may include

Every finding is one line, FILE:LINE: what is wrong and which rule says so. The exit code is 0 when
there is none, 1 when there are findings, 2 when the table itself is wrong.
"""

import argparse
import os
import re
import sys

CODE_SUFFIXES = (".h", ".cc", ".c", ".cpp", ".hpp", ".inc")
SKIPPED_FOLDERS = {".git", "build", "out", "__pycache__", ".cache", ".venv"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
IMPORT = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?"([^"]+)"\s*;')
GLOB = re.compile(r"^\s*file\s*\(\s*GLOB", re.IGNORECASE)
GLOB_ALLOWED = re.compile(r"tidy: allow\(glob\) \S")
TEST_FILE = re.compile(r"(_test|_fuzzer|_bench|_fixture|_test_support)\.(cc|h|c)$")
# A third-party header with a folder in its name that belongs to the C library or the kernel.
SYSTEM_PREFIXES = ("sys/", "linux/", "asm/", "arpa/", "net/", "netinet/", "bits/")
TEST_LIBRARIES = ("gtest/", "gmock/", "benchmark/")


class TableError(Exception):
    """layers.txt cannot be used as it stands."""


def under(pattern, path):
    """True when folder or header `path` is what `pattern` names: itself, or below it with /**."""
    if pattern == "*":
        return True
    if pattern.endswith("/**"):
        top = pattern[:-3]
        return path == top or path.startswith(top + "/")
    return path == pattern


class Layers:
    """The parsed table."""

    def __init__(self):
        self.may_include = {}  # folder pattern -> (names, line number)
        self.tests_may_include = {}
        self.files = set()  # the keys of may_include that are one .cc file
        self.only = []  # (prefix, folder patterns, line number)
        self.std_only = []

    @staticmethod
    def parse(text):
        layers = Layers()
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.split("#", 1)[0].strip()
            if not line:
                continue
            if line.startswith("@std-only"):
                layers.std_only += line.split()[1:]
                continue
            if ":" not in line:
                raise TableError(f"tools/layers.txt:{number}: expected 'FOLDER: NAME ...', got '{line}'")
            left, right = (part.strip() for part in line.split(":", 1))
            if left.startswith("@only "):
                layers.only.append((left.split()[1], right.split(), number))
                continue
            table = layers.may_include
            if left.startswith("test "):
                table, left = layers.tests_may_include, left.split()[1]
            if left in table:
                raise TableError(f"tools/layers.txt:{number}: second line for '{left}'")
            if left.endswith(".h"):
                raise TableError(f"tools/layers.txt:{number}: a header has the rights of its folder, '{left}' too")
            if left.endswith(CODE_SUFFIXES):
                layers.files.add(left)
            table[left] = (right.split(), number)
        layers.check_acyclic()
        return layers

    def folder_of(self, path):
        """The line of the table that a file belongs to, or None: a folder's pattern, or the file itself."""
        if path in self.files:
            return path
        folder = os.path.dirname(path)
        fitting = [pattern for pattern in self.folders() if under(pattern, folder)]
        return max(fitting, key=lambda p: len(p.removesuffix("/**")), default=None)

    def folders(self):
        """The patterns of folders, without the lines for single files."""
        return [pattern for pattern in self.may_include if pattern not in self.files]

    def top_folders(self):
        return {pattern.split("/", 1)[0] for pattern in self.may_include}

    def check_acyclic(self):
        """Two folders that may include each other are one folder: refuse such a table.

        A line for a single file closes no circle, because nothing includes a .cc file.
        """
        state = {}
        top_of = {folder: folder.removesuffix("/**") for folder in self.folders()}

        def visit(folder, trail):
            if state.get(folder) == "done" or "*" in self.may_include[folder][0]:
                return
            if folder in trail:
                raise TableError("tools/layers.txt: a circle: " + " -> ".join(trail + [folder]))
            for name in self.may_include[folder][0]:
                for other, top in top_of.items():
                    if other != folder and (name == other or under(name, top)):
                        visit(other, trail + [folder])
            state[folder] = "done"

        for folder in top_of:
            visit(folder, [])


def is_test(path):
    name = os.path.basename(path)
    return (path.startswith("tests/") or "/testing/" in path or bool(TEST_FILE.search(name))
            or name.startswith("fake_"))


def is_system_header(header):
    return header.startswith(SYSTEM_PREFIXES) or "/" not in header


class Checker:
    def __init__(self, root, layers):
        self.root = root
        self.layers = layers
        self.findings = []
        self.files_checked = 0

    def report(self, path, line, message):
        self.findings.append(f"{path}:{line}: {message}")

    def run(self):
        for folder, names, files in os.walk(self.root):
            names[:] = sorted(n for n in names if n not in SKIPPED_FOLDERS)
            for name in sorted(files):
                path = os.path.relpath(os.path.join(folder, name), self.root).replace(os.sep, "/")
                if name == "CMakeLists.txt" or name.endswith(".cmake"):
                    self.check_cmake(path)
                elif name.endswith(CODE_SUFFIXES):
                    self.check_code(path)
                elif name.endswith(".proto"):
                    self.check_proto(path)
        return self.findings

    def lines(self, path):
        self.files_checked += 1
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
            return list(enumerate(file, 1))

    def check_cmake(self, path):
        for number, line in self.lines(path):
            if GLOB.match(line) and not GLOB_ALLOWED.search(line):
                self.report(path, number, "file(GLOB ...) hides what a target is made of: list its files")

    def check_proto(self, path):
        for number, line in self.lines(path):
            match = IMPORT.match(line)
            if match and path.startswith("proto/"):
                if not match.group(1).startswith(("neurontrace/", "google/protobuf/")):
                    self.report(path, number, f'proto may not import "{match.group(1)}"')

    def check_code(self, path):
        folder = self.layers.folder_of(path)
        if folder is None:
            self.report(path, 1, f"folder '{os.path.dirname(path)}' is not in tools/layers.txt: "
                        "add a line that says what it may include, or move the file")
            return
        for number, line in self.lines(path):
            match = INCLUDE.match(line)
            if match:
                self.check_include(path, number, folder, match.group(1) or match.group(2),
                                   quoted=match.group(1) is not None)

    def check_include(self, path, number, folder, header, quoted):
        top = header.split("/", 1)[0]
        if header.startswith("neurontrace/") and header.endswith(".pb.h"):
            if header.endswith(".grpc.pb.h"):
                self.check_only(path, number, "grpcpp/", header)
            self.check_ours(path, number, folder, header, "proto/" + os.path.dirname(header))
        elif "/" in header and top in self.layers.top_folders():
            if self.check_exists(path, number, header):
                self.check_ours(path, number, folder, header, os.path.dirname(header))
        elif quoted and (("/" not in header and not header.endswith(".inc"))
                         or header.startswith(".") or self.beside(path, header)):
            self.report(path, number, f'"{header}": include our headers from the repository root, '
                        "and other libraries' headers with <...>")
        else:
            self.check_third_party(path, number, folder, header)

    def beside(self, path, header):
        return os.path.exists(os.path.join(self.root, os.path.dirname(path), header))

    def check_exists(self, path, number, header):
        source = re.sub(r"(\.grpc)?\.pb\.h$", ".proto", header)
        if os.path.exists(os.path.join(self.root, source)):
            return True
        self.report(path, number, f'"{header}" is not in this repository')
        return False

    def check_ours(self, path, number, folder, header, header_folder):
        home = self.layers.folder_of(header_folder + "/x.h")
        if home is None:
            self.report(path, number, f"'{header_folder}' is not in tools/layers.txt")
            return
        allowed, line = self.layers.may_include[folder]
        if is_test(header) and not is_test(path):
            self.report(path, number, f'"{header}" is for tests: production code may not include it')
            return
        if home == folder or any(under(n, header_folder) or n == header for n in allowed):
            return
        if is_test(path):
            extra = self.layers.tests_may_include.get(folder, ([], 0))[0]
            if any(under(n, header_folder) or n == header for n in extra):
                return
        self.report(path, number, f'"{header}": {folder.removesuffix("/**")} may include only '
                    f"{' '.join(allowed) or 'itself'} (tools/layers.txt:{line})")

    def check_only(self, path, number, prefix, header):
        for rule, folders, line in self.layers.only:
            if rule != prefix or path.startswith("tests/"):
                continue
            where = os.path.dirname(path)
            if not any(under(folder, where) for folder in folders):
                self.report(path, number, f"<{header}> is for {', '.join(folders)} alone "
                            f"(tools/layers.txt:{line})")

    def check_third_party(self, path, number, folder, header):
        for prefix, _, _ in self.layers.only:
            if header.startswith(prefix):
                self.check_only(path, number, prefix, header)
        if any(under(pattern, os.path.dirname(path)) for pattern in self.layers.std_only):
            if is_system_header(header) or (is_test(path) and header.startswith(TEST_LIBRARIES)):
                return
            self.report(path, number, f"<{header}>: {folder.removesuffix('/**')} may use only the C and "
                        "C++ standard libraries and the kernel (tools/layers.txt, @std-only)")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--root", default=here, help="the tree to check (default: this repository)")
    parser.add_argument("--list", action="store_true", help="print the table and exit")
    options = parser.parse_args(arguments)
    try:
        with open(os.path.join(options.root, "tools", "layers.txt"), encoding="utf-8") as file:
            layers = Layers.parse(file.read())
    except (OSError, TableError) as error:
        print(error, file=sys.stderr)
        return 2
    if options.list:
        for folder, (names, _) in layers.may_include.items():
            print(f"{folder:28} {' '.join(names)}")
        return 0
    checker = Checker(options.root, layers)
    findings = checker.run()
    for finding in findings:
        print(finding)
    print(f"check_layers: {checker.files_checked} files, {len(findings)} wrong")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
