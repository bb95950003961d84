# SPDX-License-Identifier: Apache-2.0
"""The page of one capture in a real browser: certificate, hosts, exports in every format, artifacts."""

import contextlib
import tarfile
import tempfile
from pathlib import Path

import demo
import suite
from page_case import PageCase
from fleet import wait_until

SINGLE = {"perfetto": "pftrace", "json": "json", "chrome-json": "trace.json", "events": "events.jsonl",
          "summary-text": "summary.txt", "summary-json": "summary.json"}
SESSION = "1776672348756756905"
ARTIFACTS = {"395_instid_0_vnc_0.ntff": b"a device profile", "neff_395.neff": b"a model" * 300_000}


class CapturePage(PageCase):
    @classmethod
    def start_fleet(cls):
        cls.inspected = cls.fleet.dir / "inspect"
        cls.inspected.mkdir()
        demo.start_fleet(cls.fleet, "--inspect-dir", cls.inspected)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.artifacts_id = cls.fleet.cli("capture", "start", "--name", "artifacts").stdout.strip()
        folder = cls.inspected / f"{demo.INSTANCES[0]}_pid_7" / SESSION
        folder.mkdir(parents=True)
        for name, content in ARTIFACTS.items():
            (folder / name).write_bytes(content)
        cls.fleet.cli("capture", "stop", cls.artifacts_id, codes=(0, 3))

    def open_about(self, capture_id=None):
        self.sign_in()
        self.browser.open(f"{self.api.origin}/capture/{capture_id or self.capture_id}/about")
        self.browser.wait_for("return ['.artifacts', '.exports', '.hosts'].every(part => document.querySelector(part))")

    @contextlib.contextmanager
    def downloads(self):
        with tempfile.TemporaryDirectory(prefix="nt-downloads-") as name:
            self.browser.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=name)
            yield Path(name)

    def choose(self, selector, value):
        """Sets a control as a person does: the page hears of it."""
        self.browser.run("const control = document.querySelector(arguments[0]); control.value = arguments[1];"
                         "control.dispatchEvent(new Event('input', {bubbles: true}));", selector, value)

    def export(self, folder, file_format, ending):
        """Downloads with the values of the form and returns the file."""
        self.choose("#export-format", file_format)
        self.browser.run("document.querySelector('.downloads').textContent = ''")
        self.browser.click("#export-save")
        self.wait_for_text(".downloads", "is saved")
        return wait_until(lambda: next(iter(folder.glob(f"{self.capture_id}.{ending}")), None), f"the {file_format} file")

    def command(self, file_format, path, *options):
        return self.fleet.cli("export", self.capture_id, "--format", file_format, "-o", path, *options, codes=(0, 3), check=False)

    def same_as_command(self, made, file_format, *options):
        """Until the clocks of a capture are final, two exports may differ: the command runs again until they do not."""
        with tempfile.TemporaryDirectory(prefix="nt-command-") as name:
            first, second = Path(name) / "first", Path(name) / "second"
            self.command(file_format, first, *options)
            content = made()
            self.command(file_format, second, *options)
            return first.read_bytes() == second.read_bytes() and content == first.read_bytes()

    # -- what it is ----------------------------------------------------------------------------------------------

    def test_list_and_timeline_lead_to_the_page_of_a_capture(self):
        self.sign_in()
        self.browser.run("[...document.querySelectorAll('.row-buttons a')].find(a => a.href.includes(arguments[0])"
                         " && a.innerText === 'About').click()", self.capture_id)
        self.wait_for_text("h1", "^demo$")
        self.open_timeline()
        self.browser.run("[...document.querySelectorAll('.top-bar button')].find(b => b.innerText === 'About').click()")
        self.wait_for_text(".sentences", "Every event that the runtime produced is stored")
        self.assertTrue(self.browser.url.endswith(f"/capture/{self.capture_id}/about"))
        self.assertIn("until somebody deletes it", self.text_of(".facts"))
        self.assertEqual(self.browser.console_errors(), [])

    def test_charts_show_processors_and_memory_of_each_host(self):
        self.open_about()
        self.browser.wait_for("return document.querySelectorAll('.host').length === arguments[0]", len(demo.INSTANCES))
        hosts = self.browser.run("return [...document.querySelectorAll('.host')].map(host => ({text: host.innerText,"
                                 " paths: [...host.querySelectorAll('path')].map(path => path.getAttribute('d').length)}))")
        self.assertEqual(sorted(host["text"].split("\n")[0] for host in hosts), sorted(demo.INSTANCES))
        memory = int(next(line.split()[1] for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
                          if line.startswith("MemTotal"))) * 1024
        for host in hosts:
            self.assertRegex(host["text"], r"Processors: up to \d+ % of \d+ processors")
            self.assertRegex(host["text"], r"Memory: up to \d+ %")
            self.assertIn(f"{memory / 1e9:.2f}"[:3], host["text"], "the memory of this machine")
            self.assertTrue(all(length > 5 for length in host["paths"]), host)

    # -- exports -------------------------------------------------------------------------------------------------

    def test_downloads_are_the_files_of_the_command(self):
        self.open_about()
        for file_format, ending in SINGLE.items():
            with self.subTest(format=file_format), self.downloads() as folder:
                def made(chosen=file_format, suffix=ending, place=folder):
                    for old in place.iterdir():
                        old.unlink()
                    return self.export(place, chosen, suffix).read_bytes()
                wait_until(lambda chosen=file_format, content=made: self.same_as_command(content, chosen),
                           f"{file_format} to have the command's bytes", 120)
        self.assertEqual(self.browser.console_errors(), [])

    def test_formats_of_several_files_are_archives(self):
        self.open_about()
        for file_format in ("xspace", "parquet"):
            with self.subTest(format=file_format), self.downloads() as folder, tempfile.TemporaryDirectory() as name:
                expected = Path(name) / "command"
                done = self.command(file_format, expected)
                if "Apache Arrow" in done.stderr:
                    continue
                archive = self.export(folder, file_format, f"{file_format}.tar")
                with tarfile.open(archive) as files:
                    content = {member.name: files.extractfile(member).read() for member in files}
                paths = {str(path.relative_to(expected)) for path in expected.rglob("*") if path.is_file()}
                self.assertEqual({name.split("/", 1)[1] for name in content}, paths)
                self.assertEqual({name.split("/", 1)[0] for name in content}, {f"{self.capture_id}.{file_format}"})
                self.assertTrue(all(content.values()), "no file is empty")

    def test_window_and_ranks_select_what_the_command_selects(self):
        self.open_about()
        self.choose("#export-from", "500ms")
        self.choose("#export-to", "1s")
        self.choose("#export-gids", "8-11, 20")
        begin = int(self.layout()["begin_ns"])
        options = ("--from", begin + 500_000_000, "--to", begin + 1_000_000_000, "--worker-gid", "8-11,20")
        shown = self.text_of(".exports code")
        for option in map(str, options):
            self.assertIn(option, shown)
        with self.downloads() as folder:
            def made():
                for old in folder.iterdir():
                    old.unlink()
                return self.export(folder, "json", SINGLE["json"]).read_bytes()
            wait_until(lambda: self.same_as_command(made, "json", *options), "the events of the command", 120)

    def test_streams_select_single_streams(self):
        self.open_about()
        stream = self.ranks()[demo.STRAGGLER]
        self.choose("#export-streams", str(stream["number"]))
        self.wait_for_text(".exports .copy-line", "no option for streams")
        with self.downloads() as folder:
            lines = self.export(folder, "events", SINGLE["events"]).read_text(encoding="utf-8").splitlines()
        self.assertGreaterEqual(len(lines), int(stream["events"]))
        self.assertLess(len(lines), int(stream["events"]) * 2, "no other rank's events")

    def test_form_and_download_report_what_is_wrong(self):
        self.open_about()
        self.choose("#export-from", "yesterday")
        self.wait_for_text(".exports [role=alert]", "write a time after the beginning")
        self.assertTrue(self.browser.run("return document.querySelector('#export-save').disabled"))
        self.choose("#export-from", "")
        self.choose("#export-gids", "8-")
        self.wait_for_text(".exports [role=alert]", "Ranks: write numbers and ranges")
        self.choose("#export-gids", "9000")
        with self.downloads() as folder:
            self.export(folder, "summary-text", SINGLE["summary-text"])
        self.wait_for_text(".downloads", "(?i)nothing is selected: the capture has no worker_gid 9000")

    # -- artifacts -----------------------------------------------------------------------------------------------

    def test_artifacts_are_listed_with_their_command_and_downloaded(self):
        self.open_about(self.artifacts_id)
        rows = self.table_of(".artifacts")
        self.assertEqual({row[0].rsplit("/", 1)[1] for row in rows}, set(ARTIFACTS))
        for row in rows:
            self.assertIn("neuron-explorer view -n neff_395.neff -s 395_instid_0_vnc_0.ntff", row[4])
        with self.downloads() as folder:
            for name, content in ARTIFACTS.items():
                self.browser.run("document.querySelector(`[aria-label='Download ${arguments[0]}']`).click()", name)
                wait_until(lambda wanted=folder / name: wanted.exists(), f"{name} to be saved")
                self.assertTrue((folder / name).read_bytes() == content, name)
            self.wait_for_text(".downloads", "395_instid_0_vnc_0.ntff is saved: 16 B")

    def test_capture_without_artifacts_explains_how_they_come(self):
        self.open_about()
        self.wait_for_text(".artifacts", "NEURON_RT_INSPECT_ENABLE=1")

    def test_how_long_it_is_kept_is_changed_here(self):
        self.addCleanup(self.fleet.cli, "captures", "keep", self.capture_id, "--forever")
        self.open_about()
        self.assertIn("until somebody deletes it", self.text_of(".facts"))
        self.browser.click(".facts button")
        self.choose("#ask-text", "soon")
        self.wait_for_text("#ask-problem", "30d or 12h")
        self.assertTrue(self.browser.run("return document.querySelector('dialog .primary').disabled"))
        self.choose("#ask-text", "30d")
        self.browser.click("dialog .primary")
        self.wait_for_text(".facts", "for 30 d after its end")
        spec = self.fleet.show_capture(self.capture_id)["spec"]
        self.assertEqual(int(spec["retention_ns"]), 30 * 86_400 * 1_000_000_000)
        # A time that has passed would delete it.
        self.browser.click(".facts button")
        self.choose("#ask-text", "1ms")
        self.browser.click("dialog .primary")
        self.wait_for_text(".toast.error", "would be deleted at once")

    def test_deleted_capture_leads_back_to_the_list(self):
        self.sign_in()
        self.browser.open(f"{self.api.origin}/capture/01JD8Z2M6WQJ4V1T0S3R5XK7PA/about")
        self.wait_for_text("[role=alert]", "cannot be shown")
        self.assertIn("All captures", self.text_of("[role=alert]"))


if __name__ == "__main__":
    suite.main()
