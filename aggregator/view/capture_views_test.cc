// SPDX-License-Identifier: Apache-2.0
// Goal: answers are those of the store as it is now, layouts are kept exactly as long as they are
// true, and what a limit, a wrong question or a client that left prevents is said. Method: a store
// in memory, clocks that the test chooses, and time that the test advances.
#include "aggregator/view/capture_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "aggregator/view/stored_capture_test_support.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Knows the clocks that the test sets.
class FakeViewClocks final : public ViewClocks {
 public:
  absl::StatusOr<CaptureClocks> ClocksOf(const CaptureRecord&) override {
    ++calls;
    if (!status.ok()) return status;
    return clocks;
  }
  std::atomic<int> calls = 0;
  absl::Status status;
  CaptureClocks clocks;
};

class CaptureViewsTest : public StoredCaptureFixture {
 protected:
  CaptureViewsTest() { clocks_.clocks.is_final = true; }

  // The JSON header of a binary answer.
  static std::string HeaderOf(const absl::StatusOr<std::string>& answer) {
    EXPECT_TRUE(answer.ok()) << answer.status();
    const size_t begin = answer.ok() ? answer->find('{') : std::string::npos;
    return begin == std::string::npos ? "" : answer->substr(begin);
  }
  // Stores a chunk of 2,000 spans.
  void StoreSecond(uint64_t second) {
    for (uint64_t i = 0; i < 2'000; ++i) {
      const uint64_t at_ns = kStoredNs + second * kNsPerSecond + i * 1'000;
      script_.Span("work", at_ns, at_ns + 100, second * 2'000 + i + 1);
    }
    StoreChunk(0);
  }
  static ViewRequest Question(std::string_view query) {
    auto request = ViewRequest::Parse(query);
    EXPECT_TRUE(request.ok()) << request.status();
    return *std::move(request);
  }
  const CaptureLayout* Layout() {
    auto layout = views_.Layout(record_);
    EXPECT_TRUE(layout.ok()) << layout.status();
    layouts_.push_back(*layout);  // so that a new one has another address
    return layouts_.back().get();
  }
  void End() {
    record_.state = CaptureState::kComplete;
    record_.ended_realtime_ns = 5'000;
  }

  FakeViewClocks clocks_;
  FakeClock clock_;
  CaptureViews views_{{.store = *store_, .clocks = clocks_, .clock = clock_}};
  std::vector<std::shared_ptr<const CaptureLayout>> layouts_;
};

// -- layouts that are kept

TEST_F(CaptureViewsTest, KeepsTheLayoutOfAnEndedCaptureWithFinalClocks) {
  StoreSpans(0, 1);
  End();
  const CaptureLayout* const first = Layout();
  clock_.AdvanceNs(24 * 3'600 * kNsPerSecond);
  EXPECT_EQ(Layout(), first);
  EXPECT_EQ(clocks_.calls, 1);
}

TEST_F(CaptureViewsTest, RenewsTheLayoutOfARunningCaptureAfterTwoSeconds) {
  StoreSpans(0, 1);
  const CaptureLayout* const first = Layout();
  EXPECT_TRUE(first->is_live());
  StoreSpans(1, 1);
  clock_.AdvanceNs(2 * kNsPerSecond);
  EXPECT_EQ(Layout(), first);
  clock_.AdvanceNs(1);
  EXPECT_EQ(Layout()->capture().streams.size(), 2u);
}

TEST_F(CaptureViewsTest, RenewsTheLayoutAfterFifteenSecondsWhileClocksMayBecomeBetter) {
  clocks_.clocks.is_final = false;
  End();
  const CaptureLayout* const first = Layout();
  clocks_.clocks.version = 7;
  clock_.AdvanceNs(15 * kNsPerSecond);
  EXPECT_EQ(Layout(), first);
  clock_.AdvanceNs(1);
  EXPECT_EQ(Layout()->clocks().version, 7u);
  EXPECT_NE(layouts_.back()->version(), first->version()) << "the page has to draw again";
}

TEST_F(CaptureViewsTest, TheEndOfACaptureRenewsItsLayoutAtOnce) {
  EXPECT_TRUE(Layout()->is_live());
  End();
  EXPECT_FALSE(Layout()->is_live());
}

// After the end only late agents and people change a record, and both change the layout.
TEST_F(CaptureViewsTest, ANewNameAndALateDeliveryRenewTheLayoutOfAnEndedCapture) {
  End();
  record_.state = CaptureState::kIncomplete;
  record_.agents = {{.agent_id = "agent-a", .vanished = true}};
  Layout();
  record_.spec.name = "renamed";
  EXPECT_THAT(Layout()->Json(), HasSubstr("\"name\":\"renamed\""));
  StoreSpans(0, 1);
  record_.agents[0].finished = true;
  EXPECT_EQ(Layout()->capture().streams.size(), 1u);
  const CaptureLayout* const last = layouts_.back().get();
  EXPECT_EQ(Layout(), last) << "the same record, the same layout";
}

TEST_F(CaptureViewsTest, DropsTheLayoutAskedAboutLeastRecently) {
  std::vector<CaptureRecord> records;
  for (uint8_t n = 0; n <= limits::kViewCapturesMax; ++n) {
    records.push_back(TestCapture(static_cast<uint8_t>(10 + n)));
    records.back().state = CaptureState::kComplete;
    Add(records.back());
  }
  const auto calls_for = [&](const CaptureRecord& record) {
    const int before = clocks_.calls;
    EXPECT_TRUE(views_.Layout(record).ok());
    return clocks_.calls - before;
  };
  for (size_t i = 0; i < limits::kViewCapturesMax; ++i) EXPECT_EQ(calls_for(records[i]), 1);
  EXPECT_EQ(calls_for(records[0]), 0) << "now the one asked about last";
  EXPECT_EQ(calls_for(records.back()), 1) << "takes the place of the second";
  EXPECT_EQ(calls_for(records[0]), 0);
  EXPECT_EQ(calls_for(records[1]), 1);
}

TEST_F(CaptureViewsTest, ErrorsOfTheClocksAreAnsweredAndNotKept) {
  End();
  clocks_.status = Unavailable("the evidence cannot be read");
  EXPECT_THAT(views_.Layout(record_).status().message(), HasSubstr("the evidence"));
  EXPECT_EQ(views_.Spans(record_, {}, nullptr).status().code(), absl::StatusCode::kUnavailable);
  clocks_.status = absl::OkStatus();
  EXPECT_TRUE(views_.Layout(record_).ok());
}

// -- windows and limits

TEST_F(CaptureViewsTest, AWindowThatEndsBeforeItBeginsIsRefused) {
  StoreSpans(0, 1);
  const auto refused = views_.Spans(record_, Question("from=20&to=10"), nullptr);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("to: 10 is earlier than from, 20"));
}

TEST_F(CaptureViewsTest, AMomentIsAWindowOfANanosecond) {
  StoreSpans(0, 1);
  const std::string at = std::to_string(kStoredNs + 50);
  const auto events = views_.Events(record_, Question("from=" + at + "&to=" + at), nullptr);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_THAT(*events, HasSubstr("\"name\":\"work\""));
  const std::string before = std::to_string(kStoredNs - 1);
  EXPECT_THAT(*views_.Events(record_, Question("from=" + before + "&to=" + before), nullptr),
              HasSubstr("\"events\":[]"));
}

TEST_F(CaptureViewsTest, ACaptureWithoutEventsIsAnEmptyAnswer) {
  EXPECT_THAT(HeaderOf(views_.Spans(record_, {}, nullptr)), HasSubstr("\"rows\":[]"));
  EXPECT_THAT(*views_.Summary(record_, {}, nullptr), HasSubstr("\"events\":\"0\""));
  EXPECT_EQ(Layout()->begin_ns(), 0u);
  EXPECT_EQ(Layout()->end_ns(), 0u);
}

TEST_F(CaptureViewsTest, WholeCaptureIsTheDefaultWindow) {
  StoreSpans(0, 3);
  const std::string header = HeaderOf(views_.Spans(record_, {}, nullptr));
  EXPECT_THAT(header, HasSubstr("\"from\":\"" + std::to_string(kStoredNs) + "\""));
  EXPECT_THAT(header, HasSubstr("\"to\":\"" + std::to_string(kStoredNs + 2'101) + "\""));
  EXPECT_THAT(header, HasSubstr("\"events\":\"3\""));
  EXPECT_THAT(header, HasSubstr("\"cut\":null"));
}

TEST_F(CaptureViewsTest, AnswersBeyondTheLimitOfChunksAreNotComplete) {
  StoreSpans(0, 5);
  CaptureViews few({.store = *store_, .clocks = clocks_, .clock = clock_}, /*chunks_max=*/2);
  const std::string header = HeaderOf(few.Spans(record_, {}, nullptr));
  EXPECT_THAT(header, HasSubstr("the window has more than 2 chunks: choose a shorter one"));
  EXPECT_THAT(header, HasSubstr("\"unreadable_chunks\":0")) << "none of them is damaged";
  EXPECT_THAT(header, HasSubstr("\"events\":\"2\""));
  for (const auto& answer : {few.Search(record_, Question("q=work"), nullptr),
                             few.Events(record_, {}, nullptr), few.Summary(record_, {}, nullptr)}) {
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_THAT(*answer, HasSubstr("\"complete\":false"));
  }
  EXPECT_THAT(HeaderOf(few.Heat(record_, {}, nullptr)), HasSubstr("\"complete\":false"));
  const auto streams = store_->OpenCapture(record_.id).Streams();
  ASSERT_TRUE(streams.ok());
  EXPECT_TRUE(streams->front().remarks.empty()) << "the store must not note them as damaged";
}

TEST_F(CaptureViewsTest, AListReadsAChunkOfEachStreamWhateverTheLimit) {
  for (const uint32_t core : {0u, 1u, 2u}) StoreSpans(core, 1);
  CaptureViews few({.store = *store_, .clocks = clocks_, .clock = clock_}, /*chunks_max=*/1);
  const auto all = few.Events(record_, {}, nullptr);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(*all, HasSubstr("\"scanned_chunks\":3,\"complete\":true"));
  StoreSpans(0, 1);
  clock_.AdvanceNs(3 * kNsPerSecond);
  const auto more = few.Events(record_, {}, nullptr);
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_THAT(*more, HasSubstr("\"complete\":false"));
}

TEST_F(CaptureViewsTest, DamagedChunksAreCountedAndNotedInTheStore) {
  StoreSpans(0, 2);
  StoreDamagedChunk(0);
  const std::string header = HeaderOf(views_.Spans(record_, {}, nullptr));
  EXPECT_THAT(header, HasSubstr("\"unreadable_chunks\":1"));
  EXPECT_THAT(header, HasSubstr("\"events\":\"2\""));
  EXPECT_THAT(*views_.Summary(record_, {}, nullptr), HasSubstr("\"complete\":false"));
  const auto streams = store_->OpenCapture(record_.id).Streams();
  ASSERT_TRUE(streams.ok());
  EXPECT_FALSE(streams->front().remarks.empty()) << "the certificate has to say it";
}

TEST_F(CaptureViewsTest, AFullListIsNoErrorAndNamesTheNextEvent) {
  StoreSpans(0, 5);
  const auto events = views_.Events(record_, Question("limit=2"), nullptr);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_THAT(*events, HasSubstr("\"next\":\"2\""));
  EXPECT_THAT(*events, HasSubstr("\"complete\":true"));
  const auto rest = views_.Events(record_, Question("limit=5&cursor=2"), nullptr);
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_THAT(*rest, HasSubstr("\"next\":\"\""));
}

// Large enough that the reading ends before the capture does.
TEST_F(CaptureViewsTest, FullListReportsChunksReadUntilThen) {
  StoreDamagedChunk(0);
  for (uint64_t second = 0; second < 20; ++second) StoreSecond(second);
  const auto events = views_.Events(record_, Question("limit=2"), nullptr);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_THAT(*events, HasSubstr("\"next\":\"2\""));
  EXPECT_THAT(*events, Not(HasSubstr("\"scanned_chunks\":0,")));
  EXPECT_THAT(*events, HasSubstr("\"complete\":false")) << "the damaged chunk was before them";
  const auto later = views_.Events(
      record_, Question("limit=2&from=" + std::to_string(kStoredNs + 5 * kNsPerSecond)), nullptr);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_THAT(*later, HasSubstr("\"complete\":true"));
}

TEST_F(CaptureViewsTest, AClientThatLeftIsNoFullList) {
  for (uint64_t second = 0; second < 20; ++second) StoreSecond(second);
  const auto left = views_.Events(record_, Question("limit=1000"), [] { return true; });
  EXPECT_EQ(left.status().code(), absl::StatusCode::kCancelled);
}

// -- files whose times count from an unknown moment

TEST_F(CaptureViewsTest, AFileWithItsOwnTimeBeginsWithTheCapture) {
  StoreSpans(0, 3);
  script_.Span("step", 1'000, 1'500, 0);
  script_.Span("late", 2'500, 2'600, 0);
  StoreOwnTimeChunk("own.json");
  const std::string layout = Layout()->Json();
  EXPECT_THAT(layout, HasSubstr("\"begin_ns\":\"" + std::to_string(kStoredNs) + "\",\"end_ns\":\"" +
                                std::to_string(kStoredNs + 1'600) + "\",\"own_time\":true"));
  EXPECT_THAT(layout, HasSubstr("are shown from the start of the capture, not aligned"));
  const auto events = views_.Events(record_, Question("q=name:step"), nullptr);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_THAT(*events, HasSubstr("\"start_ns\":\"" + std::to_string(kStoredNs) + "\""));
  EXPECT_THAT(HeaderOf(views_.Spans(record_, {}, nullptr)), HasSubstr("\"late\""));
  EXPECT_THAT(*views_.Summary(record_, {}, nullptr), HasSubstr("\"events\":\"5\""));
  EXPECT_THAT(*views_.Search(record_, Question("q=late"), nullptr), HasSubstr("\"total\":\"1\""));
  const std::string from = std::to_string(kStoredNs + 1'000);
  EXPECT_THAT(*views_.Search(record_, Question("q=step&from=" + from), nullptr),
              HasSubstr("\"total\":\"0\""))
      << "it is in a window, and not in every one";
}

// The place of such a file does not depend on which streams are asked for.
TEST_F(CaptureViewsTest, AFileWithItsOwnTimeHasThePlaceThatItHasAmongAllStreams) {
  StoreSpans(0, 3);
  script_.Span("step", 1'000, 1'500, 0);
  StoreOwnTimeChunk("own.json");
  const auto& streams = Layout()->capture().streams;
  const auto own = std::ranges::find_if(streams, &StreamDescription::has_own_time);
  ASSERT_NE(own, streams.end());
  const auto events =
      views_.Events(record_, Question("streams=" + std::to_string(own->number)), nullptr);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_THAT(*events, HasSubstr("\"start_ns\":\"" + std::to_string(kStoredNs) + "\""));
  const size_t id = events->find("\"id\":\"") + 6;
  const std::string text = events->substr(id, events->find('"', id) - id);
  EXPECT_TRUE(views_.Links(record_, Question("event=" + text), nullptr).ok()) << text;
}

TEST_F(CaptureViewsTest, ACaptureOfOwnTimesAloneIsAsLongAsTheLongest) {
  script_.Span("step", 1'000, 1'500, 0);
  StoreOwnTimeChunk("own.json");
  EXPECT_EQ(Layout()->end_ns() - Layout()->begin_ns(), 500u);
  EXPECT_THAT(*views_.Summary(record_, {}, nullptr), HasSubstr("\"events\":\"1\""));
}

TEST_F(CaptureViewsTest, ReadsOnlyChunksOfStreamsThatCanMatch) {
  StoreSpans(0, 3);
  StoreSpans(1, 3);
  const std::string number = std::to_string(Layout()->capture().streams[0].number);
  for (const char* const query : {"q=rank:4", "q=core:0", "q=-rank:5"}) {
    EXPECT_THAT(*views_.Search(record_, Question(query), nullptr),
                HasSubstr("\"scanned_chunks\":3,"))
        << query;
  }
  EXPECT_THAT(*views_.Events(record_, Question("streams=" + number), nullptr),
              HasSubstr("\"scanned_chunks\":3,"));
  EXPECT_THAT(*views_.Search(record_, Question("q=rank:99"), nullptr),
              HasSubstr("\"scanned_chunks\":0,"));
}

// -- questions that cannot be answered

TEST_F(CaptureViewsTest, RefusedQuestionsNameTheParameter) {
  const auto message = [](const absl::StatusOr<std::string>& answer) {
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(answer.status().message());
  };
  EXPECT_THAT(message(views_.Search(record_, {}, nullptr)), HasSubstr("q: is empty"));
  EXPECT_THAT(message(views_.Search(record_, Question("q=dur>soon"), nullptr)),
              HasSubstr("'dur>soon' is not a length"));
  EXPECT_THAT(message(views_.Events(record_, Question("q=rank:x"), nullptr)), HasSubstr("rank:x"));
  EXPECT_THAT(message(views_.Summary(record_, Question("by=colour"), nullptr)),
              HasSubstr("by: 'colour'"));
  EXPECT_THAT(message(views_.Heat(record_, Question("metric=heat"), nullptr)),
              HasSubstr("metric: 'heat'"));
}

TEST_F(CaptureViewsTest, AQuestionEndsWhenItsClientIsGone) {
  StoreSpans(0, 3);
  const ViewCancel gone = [] { return true; };
  using Answer = absl::StatusOr<std::string>;
  for (const Answer& answer : {views_.Spans(record_, {}, gone), views_.Events(record_, {}, gone),
                               views_.Search(record_, Question("q=work"), gone),
                               views_.Summary(record_, {}, gone), views_.Heat(record_, {}, gone)}) {
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kCancelled) << answer.status();
  }
}

// -- several questions at once

TEST_F(CaptureViewsTest, AnswersSeveralThreadsAtOnce) {
  StoreSpans(0, 20);
  StoreSpans(1, 20);
  End();
  const auto expected = views_.Summary(record_, {}, nullptr);
  ASSERT_TRUE(expected.ok()) << expected.status();
  CaptureViews cold({.store = *store_, .clocks = clocks_, .clock = clock_});
  std::atomic<int> equal = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto answer = cold.Summary(record_, {}, nullptr);
      if (answer.ok() && *answer == *expected) ++equal;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, 4);
}

}  // namespace
}  // namespace neurontrace
