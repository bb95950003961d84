// SPDX-License-Identifier: Apache-2.0
// Documents in, rows out: every spelling the runtime may use, and what is kept of broken ones.
#include "agent/source/neuron/decode/nrt_event_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "agent/source/neuron/decode/decoded_document.h"

namespace neurontrace {
namespace {

using Value = DecodedDocument::Value;

std::string OneEvent(std::string_view members) {
  return std::string(R"({"events":[{)") + std::string(members) + R"(}],"data_version":2})";
}

uint32_t Bits(std::initializer_list<Field> fields) {
  uint32_t bits = 0;
  for (const Field field : fields) bits |= FieldBit(field);
  return bits;
}

TEST(NrtEventDecoderTest, DecodesAWholeEvent) {
  const DecodedDocument decoded(OneEvent(
      R"("event_type":"nc_exec_running","phase":"start","id":3377699720529028,"nc_idx":3,)"
      R"("nc_local_id":1156,"tracking_id":18446744073709551615,"thread_id":1113601,"worker_gid":35,)"
      R"("data":{"device_core_idx":12,"exec_id":7,"model_name":"","ok":true,"none":null,)"
      R"("ratio":0.25,"peer":-1},"timestamp_ns":1755115507555215300,"nrta_seq_id":9007199254740993)"));
  ASSERT_FALSE(decoded.outcome.fault);
  ASSERT_EQ(decoded.events.size(), 1u);
  const auto& event = decoded.events[0];
  EXPECT_EQ(event.type, "nc_exec_running");
  EXPECT_EQ(event.phase, Phase::kStart);
  EXPECT_EQ(event.nc_idx, 3u);
  EXPECT_EQ(event.present, 0xffu);
  EXPECT_EQ(event.quoted, 0u);
  const EventFields expected{.timestamp_ns = 1755115507555215300,
                             .id = 3377699720529028,
                             .nc_local_id = 1156,
                             .tracking_id = 18446744073709551615u,
                             .thread_id = 1113601,
                             .nrta_seq_id = 9007199254740993,
                             .worker_gid = 35};
  EXPECT_EQ(event.fields, expected);
  ASSERT_EQ(event.values.size(), 7u);
  EXPECT_EQ(event.values[0], (Value{"device_core_idx", ValueType::kUint, KeyScope::kData, 12, ""}));
  EXPECT_EQ(event.values[2], (Value{"model_name", ValueType::kString, KeyScope::kData, 0, ""}));
  EXPECT_EQ(event.values[3], (Value{"ok", ValueType::kBool, KeyScope::kData, 1, ""}));
  EXPECT_EQ(event.values[4], (Value{"none", ValueType::kNull, KeyScope::kData, 0, ""}));
  EXPECT_EQ(event.values[5].type, ValueType::kDouble);
  EXPECT_EQ(event.values[6],
            (Value{"peer", ValueType::kInt, KeyScope::kData, static_cast<uint64_t>(-1), ""}));
}

TEST(NrtEventDecoderTest, TakesKeysInAnyOrderAndWithWhiteSpace) {
  const DecodedDocument decoded(
      " { \"data_version\" : 2 ,\n \"other\" : [ {} , 1 ] , \"events\" : [ { \"timestamp_ns\" : 5 ,"
      " \"data\" : { \"b\" : 1 , \"a\" : \"x\" } , \"nc_idx\" : 1 , \"phase\" : \"stop\" ,"
      " \"event_type\" : \"late\" } ] } \n");
  ASSERT_FALSE(decoded.outcome.fault) << decoded.outcome.fault->what;
  ASSERT_EQ(decoded.events.size(), 1u);
  EXPECT_EQ(decoded.events[0].type, "late");
  EXPECT_EQ(decoded.events[0].phase, Phase::kStop);
  EXPECT_EQ(decoded.events[0].fields.timestamp_ns, 5u);
  ASSERT_EQ(decoded.events[0].values.size(), 2u);
  EXPECT_EQ(decoded.events[0].values[0].key, "b");
  EXPECT_EQ(decoded.events[0].values[1].text, "x");
}

TEST(NrtEventDecoderTest, RemembersWhichNumbersCameInQuotes) {
  const DecodedDocument decoded(OneEvent(
      R"("event_type":"t","nc_idx":"2","worker_gid":"-1","thread_id":"77","timestamp_ns":"9")"));
  ASSERT_EQ(decoded.events.size(), 1u);
  const auto& event = decoded.events[0];
  const uint32_t bits =
      Bits({Field::kNcIdx, Field::kWorkerGid, Field::kThreadId, Field::kTimestamp});
  EXPECT_EQ(event.present, bits);
  EXPECT_EQ(event.quoted, bits);
  EXPECT_EQ(event.nc_idx, 2u);
  EXPECT_EQ(event.fields.worker_gid, -1);
}

TEST(NrtEventDecoderTest, KeepsFieldsThatDoNotFitAsAttributes) {
  const DecodedDocument decoded(OneEvent(
      R"("event_type":5,"phase":"unknown","id":-1,"nc_local_id":1.5,"tracking_id":"0x12",)"
      R"("thread_id":null,"nc_idx":256,"worker_gid":18446744073709551615,"data":[1, 2],"x":"y",)"
      R"("timestamp_ns":1e3)"));
  ASSERT_EQ(decoded.events.size(), 1u);
  const auto& event = decoded.events[0];
  EXPECT_EQ(event.present, 0u);
  EXPECT_EQ(event.nc_idx, limits::kNoNcIdx);
  EXPECT_EQ(event.phase, Phase::kOther);
  EXPECT_EQ(event.fields.timestamp_ns, DecodedDocument::kFetchedNs);
  std::string keys;
  for (const Value& value : event.values) {
    EXPECT_EQ(value.scope, KeyScope::kTop);
    keys += value.key + " ";
  }
  EXPECT_EQ(keys,
            "event_type phase id nc_local_id tracking_id thread_id nc_idx worker_gid data x "
            "timestamp_ns neurontrace.timestamp ");
  EXPECT_EQ(event.values[8], (Value{"data", ValueType::kJson, KeyScope::kTop, 0, "[1, 2]"}));
  EXPECT_EQ(event.values[10].text, "1e3");
}

TEST(NrtEventDecoderTest, KeepsRepeatedKeys) {
  const DecodedDocument decoded(OneEvent(
      R"("event_type":"a","event_type":"b","phase":"start","phase":"stop","id":1,"id":2,)"
      R"("nc_idx":1,"nc_idx":2,"data":{"k":1,"k":2},"data":{"k":"three"},"timestamp_ns":5)"));
  ASSERT_FALSE(decoded.outcome.fault);
  ASSERT_EQ(decoded.events.size(), 1u);
  const auto& event = decoded.events[0];
  EXPECT_EQ(event.type, "a");
  EXPECT_EQ(event.phase, Phase::kStart);
  EXPECT_EQ(event.nc_idx, 1u);
  EXPECT_EQ(event.fields.id, 1u);
  ASSERT_EQ(event.values.size(), 7u);
  EXPECT_EQ(event.values[0].text, "b");
  EXPECT_EQ(event.values[2], (Value{"id", ValueType::kUint, KeyScope::kTop, 2, ""}));
  EXPECT_EQ(event.values[5], (Value{"k", ValueType::kUint, KeyScope::kData, 2, ""}));
  EXPECT_EQ(event.values[6].text, "three");
}

TEST(NrtEventDecoderTest, KeepsNestedValuesAsTheirText) {
  const DecodedDocument decoded(OneEvent(
      R"("event_type":"t","timestamp_ns":1,"data":{"n":{"a":[1,2.50,null, {"b":"\u00e9]}"}]},"e":[],"o":{ }})"));
  ASSERT_EQ(decoded.events.size(), 1u) << decoded.outcome.fault->what;
  ASSERT_EQ(decoded.events[0].values.size(), 3u);
  EXPECT_EQ(decoded.events[0].values[0].text, R"({"a":[1,2.50,null, {"b":"\u00e9]}"}]})");
  EXPECT_EQ(decoded.events[0].values[1].text, "[]");
  EXPECT_EQ(decoded.events[0].values[2].text, "{ }");
}

