// SPDX-License-Identifier: Apache-2.0
// Begins and ends of a trace file become spans: what belongs together gets one number.
#include "agent/source/framework/span_joiner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "agent/source/framework/element_cutter.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using Joined = SpanJoiner::Outcome;

class SpanJoinerTest : public ::testing::Test {
 protected:
  // Joins one element and returns the number of its span.
  uint64_t Join(std::string_view element) {
    text_ = element;
    text_.append(ElementCutter::kPaddingBytes, '\0');
    const absl::Status status =
        parser_.Parse(std::string_view(text_).substr(0, element.size()), event_);
    EXPECT_TRUE(status.ok() || absl::IsOutOfRange(status)) << element << status;
    outcome_ = joiner_.Join(element_++, event_, !status.ok());
    return event_.fields.tracking_id;
  }
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const ShapeKey& key : event_.shape.keys) keys.emplace_back(key.name);
    return keys;
  }

  TraceEventParser parser_{0, 0};
  SpanJoiner joiner_;
  FrameworkEvent event_;
  std::string text_;
  uint64_t element_ = 0;
  Joined outcome_ = Joined::kNone;
};

TEST_F(SpanJoinerTest, AnEndClosesWhatBeganLastOnItsThread) {
  const uint64_t outer =
      Join(R"({"ph":"B","name":"outer","cat":"step","pid":5,"tid":11,"ts":1,"args":{"n":1}})");
  EXPECT_EQ(outcome_, Joined::kBegun);
  const uint64_t inner = Join(R"({"ph":"B","name":"inner","cat":"step","pid":5,"tid":11,"ts":2})");
  const uint64_t other = Join(R"({"ph":"B","name":"NEGOTIATE","pid":6,"ts":3})");
  EXPECT_EQ(std::set({outer, inner, other}).size(), 3u);
  EXPECT_EQ(Join(R"({"ph":"E","pid":5,"tid":11,"ts":4,"args":{"bytes":512}})"), inner);
  EXPECT_EQ(outcome_, Joined::kJoined);
  EXPECT_EQ(event_.shape.event_type, "step") << "the begin's";
  EXPECT_THAT(Keys(), ElementsAre("bytes")) << "the begin says the rest";
  EXPECT_EQ(Join(R"({"ph":"X","name":"0","pid":6,"ts":4,"dur":0})"), 0u);
  EXPECT_EQ(outcome_, Joined::kNone);
  EXPECT_EQ(Join(R"({"ph":"E","pid":6,"ts":5})"), other);
  EXPECT_EQ(Join(R"({"ph":"E","name":"outer","cat":"step","pid":5,"tid":11,"ts":6})"), outer);
  EXPECT_EQ(joiner_.unended().count, 0u);
}

TEST_F(SpanJoinerTest, ReportsUnpairedEnds) {
  Join(R"({"ph":"B","name":"never_ends","pid":5,"tid":12,"ts":1})");
  const uint64_t lost =
      Join(R"({"ph":"E","name":"never_began","cat":"c","pid":5,"tid":13,"ts":2})");
  EXPECT_EQ(outcome_, Joined::kBeginLost);
  EXPECT_EQ(lost, 2u) << "of its own";
  EXPECT_THAT(Keys(), ElementsAre("name", "pid")) << "nobody else says it";
  EXPECT_THAT(joiner_.unended().first, ElementsAre("element 0 (never_ends)"));
}

TEST_F(SpanJoinerTest, DetectsMissingInnerEndByName) {
  const uint64_t outer = Join(R"({"ph":"B","name":"outer","tid":1,"ts":1})");
  Join(R"({"ph":"B","name":"inner","tid":1,"ts":2})");
  EXPECT_EQ(Join(R"({"ph":"E","name":"outer","tid":1,"ts":3})"), outer);
  Join(R"({"ph":"E","name":"inner","tid":1,"ts":4})");
  EXPECT_EQ(outcome_, Joined::kBeginLost) << "what began inside ended with it";
  EXPECT_THAT(joiner_.unended().first, ElementsAre("element 1 (inner)"));
  // A name that nothing has closes nothing.
  const uint64_t next = Join(R"({"ph":"B","name":"next","tid":1,"ts":5})");
  Join(R"({"ph":"E","name":"stranger","tid":1,"ts":6})");
  EXPECT_EQ(outcome_, Joined::kBeginLost);
  EXPECT_EQ(Join(R"({"ph":"E","tid":1,"ts":7})"), next);
}

