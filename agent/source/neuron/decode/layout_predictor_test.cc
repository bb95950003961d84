// SPDX-License-Identifier: Apache-2.0
// Predictions are what the full decoder would have read, for values that look alike and for random
// documents; and what is kept has limits.
#include "agent/source/neuron/decode/layout_predictor.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/source/neuron/decode/prediction_comparison.h"
#include "lib/base/random.h"

namespace neurontrace {
namespace {

using ValueKind = LayoutPredictor::ValueKind;

std::string Document(const std::vector<std::string>& events) {
  return fmt::format(R"({{"events":[{}],"data_version":2}})", fmt::join(events, ","));
}

// An event with one value, and what the predictor learns from it.
class OneValueEvent {
 public:
  OneValueEvent(std::string key, std::string value, ValueKind kind, const CachedShape& shape)
      : text_("{\"" + std::move(key) + "\":" + std::move(value)), kind_(kind) {
    value_at_ = text_.find(':') + 1;
    text_ += '}';
    size_ = text_.size();
    text_.append(NrtEventDecoder::kPaddingBytes, '\0');
    event_.shape = &shape;
  }
  const char* text() const { return text_.data(); }
  size_t size() const { return size_; }
  // As the id, the only field that these tests use.
  void Teach(LayoutPredictor& predictor, uint64_t id) {
    event_.fields.id = id;
    const LayoutPredictor::Place place{text_.data() + value_at_, kind_,
                                       static_cast<uint8_t>(Field::kId)};
    predictor.Learn({text_.data(), size_}, 5, {&place, 1}, event_);
  }

