# SPDX-License-Identifier: Apache-2.0
"""Who is let in at all: plain text, other authorities, certificates that are out of date or made out to somebody else.
And that a fleet with certificates does its work, also while they are rotated."""

import socket
import ssl

import suite
from certificates import Authority
from fleet import wait_until
from secure_case import SERVER_NAMES, SecureCase

FAR = "192.0.2.1:9400"  # nobody's address


class TransportTest(SecureCase):
    def test_plain_text_is_refused_beyond_this_machine(self):
        for program, option in (("neurontrace-aggregator", "--listen"), ("neurontrace-agent", "--aggregator")):
            done = self.run_program(program, option, FAR, "--store" if "aggregator" in program else "--spool",
                                    self.fleet.dir / "nowhere")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("without TLS", done.stderr)
            self.assertIn("--insecure", done.stderr)
        self.assertFalse((self.fleet.dir / "nowhere").exists(), "it began before it refused")
        done = self.run_program("neurontrace", "--aggregator", FAR, "status")
        self.check_refused(done, "without TLS", code=2)

    def test_a_capture_is_whole_and_rotation_interrupts_nothing(self):
        self.start_secure_fleet()
        capture = self.start_capture()
        self.wait_for_events(capture, 500)
        # Another authority signs everything, as after a leak: first both are trusted, then all show the new one.
        new = Authority(self.fleet.dir / "new-ca")
        both = self.ca.ca.read_text() + new.ca.read_text()
        (self.ca.dir / "both.pem").write_text(both)
        (self.ca.dir / "both.pem").rename(self.ca.ca)
        # gRPC looks at the files every two seconds.
        new.issue("aggregator", *SERVER_NAMES)
        new.issue("root", "URI:neurontrace:admin")
        new.issue("agent", "URI:neurontrace:agent")
        for name in ("aggregator", "agent"):
            for ending in ("key", "pem"):
                (new.dir / f"{name}.{ending}").rename(self.ca.dir / f"{name}.{ending}")

        def served_with_the_new_one():
            return self.cli_as(new.options("root"), "status").returncode == 0
        wait_until(served_with_the_new_one, "the new certificate")
        self.addCleanup(setattr, self.fleet, "client_security", self.fleet.client_security)
        self.fleet.client_security = new.options("root")
        # Then the old authority goes: who has one of its certificates gets in no more.
        self.assertEqual(self.cli_as(self.admin, "status").returncode, 0)
        (self.ca.dir / "new.pem").write_text(new.ca.read_text())
        (self.ca.dir / "new.pem").rename(self.ca.ca)
        wait_until(lambda: self.cli_as(self.admin, "status").returncode != 0, "the old admin to be refused")
        # The agent that has run all the time comes again with the new certificate, and what it had is not lost.
        self.fleet.aggregator.kill()
        self.fleet.start_aggregator()
        events = int(self.fleet.show_capture(capture)["events"])
        self.wait_for_events(capture, events + 500)
        self.stop_capture(capture)
        self.check_whole(capture)
        self.assertIn("new connections use the new TLS files", self.fleet.agents["i-0001"].log.read_text())

    def test_requires_valid_certificate(self):
        self.start_secure_fleet()
        self.check_refused(self.cli_as(("--insecure",), "status"), "It may require TLS")
        self.check_refused(self.cli_as(("--tls-ca", str(self.ca.ca)), "status"), "--tls-cert")
        theirs = Authority(self.fleet.dir / "theirs")
        mallory = theirs.issue("mallory", "URI:neurontrace:admin")
        self.check_refused(self.cli_as(mallory, "status"), "is not signed by the certificate authority in --tls-ca")
        self.check_refused(self.cli_as(("--tls-ca", str(self.ca.ca), *mallory[2:]), "status"), "--tls-cert")
        old = self.ca.issue("old", "URI:neurontrace:admin", days=-2)
        self.check_refused(self.cli_as(old, "status"), "expired at", code=2)
        # A client that ignores the date is refused by the aggregator.
        self.assert_handshake_fails(old)
        self.assertEqual(self.fleet.cli_json("status")["agents_connected"], 1)

    def assert_handshake_fails(self, options):
        context = ssl.create_default_context(cafile=str(self.ca.ca))
        context.load_cert_chain(options[3], options[5])
        context.set_alpn_protocols(["h2"])
        host, port = self.fleet.address.rsplit(":", 1)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            with socket.create_connection((host, int(port)), timeout=20) as plain:
                with context.wrap_socket(plain, server_hostname="localhost") as secure:
                    secure.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
                    while secure.recv(4096):  # with TLS 1.3 the refusal comes after the client's part
                        pass
                    raise ConnectionResetError("closed")

    def test_rejects_aggregator_with_other_name(self):
        self.fleet.server_security = self.ca.issue("aggregator", "DNS:aggregator.neurontrace")
        self.fleet.client_security = self.admin
        self.fleet.start_aggregator()
        self.check_refused(self.cli_as(self.admin, "status"), "--tls-server-name")
        named = (*self.admin, "--tls-server-name", "aggregator.neurontrace")
        self.assertEqual(self.cli_as(named, "status").returncode, 0)


if __name__ == "__main__":
    suite.main()
