// SPDX-License-Identifier: Apache-2.0
// Goal: what a format has not is wrong usage before anybody is asked, and a file's name means the
// same wherever a file is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/command_test_support.h"
#include "cli/export_format.h"
#include "lib/wire/export_options.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

class ExportCommandTest : public CommandLineTest {
 protected:
  ExportCommandTest() { service_.spec.set_name("nobody asked"); }
  // Refused before anybody was asked.
  void ExpectRefused(const std::vector<const char*>& words) {
    service_.export_request.Clear();
    EXPECT_EQ(RunCli(words), kExitUsage) << testing::PrintToString(words);
    EXPECT_EQ(service_.export_request.capture_id(), "");
    EXPECT_EQ(service_.spec.name(), "nobody asked");
    EXPECT_EQ(service_.stopped, "");
  }
  const std::string directory_ = testing::TempDir() + "/cli_export_command";
};

TEST_F(ExportCommandTest, EveryOptionThatAFormatHasNotIsWrongUsage) {
  const std::vector<std::pair<ExportOption, std::vector<const char*>>> kOptions = {
      {ExportOption::kGzip, {"--compress", "gzip"}},
      {ExportOption::kPackets, {"--compress", "packets"}},
      {ExportOption::kMaxSize, {"--max-size", "150MB"}},
      {ExportOption::kSplitByWorker, {"--max-size", "150MB", "--split", "worker"}},
      {ExportOption::kPrimaryGroup, {"--system-trace-primary-group", "process_id"}},
      {ExportOption::kSecondaryGroup, {"--system-trace-secondary-group", "worker_gid"}},
      {ExportOption::kNoFlows, {"--no-flows"}},
      {ExportOption::kClockArguments, {"--clock-arguments"}}};
  ASSERT_EQ(kOptions.size(), static_cast<size_t>(kExportOptions));
  int refused = 0;
  for (const ExportTraits& traits : AllExportTraits()) {
    for (const auto& [option, typed] : kOptions) {
      if (traits.Supports(option)) continue;
      const std::string format(traits.name());
      std::vector<const char*> line = {"export", kCaptureId, "--format", format.c_str()};
      line.insert(line.end(), typed.begin(), typed.end());
      ExpectRefused(line);
      EXPECT_THAT(err_, HasSubstr("neurontrace: " + format + " ")) << typed.back();
      ++refused;
    }
  }
  EXPECT_GT(refused, 30);
  // Of several formats each has to have it.
  ExpectRefused({"export", kCaptureId, "--to", "/fsx/a", "--format", "perfetto", "--format", "json",
                 "--max-size", "150MB"});
  EXPECT_THAT(err_, HasSubstr("json cannot be split"));
}

TEST_F(ExportCommandTest, FormatsAreCalledAlikeOnBothSides) {
  const std::vector<std::string> names = ExportFormatNames();
  EXPECT_EQ(names.size(), AllExportTraits().size());
  for (const ExportTraits& traits : AllExportTraits()) {
    EXPECT_THAT(names, testing::Contains(traits.name()));
  }
}

TEST_F(ExportCommandTest, AFilesNameMeansTheSameInEveryCommand) {
  const struct {
    const char* name;
    v1::ExportFormat format;
    v1::ExportCompression compression;
  } kNames[] = {
      {"x.pftrace", v1::EXPORT_FORMAT_PERFETTO, v1::EXPORT_COMPRESSION_NONE},
      {"x.pftrace.gz", v1::EXPORT_FORMAT_PERFETTO, v1::EXPORT_COMPRESSION_GZIP},
      {"x.json.gz", v1::EXPORT_FORMAT_JSON, v1::EXPORT_COMPRESSION_GZIP},
      {"x.trace.json.gz", v1::EXPORT_FORMAT_CHROME_JSON, v1::EXPORT_COMPRESSION_GZIP},
      {"x.jsonl.gz", v1::EXPORT_FORMAT_EVENTS, v1::EXPORT_COMPRESSION_GZIP},
      {"x.summary.json", v1::EXPORT_FORMAT_SUMMARY_JSON, v1::EXPORT_COMPRESSION_NONE},
      {"x.gz", v1::EXPORT_FORMAT_PERFETTO, v1::EXPORT_COMPRESSION_GZIP},
  };
  for (const auto& named : kNames) {
    const std::string path = testing::TempDir() + "/" + named.name;
    for (const std::vector<const char*>& words :
         {std::vector<const char*>{"export", kCaptureId},
          std::vector<const char*>{"capture", "--duration", "1s"},
          std::vector<const char*>{"capture", "stop", kCaptureId}}) {
      std::vector<const char*> line = words;
      line.insert(line.end(), {"-o", path.c_str()});
      service_.export_request.Clear();
      EXPECT_EQ(RunCli(line), kExitDone) << err_;
      EXPECT_EQ(service_.export_request.format(), named.format) << words[0] << named.name;
      EXPECT_EQ(service_.export_request.compression(), named.compression) << words[0] << named.name;
    }
    // What `record` asks for.
    const auto request = RequestNamedBy("", path);
    ASSERT_TRUE(request.ok());
    EXPECT_EQ(request->format(), named.format);
    EXPECT_EQ(request->compression(), named.compression);
  }
}

TEST_F(ExportCommandTest, ANameThatItsFormatCannotHaveIsRefusedBeforeAnythingIsRecorded) {
  const std::string path = directory_ + ".parquet.gz";
  ExpectRefused({"export", kCaptureId, "-o", path.c_str()});
  ExpectRefused({"capture", "--duration", "1s", "-o", path.c_str()});
  EXPECT_THAT(
      err_,
      HasSubstr(
          "parquet cannot be compressed as a whole (its tables are already compressed): omit"));
  ExpectRefused({"capture", "stop", kCaptureId, "-o", path.c_str()});
  EXPECT_EQ(RunCli({"record", "-o", path.c_str(), "--", "true"}), kExitUsage);
}

}  // namespace
}  // namespace neurontrace::cli