 private:
  std::string text_;
  ValueKind kind_;
  size_t value_at_ = 0;
  size_t size_ = 0;
  NrtEvent event_;
};

TEST(LayoutPredictorTest, ReadsTheValuesOfAnEventWithAKnownLayout) {
  const CachedShape shape{.generation = 1};
  LayoutPredictor predictor;
  predictor.SetGeneration(1);
  OneValueEvent first("id", "17", ValueKind::kField, shape);
  EXPECT_EQ(predictor.Predict(first.text()), nullptr);
  first.Teach(predictor, 17);
  const OneValueEvent second("id", "18446744073709551615", ValueKind::kField, shape);
  const LayoutPredictor::Prediction* const predicted = predictor.Predict(second.text());
  ASSERT_NE(predicted, nullptr);
  EXPECT_EQ(predicted->event.fields, (EventFields{.id = 18446744073709551615u}));
  EXPECT_EQ(predicted->event.nc_idx, limits::kNoNcIdx);
  EXPECT_EQ(predicted->event.shape, &shape);
  EXPECT_TRUE(predicted->event.values.empty());
  EXPECT_EQ(predicted->bytes, second.size());
  EXPECT_EQ(predicted->tokens, 5u);
  const OneValueEvent other("di", "17", ValueKind::kField, shape);
  EXPECT_EQ(predictor.Predict(other.text()), nullptr);
}

TEST(LayoutPredictorTest, LearnsNothingThatItWouldReadInAnotherWay) {
  const CachedShape shape{.generation = 1};
  LayoutPredictor predictor;
  predictor.SetGeneration(1);
  OneValueEvent spelled("id", "017", ValueKind::kField, shape);
  spelled.Teach(predictor, 17);
  OneValueEvent wrong("id", "17", ValueKind::kField, shape);
  wrong.Teach(predictor, 18);
  OneValueEvent beyond_ascii("é", "17", ValueKind::kField, shape);
  beyond_ascii.Teach(predictor, 17);
  OneValueEvent large(std::string(LayoutPredictor::kTextBytesMax, 'k'), "17", ValueKind::kField,
                      shape);
  large.Teach(predictor, 17);
  EXPECT_EQ(predictor.layouts(), 0u);
}

TEST(LayoutPredictorTest, ForgetsAllWithTheShapes) {
  auto shape = std::make_unique<CachedShape>(CachedShape{.generation = 1});
  LayoutPredictor predictor;
  predictor.SetGeneration(1);
  OneValueEvent event("id", "17", ValueKind::kField, *shape);
  event.Teach(predictor, 17);
  ASSERT_NE(predictor.Predict(event.text()), nullptr);
  predictor.SetGeneration(1);
  ASSERT_NE(predictor.Predict(event.text()), nullptr);
  shape.reset();
  predictor.SetGeneration(2);
  EXPECT_EQ(predictor.Predict(event.text()), nullptr);
  EXPECT_EQ(predictor.layouts(), 0u);
}

TEST(LayoutPredictorTest, HoldsALimitedNumberOfLayouts) {
  const CachedShape shape{.generation = 1};
  LayoutPredictor predictor;
  predictor.SetGeneration(1);
  for (size_t i = 0; i <= LayoutPredictor::kLayoutsMax; ++i) {
    predictor.BeginDocument();
    OneValueEvent event(fmt::format("k{}", i), "17", ValueKind::kField, shape);
    event.Teach(predictor, 17);
    // The one before the last is the last that fits; then all are forgotten for a new beginning.
    EXPECT_EQ(predictor.layouts(), i < LayoutPredictor::kLayoutsMax ? i + 1 : 1);
    EXPECT_NE(predictor.Predict(event.text()), nullptr);
  }
}

TEST(LayoutPredictorTest, LearnsALimitedNumberOfLayoutsFromADocument) {
  PredictionComparison comparison;
  std::vector<std::string> events;
  for (uint32_t i = 0; i < LayoutPredictor::kLearnedPerDocumentMax + 5; ++i) {
    events.push_back(fmt::format(R"({{"event_type":"t{}","timestamp_ns":1}})", i));
  }
  EXPECT_EQ(comparison.Decode(Document(events)), "");
  EXPECT_EQ(comparison.predicted_events, 0u);
  EXPECT_EQ(comparison.Decode(Document(events)), "");
  EXPECT_EQ(comparison.predicted_events, LayoutPredictor::kLearnedPerDocumentMax);
  EXPECT_EQ(comparison.Decode(Document(events)), "");
  EXPECT_EQ(comparison.predicted_events, LayoutPredictor::kLearnedPerDocumentMax + events.size());
}

// Decodes two events whose members differ in their values only. Returns whether the second one was
// predicted; it and all that follows must be the same without predictions.
bool IsPredicted(std::string_view first, std::string_view second) {
  PredictionComparison comparison;
  const auto event = [](std::string_view members) {
    return fmt::format(R"({{"event_type":"t","phase":"stop",{},"timestamp_ns":1}})", members);
  };
  EXPECT_EQ(comparison.Decode(Document({event(first)})), "") << first;
  EXPECT_EQ(comparison.Decode(Document({event(second)})), "") << first << " and then " << second;
  const bool predicted = comparison.predicted_events == 1;
  EXPECT_EQ(comparison.Decode(Document({event(first), event(second), event(first)})), "")
      << first << " and then " << second;
  return predicted;
}

TEST(LayoutPredictorTest, PredictsWhatTheFullDecoderWouldNotDecideOtherwise) {
  for (const auto& [first, second] : std::vector<std::pair<std::string, std::string>>{
           {R"("id":1)", R"("id":18446744073709551615)"},
           {R"("id":12345678)", R"("id":0)"},
           {R"("id":"7")", R"("id":"1234567890123456")"},
           {R"("nc_idx":0)", R"("nc_idx":255)"},
           {R"("worker_gid":5)", R"("worker_gid":-9223372036854775807)"},
           {R"("data":{"k":1})", R"("data":{"k":123456789})"},
           {R"("data":{"k":-1})", R"("data":{"k":-20})"},
           {R"("data":{"k":0.5})", R"("data":{"k":-1.25})"},
           {R"("data":{"k":true})", R"("data":{"k":false})"},
           {R"("data":{"k":"a"})", R"("data":{"k":""})"},
           {R"("data":{"k":""})", R"("data":{"k":"a text of more than sixteen bytes"})"},
           {R"("data":{"k":null,"l":1})", R"("data":{"k":null,"l":2})"},
           {R"("data":{"k":1},"data":{"k":2})", R"("data":{"k":3},"data":{"k":4})"},
           {R"("other":1)", R"("other":2)"},
           {R"("data" : { "k" :1 })", R"("data" : { "k" :2 })"},
           {R"("a\"b":1)", R"("a\"b":2)"},
       }) {
    EXPECT_TRUE(IsPredicted(first, second)) << first << " and then " << second;
  }
}

TEST(LayoutPredictorTest, LeavesValuesOfOtherKindsToTheFullDecoder) {
  const std::vector<std::string> values = {"1",
                                           "-1",
                                           "-0",
                                           "00",
                                           "1.5",
                                           "1.50",
                                           "1e3",
                                           "256",
                                           "99999999999999999999",
                                           "18446744073709551616",
                                           "184467440737095516150",
                                           "9223372036854775808",
                                           "-9223372036854775808",
                                           "-9223372036854775809",
                                           "true",
                                           "false",
                                           "null",
                                           R"("a")",
                                           R"("1")",
                                           R"("-1")",
                                           R"("01")",
                                           R"("256")",
                                           R"("start")",
                                           R"("\u0061")",
                                           R"("a\"b")",
                                           "\"\xff\"",
                                           "\"é\"",
                                           "\"" + std::string(2'000, 'x') + "\"",
                                           "{}",
                                           R"({"k":1})",
                                           "[1]",
                                           "1 ",
                                           "1x",
                                           "tru",
                                           "\"a\nb\""};
  for (const char* const key : {"id", "nc_idx", "worker_gid", "phase", "event_type", "data",
                                "timestamp_ns", "other", "é"}) {
    for (const std::string& first : values) {
      for (const std::string& second : values) {
        IsPredicted(fmt::format("\"{}\":{}", key, first), fmt::format("\"{}\":{}", key, second));
      }
    }
  }
  EXPECT_FALSE(IsPredicted(R"("nc_idx":1)", R"("nc_idx":256)"));
  EXPECT_FALSE(IsPredicted(R"("phase":"odd")", R"("phase":"other")"));
  EXPECT_FALSE(IsPredicted(R"("id":1)", R"("id":-0)"));
  EXPECT_FALSE(IsPredicted(R"("id":-1)", R"("id":1)"));
  EXPECT_FALSE(IsPredicted(R"("é":1)", R"("é":2)"));
}

// Neither what stands between events nor what ends a document is part of a layout.
TEST(LayoutPredictorTest, JudgesWhatIsBetweenEventsAsBefore) {
  PredictionComparison comparison;
  const std::string event = R"({"event_type":"t","id":5,"timestamp_ns":1})";
  ASSERT_EQ(comparison.Decode(Document({event})), "");
  const std::string whole = Document({event, event});
  for (size_t size = 0; size <= whole.size(); ++size) {
    EXPECT_EQ(comparison.Decode(whole.substr(0, size)), "") << size;
    for (const char* intruder :
         {",", "}", "]", "{", "\"", "\\", "\\\"", " ", "\x01", "\xff", "0"}) {
      EXPECT_EQ(comparison.Decode(whole.substr(0, size) + intruder + whole.substr(size)), "")
          << size << " " << intruder;
    }
  }
  EXPECT_GT(comparison.predicted_events, whole.size());
}

// Shapes that are gone must not be given out: the cache is emptied amid a document.
TEST(LayoutPredictorTest, SurvivesANewGenerationOfShapes) {
  PredictionComparison comparison;
  const std::string known = R"({"event_type":"known","id":5,"timestamp_ns":1,"data":{"k":"v"}})";
  for (uint32_t i = 0; i <= 2 * ShapeCache::kShapesMax; i += 4) {
    std::vector<std::string> events;
    for (uint32_t j = i; j < i + 4; ++j) {
      events.push_back(known);
      events.push_back(fmt::format(R"({{"event_type":"t{}","timestamp_ns":1}})", j));
    }
    ASSERT_EQ(comparison.Decode(Document(events)), "") << i;
  }
  EXPECT_GT(comparison.predicted_events, ShapeCache::kShapesMax);
}

// Makes documents of a few kinds of events, whose values and spelling change now and then. A
// quarter of them is damaged.
class RandomDocuments {
 public:
  explicit RandomDocuments(uint64_t seed) : random_(seed) {
    const uint64_t kinds = 2 + Below(6);
    for (uint64_t kind = 0; kind < kinds; ++kind) kinds_.push_back(MakeKind());
  }

