// SPDX-License-Identifier: Apache-2.0
// Goal: the table of what formats take (lib/trace/export_traits.h) is what they do: every option
// that a format has is taken and changes what is written, and every format is in both tables.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "lib/trace/export_traits.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

class ExportOptionsTest : public ExportFixture {
 protected:
  // Two workers, whose spans have what every option is about: several threads and an execution with
  // its preparation, call and run.
  void SetUp() override {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const uint32_t stream = AddCore("i-a", 10 + rank, 0, rank);
      for (uint64_t i = 0; i < 50; ++i) {
        const uint64_t at_ns = kBase + i * 10'000;
        const EventScript::Attributes exec_id = {{"exec_id", i}};
        script_.Span("nrt_execute", at_ns, at_ns + 9'000, 3 * i + 1, 7, exec_id);
        script_.Span("kbl_exec_pre", at_ns + 10, at_ns + 20, 3 * i + 2, 7, exec_id);
        script_.Span("nc_exec_running", at_ns + 30, at_ns + 8'000, 3 * i + 3, 8, exec_id);
      }
      Close(stream);
    }
  }

  static ExportRequest Asking(ExportOption option) {
    ExportRequest request;
    switch (option) {
      case ExportOption::kGzip:
        request.compression = ExportCompression::kGzip;
        break;
      case ExportOption::kPackets:
        request.compression = ExportCompression::kPackets;
        break;
      case ExportOption::kMaxSize:
        request.max_file_bytes = 1 << 20;
        break;
      case ExportOption::kSplitByWorker:
        request.max_file_bytes = 1 << 20;
        request.split_by_worker = true;
        break;
      case ExportOption::kPrimaryGroup:
        request.primary_group = {"instance_id"};
        break;
      case ExportOption::kSecondaryGroup:
        request.secondary_group = {"process_id", "thread_id"};
        break;
      case ExportOption::kNoFlows:
        request.no_flows = true;
        break;
      case ExportOption::kClockArguments:
        request.clock_arguments = true;
        break;
    }
    return request;
  }

  absl::StatusOr<std::map<std::string, std::string>> FilesOf(const ExportFormat& format,
                                                             const ExportRequest& request) {
    StringFiles files;
    const auto summary = ExportCapture(source_, format, request, files, {});
    if (!summary.ok()) return summary.status();
    return files.files;
  }
};

TEST_F(ExportOptionsTest, EveryFormatUsesOptionsOfTheTable) {
  size_t events = 0;
  for (const ExportTraits& traits : AllExportTraits()) {
    if (traits.name() == "events") {  // is no timeline, and has a way of its own
      ++events;
      continue;
    }
    const auto format = FindExportFormat(traits.name());
    ASSERT_TRUE(format.ok()) << format.status();
    const auto plain = FilesOf(**format, {});
    if (plain.status().code() == absl::StatusCode::kUnimplemented) continue;  // built without it
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_EQ(plain->size() > 1 || plain->begin()->first.find('/') != std::string::npos,
              traits.is_directory())
        << traits.name();
    for (int i = 0; i < kExportOptions; ++i) {
      const auto option = static_cast<ExportOption>(i);
      if (!traits.Supports(option)) continue;
      const auto files = FilesOf(**format, Asking(option));
      ASSERT_TRUE(files.ok()) << traits.name() << " " << i << ": " << files.status();
      // Tables and planes of this size are one file each all the same.
      if (option == ExportOption::kMaxSize && traits.is_directory()) continue;
      // Tables have columns of it whatever is asked.
      if (option == ExportOption::kClockArguments && traits.name() == "parquet") continue;
      EXPECT_TRUE(*files != *plain) << traits.name() << " does nothing with option " << i;
    }
  }
  EXPECT_EQ(AllExportTraits().size(), ExportFormats().size() + events);
}

}  // namespace
}  // namespace neurontrace
