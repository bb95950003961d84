// SPDX-License-Identifier: Apache-2.0
// Goal: everything that an XSpace states about its events comes out once, at its time; what is
// damaged is counted with its place and costs nothing beside it. Method: messages written by hand.
#include "agent/source/framework/xspace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "agent/source/framework/xspace_test_support.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using xspace_test::Bytes;
using xspace_test::Double;
using xspace_test::Environment;
using xspace_test::Event;
using xspace_test::EventName;
using xspace_test::FactsOf;
using xspace_test::InputOf;
using xspace_test::Line;
using xspace_test::Number;
using xspace_test::Plane;
using xspace_test::ProcessId;
using xspace_test::StatName;
using xspace_test::UintStat;

constexpr int64_t kStartNs = 1'790'000'000'000'000'000;
constexpr int64_t kNsPs = 1'000;

std::string ValueText(const ShapeKey& key, const AttributeValue& value) {
  switch (key.type) {
    case ValueType::kUint:
      return std::to_string(value.bits);
    case ValueType::kInt:
      return std::to_string(static_cast<int64_t>(value.bits));
    case ValueType::kDouble:
      return std::to_string(std::bit_cast<double>(value.bits));
    default:
      return "'" + std::string(value.text) + "'";
  }
}

// "xla_host@5 tid 7 name='train' dur_ns=3 step_num=1".
std::string TextOf(const FrameworkEvent& event, uint64_t start_ns) {
  std::string text = std::string(event.shape.event_type) + "@" +
                     std::to_string(event.fields.timestamp_ns - start_ns);
  if ((event.shape.present & FieldBit(Field::kThreadId)) != 0) {
    text += " tid " + std::to_string(event.fields.thread_id);
  }
  for (size_t i = 0; i < event.values.size(); ++i) {
    const ShapeKey& key = event.shape.keys[i];
    if (key.name == "pid") continue;
    text += " " + std::string(key.name) + "=" + ValueText(key, event.values[i]);
  }
  return text;
}

struct XSpaceContent {
  XSpaceFacts facts;
  std::vector<std::string> spans;
  std::vector<std::string> rows;  // names of processes and threads
  std::vector<std::string> processes;
  std::vector<Loss> losses;
  uint64_t position = 0;
};

XSpaceContent ReadSpace(std::string_view bytes, uint64_t first_element = 0) {
  XSpaceContent content{.facts = FactsOf(bytes)};
  XSpaceReader reader(InputOf(bytes), content.facts, first_element);
  const uint64_t start_ns = content.facts.start_ns.value_or(0);
  while (true) {
    switch (reader.Next()) {
      case XSpaceReader::Kind::kEvent: {
        const FrameworkEvent& event = reader.event();
        auto& texts = event.shape.phase == Phase::kMetadata ? content.rows : content.spans;
        texts.push_back(TextOf(event, start_ns));
        for (size_t i = 0; i < event.values.size(); ++i) {
          if (event.shape.keys[i].name != "pid") continue;
          content.processes.push_back(ValueText(event.shape.keys[i], event.values[i]));
        }
        break;
      }
      case XSpaceReader::Kind::kLoss:
        content.losses.push_back(reader.loss());
        break;
      case XSpaceReader::Kind::kNotYet:
        break;
      case XSpaceReader::Kind::kEnd:
        content.position = reader.position();
        return content;
    }
  }
}

