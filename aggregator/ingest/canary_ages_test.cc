// SPDX-License-Identifier: Apache-2.0
// How old the last canary of the stream is that is worst off.
#include "aggregator/ingest/canary_ages.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "aggregator/store/store.h"
#include "lib/base/time_units.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Of the monotonic clock; the other one is ahead of it by kEpoch.
constexpr uint64_t kBegin = 5'000 * kNsPerSecond;
constexpr uint64_t kEpoch = 1'750'000'000 * kNsPerSecond;

CaptureId Capture(char n) { return *CaptureId::FromBytes(std::string(15, '\0') + n); }

class CanaryAgesTest : public testing::Test {
 protected:
  static ChunkHeader Header(uint32_t core, char capture = 1) {
    ChunkHeader header;
    header.capture_id = Capture(capture);
    header.stream = {.agent_id = "a", .kind = StreamKind::kNeuronCore, .nc_idx = core};
    return header;
  }
  void Store(const ChunkHeader& header, uint64_t at_s) {
    const uint64_t now_ns = kBegin + at_s * kNsPerSecond;
    ages_.OnStored(header, kEpoch + now_ns, now_ns);
  }
  // Sent at one time by the agent's clock, stored at another.
  void StoreCanary(uint32_t core, uint64_t sent_s, uint64_t at_s, char capture = 1) {
    ChunkHeader header = Header(core, capture);
    header.canary_realtime_ns = kEpoch + kBegin + sent_s * kNsPerSecond;
    Store(header, at_s);
  }
  // In seconds; -1: nothing.
  double OldestAt(uint64_t at_s) const {
    const auto oldest = ages_.OldestNs(kBegin + at_s * kNsPerSecond);
    return oldest ? static_cast<double>(*oldest) / kNsPerSecond : -1;
  }

  CanaryAges ages_;
};

TEST_F(CanaryAgesTest, ReportsWorstStream) {
  EXPECT_EQ(OldestAt(0), -1);
  Store(Header(0), 10);
  EXPECT_EQ(OldestAt(13), 3) << "counts from the first chunk until the first canary";
  StoreCanary(0, 20, 21);
  StoreCanary(1, 25, 25);
  EXPECT_EQ(OldestAt(30), 10) << "since it was sent";
  StoreCanary(0, 80, 80);
  EXPECT_EQ(OldestAt(85), 60);
  Store(Header(1), 85);
  EXPECT_EQ(OldestAt(85), 60) << "only canaries count from then on";
  EXPECT_EQ(ages_.streams(), 2u);
}

TEST_F(CanaryAgesTest, OneThatComesLateIsAsOldAsItIs) {
  StoreCanary(0, 10, 4'000);
  EXPECT_EQ(OldestAt(4'000), 3'990);
}

TEST_F(CanaryAgesTest, AClockAheadOfOursOrFarBehindIsNoNegativeAge) {
  StoreCanary(0, 900, 10);
  EXPECT_EQ(OldestAt(12), 2);
  ChunkHeader ancient = Header(1);
  ancient.canary_realtime_ns = 1;
  Store(ancient, 12);
  EXPECT_EQ(OldestAt(12), 5'012) << "since this machine started, at most";
}

TEST_F(CanaryAgesTest, AStreamThatHasEndedIsNotLive) {
  StoreCanary(0, 10, 10);
  ChunkHeader end = Header(0);
  end.end_of_stream = true;
  Store(end, 20);
  EXPECT_EQ(OldestAt(100), -1);
  Store(end, 21);
  EXPECT_EQ(ages_.streams(), 0u);
}

TEST_F(CanaryAgesTest, ForgetsEndedCaptures) {
  StoreCanary(0, 10, 10, 1);
  StoreCanary(0, 30, 30, 2);
  ages_.KeepOnly([](const CaptureId& id) { return id == Capture(2); });
  EXPECT_EQ(OldestAt(40), 10);
  EXPECT_EQ(ages_.streams(), 1u);
}

// A node is gone, and the capture continues with the others.
TEST_F(CanaryAgesTest, StreamsOfALostAgentAreLeftOutUntilTheirNextChunk) {
  constexpr uint64_t kLong = 600 * kNsPerSecond;
  ChunkHeader gone = Header(0);
  gone.stream.agent_id = "gone";
  Store(gone, 0);
  StoreCanary(1, 0, 0);
  std::string lost;  // nobody yet
  const auto look = [&](uint64_t at_s) {
    ages_.ForgetLost(kLong, kBegin + at_s * kNsPerSecond,
                     [&](const std::string& agent_id) { return agent_id == lost; });
  };
  StoreCanary(1, 590, 590);
  look(601);
  EXPECT_EQ(OldestAt(601), 601) << "the stream is slow, not lost";
  lost = "gone";
  look(600);
  EXPECT_EQ(OldestAt(600), 600) << "not lost for long enough";
  look(601);
  EXPECT_EQ(OldestAt(601), 11) << "of the remaining streams";
  EXPECT_EQ(ages_.streams(), 1u);
  lost = "";
  Store(gone, 700);  // it is back
  StoreCanary(1, 790, 790);
  EXPECT_EQ(OldestAt(800), 100);
  EXPECT_EQ(ages_.streams(), 2u);
}

TEST_F(CanaryAgesTest, ACaptureOfLostAgentsAloneHasNoAge) {
  Store(Header(0), 0);
  ages_.ForgetLost(kNsPerSecond, kBegin + 10 * kNsPerSecond,
                   [](const std::string&) { return true; });
  EXPECT_EQ(OldestAt(10), -1);
  EXPECT_EQ(ages_.streams(), 0u);
}

TEST_F(CanaryAgesTest, LimitsWatchedStreams) {
  for (uint32_t core = 0; core < limits::kCanaryStreamsMax; ++core) Store(Header(core), 50);
  Store(Header(limits::kCanaryStreamsMax), 1);
  StoreCanary(limits::kCanaryStreamsMax, 1, 1);
  EXPECT_EQ(ages_.streams(), limits::kCanaryStreamsMax);
  EXPECT_EQ(OldestAt(60), 10);
}

}  // namespace
}  // namespace neurontrace
