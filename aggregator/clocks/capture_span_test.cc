// SPDX-License-Identifier: Apache-2.0
// The stretch of time whose clocks a capture needs does not grow with a standing capture's age.
#include "aggregator/clocks/capture_span.h"

#include <gtest/gtest.h>

#include <vector>

namespace neurontrace {
namespace {

constexpr uint64_t kHourNs = 3'600'000'000'000;
constexpr uint64_t kNowNs = 1'000 * kHourNs;

CaptureRecord Record(CaptureMode mode) {
  CaptureRecord record;
  record.spec.mode = mode;
  record.spec.retention_ns = kHourNs;
  record.state = CaptureState::kRecording;
  record.started_realtime_ns = 100 * kHourNs;
  return record;
}

StreamRecord Stream(uint64_t first_timestamp_ns) {
  StreamRecord stream;
  stream.events = 1;
  stream.first_timestamp_ns = first_timestamp_ns;
  return stream;
}

TEST(CaptureSpan, IsFromStartToNowOrEnd) {
  CaptureRecord record = Record(CaptureMode::kStream);
  const std::vector<StreamRecord> streams = {Stream(kNowNs - 5)};
  EXPECT_EQ(SpanOf(record, streams, kNowNs), (RealtimeWindow{100 * kHourNs, kNowNs}));
  record.state = CaptureState::kComplete;
  record.ended_realtime_ns = 200 * kHourNs;
  EXPECT_EQ(SpanOf(record, streams, kNowNs), (RealtimeWindow{100 * kHourNs, 200 * kHourNs}));
}

TEST(CaptureSpan, OfAContinuousOneBeginsWithWhatIsLeft) {
  const CaptureRecord record = Record(CaptureMode::kContinuous);
  EXPECT_EQ(SpanOf(record, {}, kNowNs).begin_ns, kNowNs - kHourNs);
  const std::vector<StreamRecord> streams = {Stream(kNowNs - 5), Stream(kNowNs - 3 * kHourNs)};
  EXPECT_EQ(SpanOf(record, streams, kNowNs).begin_ns, kNowNs - 3 * kHourNs);
  // A host whose clock is hours ahead moves nothing, one that is years behind not beyond the start.
  EXPECT_EQ(SpanOf(record, std::vector{Stream(kNowNs + kHourNs)}, kNowNs).begin_ns,
            kNowNs - kHourNs);
  EXPECT_EQ(SpanOf(record, std::vector{Stream(1)}, kNowNs).begin_ns, 100 * kHourNs);
}

}  // namespace
}  // namespace neurontrace
