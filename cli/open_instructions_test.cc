// SPDX-License-Identifier: Apache-2.0
#include "cli/open_instructions.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "lib/base/unique_fd.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

class OpenInstructionsTest : public ::testing::Test {
 protected:
  OpenInstructionsTest() { request_.set_format(v1::EXPORT_FORMAT_PERFETTO); }

  // The hint for a sparse file of this length.
  std::string ExplanationFor(off_t bytes) {
    const std::string path = ::testing::TempDir() + "how_to_open.pftrace";
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(ftruncate(fd.get(), bytes), 0);
    std::string words = OpenInstructions(request_, path);
    unlink(path.c_str());
    return words;
  }

  v1::ExportRequest request_;
};

TEST_F(OpenInstructionsTest, ABrowserOpensWhatItsMemoryHolds) {
  EXPECT_EQ(ExplanationFor(200'000'000),
            "Open it at https://ui.perfetto.dev (the file stays on this machine).");
  EXPECT_THAT(ExplanationFor(200'000'001), HasSubstr("trace_processor --httpd "));
}

TEST_F(OpenInstructionsTest, CompressedFileLimitIsLower) {
  request_.set_compression(v1::EXPORT_COMPRESSION_GZIP);
  EXPECT_THAT(ExplanationFor(20'000'000), HasSubstr("Open it at"));
  EXPECT_THAT(ExplanationFor(20'000'001), HasSubstr("--max-size 150MB"));
}

TEST_F(OpenInstructionsTest, OpensOnePart) {
  request_.set_max_file_bytes(1'000'000);
  EXPECT_THAT(OpenInstructions(request_, "out"), HasSubstr("out/system_profile.parts.json"));
  EXPECT_THAT(OpenInstructions(request_, ""), HasSubstr("Open a part"));
}

TEST_F(OpenInstructionsTest, NamesFilesWrittenByAggregator) {
  EXPECT_THAT(OpenInstructions(request_, ""), HasSubstr("system_profile.pftrace"));
}

TEST_F(OpenInstructionsTest, FindsTraceAmongSeveralFormats) {
  request_.set_format(v1::EXPORT_FORMAT_JSON);
  request_.add_more_formats(v1::EXPORT_FORMAT_PERFETTO);
  EXPECT_THAT(OpenInstructions(request_, ""), HasSubstr("system_profile.pftrace"));
}

TEST_F(OpenInstructionsTest, OtherFormatsNeedNoExplanation) {
  request_.set_format(v1::EXPORT_FORMAT_JSON);
  EXPECT_EQ(OpenInstructions(request_, "trace.json"), "");
}

}  // namespace
}  // namespace neurontrace::cli
