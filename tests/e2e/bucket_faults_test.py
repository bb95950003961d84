# SPDX-License-Identifier: Apache-2.0
"""Exports into a bucket while something goes wrong: kills, interrupts, lost answers, several at once."""
import signal

import suite
from bucket_case import BucketCase
from fleet import wait_until

EXPORTS_AT_ONCE_MAX = 8  # kExportsAtOnceMax
TRIES = 3  # of a request


def is_data(request):
    """An object that is neither a claim nor a manifest."""
    return request.method == "PUT" and "/claim." not in request.key and "/manifest" not in request.key


class BucketFaultsTest(BucketCase):
    def hold_third_part(self):
        """Of the artifact, whose first two parts are then there."""
        self.proxy.hold(lambda r: r.is_part(3))

    def parts(self, number=None):
        return self.proxy.seen(lambda r: r.is_part(number))

    def test_killed_aggregator_resumes_with_existing_parts(self):
        self.start()
        capture_id = self.capture_of(40)
        self.hold_third_part()
        first = self.begin(*self.export(capture_id))
        wait_until(lambda: self.parts(3) == 1, "the third part", 60)
        self.fleet.aggregator.kill()
        self.proxy.release()
        self.assertEqual(first.wait(60), 1)
        about = self.top / f"neurontrace_{capture_id}"
        self.assertTrue(list(about.glob("claim.*")), "killed while it had the claim")
        self.assertFalse((about / "manifest.json").exists())
        self.start()
        self.fleet.cli(*self.export(capture_id))
        self.check_objects(capture_id)
        self.assertEqual((self.parts(1), self.parts(2)), (1, 1), "these were there")

    def test_interrupted_export_resumes_with_existing_parts(self):
        self.start()
        capture_id = self.capture_of(40)
        self.hold_third_part()
        first = self.begin(*self.export(capture_id))
        wait_until(lambda: self.parts(3) == 1, "the third part", 60)
        first.send_signal(signal.SIGINT)
        _, error = first.communicate(timeout=60)
        self.assertEqual(first.returncode, 1, error)
        self.assertIn("run the same command to resume", error)
        self.proxy.release()
        about = self.top / f"neurontrace_{capture_id}"
        wait_until(lambda: not list(about.glob("claim.*")), "the aggregator to give it up", 60)
        self.assertFalse((about / "manifest.json").exists())
        self.fleet.cli(*self.export(capture_id))
        self.check_objects(capture_id)
        self.assertEqual((self.parts(1), self.parts(2)), (1, 1), "these were there")

    def test_lost_answers_are_asked_for_again(self):
        self.start()
        capture_id = self.capture_of(40)
        self.proxy.lose_answer(lambda r: r.method == "PUT" and "/claim." in r.key)
        self.proxy.lose_answer(lambda r: r.method == "POST" and "uploads" in r.query)
        self.proxy.lose_answer(lambda r: r.is_part(2), times=2)
        self.proxy.lose_answer(lambda r: r.is_completion())
        self.proxy.lose_answer(lambda r: r.method == "PUT" and r.key.endswith("neurontrace.json"))
        self.proxy.lose_answer(lambda r: r.method == "PUT" and r.key.endswith("/manifest.json"))
        self.proxy.lose_answer(lambda r: r.method == "DELETE" and r.key.endswith("/manifest.partial.json"))
        self.fleet.cli(*self.export(capture_id))
        self.assertTrue(self.proxy.lost(), "every one of these came")
        self.assertEqual(self.parts(2), 3)
        self.check_objects(capture_id)

    def test_unanswered_completion_fails_only_while_pending(self):
        self.start()
        capture_id = self.capture_of(40)
        # No try gets an answer; the first one did the work.
        self.proxy.lose_answer(lambda r: r.is_completion(), times=10)
        self.fleet.cli(*self.export(capture_id))
        self.assertGreaterEqual(self.proxy.seen(lambda r: r.is_completion()), 3)
        self.check_objects(capture_id)

    def test_two_at_once_end_with_one_whole_result(self):
        self.start()
        capture_id = self.capture_of(20)
        self.check_one_or_both([self.begin(*self.export(capture_id)) for _ in range(3)])
        self.check_objects(capture_id)

    def test_limits_concurrent_exports(self):
        self.start()
        capture_id = self.capture(instances=1)
        self.proxy.hold(is_data, times=TRIES * EXPORTS_AT_ONCE_MAX)  # one that is held for long is sent again
        running = [self.begin(*self.export(capture_id, f"s3://traces/prod/{i}")) for i in range(EXPORTS_AT_ONCE_MAX)]
        wait_until(lambda: len(self.proxy.keys(is_data)) >= EXPORTS_AT_ONCE_MAX, "all of them to write", 60)
        self.assertEqual(self.fleet.aggregator.metric("neurontrace_aggregator_exports_running"),
                         EXPORTS_AT_ONCE_MAX)
        refused = self.fleet.cli(*self.export(capture_id), check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"has reached its limit of {EXPORTS_AT_ONCE_MAX} exports at once; try again", refused.stderr)
        self.assertEqual(self.fleet.aggregator.metric("neurontrace_aggregator_exports_refused_total"), 1)
        self.proxy.release()
        for i, process in enumerate(running):
            _, error = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, error)
            self.check_objects(capture_id, str(i))
        self.fleet.cli(*self.export(capture_id))


if __name__ == "__main__":
    suite.main()
