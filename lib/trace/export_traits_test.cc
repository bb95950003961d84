// SPDX-License-Identifier: Apache-2.0
// Goal: what a format has not is refused with what to do, and what it has is not.
#include "lib/trace/export_traits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Refusal(std::string_view format, ExportOption option) {
  return std::string(FindExportTraits(format)->Check(option).message());
}

TEST(ExportTraitsTest, RejectsExactlyUnsupportedOptions) {
  for (const ExportTraits& traits : AllExportTraits()) {
    EXPECT_EQ(FindExportTraits(traits.name()), &traits);
    for (int i = 0; i < kExportOptions; ++i) {
      const auto option = static_cast<ExportOption>(i);
      const absl::Status status = traits.Check(option);
      EXPECT_EQ(status.ok(), traits.Supports(option)) << traits.name() << " " << i << status;
      if (status.ok()) continue;
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      // By name, with an option to leave out or to write, and where it can be had.
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr(std::string(traits.name()) + " "), HasSubstr("--"),
                        HasSubstr("perfetto"), HasSubstr("supported by"), Not(HasSubstr("; ; "))));
    }
  }
  EXPECT_EQ(FindExportTraits("csv"), nullptr);
}

TEST(ExportTraitsTest, SuggestsRemedy) {
  EXPECT_EQ(
      Refusal("json", ExportOption::kPackets),
      "json cannot be compressed within the file: use --compress gzip; supported by perfetto");
  EXPECT_THAT(Refusal("parquet", ExportOption::kPrimaryGroup), HasSubstr("group its rows in SQL"));
  EXPECT_THAT(Refusal("xspace", ExportOption::kGzip),
              HasSubstr("its viewer reads uncompressed files"));
  EXPECT_THAT(Refusal("parquet", ExportOption::kSplitByWorker), HasSubstr("omit --split worker"));
}

}  // namespace
}  // namespace neurontrace