TEST(NrtEventDecoderTest, DecodesEscapesInNamesAndTexts) {
  const DecodedDocument decoded(OneEvent(
      R"("event_type":"caf\u00e9","timestamp_ns":1,"data":{"a\"b":"\ud83d\ude00\\","half":"\ud800"})"));
  ASSERT_EQ(decoded.events.size(), 1u);
  EXPECT_EQ(decoded.events[0].type, "café");
  EXPECT_EQ(decoded.events[0].values[0],
            (Value{"a\"b", ValueType::kString, KeyScope::kData, 0, "😀\\"}));
  EXPECT_EQ(decoded.events[0].values[1],
            (Value{"half", ValueType::kJson, KeyScope::kData, 0, R"("\ud800")"}));
}

TEST(NrtEventDecoderTest, KeepsContentBeforeTruncation) {
  const std::string whole =
      R"({"events":[{"event_type":"a","timestamp_ns":1,"data":{}},)"
      R"({"event_type":"b","timestamp_ns":2,"data":{"k":"text","n":{"x":[1]}}}],"data_version":2})";
  for (size_t size = 0; size < whole.size(); ++size) {
    const DecodedDocument decoded(std::string_view(whole).substr(0, size));
    ASSERT_TRUE(decoded.outcome.fault) << size;
    EXPECT_LE(decoded.outcome.fault->offset, size);
    const size_t first_end = whole.find("},{") + 1;
    const size_t second_end = whole.find("}],") + 1;
    EXPECT_EQ(decoded.events.size(), size >= second_end ? 2u : size >= first_end ? 1u : 0u) << size;
  }
  EXPECT_FALSE(DecodedDocument(whole).outcome.fault);
}

