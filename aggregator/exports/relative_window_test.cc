// SPDX-License-Identifier: Apache-2.0
// A window that is said as distances before now, and what of it is known.
#include "aggregator/exports/relative_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "aggregator/align/core/clock_maps.h"
#include "aggregator/store/store_test_support.h"
#include "lib/base/time_units.h"
#include "lib/trace/suspension.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kNowNs = 1'000'000 * kNsPerSecond;

v1::ExportRequest Request(uint64_t start_ns, uint64_t end_ns) {
  v1::ExportRequest request;
  request.set_window_start_ns(start_ns);
  request.set_window_end_ns(end_ns);
  request.set_window_is_before_now(true);
  return request;
}

StreamRecord Stream(uint32_t number, uint64_t last_timestamp_ns) {
  StreamRecord stream;
  stream.number = number;
  stream.identity = TestStream(number);
  stream.events = 1;
  stream.first_timestamp_ns = stream.last_timestamp_ns = last_timestamp_ns;
  return stream;
}

TEST(WindowBeforeNow, BecomesTwoMoments) {
  v1::ExportRequest request = Request(300 * kNsPerSecond, 100 * kNsPerSecond);
  ASSERT_TRUE(ResolveBeforeNow({kNowNs, kNowNs}, request).ok());
  EXPECT_EQ(request.window_start_ns(), kNowNs - 300 * kNsPerSecond);
  EXPECT_EQ(request.window_end_ns(), kNowNs - 100 * kNsPerSecond);
  EXPECT_FALSE(request.window_is_before_now());
}

TEST(WindowBeforeNow, OpenEndsAreTheBeginningAndNow) {
  v1::ExportRequest request = Request(0, 0);
  ASSERT_TRUE(ResolveBeforeNow({kNowNs, kNowNs}, request).ok());
  EXPECT_EQ(request.window_start_ns(), 0u);
  EXPECT_EQ(request.window_end_ns(), kNowNs);
}

TEST(WindowBeforeNow, HasToEndAfterItBegins) {
  v1::ExportRequest request = Request(kNsPerSecond, kNsPerSecond);
  EXPECT_TRUE(absl::IsInvalidArgument(ResolveBeforeNow({kNowNs, kNowNs}, request)));
  request = Request(0, kNowNs);
  EXPECT_TRUE(absl::IsInvalidArgument(ResolveBeforeNow({kNowNs, kNowNs}, request)));
}

TEST(WindowBeforeNow, LeavesOtherWindowsUnchanged) {
  v1::ExportRequest request = Request(1, 2);
  request.set_window_is_before_now(false);
  ASSERT_TRUE(ResolveBeforeNow({kNowNs, kNowNs}, request).ok());
  EXPECT_EQ(request.window_start_ns(), 1u);
  EXPECT_EQ(request.window_end_ns(), 2u);
}

// The aggregator's own clock, and one host's, may have been set.
TEST(WindowBeforeNow, RawTimesUseHostClocks) {
  std::vector<StreamRecord> streams = {Stream(0, 1), Stream(1, 1), Stream(2, 1)};
  streams[1].identity.worker.instance_id = "i-behind";
  streams[2].identity.worker.instance_id = "i-without-a-map";
  ClockMaps maps;
  const auto set = [&maps](const StreamRecord& stream, uint64_t raw_ns) {
    maps.Set(stream.identity.worker, ClockDomain::kHostRealtime,
             *ClockMap::FromPieces({{.raw_begin_ns = raw_ns, .reference_begin_ns = kNowNs}}));
  };
  set(streams[0], kNowNs + 30 * kNsPerSecond);
  set(streams[1], kNowNs - 3 * kNsPerSecond);
  const NowOfHosts now = HostsNow(streams, maps, kNowNs, kNowNs + 5 * kNsPerSecond);
  EXPECT_EQ(now.earliest_ns, kNowNs - 3 * kNsPerSecond);
  EXPECT_EQ(now.latest_ns, kNowNs + 30 * kNsPerSecond);
  v1::ExportRequest request = Request(5 * kNsPerSecond, 0);
  ASSERT_TRUE(ResolveBeforeNow(now, request).ok());
  EXPECT_EQ(request.window_start_ns(), kNowNs - 8 * kNsPerSecond);
  EXPECT_EQ(request.window_end_ns(), now.latest_ns);
  EXPECT_EQ(HostsNow({}, maps, kNowNs, 7).latest_ns, 7u);
}

