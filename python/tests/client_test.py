# SPDX-License-Identifier: Apache-2.0
"""The client against a service that keeps captures as the aggregator does, and one that sends what it must not."""

import concurrent.futures
import doctest
import os
import pathlib
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
import warnings

from built_package import HAS_GRPC, needs_grpc, suite

import neurontrace as nt

if HAS_GRPC:
    import grpc
    from neurontrace import exports, perfetto, spec, views, wire
    from neurontrace.v1 import agent_gateway_pb2 as agents
    from neurontrace.v1 import certificate_pb2, insight_pb2
    from neurontrace.v1 import operator_service_pb2 as messages
    from neurontrace.v1 import operator_service_pb2_grpc, vocabulary_pb2
    Servicer = operator_service_pb2_grpc.OperatorServiceServicer
else:
    Servicer = object

WORKER = {"instance_id": "i-<b>1", "pid": 7}


class Service(Servicer):
    """Captures as a dict; a test sets how the next one behaves."""

    def __init__(self):
        self.captures = {}
        self.clock = 0
        self.specs = []
        self.watches = 0
        self.breaks_watch = False  # the first watch ends with UNAVAILABLE
        self.begins = True
        self.loses = 0
        self.detail = ""
        self.replies = []  # of the next export
        self.requests = []
        self.metadata = {}

    def stamp(self, capture):
        self.clock += 1
        capture.server_realtime_ns = self.clock
        return capture

    def StartCapture(self, request, context):
        capture = messages.Capture(capture_id=f"01A{len(self.captures)}", spec=request.spec,
                                   state=messages.CAPTURE_STATE_ARMING)
        self.specs.append(request.spec)
        self.captures[capture.capture_id] = capture
        return self.stamp(capture)

    def WatchCapture(self, request, context):
        capture = self.captures[request.capture_id]
        yield self.stamp(capture)
        self.watches += 1
        if self.breaks_watch and self.watches == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "restarting")
        if capture.state == messages.CAPTURE_STATE_ARMING:
            capture.state = messages.CAPTURE_STATE_RECORDING if self.begins else messages.CAPTURE_STATE_NOT_BEGUN
            worker = capture.workers.add(worker=vocabulary_pb2.WorkerIdentity(**WORKER), detail=self.detail,
                                         state=agents.CAPTURE_WORKER_STATE_RECORDING)
            if self.detail:
                worker.state = agents.CAPTURE_WORKER_STATE_REFUSED
            yield self.stamp(capture)
        elif capture.state == messages.CAPTURE_STATE_STOPPING:
            capture.state = messages.CAPTURE_STATE_INCOMPLETE if self.loses else messages.CAPTURE_STATE_COMPLETE
            certificate = capture.certificate
            certificate.complete = not self.loses
            certificate.verdict = "incomplete: events lost" if self.loses else "complete"
            certificate.findings.extend(["3 events lost"] if self.loses else [])
            account = certificate_pb2.EventAccount(stored=5, lost=self.loses)
            certificate.workers.add(worker=vocabulary_pb2.WorkerIdentity(**WORKER), worker_gids=[0, 1], account=account,
                                    part=certificate_pb2.WORKER_PART_RECORDED)
            yield self.stamp(capture)

    def StopCapture(self, request, context):
        capture = self.captures[request.capture_id]
        if capture.state == messages.CAPTURE_STATE_RECORDING:
            capture.state = messages.CAPTURE_STATE_STOPPING
        return self.stamp(capture)

    def GetCapture(self, request, context):
        if request.capture_id not in self.captures:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no capture {request.capture_id}")
        return self.stamp(self.captures[request.capture_id])

    def Export(self, request, context):
        self.requests.append(request)
        yield from self.replies

    def GetStatus(self, request, context):
        self.metadata = dict(context.invocation_metadata())
        return messages.GetStatusReply(aggregator_id="fake")

    def Explain(self, request, context):
        self.requests.append(request)
        core = insight_pb2.InsightCore(worker_gid=5)
        return insight_pb2.InsightReport(verdicts=[insight_pb2.Verdict(text="SLOW <rank 5>", suspects=[core, core])],
                                         text="8 of 8 cores judged")


@needs_grpc
class ClientCase(unittest.TestCase):
    def setUp(self):
        self.service = Service()
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        operator_service_pb2_grpc.add_OperatorServiceServicer_to_server(self.service, server)
        self.port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(None).wait())
        before = os.environ.get("NEURONTRACE_CONFIG")
        os.environ["NEURONTRACE_CONFIG"] = ""
        self.addCleanup(lambda: os.environ.pop("NEURONTRACE_CONFIG") if before is None else
                        os.environ.update(NEURONTRACE_CONFIG=before))
        self.client = nt.Client(f"127.0.0.1:{self.port}", timeout=60)
        self.addCleanup(self.client.close)
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))