TEST(NrtEventDecoderTest, NamesThePlaceOfAFault) {
  const std::string json = R"({"events":[{"event_type":"a","timestamp_ns":1},{"event_type" "b"}]})";
  const DecodedDocument decoded(json);
  EXPECT_EQ(decoded.events.size(), 1u);
  ASSERT_TRUE(decoded.outcome.fault);
  EXPECT_EQ(decoded.outcome.fault->offset, json.find("\"b\""));
  EXPECT_EQ(decoded.outcome.fault->what, "expected a colon");
}

TEST(NrtEventDecoderTest, RejectsNonDocuments) {
  for (const char* json : {"",
                           "   ",
                           "null",
                           "[]",
                           "{}",
                           "7",
                           "{\"events\":{}}",
                           "{\"events\":[1}",
                           "{\"events\":[}",
                           "{\"events\":[]}x",
                           "{\"events\":[{\"a\":01}]}",
                           "{\"events\":[{\"a\":tru}]}",
                           "{\"events\":[{\"a\":\"\\x\"}]}",
                           "{\"events\":[{\"a\":[1,]}]}",
                           "{\"events\":[{,}]}",
                           "{\"events\":[{\"a\":{\"b\"}}]}",
                           "{\"events\":[{\"a\":{\"b\":1]}]}",
                           "\"",
                           "{\"",
                           "\\\""}) {
    const DecodedDocument decoded{json};
    EXPECT_TRUE(decoded.outcome.fault) << json;
    EXPECT_TRUE(decoded.events.empty()) << json;
  }
}

TEST(NrtEventDecoderTest, TakesADocumentWithoutEvents) {
  for (const char* json : {R"({"events":[],"data_version":2})", R"({"events":null})"}) {
    const DecodedDocument decoded{json};
    EXPECT_FALSE(decoded.outcome.fault) << json;
    EXPECT_TRUE(decoded.events.empty());
  }
}

TEST(NrtEventDecoderTest, CountsElementsThatAreNoEvents) {
  const DecodedDocument decoded(R"({"events":[null,{"event_type":"a","timestamp_ns":1},[2]]})");
  EXPECT_FALSE(decoded.outcome.fault);
  EXPECT_EQ(decoded.events.size(), 1u);
  EXPECT_EQ(decoded.outcome.unfit_events, 2u);
  ASSERT_EQ(decoded.unfit.size(), 2u);
  EXPECT_EQ(decoded.unfit[0].why, "the element is not an object");
}

TEST(NrtEventDecoderTest, CountsEventsBeyondLimitAndContinues) {
  std::string many = R"({"events":[{"nc_idx":4,"data":{)";
  for (uint32_t i = 0; i <= limits::kAttributesPerEventMax; ++i) {
    many += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":" + std::to_string(i);
  }
  many += R"(}},{"nc_idx":5,"data":{"long":")" + std::string(limits::kStringBytesMax + 1, 'x') +
          R"("}},{"event_type":"fits","timestamp_ns":1}]})";
  const DecodedDocument decoded(many);
  EXPECT_FALSE(decoded.outcome.fault);
  ASSERT_EQ(decoded.events.size(), 1u);
  EXPECT_EQ(decoded.events[0].type, "fits");
  ASSERT_EQ(decoded.unfit.size(), 2u);
  EXPECT_EQ(decoded.unfit[0].nc_idx, 4u);
  EXPECT_EQ(decoded.unfit[1].nc_idx, 5u);
}

