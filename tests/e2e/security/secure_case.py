# SPDX-License-Identifier: Apache-2.0
"""A fleet whose parts show each other certificates."""

import json
import subprocess

from certificates import Authority
from fleet_case import FleetCase

SERVER_NAMES = ("DNS:localhost", "IP:127.0.0.1")


class SecureCase(FleetCase):
    def setUp(self):
        super().setUp()
        self.ca = Authority(self.fleet.dir / "ca")
        self.fleet.server_security = self.ca.issue("aggregator", *SERVER_NAMES)
        self.agent = self.ca.issue("agent", "URI:neurontrace:agent")
        self.admin = self.ca.issue("root", "URI:neurontrace:admin")

    def start_secure_fleet(self, *aggregator_options, options=(), agent_options=(), aggregator_prefix=()):
        """An aggregator, an agent with the agents' certificate, a worker with two cores; commands are an admin's."""
        self.fleet.client_security = self.agent
        self.fleet.start_aggregator(*aggregator_options, prefix=aggregator_prefix)
        self.fleet.start_agent("i-0001", *agent_options)
        self.fleet.client_security = self.admin
        self.worker = self.fleet.start_worker("i-0001", "--cores", 2, "--rank-start", 0, "--world-size", 2,
                                              "--executions-per-second", 20, *options)
        self.fleet.wait_for_workers(1)

    def cli_as(self, security, *arguments):
        """A command with other credentials, however it ends."""
        before, self.fleet.client_security = self.fleet.client_security, security
        try:
            return self.fleet.cli(*arguments, check=False)
        finally:
            self.fleet.client_security = before

    def check_refused(self, done, words, code=1):
        """Refused in one message, without a word of what is inside."""
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(words, done.stderr)
        self.assertEqual(done.stdout, "")

    def audit(self):
        return [json.loads(line) for line in (self.fleet.dir / "store" / "audit.log").read_text().splitlines()]

    def run_program(self, name, *options):
        """A daemon that is to end at once."""
        return subprocess.run([str(self.fleet.program(name)), *map(str, options)], capture_output=True, text=True,
                              timeout=30, check=False)
