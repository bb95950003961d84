# SPDX-License-Identifier: Apache-2.0
"""The page at the aggregator's port, where a session can end: by the button, and while somebody looks at a timeline."""

import json
import urllib.error
import urllib.parse

import demo
import suite
from fleet import wait_until
from page_case import Api, PageCase

# As a second tab of the same browser would.
END_SESSION = """window.ended = 0;
fetch('/api/v1/session', {method: 'DELETE', headers: {'Content-Type': 'application/json'}, body: '{}'})
  .then(answer => { window.ended = answer.status; });"""
FORM = "return document.querySelector('.sign-in #token') !== null"


class PageSession(PageCase):
    duration = "1s"

    @classmethod
    def start_fleet(cls):
        demo.start_fleet(cls.fleet, aggregator_options=("--view-address", "127.0.0.1:0"))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.command_address = cls.address
        cls.address = cls.fleet.cli("view", "--shared").stdout.strip()
        cls.api = Api(cls.address)
        cls.token = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(cls.address).query))["token"]

    def type_token(self, token):
        self.browser.run("document.querySelector('#token').value = ''")
        self.browser.type("#token", token)
        self.browser.click(".sign-in button[type=submit]")

    def end_session(self):
        self.browser.run(END_SESSION)
        self.browser.wait_for("return window.ended === 200")

    def test_the_page_names_who_uses_it_and_signs_out(self):
        self.sign_in()
        session = self.api.get("/session")
        self.assertTrue(session["has_session"])
        self.assertIn(f"({session['role']})", self.text_of(".account-name"))
        self.browser.click(".sign-out")
        self.browser.wait_for(FORM)
        self.assertIn("You are signed out", self.text_of(".sign-in"))
        self.browser.open(f"{self.api.origin}/")
        self.browser.wait_for(FORM)
        self.type_token("a guess")
        self.wait_for_text(".sign-in [role=alert]", "token")
        self.type_token(self.token)
        self.browser.wait_for("return document.querySelector('tbody tr') !== null")

    def test_a_timeline_continues_where_its_session_ended(self):
        self.open_timeline()
        self.browser.press("w")
        self.browser.press("w")
        self.settle()
        before = self.browser.url
        self.assertTrue(self.browser.run("return document.querySelector('.sign-out').checkVisibility()"))
        self.end_session()
        # A search asks the aggregator.
        self.browser.press("/")
        self.browser.type(".search-input", demo.BARRIER + "\n")
        self.browser.wait_for(FORM)
        asked = self.browser.url
        self.assertEqual(urllib.parse.urlsplit(asked).path, urllib.parse.urlsplit(before).path)
        self.type_token(self.token)
        self.settle()
        state = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(before).query))
        self.assertEqual(self.window(), (int(state["from"]), int(state["to"])))
        wait_until(lambda: self.state_of_url().get("q") == demo.BARRIER, "the search that was typed before")

    def test_changes_and_files_are_in_the_audit_log_with_who_and_from_where(self):
        for name, api in {"by the command": Api(self.command_address), "by the shared page": self.api}.items():
            with self.subTest(name):
                capture = api.send("POST", "/captures", {"spec": {"name": name, "include_neuron": True}})["capture_id"]
                for state, change in {"RECORDING": "stop", "COMPLETE": ""}.items():
                    self.fleet.wait_for_capture(
                        capture, lambda shown, wanted=state: shown["state"] == f"CAPTURE_STATE_{wanted}", state)
                    if change:
                        api.send("POST", f"/captures/{capture}/{change}", {})
                api.send("PATCH", f"/captures/{capture}", {"starred": True})
                api.get(f"/captures/{capture}/layout")
                self.assertTrue(api.read(f"/captures/{capture}/export?format=events"))
                with self.assertRaises(urllib.error.HTTPError) as unconfirmed:
                    api.send("DELETE", f"/captures/{capture}", {"confirm": "another"})
                unconfirmed.exception.close()
                api.send("DELETE", f"/captures/{capture}", {"confirm": name})
                with open(self.fleet.dir / "store" / "audit.log", encoding="utf-8") as log:
                    lines = [line for line in map(json.loads, log) if line.get("capture") == capture]
                called = [line for line in lines if line["action"] != "capture.end"]  # the aggregator's own
                self.assertEqual([(line["action"], line["outcome"]) for line in called], [
                    ("capture.start", "done"), ("capture.stop", "done"), ("capture.update", "done"),
                    ("export.begin", "done"), ("export", "done"), ("capture.delete", "done")])
                for line in called:
                    self.assertEqual((line["caller"], line["role"]), ("anybody", "admin"))
                    self.assertIn("127.0.0.1:", line["from"])

    def test_a_page_without_a_session_has_no_button(self):
        self.browser.open(self.command_address)
        self.browser.wait_for("return document.querySelector('tbody tr') !== null")
        self.assertIsNone(self.text_of(".sign-out"))


if __name__ == "__main__":
    suite.main()