TEST_F(SpanJoinerTest, SpansOfOneIdEndByTheirNames) {
  const auto async = [this](char phase, std::string_view name, int id, int ts) {
    return Join(fmt::format(R"({{"ph":"{}","cat":"req","name":"{}","id":{},"pid":1,"ts":{}}})",
                            phase, name, id, ts));
  };
  const uint64_t request = async('b', "request", 1, 0);
  const uint64_t prefill = async('b', "prefill", 1, 0);
  const uint64_t other = async('b', "request", 2, 0);
  EXPECT_EQ(async('e', "prefill", 1, 40), prefill);
  const uint64_t decode = async('b', "decode", 1, 40);
  async('n', "first_token", 1, 41);
  EXPECT_EQ(outcome_, Joined::kNone);
  EXPECT_EQ(async('e', "request", 1, 90), request);
  EXPECT_EQ(async('e', "decode", 1, 90), decode) << "they need not enclose each other";
  EXPECT_EQ(async('e', "request", 2, 90), other);
  EXPECT_EQ(joiner_.unended().count, 0u);
}

TEST_F(SpanJoinerTest, AnEndBeforeItsBeginIsPutThere) {
  const uint64_t number = Join(R"({"ph":"B","name":"x","tid":1,"ts":10})");
  EXPECT_EQ(Join(R"({"ph":"E","tid":1,"ts":4})"), number);
  EXPECT_EQ(event_.fields.timestamp_ns, 10'000u);
  EXPECT_EQ(event_.invalid_duration, "negative");
  EXPECT_THAT(Keys(), ElementsAre("ts", "neurontrace.duration"));
  EXPECT_EQ(event_.values[0].text, "4");
}

TEST_F(SpanJoinerTest, LostEventsKeepTheirPosition) {
  const uint64_t outer = Join(R"({"ph":"B","name":"outer","tid":1,"ts":1})");
  Join(R"({"ph":"B","name":"inner","tid":1})");  // has no time
  Join(R"({"ph":"E","tid":1,"ts":3})");
  EXPECT_EQ(outcome_, Joined::kBeginLost);
  Join(R"({"ph":"B","name":"inner","tid":1,"ts":4})");
  Join(R"({"ph":"E","tid":1,"ts":null})");
  EXPECT_EQ(Join(R"({"ph":"E","tid":1,"ts":6})"), outer);
  EXPECT_THAT(joiner_.unended().first, ElementsAre("element 3 (inner)"));
}

TEST_F(SpanJoinerTest, GivesUpTheOldestBeyondItsLimit) {
  joiner_ = SpanJoiner({.spans = 4, .bytes = 1 << 20});
  std::vector<uint64_t> numbers;
  for (int tid = 0; tid < 5; ++tid) {
    numbers.push_back(Join(fmt::format(R"({{"ph":"B","name":"n{0}","tid":{0},"ts":1}})", tid)));
  }
  EXPECT_EQ(joiner_.given_up(), 2u);
  for (int tid = 0; tid < 5; ++tid) {
    const uint64_t number = Join(fmt::format(R"({{"ph":"E","tid":{},"ts":2}})", tid));
    if (tid < 2) {
      EXPECT_EQ(outcome_, Joined::kBeginLost);
    } else {
      EXPECT_EQ(number, numbers[tid]);
    }
  }
  EXPECT_THAT(joiner_.unended().first, ElementsAre("element 0 (n0)", "element 1 (n1)"));
}

TEST_F(SpanJoinerTest, LongNamesCountByTheirBytes) {
  joiner_ = SpanJoiner({.spans = 1'000, .bytes = 1'000});
  for (int i = 0; i < 20; ++i) {
    Join(fmt::format(R"({{"ph":"B","name":"{}","tid":{},"ts":1}})", std::string(200, 'n'), i));
  }
  EXPECT_GE(joiner_.given_up(), 15u);
  EXPECT_EQ(joiner_.unended().count, 20u);
}

// Random files: spans of threads nested at will among complete events, and spans of ids; each has a
// name of its own, so that what belongs together is known. Ends and begins are missing here and
// there, some because they have no time.
class SpanJoinerPropertyTest : public SpanJoinerTest,
                               public ::testing::WithParamInterface<uint32_t> {
 protected:
  struct Span {
    bool has_begin = true;
    bool has_end = true;
    uint64_t begin_number = 0;
    uint64_t end_number = 0;
  };

  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  void WriteBegin(const std::string& where, const char* phase, const std::string& name) {
    Span& span = spans_[name];
    span.has_begin = Below(8) != 0;
    if (!span.has_begin && Below(2) == 0) return;
    const std::string time = span.has_begin ? fmt::format("{}", ++time_) : "null";
    const uint64_t number =
        Join(fmt::format(R"({{"ph":"{}","name":"{}",{},"ts":{}}})", phase, name, where, time));
    EXPECT_EQ(outcome_, Joined::kBegun);
    if (span.has_begin) span.begin_number = number;
  }

  void WriteEnd(const std::string& where, const char* phase, const std::string& name) {
    Span& span = spans_[name];
    span.has_end = Below(8) != 0;
    if (!span.has_end && Below(2) == 0) return;
    const std::string time = span.has_end ? fmt::format("{}", ++time_) : "0.5e99";
    const uint64_t number =
        Join(fmt::format(R"({{"ph":"{}","name":"{}",{},"ts":{}}})", phase, name, where, time));
    if (!span.has_end) return;
    span.end_number = number;
    EXPECT_EQ(outcome_, span.has_begin ? Joined::kJoined : Joined::kBeginLost) << name;
  }

  std::mt19937 random_{GetParam()};
  std::map<std::string, Span> spans_;
  uint64_t time_ = 100;
};

TEST_P(SpanJoinerPropertyTest, SpansOutAreSpansIn) {
  struct Thread {
    std::string where;
    std::vector<std::string> open;
  };
  std::vector<Thread> threads;
  for (uint32_t i = 0; i < 1 + Below(5); ++i) {
    threads.push_back({fmt::format(R"("pid":{},"tid":{})", i / 2, i % 2), {}});
  }
  std::vector<std::pair<std::string, std::string>> open_ids;  // where, name
  for (int i = 0; i < 400; ++i) {
    const std::string name = fmt::format("span{}", i);
    Thread& thread = threads[Below(static_cast<uint32_t>(threads.size()))];
    switch (Below(5)) {
      case 0:
        WriteBegin(thread.where, "B", name);
        thread.open.push_back(name);
        break;
      case 1:
        if (thread.open.empty()) break;
        WriteEnd(thread.where, "E", thread.open.back());
        thread.open.pop_back();
        break;
      case 2:
        Join(fmt::format(R"({{"ph":"X","name":"{}",{},"ts":{},"dur":1}})", name, thread.where,
                         ++time_));
        EXPECT_EQ(outcome_, Joined::kNone);
        break;
      case 3: {
        const std::string where = fmt::format(R"("cat":"c{}","id":"{}")", Below(2), Below(3));
        WriteBegin(where, "b", name);
        open_ids.emplace_back(where, name);
        break;
      }
      case 4: {
        if (open_ids.empty()) break;
        const size_t at = Below(static_cast<uint32_t>(open_ids.size()));
        WriteEnd(open_ids[at].first, "e", open_ids[at].second);
        open_ids.erase(open_ids.begin() + static_cast<ptrdiff_t>(at));
        break;
      }
    }
  }
  for (Thread& thread : threads) {
    for (; !thread.open.empty(); thread.open.pop_back()) spans_[thread.open.back()].has_end = false;
  }
  for (const auto& [where, name] : open_ids) spans_[name].has_end = false;

  uint64_t unended = 0;
  std::set<uint64_t> numbers;
  for (const auto& [name, span] : spans_) {
    if (span.has_begin && span.has_end) {
      EXPECT_EQ(span.begin_number, span.end_number) << name;
    }
    if (span.has_begin && !span.has_end) ++unended;
    const uint64_t number = span.has_begin ? span.begin_number : span.end_number;
    if (number != 0) {
      EXPECT_TRUE(numbers.insert(number).second) << name;
    }
  }
  EXPECT_EQ(joiner_.unended().count, unended);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SpanJoinerPropertyTest, ::testing::Range(1u, 101u));

}  // namespace
}  // namespace neurontrace
