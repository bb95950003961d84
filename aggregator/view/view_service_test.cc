// SPDX-License-Identifier: Apache-2.0
// Goal: each kind of question reaches its answer, wrong ones are refused with what to write, and no
// caller takes all places. Method: the real clocks of an aggregator over a store in memory.
#include "aggregator/view/view_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/view/stored_capture_test_support.h"
#include "lib/base/random.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ViewServiceTest : public StoredCaptureFixture {
 protected:
  ViewServiceTest() {
    auto clocks =
        ClockService::Start({.udp_probes = false}, {*store_, registry_, random_, system_clock_});
    EXPECT_TRUE(clocks.ok()) << clocks.status();
    clock_service_ = *std::move(clocks);
    StoreSpans(0, 3);
    // Long ago, so that nobody waits for further evidence.
    record_.state = CaptureState::kComplete;
    record_.ended_realtime_ns = 5'000;
  }
  ViewService MakeService(bool callers_have_names) {
    // The metrics are those of one service.
    return ViewService({.store = *store_,
                        .clocks = *clock_service_,
                        .registry = registry_,
                        .clock = system_clock_,
                        .callers_have_names = callers_have_names});
  }
  // How many questions of one caller, and then of another one, are answered at once.
  static std::pair<size_t, size_t> PlacesOf(StreamingCallLimiter& calls) {
    std::vector<std::unique_ptr<StreamingCallLimiter::Call>> held;
    const auto take_all = [&](const std::string& caller) {
      size_t places = 0;
      for (auto call = calls.Take(caller, [] {}); call.ok(); call = calls.Take(caller, [] {})) {
        held.push_back(*std::move(call));
        ++places;
      }
      return places;
    };
    const size_t first = take_all("alice");
    return {first, take_all("bob")};
  }

  prometheus::Registry registry_;
  SeededRandom random_{1};
  SystemClock system_clock_;
  std::unique_ptr<ClockService> clock_service_;
};

TEST_F(ViewServiceTest, AnswersEachKindOfQuestion) {
  ViewService service = MakeService(true);
  const auto ask = [&](std::string_view what, std::string_view query) {
    const auto answer = service.View(record_, what, query, nullptr);
    EXPECT_TRUE(answer.ok()) << what << ": " << answer.status();
    return answer.ok() ? *answer : "";
  };
  EXPECT_THAT(ask("layout", ""), HasSubstr("\"label\":\"gid4 · nc 0\""));
  EXPECT_THAT(ask("spans", "px=100"), StartsWith("NTV1"));
  EXPECT_THAT(ask("events", "limit=1"), StartsWith("{\"events\":["));
  EXPECT_THAT(ask("search", "q=work"), HasSubstr("\"total\":\"3\""));
  EXPECT_THAT(ask("summary", "by=rank"), HasSubstr("\"events\":\"3\""));
  EXPECT_THAT(ask("heat", "columns=3"), StartsWith("NTV1"));
}

TEST_F(ViewServiceTest, RefusesWrongQuestionsAndNamesTheRightOnes) {
  ViewService service = MakeService(true);
  const absl::Status unknown = service.View(record_, "colours", "", nullptr).status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("layout, spans, events, search"));
  const absl::Status wrong = service.View(record_, "layout", "form=1", nullptr).status();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(wrong.message()), HasSubstr("'form' is not a parameter"));
}

TEST_F(ViewServiceTest, ACallerWithANameLeavesPlacesToOthers) {
  ViewService service = MakeService(true);
  const auto [first, second] = PlacesOf(service.calls());
  EXPECT_EQ(first, limits::kViewsOfCallerMax);
  EXPECT_EQ(second, limits::kViewsAtOnceMax - limits::kViewsOfCallerMax);
}

TEST_F(ViewServiceTest, WithoutNamesAllCallersShareAllPlaces) {
  ViewService service = MakeService(false);
  const auto [first, second] = PlacesOf(service.calls());
  EXPECT_EQ(first, limits::kViewsAtOnceMax);
  EXPECT_EQ(second, 0u);
}

TEST_F(ViewServiceTest, CountsRefusedQuestions) {
  ViewService service = MakeService(true);
  PlacesOf(service.calls());
  double refused = -1;
  for (const prometheus::MetricFamily& family : registry_.Collect()) {
    if (family.name == "neurontrace_aggregator_views_refused_total") {
      refused = family.metric.front().counter.value;
    }
  }
  EXPECT_EQ(refused, 2) << "one of each caller";
}

}  // namespace
}  // namespace neurontrace
