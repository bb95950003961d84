// SPDX-License-Identifier: Apache-2.0
// How one element of traceEvents becomes an event.
#include "agent/source/framework/trace_event_parser.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "agent/source/framework/element_cutter.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

class TraceEventParserTest : public ::testing::Test {
 protected:
  absl::Status Parse(std::string_view element) {
    text_ = element;
    text_.append(ElementCutter::kPaddingBytes, '\0');
    return parser_.Parse(std::string_view(text_).substr(0, element.size()), event_);
  }
  const FrameworkEvent& Must(std::string_view element) {
    const absl::Status status = Parse(element);
    EXPECT_TRUE(status.ok()) << status;
    return event_;
  }
  // "data.key:string=value" for each attribute, in order.
  std::vector<std::string> Attributes() const {
    static constexpr const char* kTypes[] = {"null",   "bool",   "uint", "int",
                                             "double", "string", "json"};
    std::vector<std::string> lines;
    for (size_t i = 0; i < event_.values.size(); ++i) {
      const ShapeKey& key = event_.shape.keys[i];
      const AttributeValue& value = event_.values[i];
      std::string text(value.text);
      if (key.type == ValueType::kUint || key.type == ValueType::kBool) {
        text = fmt::format("{}", value.bits);
      } else if (key.type == ValueType::kInt) {
        text = fmt::format("{}", static_cast<int64_t>(value.bits));
      } else if (key.type == ValueType::kDouble) {
        text = fmt::format("{}", std::bit_cast<double>(value.bits));
      }
      lines.push_back(fmt::format("{}.{}:{}={}", key.scope == KeyScope::kData ? "data" : "top",
                                  key.name, kTypes[static_cast<int>(key.type)], text));
    }
    return lines;
  }

  TraceEventParser parser_{0, 0};
  FrameworkEvent event_;
  std::string text_;
};

TEST_F(TraceEventParserTest, CompleteEventWithEveryKindOfArgument) {
  const FrameworkEvent& event = Must(R"({
    "ph": "X", "cat": "cpu_op", "name": "aten::add\u00e9", "pid": 59814, "tid": 59994,
    "ts": 1694128201421812, "dur": 12,
    "args": {"External id": 18446744073709551615, "neg": -3, "f": 0.25, "g": 1.0, "s": "a\"b",
             "t": true, "n": null, "Input Dims": [[8, 2], []], "o": {"x": [1]}}})");
  EXPECT_EQ(event.shape.event_type, "cpu_op");
  EXPECT_EQ(event.shape.phase, Phase::kComplete);
  EXPECT_EQ(event.shape.present, FieldBit(Field::kTimestamp) | FieldBit(Field::kThreadId));
  EXPECT_EQ(event.fields.timestamp_ns, 1'694'128'201'421'812'000u);
  EXPECT_EQ(event.fields.thread_id, 59994u);
  EXPECT_THAT(Attributes(),
              ElementsAre("top.name:string=aten::addé", "top.pid:uint=59814",
                          "top.dur_ns:uint=12000", "data.External id:uint=18446744073709551615",
                          "data.neg:int=-3", "data.f:double=0.25", "data.g:json=1.0",
                          "data.s:string=a\"b", "data.t:bool=1", "data.n:null=",
                          "data.Input Dims:json=[[8, 2], []]", R"(data.o:json={"x": [1]})"));
}

TEST_F(TraceEventParserTest, TimesAreDecimalAndRelativeToTheBase) {
  parser_ = TraceEventParser(1'711'964'646'000'000'000, 0);
  Must(R"({"ph":"X","ts":4462233412.125,"dur":0.001})");
  EXPECT_EQ(event_.fields.timestamp_ns, 1'711'964'646'000'000'000u + 4'462'233'412'125u);
  EXPECT_THAT(Attributes(), ElementsAre("top.dur_ns:uint=1"));
  Must(R"({"ph":"i","ts":-1})");
  EXPECT_EQ(event_.fields.timestamp_ns, 1'711'964'645'999'999'000u);
}