class Captures(ClientCase):
    def test_a_block_is_recorded_and_stored(self):
        with self.client.capture(job="j", ranks=[1, 2, 5], labels={"step": 3}, duration=2) as cap:
            self.assertEqual(cap.state, "recording")
            self.assertFalse(cap.ended)
            with self.assertRaisesRegex(nt.IncompleteCapture, "still recording"):
                cap.require_complete()
        self.assertEqual((cap.state, cap.verdict), ("complete", "complete"))
        self.assertIs(cap.require_complete(), cap)
        asked = self.service.specs[0]
        self.assertEqual((asked.job, asked.duration_ns, asked.include_framework), ("j", 2_000_000_000, True))
        self.assertEqual([(one.first, one.last) for one in asked.worker_gids], [(1, 2), (5, 5)])
        self.assertEqual([(one.key, one.value) for one in asked.labels], [("step", "3")])

    def test_it_is_stopped_when_the_block_fails(self):
        with self.assertRaisesRegex(RuntimeError, "mine"), self.client.capture():
            raise RuntimeError("mine")
        self.assertEqual(self.service.captures["01A0"].state, messages.CAPTURE_STATE_COMPLETE)

    def test_a_restart_of_the_aggregator_is_waited_for(self):
        self.service.breaks_watch = True
        with self.client.capture() as cap:
            pass
        self.assertTrue(cap.complete)
        self.assertGreater(self.service.watches, 2)

    def test_losses_have_their_findings(self):
        self.service.loses = 3
        with self.client.capture() as cap:
            pass
        with self.assertRaisesRegex(nt.IncompleteCapture, "01A0: incomplete: events lost\n  3 events lost"):
            cap.require_complete()
        self.assertIn("<td>3</td>", cap._repr_html_())
        self.assertIn("i-&lt;b&gt;1", cap._repr_html_())

    def test_workers_that_do_not_record_are_reported(self):
        self.service.detail = "another profiler"
        with self.assertWarnsRegex(nt.IncompleteWarning, "i-<b>1 pid 7: another profiler"):
            self.client.start()
        self.service.begins = False
        with self.assertRaisesRegex(nt.CaptureNotBegun, "did not begin\n.*another profiler"):
            self.client.start()

    def test_refusals_have_the_text_of_the_aggregator(self):
        with self.assertRaises(nt.CallFailed) as caught:
            self.client.get("01B")
        self.assertEqual((str(caught.exception), caught.exception.code), ("there is no capture 01B", "NOT_FOUND"))
        for options in ({"cores": ["x"]}, {"duration": 0}, {"instances": "i-1"}, {"at_execution": "soon"},
                        {"last": 5, "duration": 5}, {"require_percent": -1}):
            with self.assertRaises(nt.NeurontraceError, msg=options):
                self.client.start(**options)
        self.assertEqual(self.service.specs, [])

    def test_an_aggregator_that_is_away_is_named_with_a_remedy(self):
        with self.assertRaisesRegex(nt.CallFailed, "no answer from the aggregator at 127.0.0.1:1.*"
                                                   "check that neurontrace-aggregator runs there"):
            nt.Client("127.0.0.1:1", timeout=0.2).status()

    def test_a_forked_child_gets_the_reason(self):
        connection = self.client._connection
        connection._pid += 1
        with self.assertRaisesRegex(nt.NeurontraceError, "make a Client in the child"):
            self.client.status()

    def test_why(self):
        with self.client.capture() as cap:
            pass
        answer = cap.why(start=0, end=1.5)
        self.assertEqual((answer.ranks, str(answer)), ([5], "SLOW <rank 5>\n8 of 8 cores judged"))
        self.assertIn("SLOW &lt;rank 5&gt;", answer._repr_html_())
        asked = self.service.requests[0]
        self.assertEqual((asked.capture_id, asked.end_ns, asked.begin_is_relative), ("01A0", 1_500_000_000, True))


