// SPDX-License-Identifier: Apache-2.0
// How one element of traceEvents becomes an event.
#include "agent/source/framework/trace_event_parser.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "agent/source/framework/element_cutter.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
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

TEST_F(TraceEventParserTest, OddDurationsAreKeptAsTheyCame) {
  Must(R"({"ph":"X","ts":1,"dur":-5})");
  EXPECT_THAT(Attributes(), ElementsAre("top.dur:json=-5", "top.dur_ns:uint=0"));
  Must(R"({"ph":"X","ts":1,"dur":"soon"})");
  EXPECT_THAT(Attributes(), ElementsAre("top.dur:string=soon", "top.dur_ns:uint=0"));
  Must(R"({"ph":"X","ts":1})");
  EXPECT_THAT(Attributes(), ElementsAre("top.dur_ns:uint=0"));
  Must(R"({"ph":"X","ts":1,"dur":NaN})");
  EXPECT_THAT(Attributes(), ElementsAre("top.dur:string=NaN", "top.dur_ns:uint=0"));
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

TEST_F(TraceEventParserTest, OtherPhasesAreKeptByTheirText) {
  Must(R"({"ph":"b","cat":"async","id":5,"ts":1,"name":"x"})");
  EXPECT_EQ(event_.shape.phase, Phase::kOther);
  EXPECT_THAT(Attributes(),
              ElementsAre("top.id:uint=5", "top.name:string=x", "top.phase:string=b"));
  Must(R"({"ts":1,"name":"x"})");
  EXPECT_EQ(event_.shape.phase, Phase::kOther);
  EXPECT_THAT(Attributes(), ElementsAre("top.name:string=x"));
}

TEST_F(TraceEventParserTest, WithoutACategoryThePhaseNamesTheType) {
  EXPECT_EQ(Must(R"({"ph":"M","name":"process_name","args":{"name":"python"}})").shape.event_type,
            "M");
  EXPECT_EQ(event_.shape.phase, Phase::kMetadata);
  EXPECT_EQ(Must(R"({"ph":"C","ts":5,"name":"mem","args":{"bytes":7}})").shape.phase,
            Phase::kCounter);
  EXPECT_THAT(Attributes(), ElementsAre("top.name:string=mem", "data.bytes:uint=7"));
}

TEST_F(TraceEventParserTest, EventsWithoutATimeTakeTheLastOne) {
  parser_ = TraceEventParser(0, 77);
  EXPECT_EQ(Must(R"({"ph":"M"})").fields.timestamp_ns, 77u);
  EXPECT_FALSE(parser_.had_time());
  EXPECT_EQ(Must(R"({"ph":"i","ts":1})").fields.timestamp_ns, 1000u);
  EXPECT_TRUE(parser_.had_time());
  EXPECT_EQ(Must(R"({"ph":"M"})").fields.timestamp_ns, 1000u);
}

TEST_F(TraceEventParserTest, NonFiniteNumbersBecomeStrings) {
  Must(R"({"ph":"i","ts":1,"args":{"a":NaN,"b":-Infinity,"c":[1,Infinity]}})");
  EXPECT_THAT(Attributes(), ElementsAre("data.a:string=NaN", "data.b:string=-Infinity",
                                        R"(data.c:json=[1,"Infinity"])"));
}

TEST_F(TraceEventParserTest, OddMembersAreKept) {
  Must(R"({"ph":"i","ts":1,"args":[1,2],"cat":3,"s":"g","dur_ns":"mine","sf":{"a":[]}})");
  EXPECT_EQ(event_.shape.event_type, "i");
  EXPECT_THAT(Attributes(), ElementsAre("top.args:json=[1,2]", "top.cat:uint=3", "top.s:string=g",
                                        "data.dur_ns:string=mine", R"(top.sf:json={"a":[]})"));
}

TEST_F(TraceEventParserTest, RefusesWhatIsNoEvent) {
  for (const char* element :
       {"3", "\"x\"", "[1]", "{\"a\"", "{\"ph\":\"X\",\"ts\":1,\"a\":nope}", "{\"ph\":}",
        "{\"ph\":\"i\",\"ts\":1,\"args\":{\"a\":[1 2]}}", "{\"ts\":99999999999999999999}",
        "{\"ph\":\"i\",\"name\":\"\xff\xfe\"}", "{\"ph\":\"i\",\"ts\":-1}"}) {
    const absl::Status status = Parse(element);
    // A time beyond 64 bits is kept as an attribute; all else here is refused.
    if (std::string_view(element).find("9999") != std::string_view::npos) {
      EXPECT_TRUE(status.ok()) << status;
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << element;
    }
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

TEST_F(TraceEventParserTest, NothingStaysFromTheEventBefore) {
  Must(R"({"ph":"X","cat":"a","tid":4,"ts":9,"dur":1,"args":{"x":1}})");
  Must(R"({"ph":"i"})");
  EXPECT_EQ(event_.shape.event_type, "i");
  EXPECT_EQ(event_.shape.present, FieldBit(Field::kTimestamp));
  EXPECT_EQ(event_.fields.thread_id, 0u);
  EXPECT_THAT(Attributes(), IsEmpty());
}

}  // namespace
}  // namespace neurontrace
