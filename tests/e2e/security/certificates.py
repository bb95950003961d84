# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made by the openssl command as people would make them."""

import subprocess
from pathlib import Path


class Authority:
    """Signs certificates, in a directory of its own."""

    def __init__(self, directory):
        self.dir = Path(directory)
        self.dir.mkdir(parents=True)
        self.ca = self.dir / "ca.pem"
        self._key = self.dir / "ca.key"
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                      "-subj", "/CN=test CA", "-keyout", self._key, "-out", self.ca)

    def issue(self, name, *alternative_names, days=1, common_name=None):
        """NAME.pem and NAME.key, each put into place whole; `days` below 0: it is out of date."""
        request, cert, key = (self.dir / f"{name}.{ending}" for ending in ("csr", "pem.new", "key.new"))
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-subj", f"/CN={common_name or name}", "-keyout", key, "-out", request)
        extensions = self.dir / f"{name}.ext"
        extensions.write_text("basicConstraints = CA:FALSE\n" + (
            f"subjectAltName = {','.join(alternative_names)}\n" if alternative_names else ""))
        # Whoever wants one that is out of date has it made in the past.
        past = ("faketime", "-f", f"{days - 1}d") if days < 0 else ()
        self._openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self._key, "-CAcreateserial",
                      "-days", str(abs(days)), "-extfile", extensions, "-out", cert, before=past)
        key.rename(self.dir / f"{name}.key")
        cert.rename(self.dir / f"{name}.pem")
        return self.options(name)

    def options(self, name):
        """Of a program that shows this certificate."""
        return ("--tls-ca", str(self.ca), "--tls-cert", str(self.dir / f"{name}.pem"),
                "--tls-key", str(self.dir / f"{name}.key"))

    @staticmethod
    def _openssl(*arguments, before=()):
        done = subprocess.run([*before, "openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {' '.join(map(str, arguments))}: {done.stderr}")
