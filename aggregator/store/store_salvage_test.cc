// SPDX-License-Identifier: Apache-2.0
// Which of two versions of a record a rebuild keeps, whichever it meets first.
#include "aggregator/store/store_salvage.h"

#include <gtest/gtest.h>

#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

TEST(SalvagedRecords, OneThatHasBegunIsNewerThanOneThatArms) {
  CaptureRecord arming = TestCapture(1);
  arming.state = CaptureState::kArming;
  arming.workers.resize(3);  // two of an agent that was away, and came
  CaptureRecord recording = TestCapture(1);
  recording.armed_realtime_ns = 7;
  recording.begin = CaptureBegin{.reference_ns = 8};
  recording.workers.resize(1);
  CaptureRecord chosen = recording;
  chosen.begin->first_execution = 9;
  chosen.workers.clear();
  const CaptureRecord* const versions[] = {&arming, &recording, &chosen};
  for (const bool backwards : {false, true}) {
    SalvagedRecords records;
    for (size_t i = 0; i < 3; ++i) records.Take(*versions[backwards ? 2 - i : i]);
    EXPECT_EQ(records.captures.at(TestCaptureId(1)), chosen);
  }
}

}  // namespace
}  // namespace neurontrace