class Exports(ClientCase):
    def setUp(self):
        super().setUp()
        with self.client.capture() as self.cap:
            pass

    def answer(self, *files, done=None):
        """Sets the replies: files as (name, data), all open at a time."""
        self.service.replies = [messages.ExportReply(file=name, file_number=n) for n, (name, _) in enumerate(files)]
        self.service.replies += [messages.ExportReply(data=data, file_number=n) for n, (_, data) in
                                 reversed(list(enumerate(files)))]
        self.service.replies += [messages.ExportReply(file_end=True, file_number=n) for n in range(len(files))]
        if done is not None:
            self.service.replies.append(messages.ExportReply(done=done))

    def test_one_file(self):
        self.answer(("system.pftrace", b"abc"), done=messages.ExportDone())
        path = self.directory / "x.pftrace.gz"
        path.write_bytes(b"old")
        made = self.cap.save(path, ranks=[3], start=0)
        self.assertEqual((path.read_bytes(), made.bytes, made.files), (b"abc", 3, (path,)))
        asked = self.service.requests[0]
        self.assertEqual((asked.format, asked.compression), (messages.EXPORT_FORMAT_PERFETTO,
                                                             messages.EXPORT_COMPRESSION_GZIP))
        self.assertEqual([one.first for one in asked.worker_gids], [3])
        self.assertEqual([path.name for path in self.directory.iterdir()], ["x.pftrace.gz"])

    def test_a_directory(self):
        self.answer(("a/one.bin", b"1"), ("two.bin", b"22"), done=messages.ExportDone())
        made = self.cap.save(self.directory / "x", format="xspace")
        self.assertEqual([path.read_bytes() for path in made.files], [b"1", b"22"])
        with self.assertRaisesRegex(nt.NeurontraceError, "exists; name a new directory"):
            self.cap.save(self.directory / "x", format="xspace")

    def test_what_it_lacks_is_a_warning(self):
        self.answer(("a", b""), done=messages.ExportDone(capture_incomplete=True, verdict="3 lost", warnings=["w"]))
        with self.assertWarnsRegex(nt.IncompleteWarning, "3 lost\n  w"):
            self.cap.save(self.directory / "x.json")

    def test_hostile_replies_write_nothing_outside(self):
        done = messages.ExportReply(done=messages.ExportDone())
        begin = messages.ExportReply(file="a", file_number=0)
        end = messages.ExportReply(file_end=True, file_number=0)
        for replies in ([begin], [begin, done], [begin, end], [messages.ExportReply(data=b"x"), done],
                        [begin, messages.ExportReply(file="b", file_number=0), done],
                        [begin, messages.ExportReply(data=b"x", file_number=9), done],
                        [begin, end, messages.ExportReply(data=b"x"), done], [done],
                        [begin, end, messages.ExportReply(held_differs="a")]):
            self.service.replies = replies
            with self.assertRaises(nt.NeurontraceError, msg=replies):
                self.cap.save(self.directory / "x.pftrace")
        for name in ("", "/a", "../a", "a/../b", "a//b", "a\\b", "a b", "a" * 600, "a/", "."):
            with self.assertRaises(nt.NeurontraceError, msg=name):
                exports.check_name(name)
        self.assertEqual(list(self.directory.iterdir()), [])

    def test_an_unknown_format_names_the_known_ones(self):
        with self.assertRaisesRegex(nt.NeurontraceError, "format='pdf' does not exist; the formats are perfetto, json"):
            self.cap.save(self.directory / "x", format="pdf")


class Tokens(ClientCase):
    def test_token_files(self):
        path = self.directory / "token"
        for data, why in ((b"", "is empty"), (b"a b", "one line"), (b"\xff", "one line"), (b"x" * 9000, "larger than")):
            path.write_bytes(data)
            with self.assertRaisesRegex(nt.SettingsError, why):
                wire.read_token(str(path))
        path.write_bytes(b"secret\n")
        self.assertEqual(wire.read_token(str(path)), "secret")


class Perfetto(ClientCase):
    def fetch(self, address, origin=None, path=None):
        port = address.rpartition("127.0.0.1:")[2].partition("/")[0]
        headers = {"Origin": origin or perfetto.PAGE}
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path or '/trace.pftrace'}", headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read(), answer.headers["Access-Control-Allow-Origin"]

    def test_only_the_page_gets_the_trace(self):
        file = self.directory / "trace.pftrace"
        file.write_bytes(b"trace")
        got, threads = [], []

        def open_page(address):
            def visit():
                for other in ({"origin": "https://evil.example"}, {"path": "/etc/passwd"}):
                    try:
                        got.append(self.fetch(address, **other))
                    except urllib.error.HTTPError as error:
                        got.append(error.code)
                        error.close()
                got.append(self.fetch(address))
            threads.append(threading.Thread(target=visit))
            threads[0].start()
            return True
        perfetto.open_trace(file, timeout=60, port=0, open_page=open_page)
        threads[0].join()
        self.assertEqual(got, [404, 404, (b"trace", perfetto.PAGE)])

    def test_without_a_browser(self):
        with self.assertRaisesRegex(nt.NeurontraceError, "no browser; save the trace"):
            perfetto.open_trace(self.directory, timeout=60, port=0, open_page=lambda _: False)
        with self.assertRaisesRegex(nt.NeurontraceError, "did not fetch the trace"):
            perfetto.open_trace(self.directory, timeout=0, port=0, open_page=lambda _: True)


def load_tests(loader, tests, pattern):
    if HAS_GRPC:
        for module in (exports, spec, views):
            tests.addTests(doctest.DocTestSuite(module))
    return tests


if __name__ == "__main__":
    warnings.simplefilter("error", nt.IncompleteWarning)
    suite.main()
