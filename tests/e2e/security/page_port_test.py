# SPDX-License-Identifier: Apache-2.0
"""The page at the aggregator's port: who gets in with a token, a cookie or a certificate, what each may do, and what the audit
log says. And the page of a store that no aggregator runs on."""

import hashlib
import http.client
import json
import ssl
import urllib.parse

import suite
from fleet import wait_until
from fleet_case import FleetCase
from secure_case import SERVER_NAMES, SecureCase

TOKENS = {name: f"token-of-{name}-which-nobody-guesses" for name in ("admin", "eve", "gone")}
RULES = """
[agents]
certificate = "uri:neurontrace:agent"
role = "agent"
[root]
certificate = "cn:root"
role = "admin"
[carol]
certificate = "cn:carol"
role = "viewer"
"""


def rule(name, role):
    return f'[{name}]\ntoken-sha256 = "{hashlib.sha256(TOKENS[name].encode()).hexdigest()}"\nrole = "{role}"\n'


class Browser:
    """Asks for one thing at a time, keeps the cookie that it gets, and follows nothing."""

    def __init__(self, url, ca=None, certificate=None):
        self.url = urllib.parse.urlsplit(url)
        self.cookie = None
        self._tls = None
        if self.url.scheme == "https":
            self._tls = ssl.create_default_context(cafile=ca)
            if certificate:
                self._tls.load_cert_chain(*certificate)

    def _connect(self):
        host, port = self.url.hostname, self.url.port
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=30)
        return http.client.HTTPSConnection(host, port, timeout=30, context=self._tls)

    def ask(self, method, path, body=None, **headers):
        """Returns the status and the answer, parsed where it is JSON; `headers` with _ for -."""
        connection = self._connect()
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            if body is not None:
                sent["Content-Type"] = "application/json"
            if self.cookie:
                sent["Cookie"] = self.cookie
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.headers["Set-Cookie"]:
                self.set_cookie = answer.headers["Set-Cookie"]
                self.cookie = self.set_cookie.split(";")[0]
            is_json = (answer.headers["Content-Type"] or "").startswith("application/json")
            return answer.status, json.loads(text) if is_json else text
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.ask("GET", f"/api/v1{path}", **headers)

    def sign_in(self, token):
        return self.ask("POST", "/api/v1/session", {"token": token})

    def server_certificate(self):
        """Returns that of a new connection, in DER."""
        connection = self._connect()
        try:
            connection.connect()
            return connection.sock.getpeercert(binary_form=True)
        finally:
            connection.close()