TEST(NrtEventDecoderTest, RefusesNestingWithoutEnd) {
  for (const size_t depth : {100u, 256u, 257u, 100'000u}) {
    const DecodedDocument decoded(OneEvent(
        "\"event_type\":\"t\",\"timestamp_ns\":1,\"data\":{\"n\":" + std::string(depth, '[') +
        std::string(depth, ']') + "}"));
    EXPECT_EQ(decoded.outcome.fault.has_value(), depth > JsonCursor::kNestingMax) << depth;
  }
}

TEST(NrtEventDecoderTest, ReplacesBytesThatAreNotUtf8) {
  const DecodedDocument decoded(OneEvent(
      "\"event_type\":\"t\",\"timestamp_ns\":1,\"data\":{\"path\":\"caf\xe9/\xff\",\"ok\":\"é\"}"));
  EXPECT_FALSE(decoded.outcome.fault);
  EXPECT_EQ(decoded.outcome.repaired_bytes, 2u);
  ASSERT_EQ(decoded.events.size(), 1u);
  EXPECT_EQ(decoded.events[0].values[0].text, "caf?/?");
  EXPECT_EQ(decoded.events[0].values[1].text, "é");
}

TEST(NrtEventDecoderTest, StopsAtABareControlCharacter) {
  const std::string json =
      "{\"events\":[{\"event_type\":\"a\",\"timestamp_ns\":1},{\"event_type\":\"b\nc\"}]}";
  const DecodedDocument decoded(json);
  EXPECT_EQ(decoded.events.size(), 1u);
  ASSERT_TRUE(decoded.outcome.fault);
  EXPECT_EQ(decoded.outcome.fault->offset, json.find("\"b\n"));
}

// Three events whose strings can be told from what is outside by counting quotes.
constexpr std::string_view kThreeEvents =
    R"({"events":[{"event_type":"a","timestamp_ns":10},{"event_type":"b","data":{"k":"v","t":true},)"
    R"("timestamp_ns":20},{ "event_type" : "c" , "timestamp_ns" : 30 }],"data_version":2})";

// The number of events that end before this offset of kThreeEvents.
size_t EventsBefore(size_t offset) {
  size_t events = 0;
  for (const std::string_view end : {"10}", "20}", "30 }"}) {
    events += kThreeEvents.find(end) + end.size() <= offset ? 1 : 0;
  }
  return events;
}

// What the text is given behind kThreeEvents: it changes how simdjson's first stage fails.
constexpr const char* kTails[] = {"", "\"", "\\\"", "\\", "\x01\"\xff"};

TEST(NrtEventDecoderTest, KeepsEventsBeforeAByteThatMayNotBeOutsideStrings) {
  std::vector<std::string> intruders = {"\\", "\\\\", "\x7f", "\x80", "\xc3", "\xff", "é"};
  for (char c = 0; c < ' '; ++c) {
    if (!IsJsonBlank(c)) intruders.emplace_back(1, c);
  }
  NrtEventDecoder decoder;
  for (const std::string& intruder : intruders) {
    for (const char* tail : kTails) {
      bool in_string = false;
      size_t token = 0;  // where the scalar begins that `place` would extend
      for (size_t place = 0; place <= kThreeEvents.size(); ++place) {
        const char before = place > 0 ? kThreeEvents[place - 1] : '{';
        if (before == '"') in_string = !in_string;
        if (in_string) continue;
        if (!std::isalnum(static_cast<unsigned char>(before))) token = place;
        DecodedDocument decoded;
        decoded.Decode(decoder, std::string(kThreeEvents.substr(0, place)) + intruder +
                                    std::string(kThreeEvents.substr(place)) + tail);
        const auto where = testing::Message()
                           << "byte " << int{static_cast<uint8_t>(intruder[0])} << " at " << place
                           << ", tail " << testing::PrintToString(tail);
        ASSERT_TRUE(decoded.outcome.fault) << where;
        ASSERT_GE(decoded.outcome.fault->offset, token) << where;
        ASSERT_LE(decoded.outcome.fault->offset, place) << where;
        ASSERT_EQ(decoded.events.size(), EventsBefore(place)) << where;
      }
    }
  }
}

// The quote spoils the scalar it touches, or begins a string up to the next quote, behind which a
// former string lies bare.
TEST(NrtEventDecoderTest, KeepsEventsBeforeAnUnbalancedQuote) {
  NrtEventDecoder decoder;
  for (const char* tail : kTails) {
    bool in_string = false;
    size_t token = 0;
    for (size_t place = 0; place <= kThreeEvents.size(); ++place) {
      const char before = place > 0 ? kThreeEvents[place - 1] : '{';
      if (before == '"') in_string = !in_string;
      if (in_string) continue;
      if (!std::isalnum(static_cast<unsigned char>(before))) token = place;
      const std::string json = std::string(kThreeEvents.substr(0, place)) + '"' +
                               std::string(kThreeEvents.substr(place)) + tail;
      DecodedDocument decoded;
      decoded.Decode(decoder, json);
      const auto where = testing::Message() << place << ", tail " << testing::PrintToString(tail);
      ASSERT_TRUE(decoded.outcome.fault) << where;
      const size_t bare = json.find('"', place + 1) + 1;
      ASSERT_THAT(decoded.outcome.fault->offset, testing::AnyOf(token, place, bare)) << where;
      ASSERT_EQ(decoded.events.size(), EventsBefore(place)) << where;
    }
  }
}

TEST(NrtEventDecoderTest, KeepsEventsBeforeAControlCharacterInAString) {
  NrtEventDecoder decoder;
  for (const std::string intruder : {"\n", "\\\n", "\x1f", "\\\x01"}) {
    for (const char* tail : kTails) {
      bool in_string = false;
      size_t string = 0;
      for (size_t place = 1; place < kThreeEvents.size(); ++place) {
        if (kThreeEvents[place - 1] == '"') {
          in_string = !in_string;
          string = place - 1;
        }
        if (!in_string) continue;
        DecodedDocument decoded;
        decoded.Decode(decoder, std::string(kThreeEvents.substr(0, place)) + intruder +
                                    std::string(kThreeEvents.substr(place)) + tail);
        const auto where = testing::Message() << place << ", tail " << testing::PrintToString(tail);
        ASSERT_TRUE(decoded.outcome.fault) << where;
        ASSERT_EQ(decoded.outcome.fault->offset, string) << where;
        ASSERT_EQ(decoded.events.size(), EventsBefore(place)) << where;
      }
    }
  }
}

// The text breaks at its end, but it was no document long before.
TEST(NrtEventDecoderTest, NamesTheFirstOfTwoFaults) {
  const std::string json = R"({"events":[{"event_type":"a","timestamp_ns":1},7 8],"x":"open)";
  const DecodedDocument decoded(json);
  EXPECT_EQ(decoded.events.size(), 1u);
  ASSERT_TRUE(decoded.outcome.fault);
  EXPECT_EQ(decoded.outcome.fault->offset, json.find('8'));
}

