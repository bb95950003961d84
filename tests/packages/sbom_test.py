# SPDX-License-Identifier: Apache-2.0
"""scripts/sbom: a valid SPDX 2.3 document of what the programs really load, each with its licence; and the one in the
archive, which is of the archive's files."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["NT_BUILD_DIR"])
PACKAGES = Path(os.environ["NT_PACKAGES_DIR"])
PROGRAMS = ("neurontrace", "neurontrace-agent", "neurontrace-aggregator")
WORKER_LIBRARIES = {"libneurontrace_tap.so", "libneurontrace_annotate.so"}
ARTIFACTS = {*PROGRAMS, *WORKER_LIBRARIES}


def run_sbom(*options, epoch="1700000000"):
    return subprocess.run([ROOT / "scripts/sbom", "--build", BUILD, "--strict", *options], capture_output=True, text=True,
                          check=False, env={**os.environ, "SOURCE_DATE_EPOCH": epoch})


def sbom(*options):
    done = run_sbom(*options)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def links_of(document, artifact):
    """{package: kind} of what an artifact is linked with."""
    ids = {package["SPDXID"]: package["name"] for package in document["packages"]}
    return {ids[r["relatedSpdxElement"]]: r["relationshipType"] for r in document["relationships"]
            if ids.get(r["spdxElementId"]) == artifact}


class SbomTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = sbom()
        cls.document = json.loads(cls.text)
        cls.packages = {package["name"]: package for package in cls.document["packages"]}

    def links(self, artifact):
        return set(links_of(self.document, artifact))

    def test_what_spdx_requires_of_a_document_is_there(self):
        document = self.document
        self.assertEqual(document["spdxVersion"], "SPDX-2.3")
        self.assertEqual(document["dataLicense"], "CC0-1.0")
        self.assertEqual(document["SPDXID"], "SPDXRef-DOCUMENT")
        self.assertTrue(document["name"])
        self.assertRegex(document["documentNamespace"], r"^https://[^#\s]+$")
        self.assertRegex(document["creationInfo"]["created"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertTrue(document["creationInfo"]["creators"])
        for creator in document["creationInfo"]["creators"]:
            self.assertRegex(creator, "^(Tool|Person|Organization): .")

    def test_what_spdx_requires_of_a_package_is_there(self):
        ids = [package["SPDXID"] for package in self.document["packages"]]
        self.assertEqual(len(ids), len(set(ids)))
        for package in self.document["packages"]:
            self.assertRegex(package["SPDXID"], r"^SPDXRef-[A-Za-z0-9.-]+$")
            for field in ("name", "versionInfo", "downloadLocation", "licenseDeclared", "licenseConcluded", "copyrightText"):
                self.assertTrue(package[field], package)
            self.assertIs(package["filesAnalyzed"], False, "else SPDX asks for a verification code")
            self.assertNotIn(package["licenseDeclared"], ("NOASSERTION", "NONE"), package)
            for reference in package.get("externalRefs", []):
                self.assertRegex(reference["referenceLocator"], r"^pkg:(deb/debian|pypi)/[^@ ]+@[^ +:~]+")

    def test_relationships_are_between_what_there_is(self):
        ids = {package["SPDXID"] for package in self.document["packages"]} | {"SPDXRef-DOCUMENT"}
        for relationship in self.document["relationships"]:
            self.assertIn(relationship["spdxElementId"], ids)
            self.assertIn(relationship["relatedSpdxElement"], ids)
        described = [r for r in self.document["relationships"] if r["relationshipType"] == "DESCRIBES"]
        self.assertEqual(len(described), len(ARTIFACTS))

    def test_lists_libraries_of_each_program(self):
        for library in WORKER_LIBRARIES:
            self.assertEqual(links_of(self.document, library),
                             {"libc6": "DYNAMIC_LINK", "libgcc-12-dev": "STATIC_LINK"}, library)
        self.assertIn("librocksdb-dev", self.links("neurontrace-aggregator"))
        self.assertNotIn("librocksdb-dev", self.links("neurontrace-agent") | self.links("neurontrace"))
        for program in PROGRAMS:
            self.assertLessEqual({"libgrpc++1.51": "DYNAMIC_LINK", "libprotobuf32": "DYNAMIC_LINK",
                                  "libcli11-dev": "STATIC_LINK"}.items(), links_of(self.document, program).items())
        needed = subprocess.run(["readelf", "-d", BUILD / "bin/neurontrace-aggregator"], capture_output=True, text=True,
                                check=True).stdout
        self.assertEqual("pyarrow" in self.packages, "libparquet.so" in needed)

    def test_what_is_written_of_dependencies_names_what_is_linked(self):
        """Each library of the page's first table is in the document, at the version that the page gives."""
        page = (ROOT / "docs/developer/dependencies.md").read_text(encoding="utf-8")
        rows = page.split("## In the programs")[1].split("\n\n")[0].splitlines()
        versions = {}
        for package in self.packages.values():
            versions[package["name"]] = package["versionInfo"]
        for stem, row_name in (("libgrpc++", "gRPC C++"), ("libprotobuf", "Protocol Buffers"), ("librocksdb", "RocksDB"),
                               ("libsimdjson", "simdjson"), ("libzstd", "Zstandard"), ("libprotozero", "protozero"),
                               ("libcli11", "CLI11"), ("libtomlplusplus", "toml++"), ("libcurl", "libcurl"), ("libabsl", "Abseil"),
                               ("libspdlog", "spdlog, fmt"), ("libprometheus-cpp", "prometheus-cpp")):
            row = next(row for row in rows if row.startswith(f"| {row_name} |"))
            printed = row.split("|")[3].strip().split(",")[0]
            found = [version for name, version in versions.items() if name.startswith(stem)]
            self.assertTrue(found, stem)
            for version in found:
                self.assertTrue(re.sub(r"^\d+:", "", version).startswith(printed), f"{stem}: {version}, the page says {printed}")

    def test_is_the_same_when_made_again(self):
        self.assertEqual(self.text, sbom())

    def test_gives_a_table_and_the_text_of_every_licence(self):
        with tempfile.TemporaryDirectory() as scratch:
            table = sbom("--table", "--licences", scratch)
            names = {line.split("|")[1].strip() for line in table.splitlines()[2:]}
            self.assertEqual(names, set(self.packages) - ARTIFACTS)
            for name in names:
                self.assertTrue(any(file.stat().st_size for file in Path(scratch, name).iterdir()), name)