class PagePortTest(SecureCase):
    def setUp(self):
        super().setUp()
        self.rules = self.fleet.dir / "access"
        self.write_rules(RULES + rule("admin", "admin") + rule("eve", "viewer") + rule("gone", "operator"))
        self.ca.issue("carol")
        self.ca.issue("nobody")

    def write_rules(self, text):
        new = self.rules.with_suffix(".new")
        new.write_text(text)
        new.rename(self.rules)

    def start(self):
        self.start_secure_fleet("--access", self.rules, "--view-address", "127.0.0.1:0", "--view-host", "page.example")
        self.fleet.aggregator.wait_for_line("page on https://page.example:")
        # The name is nobody's here; the port is what counts.
        port = urllib.parse.urlsplit(self.fleet.cli("view", "--shared").stdout.strip()).port
        self.url = f"https://127.0.0.1:{port}"

    def browser(self, certificate=None):
        files = certificate and (self.ca.dir / f"{certificate}.pem", self.ca.dir / f"{certificate}.key")
        return Browser(self.url, self.ca.ca, files)

    def signed_in(self, name):
        browser = self.browser()
        status, answer = browser.sign_in(TOKENS[name])
        self.assertEqual(status, 200, answer)
        return browser

    def test_roles_and_audit_lines(self):
        self.start()
        capture = self.start_capture()
        self.wait_for_events(capture, 100)
        nobody = self.browser()
        self.assertEqual(nobody.get("/captures")[0], 401)
        self.assertEqual(nobody.ask("GET", "/")[0], 200)
        self.assertEqual(nobody.sign_in("a guess")[0], 401)
        eve, admin = self.signed_in("eve"), self.signed_in("admin")
        for needed in ("__Host-neurontrace_", "HttpOnly", "SameSite=Strict", "Secure", "Path=/"):
            self.assertIn(needed, eve.set_cookie)
        status, session = eve.get("/session")
        self.assertEqual((status, session["user"], session["role"], session["may"]["stop"]), (200, "eve", "viewer", False))
        self.assertEqual(eve.get(f"/captures/{capture}")[1]["capture_id"], capture)
        self.assertEqual(eve.get(f"/captures/{capture}/layout")[0], 200)
        status, refusal = eve.ask("POST", f"/api/v1/captures/{capture}/stop", {})
        self.assertEqual(status, 403)
        self.assertIn("StopCapture needs operator", refusal["error"]["message"])
        self.assertEqual(admin.ask("POST", f"/api/v1/captures/{capture}/stop", {})[0], 200)
        self.fleet.wait_for_capture(capture, lambda c: c["state"] == "CAPTURE_STATE_COMPLETE", "its end")
        self.assertEqual(eve.ask("DELETE", f"/api/v1/captures/{capture}", {"confirm": capture})[0], 403)
        self.assertEqual(admin.ask("DELETE", f"/api/v1/captures/{capture}", {"confirm": capture})[0], 200)
        lines = [(line["action"], line.get("caller"), line["outcome"]) for line in self.audit() if line.get("capture") == capture]
        for expected in (("capture.stop", "eve", "refused"), ("capture.stop", "admin", "done"),
                         ("capture.delete", "eve", "refused"), ("capture.delete", "admin", "done")):
            self.assertIn(expected, lines)
        self.assertTrue(all(line["from"].startswith("ipv4:127.0.0.1:") for line in self.audit()
                            if line.get("caller") in ("eve", "admin")), self.audit())
        self.check_metrics()

    def check_metrics(self):
        metric = self.fleet.aggregator.metric
        name = "neurontrace_aggregator_page_"
        wait_until(lambda: metric(name + "requests_total") == 12, "all requests in the metrics")
        self.assertEqual(metric(name + "sessions "), 2)
        self.assertEqual(metric(name + 'requests_refused_total{reason="unauthenticated"}'), 2)
        self.assertGreater(metric(name + "sent_bytes_total"), 1_000)

    def test_a_session_ends_with_its_token_and_with_the_aggregator(self):
        self.start()
        gone, eve = self.signed_in("gone"), self.signed_in("eve")
        self.assertEqual(gone.get("/captures")[0], 200)
        self.write_rules(RULES + rule("eve", "viewer"))
        wait_until(lambda: gone.get("/captures")[0] == 401, "the end of the session")
        self.assertEqual(eve.get("/captures")[0], 200)
        self.assertEqual(eve.ask("DELETE", "/api/v1/session", {})[0], 200)
        self.assertEqual(eve.get("/captures")[0], 401)
        survivor = self.signed_in("eve")
        self.fleet.aggregator.stop()
        self.fleet.start_aggregator("--access", self.rules, "--view-address", f"127.0.0.1:{survivor.url.port}",
                                    "--view-host", "page.example")
        self.assertEqual(survivor.get("/captures")[0], 401)

    def test_certificates_and_forwarded_tokens(self):
        self.start()
        status, session = self.browser("carol").get("/session")
        self.assertEqual((status, session["user"], session["role"]), (200, "carol", "viewer"))
        self.assertEqual(self.browser("nobody").get("/captures")[0], 403)
        self.assertEqual(self.browser("agent").get("/captures")[0], 403)
        bearer = f"Bearer {TOKENS['admin']}"
        status, session = self.browser().get("/session", Authorization=bearer)
        self.assertEqual((status, session.get("role")), (200, "admin"), session)
        # Both: only what both may.
        self.assertEqual(self.browser("carol").get("/session", Authorization=bearer)[1]["role"], "viewer")
        # A header about users, as proxies send, is believed by nobody.
        self.assertEqual(self.browser().get("/captures", X_Forwarded_User="root")[0], 401)

    def test_foreign_names_and_sites_are_refused(self):
        self.start()
        admin = self.signed_in("admin")
        status, refusal = admin.get("/captures", Host="evil.example")
        self.assertEqual(status, 403)
        self.assertIn("--view-host", json.dumps(refusal))
        self.assertEqual(admin.get("/captures", Host="page.example")[0], 200)
        self.assertEqual(admin.get("/captures", Sec_Fetch_Site="cross-site")[0], 403)
        self.assertEqual(admin.ask("POST", "/api/v1/captures", {"spec": {}}, Sec_Fetch_Site="cross-site")[0], 403)
        self.assertEqual(admin.get("/captures")[1].get("captures", []), [])

    def test_guessing_is_throttled(self):
        self.start()
        browser, codes = self.browser(), []
        for _ in range(15):
            codes.append(browser.sign_in("a guess")[0])
        self.assertEqual(codes[0], 401)
        self.assertEqual(codes[-1], 429)

    def test_renewed_certificates_are_used(self):
        self.start()
        browser = self.browser()
        before = browser.server_certificate()
        self.ca.issue("aggregator", *SERVER_NAMES)
        wait_until(lambda: browser.server_certificate() != before, "the new certificate", 30)

    def test_plain_text_is_refused_beyond_loopback(self):
        done = self.run_program("neurontrace-aggregator", "--store", self.fleet.dir / "other", "--view-address", "0.0.0.0:0")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("--view-address: 0.0.0.0:0 can be reached from other machines", done.stderr)


