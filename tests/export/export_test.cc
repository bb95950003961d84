// SPDX-License-Identifier: Apache-2.0
// Goal: the export as a whole: formats, errors, progress, an end on request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/export/parquet/parquet_format.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class ExportTest : public ExportFixture {
 protected:
  void FillCapture() {
    const uint32_t stream = AddCore("i-a", 1, 0, 5);
    for (uint64_t i = 0; i < 100'000; ++i) {
      script_.Span("span", kBase + i * 100, kBase + i * 100 + 50, i + 1);
      if (i % 2'000 == 1'999) Close(stream);
    }
  }
};

TEST_F(ExportTest, KnowsItsFormats) {
  EXPECT_EQ((*FindExportFormat("perfetto"))->file_name, "system_profile.pftrace");
  EXPECT_EQ((*FindExportFormat("json"))->file_name, "system_profile.json");
  EXPECT_THAT(FindExportFormat("svg").status().message(), HasSubstr("perfetto, json"));
}

TEST_F(ExportTest, AReceiverThatLeavesEndsIt) {
  FillCapture();
  for (const ExportFormat& format : ExportFormats()) {
    StringFiles files;
    files.bytes_max = format.name.starts_with("summary") ? 100
                      : format.name == "parquet"         ? 10'000
                                                         : 1'000'000;
    const auto summary = ExportCapture(source_, format, {}, files, {});
    const bool is_missing = format.name == "parquet" && !HasParquet();
    EXPECT_EQ(summary.status().code(),
              is_missing ? absl::StatusCode::kUnimplemented : absl::StatusCode::kUnavailable)
        << format.name;
  }
}

TEST_F(ExportTest, UnavailableFormatNamesBuildOption) {
  if (HasParquet()) GTEST_SKIP() << "it is built in";
  EXPECT_THAT(ExportError("parquet", {}), HasSubstr("scripts/setup"));
}

TEST_F(ExportTest, ReportsProgressAndCancels) {
  FillCapture();
  StringFiles files;
  uint64_t told = 0;
  ExportProgress last;
  auto summary = ExportCapture(source_, ExportFormats()[0], {}, files, [&](const auto& progress) {
    EXPECT_GE(progress.spans, last.spans);
    EXPECT_GE(progress.bytes_written, last.bytes_written);
    last = progress;
    ++told;
    return true;
  });
  ASSERT_TRUE(summary.ok());
  EXPECT_GT(told, 2u);
  EXPECT_EQ(summary->progress.spans, 100'000u);
  EXPECT_EQ(summary->progress.chunks_total, 50u);
  StringFiles others;
  summary =
      ExportCapture(source_, ExportFormats()[0], {}, others, [](const auto&) { return false; });
  EXPECT_EQ(summary.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ExportTest, AWindowThatIsNoneIsRefused) {
  ExportRequest request;
  request.filter.window_start_ns = 5;
  request.filter.window_end_ns = 5;
  EXPECT_THAT(ExportError("perfetto", request), HasSubstr("time window"));
}

TEST_F(ExportTest, EveryFormatWarnsAboutSpansBegunLongBeforeWindow) {
  const uint32_t stream = AddCore("i-a", 1, 0, 5);
  const auto at = [](uint64_t second) { return kBase + second * 1'000'000'000; };
  script_.Start("long", at(0), 1, 7);
  Close(stream);
  for (uint64_t second = 1; second < 10; ++second) {
    script_.Span("span", at(second), at(second) + 50, second + 1);
    Close(stream);
  }
  script_.Stop("long", at(10), 1, 7);
  Close(stream);
  constexpr std::string_view kReported = "began more than 2 s before the time window";
  for (const ExportFormat& format : ExportFormats()) {
    if (format.name == "parquet" && !HasParquet()) continue;
    SCOPED_TRACE(format.name);
    for (const uint64_t second : {2, 5}) {
      ExportRequest request;
      request.filter.window_start_ns = at(second);
      request.filter.window_end_ns = at(second + 1);
      StringFiles files;
      const auto summary = ExportCapture(source_, format, request, files, {});
      ASSERT_TRUE(summary.ok()) << summary.status();
      const bool is_reported = second == 5;
      EXPECT_EQ(summary->warnings.size(), is_reported ? 1u : 0u);
      if (is_reported) {
        EXPECT_THAT(summary->warnings, ::testing::ElementsAre(HasSubstr(kReported)));
      }
      // Columns of Parquet are compressed.
      if (format.name == "parquet") continue;
      bool is_in_file = false;
      for (const auto& [name, text] : files.files) {
        is_in_file |= text.find(kReported) != std::string::npos;
      }
      EXPECT_EQ(is_in_file, is_reported);
    }
  }
}

}  // namespace
}  // namespace neurontrace
