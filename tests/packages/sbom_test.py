# SPDX-License-Identifier: Apache-2.0
"""scripts/sbom: a valid SPDX 2.3 document of what the programs really load, each with its licence."""
import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["NT_BUILD_DIR"])
ARTIFACTS = {"neurontrace", "neurontrace-agent", "neurontrace-aggregator", "libneurontrace_tap.so"}


def sbom(*options, epoch="1700000000"):
    done = subprocess.run([ROOT / "scripts/sbom", "--build", BUILD, "--strict", *options], capture_output=True, text=True,
                          check=False, env={**os.environ, "SOURCE_DATE_EPOCH": epoch})
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


class SbomTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = sbom()
        cls.document = json.loads(cls.text)
        cls.packages = {package["name"]: package for package in cls.document["packages"]}

    def links(self, artifact):
        ids = {package["SPDXID"]: name for name, package in self.packages.items()}
        own = self.packages[artifact]["SPDXID"]
        return {ids[r["relatedSpdxElement"]] for r in self.document["relationships"]
                if r["spdxElementId"] == own and r["relationshipType"] in ("DYNAMIC_LINK", "STATIC_LINK")}

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

    def test_says_what_each_program_loads(self):
        self.assertEqual(self.links("libneurontrace_tap.so"), {"libc6"})
        self.assertIn("librocksdb-dev", self.links("neurontrace-aggregator"))
        self.assertNotIn("librocksdb-dev", self.links("neurontrace-agent") | self.links("neurontrace"))
        for program in ARTIFACTS - {"libneurontrace_tap.so"}:
            self.assertLessEqual({"libgrpc++1.51", "libprotobuf32", "libcli11-dev"}, self.links(program))
        needed = subprocess.run(["readelf", "-d", BUILD / "bin/neurontrace-aggregator"], capture_output=True, text=True,
                                check=True).stdout
        self.assertEqual("pyarrow" in self.packages, "libparquet.so" in needed)

    def test_what_is_written_of_dependencies_names_what_is_linked(self):
        """Each library of the page's first table is in the document, at the version that the page gives."""
        page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
        rows = page.split("## In the programs")[1].split("\n\n")[0].splitlines()
        versions = {}
        for package in self.packages.values():
            versions[package["name"]] = package["versionInfo"]
        for stem, row_name in (("libgrpc++", "gRPC C++"), ("libprotobuf", "Protocol Buffers"), ("librocksdb", "RocksDB"),
                               ("libsimdjson", "simdjson"), ("libzstd", "Zstandard"), ("libprotozero", "protozero"),
                               ("libcli11", "CLI11"), ("libcurl", "libcurl"), ("libabsl", "Abseil"),
                               ("libspdlog", "spdlog, fmt"), ("libprometheus-cpp", "prometheus-cpp")):
            row = next(row for row in rows if row.startswith(f"| {row_name} |"))
            said = row.split("|")[3].strip().split(",")[0]
            found = [version for name, version in versions.items() if name.startswith(stem)]
            self.assertTrue(found, stem)
            for version in found:
                self.assertTrue(re.sub(r"^\d+:", "", version).startswith(said), f"{stem}: {version}, the page says {said}")

    def test_is_the_same_when_made_again(self):
        self.assertEqual(self.text, sbom())

    def test_gives_a_table_and_the_text_of_every_licence(self):
        with tempfile.TemporaryDirectory() as scratch:
            table = sbom("--table", "--licences", scratch)
            names = {line.split("|")[1].strip() for line in table.splitlines()[2:]}
            self.assertEqual(names, set(self.packages) - ARTIFACTS)
            for name in names:
                self.assertTrue(any(file.stat().st_size for file in Path(scratch, name).iterdir()), name)


if __name__ == "__main__":
    suite.main()
