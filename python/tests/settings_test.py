# SPDX-License-Identifier: Apache-2.0
"""Where the client finds its aggregator: the same places in the same order as the command, with the same refusals."""

import doctest
import pathlib
import tempfile
import unittest

from built_package import suite

from neurontrace import settings
from neurontrace.errors import SettingsError
from neurontrace.settings import find_settings


class Places(unittest.TestCase):
    def setUp(self):
        self.home = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.file = self.home / ".config" / "neurontrace" / "config"
        self.file.parent.mkdir(parents=True)
        self.environment = {"HOME": str(self.home)}
        system, settings.SYSTEM_FILE = settings.SYSTEM_FILE, str(self.home / "system")
        self.addCleanup(setattr, settings, "SYSTEM_FILE", system)

    def find(self, **arguments):
        return find_settings(self.environment, **arguments)

    def test_precedence(self):
        self.assertEqual(self.find().address, "127.0.0.1:9400")
        pathlib.Path(settings.SYSTEM_FILE).write_text('aggregator = "localhost:1"\ninsecure = true\n')
        self.assertEqual((self.find().address, self.find().insecure), ("localhost:1", True))
        self.file.write_text('aggregator = "localhost:2"\noutput = "json"\n[export]\nformat = "json"\n')
        self.assertEqual((self.find().address, self.find().insecure), ("localhost:2", True))
        self.environment["NEURONTRACE_AGGREGATOR"] = "localhost:3"
        self.environment["NEURONTRACE_INSECURE"] = "off"
        self.assertEqual((self.find().address, self.find().insecure), ("localhost:3", False))
        self.assertEqual(self.find(address="localhost:4").address, "localhost:4")

    def test_the_user_file_is_named_or_none(self):
        self.file.write_text('aggregator = "localhost:2"\n')
        self.environment["NEURONTRACE_CONFIG"] = ""
        self.assertEqual(self.find().address, "127.0.0.1:9400")
        self.environment["NEURONTRACE_CONFIG"] = str(self.home / "none")
        with self.assertRaisesRegex(SettingsError, "NEURONTRACE_CONFIG names it"):
            self.find()
        del self.environment["NEURONTRACE_CONFIG"]
        self.environment["XDG_CONFIG_HOME"] = str(self.home)
        self.assertEqual(self.find().address, "127.0.0.1:9400")

    def test_wrong_files_are_refused_with_their_name(self):
        for text, why in (("aggregator = 5", "aggregator must be a quoted string"), ('tls-ca = ""', "tls-ca must be"),
                          ('insecure = "yes"', "insecure must be true or false"), ("aggregator = ", "Invalid value"),
                          ("#" * (1 << 20) + "\n", "larger than")):
            self.file.write_text(text)
            with self.assertRaisesRegex(SettingsError, f"{self.file}.*{why}"):
                self.find()
        self.file.write_bytes(b"\xff")
        with self.assertRaisesRegex(SettingsError, "config"):
            self.find()


class Security(unittest.TestCase):
    def refused(self, why, **arguments):
        with self.assertRaisesRegex(SettingsError, why):
            find_settings({"NEURONTRACE_CONFIG": ""}, **arguments)

    def setUp(self):
        system, settings.SYSTEM_FILE = settings.SYSTEM_FILE, "/nonexistent/config"
        self.addCleanup(setattr, settings, "SYSTEM_FILE", system)

    def test_refusals(self):
        self.refused("is on another machine", address="agg:9400")
        self.refused("is on another machine", address="127.example.org:9400")
        self.refused("never sent in plain text", token_file="t")
        self.refused("exclude each other", ca="c", insecure=True)
        self.refused("given together", ca="c", cert="d")
        self.refused("ca is missing", cert="d", key="k")
        for address in ("agg", ":9400", "agg:", "agg:0", "agg:65536", "agg:9x"):
            self.refused("must be HOST:PORT", address=address, insecure=True)

    def test_what_is_accepted(self):
        environment = {"NEURONTRACE_CONFIG": "", "NEURONTRACE_TLS_CA": "ca", "NEURONTRACE_TOKEN_FILE": "t",
                       "NEURONTRACE_TLS_SERVER_NAME": "agg"}
        found = find_settings(environment, address="10.0.0.1:9400")
        self.assertEqual((found.ca, found.token_file, found.server_name), ("ca", "t", "agg"))
        self.assertTrue(find_settings({"NEURONTRACE_CONFIG": ""}, address="agg:1", insecure=True).insecure)
        with self.assertRaisesRegex(SettingsError, "NEURONTRACE_INSECURE=maybe"):
            find_settings({"NEURONTRACE_CONFIG": "", "NEURONTRACE_INSECURE": "maybe"})


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(settings))
    return tests


if __name__ == "__main__":
    suite.main()
