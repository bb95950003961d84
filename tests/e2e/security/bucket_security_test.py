# SPDX-License-Identifier: Apache-2.0
"""A bucket over TLS, whose certificate somebody has to vouch for; and keys that AWS gives to a role instead of keys in the
environment. The services of AWS are stand-ins that answer in its documented words, before a real S3 server."""
import datetime
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import threading
import unittest
import unittest.mock
import urllib.parse

import suite
from bucket_case import BucketCase
from certificates import Authority
from s3_server import KEY_ID, SECRET, Proxy, S3Server

SESSION = "a-session"


class Aws:
    """Gives the server's keys for an hour to who shows `token`: as STS, and as EKS Pod Identity's agent."""

    def __init__(self, token):
        aws = self
        self.token = token
        self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                given = {name: values[0] for name, values in urllib.parse.parse_qs(body).items()}
                aws.asked.append(given.get("RoleArn"))
                if given.get("WebIdentityToken") != aws.token or given.get("Action") != "AssumeRoleWithWebIdentity":
                    self.answer(400, "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>No OpenIDConnect "
                                     "provider found</Message></Error></ErrorResponse>")
                    return
                values = "".join(f"<{name}>{value}</{name}>" for name, value in aws.keys("SessionToken").items())
                self.answer(200, f"<AssumeRoleWithWebIdentityResponse><Credentials>{values}</Credentials>"
                                 "</AssumeRoleWithWebIdentityResponse>")

            def do_GET(self):  # pylint: disable=invalid-name
                aws.asked.append(self.path)
                if self.headers.get("Authorization") != aws.token:
                    self.answer(401, "unauthorized")
                    return
                self.answer(200, json.dumps(aws.keys("Token")))

            def answer(self, status, text):
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @staticmethod
    def keys(name_of_token):
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        return {"AccessKeyId": KEY_ID, "SecretAccessKey": SECRET, name_of_token: SESSION,
                "Expiration": end.strftime("%Y-%m-%dT%H:%M:%SZ")}

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


class KnowsSession(Proxy):
    """Lets requests with the session's token pass, signed again with the server's own keys, as that knows no sessions."""

    def headers_for_server(self, method, target, headers, body):
        if headers.get("x-amz-security-token") != SESSION:
            return headers.items()  # whose signature the server refuses
        path, _, query = target.partition("?")
        day = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d")
        names = ("host", "x-amz-content-sha256", "x-amz-date")
        values = {name: headers[name] for name in names}
        pairs = sorted(part if "=" in part else part + "=" for part in query.split("&") if part)
        canonical = "\n".join([method, path, "&".join(pairs), *(f"{name}:{values[name]}" for name in names), "",
                               ";".join(names), hashlib.sha256(body).hexdigest()])
        scope = f"{day}/us-east-1/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", values["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = ("AWS4" + SECRET).encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        kept = {name: value for name, value in headers.items() if name.lower() not in ("authorization", "x-amz-security-token")}
        kept["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={KEY_ID}/{scope}, SignedHeaders={';'.join(names)}, "
                                 f"Signature={signature}")
        return kept.items()


class BucketSecurityTest(BucketCase):
    def restart(self, *options):
        if self.fleet.aggregator:
            self.fleet.aggregator.stop()
        self.start(*options)

    def test_service_requires_trusted_certificate(self):
        authority = Authority(pathlib.Path(self.fleet.dir, "s3-ca"))
        authority.issue("s3", "IP:127.0.0.1")
        other = Authority(pathlib.Path(self.fleet.dir, "other-ca"))
        self.server.stop()
        self.server = S3Server(self.server.program, self.disk, self.fleet.logs / "s3.log",
                               "--cert", authority.dir / "s3.pem", "--key", authority.dir / "s3.key")
        tls = ("--s3-endpoint", f"127.0.0.1:{self.server.port}", "--s3-region", "us-east-1")
        start = lambda *options: self.fleet.start_aggregator("--export-root", "s3://traces/prod", *tls, *options)
        start()
        capture_id = self.capture(instances=1)
        for options in ((), ("--s3-ca", other.ca)):
            self.fleet.aggregator.stop()
            start(*options)
            failed = self.fleet.cli(*self.export(capture_id), check=False)
            self.assertEqual(failed.returncode, 1)
            self.assertIn("certificate", failed.stderr)
            self.assertIn("to the aggregator with --s3-ca FILE", failed.stderr)
            self.assertFalse(self.top.exists())
        self.fleet.aggregator.stop()
        start("--s3-ca", authority.ca)
        self.fleet.cli(*self.export(capture_id))
        self.check_objects(capture_id)
        self.fleet.aggregator.stop()
        self.use(AWS_CA_BUNDLE=authority.ca)
        start()
        again = self.fleet.cli_json(*self.export(capture_id))
        self.assertGreater(int(again["files_there"]), 0)

    def test_a_role_needs_no_keys_in_the_environment(self):
        token = pathlib.Path(self.fleet.dir, "token")
        token.write_text("of-the-pod\n")
        aws = Aws("of-the-pod")
        self.addCleanup(aws.stop)
        self.proxy.stop()
        self.proxy = KnowsSession(self.server.port)
        self.use_keys("", "")
        self.start()
        capture_id = self.capture(instances=1)
        roles = ({"AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ROLE_ARN": "arn:aws:iam::1:role/traces",
                  "AWS_ENDPOINT_URL_STS": aws.url},
                 {"AWS_CONTAINER_CREDENTIALS_FULL_URI": aws.url + "v1/credentials",
                  "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token})
        for number, role in enumerate(roles):
            with self.subTest(role=next(iter(role))), unittest.mock.patch.dict(
                    os.environ, {name: str(value) for name, value in role.items()}):
                self.restart()
                done = self.fleet.cli_json(*self.export(capture_id, f"s3://traces/prod/{number}"))
                self.assertEqual(int(done.get("files_there", 0)), 0)
                self.check_objects(capture_id, str(number))
                aws.token = "of-another"
                refused = self.fleet.cli(*self.export(capture_id, f"s3://traces/prod/refused{number}"), check=False)
                self.assertEqual(refused.returncode, 1)
                self.assertRegex(refused.stderr, "role.*: HTTP 40[01], ")
                self.assertNotIn("of-the-pod", refused.stderr)
                aws.token = "of-the-pod"
        self.assertIn("arn:aws:iam::1:role/traces", aws.asked)
        self.assertIn("/v1/credentials", aws.asked)
        for log in self.fleet.logs.glob("*aggregator*"):
            self.assertNotRegex(log.read_text(), f"of-the-pod|{SESSION}|{SECRET}")


if __name__ == "__main__":
    suite.main()