// A session as JAX writes it: its begin in the last plane, names behind the lines.
std::string Session() {
  const std::string stat = Bytes(4, UintStat(7, 3)) + Bytes(4, UintStat(8, 1));
  return Plane("/host:CPU",
               Line(41, "python", 5'330,
                    Event(1, 91 * kNsPs, 3'282'090 * kNsPs, stat) + Event(2, 92'500, 1)) +
                   Line(-5, "tf_XLAEigen/9", 5'330, Event(2, 100 * kNsPs, 0)) +
                   EventName(1, "train") + EventName(2, "Wait for donation holds") +
                   StatName(7, "step_num") + StatName(8, "_r") + ProcessId(26'307)) +
         Environment(kStartNs);
}

TEST(XSpaceReader, ReadsASessionOfJax) {
  const std::string bytes = Session();
  const XSpaceContent content = ReadSpace(bytes);
  EXPECT_TRUE(content.facts.complete) << content.facts.problem;
  EXPECT_EQ(content.facts.start_ns, kStartNs);
  EXPECT_EQ(content.facts.process_id, 26'307u);
  EXPECT_EQ(content.facts.first_time_ns(), kStartNs + 5'330);
  EXPECT_FALSE(content.facts.has_own_time());
  EXPECT_THAT(content.losses, IsEmpty());
  EXPECT_THAT(content.rows,
              ElementsAre("xla_host@5330 name='process_name' name='/host:CPU'",
                          "xla_host@5330 tid 41 name='thread_name' name='python'",
                          "xla_host@5422 name='thread_name' tid=-5 name='tf_XLAEigen/9'"));
  EXPECT_THAT(
      content.spans,
      ElementsAre("xla_host@5421 tid 41 name='train' dur_ns=3282090 step_num=3 _r=1",
                  // Digits below 1 ns are kept.
                  "xla_host@5422 tid 41 name='Wait for donation holds' dur_ns=0 offset_ps=92500 "
                  "duration_ps=1",
                  "xla_host@5430 name='Wait for donation holds' tid=-5 dur_ns=0"));
  EXPECT_THAT(content.processes, SizeIs(6));
  EXPECT_EQ(content.processes.front(), "26307");
  EXPECT_EQ(content.position, 6u);
}

TEST(XSpaceReader, SecondReadContinuesAfterStoredEvents) {
  const std::string bytes = Session();
  const XSpaceContent content = ReadSpace(bytes, 4);
  EXPECT_THAT(content.spans, SizeIs(1));
  EXPECT_THAT(content.rows, SizeIs(1));
  EXPECT_EQ(content.position, 6u);
}

TEST(XSpaceReader, PlanesOfDevicesKeepTheirNamesApart) {
  const std::string device =
      Line(1, "XLA Ops", 10, Event(1, 0, 2 * kNsPs)) +
      EventName(1, "%fusion.1 = f32[]", Bytes(4, "fusion.1") + Bytes(5, UintStat(3, 64))) +
      StatName(3, "flops");
  const XSpaceContent content = ReadSpace(Plane("/device:TPU:0", device) +
                                          Plane("/device:TPU:1", device) + Environment(kStartNs));
  EXPECT_THAT(content.spans, ElementsAre("xla_device@10 tid 1 name='fusion.1' dur_ns=2 "
                                         "long_name='%fusion.1 = f32[]' flops=64",
                                         "xla_device@10 tid 1 name='fusion.1' dur_ns=2 "
                                         "long_name='%fusion.1 = f32[]' flops=64"));
  EXPECT_THAT(content.processes,
              ElementsAre("'/device:TPU:0'", "'/device:TPU:0'", "'/device:TPU:0'",
                          "'/device:TPU:1'", "'/device:TPU:1'", "'/device:TPU:1'"));
}

TEST(XSpaceReader, StatsOfEveryTypeBecomeAttributes) {
  const auto stat = [](int64_t id, const std::string& value) {
    return Bytes(4, Number(1, id) + value);
  };
  const std::string stats = stat(1, Number(3, -1)) + stat(2, Number(4, -7)) +
                            stat(3, Double(2, 0.5)) + stat(4, Double(2, INFINITY)) +
                            stat(5, Bytes(5, "text")) + stat(6, Bytes(6, "abc")) +
                            stat(7, Number(7, 8)) + stat(9, Number(3, 2));
  const XSpaceContent content =
      ReadSpace(Plane("/host:CPU", Line(1, "a", 0, Event(1, 0, 0, stats)) + EventName(1, "e") +
                                       StatName(1, "u") + StatName(2, "i") + StatName(3, "d") +
                                       StatName(4, "inf") + StatName(5, "s") + StatName(6, "b") +
                                       StatName(7, "r") + StatName(8, "referred to")) +
                Environment(kStartNs));
  EXPECT_THAT(content.spans,
              ElementsAre("xla_host@0 tid 1 name='e' dur_ns=0 u=18446744073709551615 i=-7 "
                          "d=0.500000 inf='inf' s='text' b='3 bytes, not stored' r='referred to' "
                          "unnamed_stat=2"));
}

TEST(XSpaceReader, WithoutABeginTimesAreItsOwnUnlessTheyAreOfTheWallClock) {
  const auto plane = [](int64_t line_ns) {
    return Plane("/host:CPU", Line(1, "a", line_ns, Event(1, 7 * kNsPs, 0)) + EventName(1, "e"));
  };
  const XSpaceContent own = ReadSpace(plane(1'000));
  EXPECT_TRUE(own.facts.has_own_time());
  EXPECT_THAT(own.spans, ElementsAre("xla_host@1007 tid 1 name='e' dur_ns=0"));
  const XSpaceContent wall = ReadSpace(plane(kStartNs));
  EXPECT_FALSE(wall.facts.has_own_time());
  EXPECT_EQ(wall.facts.first_time_ns(), kStartNs);
  // Times of the wall clock are not moved by a begin.
  const XSpaceFacts both = FactsOf(plane(kStartNs + 5) + Environment(kStartNs));
  EXPECT_EQ(both.first_time_ns(), kStartNs + 5);
  // A begin that is none is no base.
  EXPECT_TRUE(FactsOf(plane(1'000) + Environment(1'000)).has_own_time());
}

TEST(XSpaceReader, DamageIsCountedWhereItIs) {
  const std::string good = Event(1, 0, kNsPs);
  const std::string bad_event = Bytes(4, "\x08");                 // a number without its value
  const std::string unknown_name = Event(77, 0, 0);               //
  const std::string sum = Bytes(4, Number(1, 1) + Number(5, 9));  // num_occurrences
  const std::string names = EventName(1, "e");
  const std::string bytes =
      Plane("/host:A", Line(1, "a", 0, good + bad_event + unknown_name + sum + good) +
                           Line(2, "b", 0, good + "\x07" + good) + Line(3, "c", 0, good) +
                           Line(6, "early", -kStartNs - 1, good) + names) +
      Plane("/host:B", Line(4, "d", 0, good) + names + "\x0c") +  // a group: not in this format
      Plane("/host:C", Line(5, "e", 0, good) + names) + Environment(kStartNs);
  const XSpaceContent content = ReadSpace(bytes);
  EXPECT_TRUE(content.facts.complete) << content.facts.problem;
  // Two of line a; what precedes the damage in b is not known to be whole; c; and plane C.
  EXPECT_THAT(content.spans, SizeIs(4));
  ASSERT_THAT(content.losses, SizeIs(6));
  EXPECT_THAT(content.losses[0].detail, HasSubstr("element 3, to byte "));
  EXPECT_THAT(content.losses[0].detail, HasSubstr("the event is damaged"));
  EXPECT_THAT(content.losses[1].detail, HasSubstr("a name that its plane does not list"));
  EXPECT_THAT(content.losses[2].detail, HasSubstr("has no time"));
  EXPECT_THAT(content.losses[3].detail, HasSubstr("a line of plane 1 is damaged"));
  EXPECT_TRUE(content.losses[3].events_unknown);
  EXPECT_THAT(content.losses[4].detail, HasSubstr("out of range"));
  for (const int i : {0, 1, 2, 4}) EXPECT_EQ(content.losses[i].events, 1u);
  EXPECT_THAT(content.losses[5].detail, HasSubstr("plane 2 is damaged"));
  EXPECT_TRUE(content.losses[5].events_unknown);
}

// Such as bytes written as a number, whose size would be computed from a missing end.
TEST(XSpaceReader, ValuesOfAnotherWireTypeAreDamage) {
  const auto of_stat = [](const std::string& value) {
    return Event(1, 0, 0, Bytes(4, Number(1, 1) + value));
  };
  for (const std::string& event :
       {of_stat(Number(6, 3)), of_stat(Number(5, 3)), of_stat(Bytes(2, "x")),
        of_stat(Bytes(3, "x")), of_stat(Bytes(4, "x")), of_stat(Bytes(7, "x")),
        Event(1, 0, 0, Number(4, 1)), Bytes(4, Number(1, 1) + Bytes(2, "x"))}) {
    const XSpaceContent content = ReadSpace(
        Plane("/host:CPU", Line(1, "a", 0, event) + EventName(1, "e") + StatName(1, "s")) +
        Environment(kStartNs));
    EXPECT_THAT(content.spans, IsEmpty());
    ASSERT_THAT(content.losses, SizeIs(1));
    EXPECT_THAT(content.losses[0].detail, HasSubstr("the event is damaged"));
  }
}

TEST(XSpaceReader, ReadsCompletePlanesOfTruncatedFile) {
  const std::string whole = Session();
  const std::string bytes = whole + Session();
  for (size_t size = whole.size() + 1; size < bytes.size(); size += 7) {
    const std::string_view cut = std::string_view(bytes).substr(0, size);
    const XSpaceContent content = ReadSpace(cut);
    // Of the second session the first plane may be there, or both.
    EXPECT_GE(content.spans.size(), 3u);
    if (content.facts.complete) continue;
    EXPECT_THAT(content.facts.problem, HasSubstr("is truncated"));
    ASSERT_THAT(content.losses, SizeIs(1));
    EXPECT_TRUE(content.losses[0].events_unknown);
  }
}

TEST(XSpaceReader, ReportsLimitsAsLosses) {
  const std::string long_event =
      Event(1, 0, 0, Bytes(15, std::string(limits::kFrameworkEventBytesMax, 'x')));
  std::string many;
  for (uint32_t i = 0; i <= limits::kAttributesPerEventMax; ++i) {
    many += Bytes(4, UintStat(1, i));
  }
  std::string names = EventName(1, "e") + StatName(1, "s");
  const std::string text(limits::kStringBytesMax, 'n');
  for (size_t i = 2; i * text.size() < limits::kXSpaceNameBytesMax + 3 * text.size(); ++i) {
    names += EventName(static_cast<int64_t>(i), text);
  }
  const auto last = static_cast<int64_t>(limits::kXSpaceNameBytesMax / text.size() + 2);
  const XSpaceContent content =
      ReadSpace(Plane("/host:CPU",
                      Line(1, "a", 0,
                           long_event + Event(1, 0, 0, many) + Event(last, 0, 0) + Event(1, 0, 0)) +
                          names) +
                Environment(kStartNs));
  EXPECT_THAT(content.spans, SizeIs(1));
  ASSERT_THAT(content.losses, SizeIs(3));
  for (const Loss& loss : content.losses) {
    EXPECT_EQ(loss.reason, LossReason::kLimit) << loss.detail;
    EXPECT_EQ(loss.events, 1u);
  }
}

TEST(XSpaceReader, IsKnownByItsFirstBytes) {
  const std::string bytes = Session();
  EXPECT_TRUE(LooksLikeXSpace(std::string_view(bytes).substr(0, 64), bytes.size()));
  EXPECT_TRUE(LooksLikeXSpace(Environment(kStartNs), Environment(kStartNs).size()));
  // A plane that is longer than its file; JSON behind a line end; other messages; nothing.
  EXPECT_FALSE(LooksLikeXSpace(std::string_view(bytes).substr(0, 64), 64));
  EXPECT_FALSE(LooksLikeXSpace("\n{\"traceEvents\": []}", 1'000));
  EXPECT_FALSE(LooksLikeXSpace("\n [1]", 1'000));
  EXPECT_FALSE(
      LooksLikeXSpace("\x12\x03"
                      "abc",
                      5));
  EXPECT_FALSE(LooksLikeXSpace("\x1f\x8b\x08", 1'000));
  EXPECT_FALSE(LooksLikeXSpace("", 0));
}

}  // namespace
}  // namespace neurontrace