class ArchiveTest(unittest.TestCase):
    """The archive's files are not those of the build: stripped, without RUNPATH, with the launcher under their names."""

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="neurontrace-sbom-")
        cls.addClassCleanup(scratch.cleanup)
        cls.top = Path(scratch.name)
        archive, = PACKAGES.glob("neurontrace-*-linux-*.tar.gz")
        subprocess.run(["tar", "-C", cls.top, "--strip-components=1", "-xf", archive], check=True)
        cls.document = json.loads((cls.top / "share/doc/neurontrace/sbom.spdx.json").read_text(encoding="utf-8"))

    def test_digests_are_of_the_files_in_it(self):
        digests = {package["packageFileName"]: package["checksums"][0]["checksumValue"]
                   for package in self.document["packages"] if "packageFileName" in package}
        self.assertEqual(set(digests), {"bin/neurontrace", *(f"lib/{name}" for name in WORKER_LIBRARIES),
                                        *(f"lib/neurontrace/programs/{name}" for name in PROGRAMS)})
        for place, digest in digests.items():
            self.assertEqual(digest, sha256(self.top / place), place)
        for name in PROGRAMS:
            self.assertEqual(digests["bin/neurontrace"], sha256(self.top / "bin" / name), "the launcher")

    def test_the_launcher_has_the_c_library_in_it(self):
        self.assertEqual(links_of(self.document, "neurontrace_launcher"),
                         {"libc6-dev": "STATIC_LINK", "libgcc-12-dev": "STATIC_LINK"})
        packages = {package["name"]: package for package in self.document["packages"]}
        self.assertEqual(packages["libc6-dev"]["licenseDeclared"], "LGPL-2.1-or-later")
        for name in ("libc6-dev", "libgcc-12-dev"):
            self.assertTrue((self.top / "share/doc/neurontrace/licences" / name / "copyright").stat().st_size, name)

    def test_does_not_pack_unlisted_files(self):
        self.assertEqual(run_sbom("--root", self.top).returncode, 0)
        stranger = self.top / "lib/neurontrace/libstranger.so"
        shutil.copyfile(BUILD / "lib/libneurontrace_tap.so", stranger)  # of the build: it is not stripped
        self.addCleanup(stranger.unlink)
        self.assertIn("libstranger.so", run_sbom("--root", self.top).stderr)


if __name__ == "__main__":
    suite.main()
