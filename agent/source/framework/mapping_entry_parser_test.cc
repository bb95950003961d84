// SPDX-License-Identifier: Apache-2.0
// Goal: an entry of a mapping file is one event with all its numbers, and anything else fails with
// the reason.
#include "agent/source/framework/mapping_entry_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "agent/source/framework/element_cutter.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/framework_mapping.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MappingEntryParserTest : public ::testing::Test {
 protected:
  absl::Status Parse(std::string_view element) {
    text_ = element;
    text_.append(ElementCutter::kPaddingBytes, '\0');
    return parser_.Parse(std::string_view(text_).substr(0, element.size()), event_);
  }
  // seq_nr, th_id, stream_id.
  std::vector<std::string> Lists() const {
    std::vector<std::string> lists;
    for (const AttributeValue& value : event_.values) lists.emplace_back(value.text);
    return lists;
  }
  std::string Refusal(std::string_view element) {
    const absl::Status status = Parse(element);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << element;
    return std::string(status.message());
  }

  MappingEntryParser parser_{1234};
  FrameworkEvent event_;
  std::string text_;
};

TEST_F(MappingEntryParserTest, AnEntryIsOneMetadataEvent) {
  ASSERT_TRUE(Parse(R"({"nrta_seq_id": 9007199254740993, "framework_op_exec_ids": [
    {"seq_nr": 12, "th_id": 1, "stream_id": 0}, {"stream_id": 2 ,"th_id":18446744073709551615,
     "seq_nr": 13}]})")
                  .ok());
  EXPECT_EQ(event_.shape.event_type, kFrameworkMappingEventType);
  EXPECT_EQ(event_.shape.phase, Phase::kMetadata);
  EXPECT_EQ(event_.shape.present, FieldBit(Field::kTimestamp) | FieldBit(Field::kNrtaSeqId));
  EXPECT_EQ(event_.shape.quoted, 0u);
  EXPECT_EQ(event_.fields.timestamp_ns, 1234u);
  EXPECT_EQ(event_.fields.nrta_seq_id, 9007199254740993u);
  ASSERT_EQ(event_.shape.keys.size(), 3u);
  EXPECT_EQ(event_.shape.keys[0], (ShapeKey{"seq_nr", ValueType::kJson, KeyScope::kData}));
  EXPECT_EQ(event_.shape.keys[1].name, "th_id");
  EXPECT_EQ(event_.shape.keys[2].name, "stream_id");
  EXPECT_THAT(Lists(), ElementsAre("[12,13]", "[1,18446744073709551615]", "[0,2]"));
}

TEST_F(MappingEntryParserTest, NumbersMayBeTextsNegativeOrAbsent) {
  ASSERT_TRUE(Parse(R"({"more":{"a":[1]},"framework_op_exec_ids":[{"seq_nr":"12"},)"
                    R"({"seq_nr":-1,"th_id":null,"name":"x"},{}],"nrta_seq_id":"7"})")
                  .ok());
  EXPECT_EQ(event_.fields.nrta_seq_id, 7u);
  EXPECT_EQ(event_.shape.quoted, FieldBit(Field::kNrtaSeqId));
  EXPECT_THAT(Lists(), ElementsAre("[12,-1,null]", "[null,null,null]", "[null,null,null]"));
  ASSERT_TRUE(Parse(R"({"nrta_seq_id":8,"framework_op_exec_ids":[]})").ok());
  EXPECT_EQ(event_.shape.quoted, 0u) << "nothing is left of the entry before";
  EXPECT_THAT(Lists(), ElementsAre("[]", "[]", "[]"));
}

TEST_F(MappingEntryParserTest, InvalidEntryIsReported) {
  EXPECT_THAT(Refusal(R"({"framework_op_exec_ids":[]})"), HasSubstr("nrta_seq_id"));
  EXPECT_THAT(Refusal(R"({"nrta_seq_id":-1,"framework_op_exec_ids":[]})"),
              HasSubstr("nrta_seq_id"));
  EXPECT_THAT(Refusal(R"({"nrta_seq_id":1.5,"framework_op_exec_ids":[]})"),
              HasSubstr("nrta_seq_id"));
  EXPECT_THAT(Refusal(R"({"nrta_seq_id":18446744073709551616,"framework_op_exec_ids":[]})"),
              HasSubstr("nrta_seq_id"));
  EXPECT_THAT(Refusal(R"({"nrta_seq_id":7})"), HasSubstr("framework_op_exec_ids is missing"));
  EXPECT_THAT(Refusal(R"({"nrta_seq_id":7,"framework_op_exec_ids":{}})"), HasSubstr("not a list"));
  EXPECT_THAT(Refusal(R"({"nrta_seq_id":7,"framework_op_exec_ids":[{"seq_nr":[1]}]})"),
              HasSubstr("seq_nr is not an integer"));
  EXPECT_THAT(Refusal(R"({"nrta_seq_id":7,"framework_op_exec_ids":[{"th_id":"null"}]})"),
              HasSubstr("th_id is not an integer"));
  for (const char* element : {"7", "[]", "{", R"({"nrta_seq_id":7,"framework_op_exec_ids":[1]})",
                              R"({"nrta_seq_id":7,"framework_op_exec_ids":[{]})"}) {
    EXPECT_FALSE(Parse(element).ok()) << element;
  }
}

TEST_F(MappingEntryParserTest, MoreOperationsThanAreAllowedAreRefused) {
  const auto entry = [](size_t operations) {
    std::string text = R"({"nrta_seq_id":7,"framework_op_exec_ids":[)";
    for (size_t i = 0; i < operations; ++i) {
      text += i == 0 ? "" : ",";
      text += R"({"seq_nr":18446744073709551615})";
    }
    return text + "]}";
  };
  ASSERT_TRUE(Parse(entry(limits::kMappingOperationsPerEntryMax)).ok());
  EXPECT_LE(event_.values[0].text.size(), limits::kStringBytesMax);
  EXPECT_EQ(Parse(entry(limits::kMappingOperationsPerEntryMax + 1)).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(FrameworkMappingNames, AreThoseOfTheWriter) {
  for (const char* name :
       {"framework_mapping_20251121_101530_042.json", "a/framework_mapping_1.json",
        "/x.y/framework_mapping_20251121_101530_042.json.gz"}) {
    EXPECT_TRUE(IsFrameworkMappingName(name)) << name;
  }
  for (const char* name : {"framework_mapping_.json", "framework_mapping.json",
                           "xframework_mapping_1.json", "framework_mapping_1.trace.json",
                           "framework_mapping_1.json.tmp", "framework_mapping_1.json/x", ""}) {
    EXPECT_FALSE(IsFrameworkMappingName(name)) << name;
  }
}

}  // namespace
}  // namespace neurontrace