class PlainPageTest(FleetCase):
    def test_the_token_is_for_callers_of_the_grpc_port(self):
        self.fleet.start_aggregator("--view-address", "127.0.0.1:0")
        line = self.fleet.aggregator.wait_for_line("page on http://127.0.0.1:")
        self.assertNotIn("token", line)
        url = self.fleet.cli("view", "--shared").stdout.strip()
        browser = Browser(url)
        self.assertEqual(browser.get("/captures")[0], 401)
        self.assertEqual(browser.ask("GET", f"/?{browser.url.query}")[0], 303)
        self.assertEqual(browser.get("/captures")[0], 200)
        self.assertEqual(browser.get("/session")[1]["role"], "admin")

    def test_a_store_without_an_aggregator(self):
        self.start_fleet()
        capture = self.start_capture()
        self.wait_for_events(capture, 100)
        self.stop_capture(capture)
        store = self.fleet.dir / "store"
        refused = self.fleet.cli("view", "--store", store, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("another process has the store open", refused.stderr)
        self.fleet.aggregator.stop()
        page, url = self.fleet.start_page("--store", store, capture)
        browser = Browser(url)
        self.assertEqual(browser.ask("GET", f"/?{browser.url.query}")[0], 303)
        self.assertEqual(browser.get(f"/captures/{capture}")[1]["capture_id"], capture)
        self.assertEqual(page.stop(), 0)
        # The store is free again.
        self.fleet.start_aggregator()
        self.assertEqual(self.fleet.show_capture(capture)["capture_id"], capture)
        empty = self.fleet.dir / "empty"
        empty.mkdir()
        nothing = self.fleet.cli("view", "--store", empty, check=False)
        self.assertEqual(nothing.returncode, 1)
        self.assertIn("there is no store in", nothing.stderr)
        self.assertEqual(list(empty.iterdir()), [])


if __name__ == "__main__":
    suite.main()
