// SPDX-License-Identifier: Apache-2.0
// Goal: every format of the service is in the table, and every field that asks for something is
// looked at.
#include "lib/wire/export_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// As an API's user asks for it.
v1::ExportRequest Asking(v1::ExportFormat format, ExportOption option) {
  v1::ExportRequest request;
  request.set_format(format);
  switch (option) {
    case ExportOption::kGzip:
      request.set_compression(v1::EXPORT_COMPRESSION_GZIP);
      break;
    case ExportOption::kPackets:
      request.set_compression(v1::EXPORT_COMPRESSION_PACKETS);
      break;
    case ExportOption::kMaxSize:
      request.set_max_file_bytes(1 << 20);
      break;
    case ExportOption::kSplitByWorker:
      request.set_split_by_worker(true);
      break;
    case ExportOption::kPrimaryGroup:
      request.add_primary_group("process_id");
      break;
    case ExportOption::kSecondaryGroup:
      request.add_secondary_group("process_id");
      break;
    case ExportOption::kNoFlows:
      request.set_no_flows(true);
      break;
    case ExportOption::kClockArguments:
      request.set_clock_arguments(true);
      break;
  }
  return request;
}

TEST(ExportOptionsTest, EveryFormatIsInTheTableAndRefusedByIt) {
  std::set<std::string_view> names;
  for (int i = v1::ExportFormat_MIN + 1; i <= v1::ExportFormat_MAX; ++i) {
    const auto format = static_cast<v1::ExportFormat>(i);
    const ExportTraits* const traits = TraitsOf(format);
    ASSERT_NE(traits, nullptr) << v1::ExportFormat_Name(format);
    names.insert(traits->name());
    for (int j = 0; j < kExportOptions; ++j) {
      const auto option = static_cast<ExportOption>(j);
      v1::ExportRequest request = Asking(format, option);
      EXPECT_EQ(CheckExportOptions(request), traits->Check(option)) << traits->name() << j;
      // Behind another one, too.
      request.set_format(v1::EXPORT_FORMAT_PERFETTO);
      request.add_more_formats(format);
      EXPECT_EQ(CheckExportOptions(request), traits->Check(option)) << traits->name() << j;
    }
  }
  EXPECT_EQ(names.size(), AllExportTraits().size());
}

TEST(ExportOptionsTest, AFormatThatIsNoneIsRefused) {
  v1::ExportRequest request;
  EXPECT_THAT(std::string(CheckExportOptions(request).message()),
              StartsWith("format 0 is unknown"));
  request.set_format(static_cast<v1::ExportFormat>(99));
  EXPECT_THAT(std::string(CheckExportOptions(request).message()), HasSubstr("99"));
}

TEST(ExportOptionsTest, ListsWithoutEndAreRefused) {
  v1::ExportRequest request;
  request.set_format(v1::EXPORT_FORMAT_PERFETTO);
  for (int i = 0; i < v1::ExportFormat_ARRAYSIZE; ++i) {
    request.add_more_formats(v1::EXPORT_FORMAT_PERFETTO);
  }
  EXPECT_TRUE(CheckExportOptions(request).ok());
  request.add_more_formats(v1::EXPORT_FORMAT_PERFETTO);
  EXPECT_THAT(std::string(CheckExportOptions(request).message()), StartsWith("more_formats has"));
  request.clear_more_formats();
  for (uint32_t i = 0; i <= limits::kSelectionItemsMax; ++i) request.add_neuron_cores(i);
  EXPECT_THAT(std::string(CheckExportOptions(request).message()), StartsWith("neuron_cores has"));
  request.clear_neuron_cores();
  for (uint32_t i = 0; i <= limits::kSelectionItemsMax; ++i) request.add_streams();
  EXPECT_THAT(std::string(CheckExportOptions(request).message()), StartsWith("streams has"));
}

TEST(ExportOptionsTest, SeveralFilesComeOfAFormatOrOfASize) {
  v1::ExportRequest request;
  request.set_format(v1::EXPORT_FORMAT_PERFETTO);
  EXPECT_FALSE(MakesManyFiles(request));
  request.set_max_file_bytes(1);
  EXPECT_TRUE(MakesManyFiles(request));
  request.Clear();
  request.set_format(v1::EXPORT_FORMAT_XSPACE);
  EXPECT_TRUE(MakesManyFiles(request));
}

}  // namespace
}  // namespace neurontrace