TEST(NrtEventDecoderTest, NumbersEqualShapesEqually) {
  NrtEventDecoder decoder;
  struct Numbers final : NrtEventSink {
    void OnEvent(const NrtEvent& event) override { numbers.push_back(event.shape->number); }
    void OnUnfitEvent(uint32_t, const EventFields&, uint32_t, std::string_view) override {}
    std::vector<uint32_t> numbers;
  } sink;
  std::string json =
      R"({"events":[{"event_type":"a","data":{"x":1,"y":2}},{"event_type":"a","data":{"x":"1","y":2}},)"
      R"({"data":{"x":5,"y":6},"event_type":"a"},{"event_type":"a","data":{"y":2,"x":1}},)"
      R"({"event_type":"b","data":{"x":1,"y":2}},{"event_type":"a","x":1,"data":{"y":2}}]})";
  const size_t size = json.size();
  json.append(NrtEventDecoder::kPaddingBytes, '\0');
  decoder.Decode(json.data(), size, 1, sink);
  EXPECT_THAT(sink.numbers, testing::ElementsAre(0, 1, 0, 2, 3, 4));
}

TEST(NrtEventDecoderTest, BeginsANewGenerationWhenShapesHaveNoEnd) {
  NrtEventDecoder decoder;
  struct Generations final : NrtEventSink {
    void OnEvent(const NrtEvent& event) override {
      EXPECT_LT(event.shape->number, ShapeCache::kShapesMax);
      generation = event.shape->generation;
    }
    void OnUnfitEvent(uint32_t, const EventFields&, uint32_t, std::string_view) override {}
    uint32_t generation = 0;
  } sink;
  for (uint32_t i = 0; i < ShapeCache::kShapesMax + 2; ++i) {
    std::string json = OneEvent("\"event_type\":\"type" + std::to_string(i) + "\"");
    const size_t size = json.size();
    json.append(NrtEventDecoder::kPaddingBytes, '\0');
    decoder.Decode(json.data(), size, 1, sink);
  }
  EXPECT_EQ(sink.generation, 2u);
}

}  // namespace
}  // namespace neurontrace