TEST(KnownUntil, WaitsForStreamsThatAreNotQuiet) {
  const ClockMaps maps;
  KnownUntil known(kNowNs, maps);
  std::vector<StreamRecord> streams = {Stream(0, kNowNs + 5), Stream(1, kNowNs - kNsPerSecond)};
  EXPECT_FALSE(known.Observe(streams));
  EXPECT_THAT(known.Notes(kNowNs - 10 * kNsPerSecond),
              ElementsAre(HasSubstr("1 of 2 streams are known to the end of the window")));
  EXPECT_THAT(known.Notes(0)[0], HasSubstr("until 1.0 s before it"));
  streams[1].canary_realtime_ns = kNowNs;  // all that was before has come
  EXPECT_TRUE(known.Observe(streams));
  EXPECT_THAT(known.Notes(kNowNs - kNsPerSecond),
              ElementsAre("all 2 streams are known to the end of the window"));
}

TEST(KnownUntil, DoesNotWaitForEndedAndQuietOnes) {
  const ClockMaps maps;
  KnownUntil known(kNowNs, maps);
  std::vector<StreamRecord> streams = {Stream(0, kNowNs - 60 * kNsPerSecond),
                                       Stream(1, kNowNs - 60 * kNsPerSecond)};
  streams[1].ended = true;
  EXPECT_TRUE(known.Observe(streams));
  EXPECT_THAT(known.Notes(0), ElementsAre(HasSubstr("nothing received since")));
  streams[0].ended = true;
  EXPECT_TRUE(known.Observe(streams));
  EXPECT_THAT(known.Notes(0), IsEmpty());
}

TEST(KnownUntil, DoesNotWaitForSamplesOfHosts) {
  const ClockMaps maps;
  KnownUntil known(kNowNs, maps);
  std::vector<StreamRecord> streams = {Stream(0, kNowNs), Stream(1, kNowNs - 2 * kNsPerSecond)};
  streams[1].identity.kind = StreamKind::kHost;
  EXPECT_TRUE(known.Observe(streams));
  EXPECT_THAT(known.Notes(0), ElementsAre("all 1 streams are known to the end of the window"));
  // What has expired of them is gone all the same.
  streams[1].losses = {{.place = LossPlace::kRetention,
                        .reason = LossReason::kExpired,
                        .events = 3,
                        .last_timestamp_ns = kNowNs - 30 * kNsPerSecond}};
  EXPECT_TRUE(known.Observe(streams));
  EXPECT_THAT(known.Notes(kNowNs - 60 * kNsPerSecond),
              ElementsAre(HasSubstr("all 1"), HasSubstr("30.0 s after")));
}

TEST(KnownUntil, ReportsExpiredPartOfWindow) {
  const ClockMaps maps;
  KnownUntil known(kNowNs, maps);
  StreamRecord stream = Stream(0, kNowNs);
  stream.losses = {{.place = LossPlace::kRetention,
                    .reason = LossReason::kExpired,
                    .events = 7,
                    .last_timestamp_ns = kNowNs - 30 * kNsPerSecond}};
  EXPECT_TRUE(known.Observe({stream}));
  EXPECT_THAT(known.Notes(kNowNs - 60 * kNsPerSecond),
              ElementsAre(HasSubstr("all 1 streams"), HasSubstr("up to 30.0 s after its start")));
  EXPECT_THAT(known.Notes(kNowNs - 30 * kNsPerSecond), ElementsAre(HasSubstr("all 1 streams")));
  // From the beginning on is all that is kept.
  EXPECT_THAT(known.Notes(0), ElementsAre(HasSubstr("all 1 streams")));
}

TEST(KnownUntil, ReportsSuspensions) {
  const ClockMaps maps;
  KnownUntil known(kNowNs, maps);
  StreamRecord stream = Stream(0, kNowNs);
  stream.suspensions = {Suspension{{}, kNowNs - 30 * kNsPerSecond, kNowNs - 20 * kNsPerSecond}};
  EXPECT_TRUE(known.Observe({stream}));
  EXPECT_THAT(known.Notes(kNowNs - 60 * kNsPerSecond),
              ElementsAre(HasSubstr("all 1 streams"),
                          HasSubstr("did not record from 30.0 s to 20.0 s before the window's end: "
                                    "another capture had the worker")));
  EXPECT_THAT(known.Notes(kNowNs - 20 * kNsPerSecond), ElementsAre(HasSubstr("all 1 streams")));
}

TEST(KnownUntil, AStreamWithATimeOfItsOwnIsInNoWindow) {
  const ClockMaps maps;
  KnownUntil known(kNowNs, maps);
  StreamRecord own = Stream(1, 1'000'000);
  own.clock_domain = ClockDomain::kOwn;
  EXPECT_TRUE(known.Observe({Stream(0, kNowNs), own}));
  EXPECT_THAT(known.Notes(0), ElementsAre(HasSubstr("all 1 streams")));
}

}  // namespace
}  // namespace neurontrace