TEST_F(TraceEventParserTest, DigitsBelowANanosecondKeepTheirText) {
  Must(R"({"ph":"X","ts":1.00049,"dur":2.0001})");
  EXPECT_EQ(event_.fields.timestamp_ns, 1000u);
  EXPECT_THAT(Attributes(),
              ElementsAre("top.ts:json=1.00049", "top.dur:json=2.0001", "top.dur_ns:uint=2000"));
}

TEST_F(TraceEventParserTest, TimesMayBeStrings) {
  Must(R"({"ph":"X","ts":"10","dur":"2.5"})");
  EXPECT_EQ(event_.fields.timestamp_ns, 10'000u);
  EXPECT_THAT(Attributes(), ElementsAre("top.dur_ns:uint=2500"));
}

TEST_F(TraceEventParserTest, DurationsThatCannotBeAreMarkedAndKeepTheirText) {
  struct Case {
    const char* duration;
    std::vector<std::string> attributes;
    const char* why;
  };
  const Case cases[] = {
      {R"(,"dur":-5)",
       {"top.dur:json=-5", "top.neurontrace.duration:string=negative", "top.dur_ns:uint=0"},
       "negative"},
      {R"(,"dur":-0.02)",
       {"top.dur:json=-0.02", "top.neurontrace.duration:string=negative", "top.dur_ns:uint=0"},
       "negative"},
      {R"(,"dur":"soon")",
       {"top.dur:string=soon", "top.neurontrace.duration:string=unusable", "top.dur_ns:uint=0"},
       "unusable"},
      {R"(,"dur":NaN)",
       {"top.dur:string=NaN", "top.neurontrace.duration:string=unusable", "top.dur_ns:uint=0"},
       "unusable"},
      {R"(,"dur":null)",
       {"top.dur:null=", "top.neurontrace.duration:string=unusable", "top.dur_ns:uint=0"},
       "unusable"},
      {R"(,"dur":9.3e15)",
       {"top.dur_ns:uint=0", "top.dur:json=9.3e15", "top.neurontrace.duration:string=too long"},
       "too long"},
      {R"(,"dur":"9223372036854775.806")",
       {"top.dur_ns:uint=0", "top.dur:json=9223372036854775.806",
        "top.neurontrace.duration:string=too long"},
       "too long"},
      {"", {"top.neurontrace.duration:string=absent", "top.dur_ns:uint=0"}, "absent"},
      {R"(,"dur":-0.0)", {"top.dur_ns:uint=0"}, ""},
      {R"(,"dur":0)", {"top.dur_ns:uint=0"}, ""},
  };
  for (const Case& anomalous : cases) {
    const FrameworkEvent& event = Must(fmt::format(R"({{"ph":"X","ts":1{}}})", anomalous.duration));
    EXPECT_THAT(Attributes(), ElementsAreArray(anomalous.attributes)) << anomalous.duration;
    EXPECT_EQ(event.invalid_duration, anomalous.why) << anomalous.duration;
    EXPECT_EQ(event.fields.timestamp_ns, 1000u);
  }
}

TEST_F(TraceEventParserTest, DurationsEndWithinTheBounds) {
  parser_ = TraceEventParser(0, 0, {.first_ns = 0, .last_ns = 10'000});
  EXPECT_EQ(Must(R"({"ph":"X","ts":4,"dur":6})").invalid_duration, "");
  EXPECT_EQ(Must(R"({"ph":"X","ts":4,"dur":6.001})").invalid_duration, "too long");
}

TEST_F(TraceEventParserTest, ProcessesAndThreadsMayBeAnything) {
  Must(R"({"ph":"X","ts":1,"dur":1,"pid":"Spans","tid":"PyTorch Profiler"})");
  EXPECT_EQ(event_.shape.present, FieldBit(Field::kTimestamp));
  EXPECT_THAT(Attributes(), ElementsAre("top.dur_ns:uint=1000", "top.pid:string=Spans",
                                        "top.tid:string=PyTorch Profiler"));
  Must(R"({"ph":"i","ts":1,"pid":-1,"tid":-7})");
  EXPECT_THAT(Attributes(), ElementsAre("top.pid:int=-1", "top.tid:int=-7"));
}

TEST_F(TraceEventParserTest, FlowsKeepTheirIdAndBindingPoint) {
  Must(R"({"ph":"s","id":12,"pid":1,"tid":2,"ts":3,"cat":"ac2g","name":"ac2g"})");
  EXPECT_EQ(event_.shape.phase, Phase::kFlowStart);
  EXPECT_THAT(Attributes(),
              ElementsAre("top.flow_id:uint=12", "top.pid:uint=1", "top.name:string=ac2g"));
  Must(R"({"ph":"f","id":"0x1f","ts":3,"cat":"ac2g","bp":"e"})");
  EXPECT_EQ(event_.shape.phase, Phase::kFlowEnd);
  EXPECT_THAT(Attributes(), ElementsAre("top.flow_id:string=0x1f", "top.bp:string=e"));
  Must(R"({"ph":"t","ts":3,"id":-1})");
  EXPECT_EQ(event_.shape.phase, Phase::kFlowStep);
  EXPECT_THAT(Attributes(), ElementsAre("top.flow_id:int=-1"));
}

TEST_F(TraceEventParserTest, EndsOfSpansNameTheirSpan) {
  EXPECT_EQ(Must(R"({"ph":"B","ts":1,"name":"x","pid":7,"tid":9})").shape.phase, Phase::kBegin);
  EXPECT_EQ(event_.edge.kind, SpanEdge::Kind::kBegin);
  EXPECT_EQ(event_.edge.name, "x");
  EXPECT_THAT(Attributes(), ElementsAre("top.name:string=x", "top.pid:uint=7"));
  const std::string thread = event_.edge.track;
  EXPECT_EQ(Must(R"({"tid":9,"ts":1,"pid":"7","ph":"E"})").shape.phase, Phase::kEnd);
  EXPECT_EQ(event_.edge.kind, SpanEdge::Kind::kEnd);
  EXPECT_EQ(event_.edge.track, thread);
  for (const char* other : {R"({"ph":"E","ts":1,"pid":7})", R"({"ph":"E","ts":1,"pid":7,"tid":8})",
                            R"({"ph":"E","ts":1,"tid":9})", R"({"ph":"e","ts":1,"id":9})"}) {
    EXPECT_NE(Must(other).edge.track, thread) << other;
  }
}

TEST_F(TraceEventParserTest, EndsOfAsynchronousSpansBelongToAnId) {
  Must(R"({"ph":"b","cat":"async","id":5,"pid":1,"tid":1,"ts":1,"name":"x"})");
  EXPECT_EQ(event_.shape.phase, Phase::kBegin);
  EXPECT_TRUE(event_.edge.is_async);
  EXPECT_THAT(Attributes(), ElementsAre("top.id:uint=5", "top.pid:uint=1", "top.name:string=x",
                                        "top.phase:string=b"));
  const std::string track = event_.edge.track;
  EXPECT_EQ(Must(R"({"ph":"e","cat":"async","id":"5","pid":2,"ts":1})").edge.track, track);
  for (const char* other :
       {R"({"ph":"e","cat":"async","id":6,"ts":1})", R"({"ph":"e","cat":"other","id":5,"ts":1})",
        R"({"ph":"e","cat":"async","id":5,"scope":"s","ts":1})",
        R"({"ph":"F","cat":"async","id":5,"name":"x","ts":1})"}) {
    EXPECT_NE(Must(other).edge.track, track) << other;
  }
  // Ids of one process.
  Must(R"({"ph":"b","id2":{"local":"0x1"},"pid":1,"ts":1,"name":"x"})");
  const std::string local = event_.edge.track;
  EXPECT_NE(Must(R"({"ph":"e","id2":{"local":"0x1"},"pid":2,"ts":1})").edge.track, local);
  EXPECT_EQ(Must(R"({"ph":"e","id2":{"local":"0x1"},"pid":1,"ts":1})").edge.track, local);

  EXPECT_EQ(Must(R"({"ph":"n","cat":"async","id":5,"ts":1,"name":"y"})").shape.phase,
            Phase::kInstant);
  EXPECT_EQ(event_.edge.kind, SpanEdge::Kind::kNone);
  EXPECT_THAT(Attributes(),
              ElementsAre("top.id:uint=5", "top.name:string=y", "top.phase:string=n"));
}

TEST_F(TraceEventParserTest, OtherPhasesAreKeptByTheirText) {
  Must(R"({"ph":"N","cat":"object","id":5,"ts":1,"name":"x"})");
  EXPECT_EQ(event_.shape.phase, Phase::kOther);
  EXPECT_THAT(Attributes(),
              ElementsAre("top.id:uint=5", "top.name:string=x", "top.phase:string=N"));
  Must(R"({"ts":1,"name":"x"})");
  EXPECT_EQ(event_.shape.phase, Phase::kOther);
  EXPECT_THAT(Attributes(), ElementsAre("top.name:string=x"));
}

TEST_F(TraceEventParserTest, CountersAreNumbers) {
  Must(R"({"ph":"C","ts":1,"id":"second","name":"q","args":{"a":"25.7","b":"-50","c":1.0,
           "d":719201510900040203,"e":"719201510900040202","f":"full","g":null,"h":1e2,
           "i":99999999999999999999,"j":"NaN","k":3}})");
  EXPECT_THAT(Attributes(),
              ElementsAre("top.id:string=second", "top.name:string=q", "data.a:double=25.7",
                          "data.b:int=-50", "data.c:double=1", "data.d:uint=719201510900040203",
                          "data.e:uint=719201510900040202", "data.f:string=full",
                          "data.g:null=", "data.h:double=100", "data.i:json=99999999999999999999",
                          "data.j:string=NaN", "data.k:uint=3"));
  EXPECT_EQ(event_.values_not_numeric, 4u);
  // Whatever comes first.
  Must(R"({"args":{"a":"1"},"ts":1,"ph":"C"})");
  EXPECT_THAT(Attributes(), ElementsAre("data.a:uint=1"));
  Must(R"({"args":{"a":"1"},"ts":1,"ph":"X","dur":1})");
  EXPECT_THAT(Attributes(), ElementsAre("data.a:string=1", "top.dur_ns:uint=1000"));
  EXPECT_EQ(event_.values_not_numeric, 0u);
}

TEST_F(TraceEventParserTest, WithoutACategoryThePhaseNamesTheType) {
  EXPECT_EQ(Must(R"({"ph":"M","name":"process_name","args":{"name":"python"}})").shape.event_type,
            "M");
  EXPECT_EQ(event_.shape.phase, Phase::kMetadata);
  EXPECT_EQ(Must(R"({"ph":"C","ts":5,"name":"mem","args":{"bytes":7}})").shape.phase,
            Phase::kCounter);
  EXPECT_THAT(Attributes(), ElementsAre("top.name:string=mem", "data.bytes:uint=7"));
}

TEST_F(TraceEventParserTest, MetadataTakesTheTimeBeforeIt) {
  parser_ = TraceEventParser(0, 77);
  EXPECT_EQ(Must(R"({"ph":"M"})").fields.timestamp_ns, 77u);
  EXPECT_EQ(Must(R"({"ph":"i","ts":1})").fields.timestamp_ns, 1000u);
  EXPECT_EQ(parser_.event_time()->ns, 1000u);
  EXPECT_EQ(Must(R"({"ph":"M","ts":"never"})").fields.timestamp_ns, 1000u);
  EXPECT_FALSE(parser_.event_time());
}

TEST_F(TraceEventParserTest, EventsWithoutAUsableTimeAreNone) {
  constexpr uint64_t kSecondNs = 1'000'000'000;
  parser_ = TraceEventParser(0, 5'000 * kSecondNs,
                             {.first_ns = 4'000 * kSecondNs, .last_ns = 6'000 * kSecondNs});
  for (const char* time : {"", R"(,"ts":null)", R"(,"ts":"")", R"(,"ts":"soon")", R"(,"ts":true)",
                           R"(,"ts":[1])", R"(,"ts":0)", R"(,"ts":0.0)", R"(,"ts":-5.5)",
                           R"(,"ts":3999999999.999)", R"(,"ts":6000000000.001)",
                           R"(,"ts":18446744073709551)", R"(,"ts":1e300)", R"(,"ts":NaN)"}) {
    for (const char* phase : {"X", "i", "B", "E", "C", "s", "f", "n", "?"}) {
      const std::string element =
          fmt::format(R"({{"ph":"{}","name":"late","dur":1,"id":1{}}})", phase, time);
      const absl::Status status = Parse(element);
      EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << element << " " << status;
      EXPECT_EQ(event_.name, "late");
    }
  }
  EXPECT_EQ(Must(R"({"ph":"M"})").fields.timestamp_ns, 5'000 * kSecondNs) << "moved by them";
  EXPECT_EQ(Must(R"({"ph":"i","ts":4000000000})").fields.timestamp_ns, 4'000 * kSecondNs);
  EXPECT_EQ(Must(R"({"ph":"i","ts":"6000000000"})").fields.timestamp_ns, 6'000 * kSecondNs);
}

TEST_F(TraceEventParserTest, NonFiniteNumbersBecomeStrings) {
  Must(R"({"ph":"i","ts":1,"args":{"a":NaN,"b":-Infinity,"c":[1,Infinity]}})");
  EXPECT_THAT(Attributes(), ElementsAre("data.a:string=NaN", "data.b:string=-Infinity",
                                        R"(data.c:json=[1,"Infinity"])"));
}

TEST_F(TraceEventParserTest, KeepsUnknownMembers) {
  Must(R"({"ph":"i","ts":1,"args":[1,2],"cat":3,"s":"g","dur_ns":"mine","sf":{"a":[]}})");
  EXPECT_EQ(event_.shape.event_type, "i");
  EXPECT_THAT(Attributes(), ElementsAre("top.args:json=[1,2]", "top.cat:uint=3", "top.s:string=g",
                                        "data.dur_ns:string=mine", R"(top.sf:json={"a":[]})"));
}

TEST_F(TraceEventParserTest, RejectsNonEvents) {
  for (const char* element :
       {"3", "\"x\"", "[1]", "{\"a\"", "{\"ph\":\"X\",\"ts\":1,\"a\":nope}", "{\"ph\":}",
        "{\"ph\":\"i\",\"ts\":1,\"args\":{\"a\":[1 2]}}", "{\"ph\":\"i\",\"name\":\"\xff\xfe\"}"}) {
    EXPECT_EQ(Parse(element).code(), absl::StatusCode::kInvalidArgument) << element;
  }
}

TEST_F(TraceEventParserTest, RefusesTooManyAttributes) {
  const auto with = [](uint32_t n) {
    std::string element = R"({"ph":"i","ts":1,"args":{)";
    for (uint32_t i = 0; i < n; ++i) element += fmt::format("{}\"k{}\":{}", i ? "," : "", i, i);
    return element + "}}";
  };
  EXPECT_TRUE(Parse(with(limits::kAttributesPerEventMax)).ok());
  EXPECT_EQ(Parse(with(limits::kAttributesPerEventMax + 1)).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(TraceEventParserTest, KeepsNothingFromPreviousEvent) {
  Must(R"({"ph":"X","cat":"a","tid":4,"ts":9,"dur":1,"args":{"x":1}})");
  Must(R"({"ph":"M"})");
  EXPECT_EQ(event_.shape.event_type, "M");
  EXPECT_EQ(event_.shape.present, FieldBit(Field::kTimestamp));
  EXPECT_EQ(event_.fields.thread_id, 0u);
  EXPECT_THAT(Attributes(), IsEmpty());
}

}  // namespace
}  // namespace neurontrace
