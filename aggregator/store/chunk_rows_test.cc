// SPDX-License-Identifier: Apache-2.0
// What stands before a chunk and in its index reads back as it was written, and nothing else is
// taken for it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "aggregator/store/chunk_frame.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/codec_test_support.h"

namespace neurontrace {
namespace {

class ChunkIndexValue : public ::testing::Test {
 protected:
  ChunkIndexValue() {
    header_.first_timestamp_ns = 1'000'000;
    header_.event_count = 4'096;
  }
  absl::Status Decode(const std::string& value) {
    return DecodeChunkIndexValue(value, entry_, &read_);
  }

  // As `of_stops_`, with one type that no stop has and in the order of the shapes.
  const ForeignStops stops_{{"nrt_execute", "cc_running", "nc_exec_running"},
                            {{2, 17, 1'000'001}, {1, 3, 1'000'001}, {2, UINT64_MAX, 2'000'000}},
                            true};
  const ForeignStops of_stops_{{"nc_exec_running", "cc_running"},
                               {{0, 17, 1'000'001}, {1, 3, 1'000'001}, {0, UINT64_MAX, 2'000'000}}};
  ChunkHeader header_;
  ChunkIndexEntry entry_;
  ForeignStops read_ = stops_;  // of the entry before
};

TEST_F(ChunkIndexValue, ReadsBackWithTypesAndForeignStops) {
  for (const ForeignStops& stops : {stops_, of_stops_, ForeignStops{}}) {
    const std::string value = EncodeChunkIndexValue(header_, 4'711, stops);
    EXPECT_EQ(value[0], 1);
    ASSERT_TRUE(Decode(value).ok());
    EXPECT_EQ(entry_.bytes, 4'711u);
    EXPECT_EQ(entry_.first_timestamp_ns, 1'000'000u);
    EXPECT_EQ(entry_.event_count, 4'096u);
    EXPECT_EQ(read_, stops);
    ExpectNothingElseDecodes(value, [this](const std::string& text) { return Decode(text); });
  }
}

TEST(ChunkFrameTest, ReadsBack) {
  const ChunkFrame frame{1, 2, 3, 4, 5, 6};
  const auto bytes = frame.Encode();
  const std::string value =
      fmt::format("{}headcolumns", std::string_view(bytes.data(), bytes.size()));
  const auto read = ChunkFrame::Decode(value);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->header_bytes, 4u);
  EXPECT_EQ(read->last_timestamp_ns, 6u);
  EXPECT_FALSE(ChunkFrame::Decode(value.substr(0, ChunkFrame::kBytes + 3)));
  EXPECT_FALSE(ChunkFrame::Decode("x" + value.substr(1)));
}

}  // namespace
}  // namespace neurontrace