  std::string Next() {
    std::vector<std::string> events;
    const uint64_t count = Below(30);
    for (uint64_t i = 0; i < count; ++i) events.push_back(Event(kinds_[Below(kinds_.size())]));
    std::string json = Document(events);
    if (Below(4) > 0) return json;
    for (uint64_t damages = 1 + Below(3); damages > 0; --damages) Damage(json);
    return json;
  }

 private:
  // The members of an event, each with the kinds of its value.
  struct Member {
    std::string before;  // up to the value
    uint64_t value = 0;  // which kind of Value
  };

  uint64_t Below(uint64_t bound) { return random_.Next64() % bound; }
  std::string Space() { return Below(20) == 0 ? std::string(1 + Below(2), " \n\t"[Below(3)]) : ""; }

  std::vector<Member> MakeKind() {
    static const std::vector<std::pair<std::string, std::vector<uint64_t>>> kTop = {
        {"id", {0}},        {"nc_local_id", {0}},   {"tracking_id", {0}}, {"thread_id", {0, 1}},
        {"nc_idx", {2, 3}}, {"worker_gid", {2, 4}}, {"phase", {5}},       {"timestamp_ns", {0}},
        {"extra", {0, 6}},  {"nrta_seq_id", {0}}};
    std::vector<Member> members = {{"{\"event_type\"" + Space() + ":", 7 + Below(3)}};
    for (const auto& [key, values] : kTop) {
      if (Below(8) == 0) continue;
      for (uint64_t times = Below(200) == 0 ? 2 : 1; times > 0; --times) {
        members.push_back({fmt::format("{},{}\"{}\":{}", Space(), Space(), key, Space()),
                           values[Below(values.size())]});
      }
    }
    const uint64_t keys = Below(6);
    for (uint64_t i = 0; i < keys; ++i) {
      members.push_back({fmt::format("{}\"k{}\":", i == 0 ? ",\"data\":{" : Space() + ",", i),
                         std::vector<uint64_t>{0, 1, 4, 6, 6, 10, 11, 12}[Below(8)]});
    }
    members.push_back({keys > 0 ? "}}" : "}", 13});
    return members;
  }

