# SPDX-License-Identifier: Apache-2.0
"""Tokens of Kubernetes service accounts: who is asked about them, how often, and what is refused."""

import os

import suite
from api_server import ApiServer, make_token
from certificates import Authority
from secure_case import SecureCase

RULES = """
[agents]
certificate = "uri:neurontrace:agent"
role = "agent"
[root]
certificate = "cn:root"
role = "admin"
[dashboards]
service-account = "monitoring/grafana"
role = "viewer"
[trainers]
service-account = "train/*"
role = "operator"
"""
NOBODY = "the API server rejects the token"


class ServiceAccountTest(SecureCase):
    def setUp(self):
        super().setUp()
        self.rules = self.fleet.dir / "access"
        self.rules.write_text(RULES)
        self.pod = self.fleet.dir / "pod"
        self.pod.mkdir()
        (self.pod / "ca.crt").write_bytes(self.ca.ca.read_bytes())
        self.server = ApiServer(self.ca)
        self.addCleanup(self.server.stop)
        self.write_own_token("own-1")
        self.secrets = []

    def write_own_token(self, token):
        (self.pod / "token.new").write_text(token)
        (self.pod / "token.new").rename(self.pod / "token")

    def environment(self, **variables):
        """For the programs started from here on."""
        for name, value in variables.items():
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name, None)

    def start(self, *options):
        self.environment(KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT=str(self.server.port),
                         NEURONTRACE_KUBERNETES_CREDENTIALS=str(self.pod))
        self.start_secure_fleet("--access", self.rules, "--kubernetes-tokens", *options)

    def token(self, namespace, name, known=True, **claims):
        token = make_token(namespace, name, **claims)
        if known:
            self.server.users[token] = (f"system:serviceaccount:{namespace}:{name}", ["neurontrace"])
        self.secrets.append(token)
        return token

    def cli_with(self, token, *arguments):
        path = self.fleet.dir / "token"
        path.write_text(token)
        return self.cli_as(("--tls-ca", str(self.ca.ca), "--token-file", str(path)), *arguments)

    def check_no_token_in_logs(self):
        for log in (*self.fleet.logs.iterdir(), self.fleet.dir / "store" / "audit.log"):
            text = log.read_text(errors="replace")
            for secret in (*self.secrets, self.server.own_token):
                self.assertNotIn(secret, text, log)

    def test_a_service_account_has_the_role_of_its_rule(self):
        self.start()
        grafana, trainer = self.token("monitoring", "grafana"), self.token("train", "job-7")
        for _ in range(5):
            self.assertEqual(self.cli_with(grafana, "status").returncode, 0)
        self.assertEqual(self.server.questions, [grafana])
        self.check_refused(self.cli_with(grafana, "capture", "start"), "'dashboards' has the role viewer")
        done = self.cli_with(trainer, "capture", "start", "--duration", "1s")
        self.assertIn(done.returncode, (0, 3), done.stderr)
        self.assertIn(("capture.start", "trainers", "operator"),
                      [(line["action"], line.get("caller"), line.get("role")) for line in self.audit()])
        # Its own token is another one every hour.
        self.server.own_token = "own-2"
        self.write_own_token("own-2")
        self.assertEqual(self.cli_with(self.token("train", "job-8"), "status").returncode, 0)
        self.check_no_token_in_logs()

    def test_unknown_caller_is_unauthenticated(self):
        self.start()
        self.check_refused(self.cli_with(self.token("train", "x", known=False), "status"), NOBODY)
        asked = len(self.server.questions)
        # These claim what is refused anyway: nobody is asked.
        self.check_refused(self.cli_with(self.token("train", "x", audience="https://kubernetes.default.svc"),
                                         "status"), "is not for the audience neurontrace")
        self.check_refused(self.cli_with(self.token("train", "x", seconds=-5), "status"), "has expired")
        self.check_refused(self.cli_with(self.token("kube-system", "default"), "status"),
                           "no rule of the aggregator's --access file has this service-account")
        self.check_refused(self.cli_with("a.b.c", "status"), "neither known to the aggregator nor a service account token")
        self.assertEqual(len(self.server.questions), asked)
        # A token that claims another name than the server reports gets the reported one.
        liar = self.token("train", "liar")
        self.server.users[liar] = ("system:serviceaccount:kube-system:default", ["neurontrace"])
        self.check_refused(self.cli_with(liar, "status"), 'service-account = "kube-system/default"')
        person = self.token("train", "person")
        self.server.users[person] = ("admin", ["neurontrace"])
        self.check_refused(self.cli_with(person, "status"), NOBODY)
        self.check_no_token_in_logs()

    def test_unavailable_server_admits_nobody_new(self):
        self.start()
        before = self.token("train", "before")
        self.assertEqual(self.cli_with(before, "status").returncode, 0)
        for answer in ((201, b"{}"), (201, b"<html>"), (201, b"x" * 100_000), (403, b"{}"), (500, b"")):
            self.server.answer = answer
            self.check_refused(self.cli_with(self.token("train", "new", salt=str(answer[0]) + str(len(answer[1]))),
                                             "status"), "cannot verify the token")
        self.fleet.aggregator.wait_for_line("not a TokenReview")
        self.server.answer = None
        self.assertEqual(self.cli_with(self.token("train", "again"), "status").returncode, 0)
        self.fleet.aggregator.wait_for_line("the API server answers again")
        # Another one that says it is the server has no certificate of the authority's.
        (self.pod / "ca.crt").write_bytes(Authority(self.fleet.dir / "other").ca.read_bytes())
        self.check_refused(self.cli_with(self.token("train", "new2"), "status"), "cannot verify the token")
        self.assertEqual(self.cli_with(before, "status").returncode, 0)
        self.check_no_token_in_logs()

    def test_reports_missing_settings_outside_pod(self):
        def start(*options):
            done = self.run_program("neurontrace-aggregator", "--listen", "127.0.0.1:0", "--store",
                                    self.fleet.dir / "store", "--kubernetes-tokens", *options)
            self.assertEqual(done.returncode, 1, done.stderr)
            return done.stderr
        self.assertIn("the aggregator must run in a pod",
                      start("--access", self.rules, *self.fleet.server_security))
        self.assertIn("pass both", start(*self.fleet.server_security))


if __name__ == "__main__":
    suite.main()
