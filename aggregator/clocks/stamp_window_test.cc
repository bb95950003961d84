// SPDX-License-Identifier: Apache-2.0
// Goal: a capture's clocks are judged by what its events need. Method: a clock that is known well
// until 53,000 of its own time, and badly from there on.
#include "aggregator/clocks/stamp_window.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

class StampWindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    InstanceClock clock;
    clock.instance_id = "i-a";
    clock.boot_id = "boot";
    clock.model.segments = {{.knots = {{1'000, 51'000, 30, 10}, {9'000, 59'000, 30, 10}}}};
    clock.realtime = *ClockMap::FromPieces({{1'000, 51'000, 0, 30}, {3'000, 53'000, 0, 4'000}});
    clock.bound_ns = 4'000;
    clock.likely_bound_ns = 3'980;
    clocks_.instances = {clock};
    clocks_.window = {51'000, 58'000};
  }
  static StreamRecord Stream(const std::string& instance_id, uint64_t last_ns) {
    StreamRecord stream;
    stream.identity.worker.instance_id = instance_id;
    stream.identity.worker.boot_id = "boot";
    stream.first_timestamp_ns = last_ns == 0 ? 0 : 1'000;
    stream.last_timestamp_ns = last_ns;
    return stream;
  }
  CaptureClocks clocks_;
};

TEST_F(StampWindowTest, EndsWithTheLastEventOfAllWhoseClocksAreKnown) {
  EndWithEvents({Stream("i-a", 2'000), Stream("i-a", 2'500), Stream("i-b", 7'000)}, clocks_);
  EXPECT_EQ(clocks_.window.begin_ns, 51'000u);
  EXPECT_EQ(clocks_.window.end_ns, 52'500u);
  EXPECT_EQ(clocks_.instances[0].bound_ns, 30u);
  EXPECT_EQ(clocks_.instances[0].likely_bound_ns, 10u);
}

TEST_F(StampWindowTest, EventsInTheWorstOfItCount) {
  EndWithEvents({Stream("i-a", 6'000)}, clocks_);
  EXPECT_EQ(clocks_.window.end_ns, 56'000u);
  EXPECT_EQ(clocks_.instances[0].bound_ns, 4'000u);
}

TEST_F(StampWindowTest, WithoutEventsEverythingStays) {
  EndWithEvents({Stream("i-a", 0), Stream("i-b", 7'000)}, clocks_);
  EXPECT_EQ(clocks_.window.end_ns, 58'000u);
  EXPECT_EQ(clocks_.instances[0].bound_ns, 4'000u);
}

}  // namespace
}  // namespace neurontrace