  std::string Event(const std::vector<Member>& members) {
    std::string text;
    for (const Member& member : members) {
      text += member.before + Value(Below(200) == 0 ? Below(13) : member.value);
    }
    return text;
  }

  std::string Value(uint64_t kind) {
    static const char* const kUnusual[] = {"1e3",
                                           "1.0",
                                           "-0",
                                           "007",
                                           "256",
                                           "\"\"",
                                           "[1,{}]",
                                           "null",
                                           "18446744073709551616",
                                           "\"caf\xc3\xa9\"",
                                           "\"\xe9\"",
                                           "\"a\\u00e9\\n\"",
                                           "-9223372036854775808",
                                           "{\"id\":1}"};
    switch (kind) {
      case 0:
        return std::to_string(random_.Next64() >> Below(64));
      case 1:
        return fmt::format("\"{}\"", random_.Next64() >> Below(64));
      case 2:
        return std::to_string(Below(264));
      case 3:
        return fmt::format("\"{}\"", Below(264));
      case 4:
        return fmt::format("-{}", 1 + (random_.Next64() >> (1 + Below(63))));
      case 5:
        return std::vector<std::string>{R"("start")", R"("stop")", R"("instant")",
                                        R"("odd")"}[Below(4)];
      case 6:
        return fmt::format("\"{}\"", std::string(Below(80), "abc /"[Below(5)]));
      case 7:
      case 8:
      case 9:
        return fmt::format("\"type{}\"", kind);
      case 10:
        return Below(2) == 0 ? "true" : "false";
      case 11:
        return fmt::format("{}", static_cast<double>(Below(1'000)) / 64);
      case 12:
        return Below(4) == 0 ? kUnusual[Below(std::size(kUnusual))] : "null";
      default:
        return "";
    }
  }

  void Damage(std::string& json) {
    static const std::string kPieces[] = {"\"",        "\\",
                                          "{",         "}",
                                          "[",         "]",
                                          ",",         ":",
                                          "0",         "-",
                                          "9",         " ",
                                          "\x01",      "\xff",
                                          "\xc3",      std::string(1, '\0'),
                                          "\"id\":5,", "\"data\":{\"a\":1},",
                                          "null",      "1.5"};
    const size_t at = Below(json.size());
    switch (Below(4)) {
      case 0:
        json[at] = static_cast<char>(random_.Next64());
        break;
      case 1:
        json.erase(at, 1 + Below(8));
        if (json.empty()) json = " ";
        break;
      case 2:
        json.insert(at, kPieces[Below(std::size(kPieces))]);
        break;
      default:
        json.insert(at, json.substr(Below(json.size()), Below(40)));
        break;
    }
  }

  SeededRandom random_;
  std::vector<std::vector<Member>> kinds_;
};

TEST(LayoutPredictorTest, EqualsTheFullDecoderForRandomDocuments) {
  uint64_t events = 0;
  uint64_t predicted_events = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    PredictionComparison comparison;
    RandomDocuments documents(seed);
    for (int i = 0; i < 40; ++i) {
      const std::string json = documents.Next();
      ASSERT_EQ(comparison.Decode(json), "") << "seed " << seed << ": " << json;
    }
    events += comparison.events;
    predicted_events += comparison.predicted_events;
  }
  // It would prove nothing of predictions if there were few.
  EXPECT_GT(predicted_events, events / 3) << events;
}

}  // namespace
}  // namespace neurontrace
