// SPDX-License-Identifier: Apache-2.0
// Goal: --compress gzip changes the packing of a file and nothing else, whatever its size.
// Method: files in memory, inflated by zlib.
#include "aggregator/export/gzip_file.h"

#include <gtest/gtest.h>

#include "tests/export/export_fixture.h"
#include "tests/export/inflate.h"

namespace neurontrace {
namespace {

class GzipTest : public ExportFixture {};

TEST_F(GzipTest, APackedExportIsThePlainOneUnderANameOfItsOwn) {
  Close(AddCore("i-a", 1, 0, 5), "span");
  const std::string plain = Export("json");
  StringFiles files;
  const auto summary = ExportCapture(source_, **FindExportFormat("json"),
                                     {.compression = ExportCompression::kGzip}, files, {});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(Inflate(files.text(), Wrapping::kGzip), plain);
  EXPECT_TRUE(files.files.contains("system_profile.json.gz"));
  EXPECT_EQ(summary->progress.bytes_written, files.bytes);
}

TEST_F(GzipTest, RefusesPacketsWhereAFormatHasNone) {
  EXPECT_EQ(ExportError("json", {.compression = ExportCompression::kPackets}),
            "only pftrace supports the compression of packets; use gzip for system_profile.json");
}

TEST_F(GzipTest, KeepsEveryByteOfFilesOfAnySize) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{70'000}, size_t{5'000'000}}) {
    std::string text(size, '\0');
    uint64_t state = 1;
    for (char& c : text) {  // what hardly packs
      state = state * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
      c = static_cast<char>(state >> 56);
    }
    StringFiles files;
    auto file = OpenCompressed(files, "x", ExportCompression::kGzip);
    ASSERT_TRUE(file.ok());
    for (size_t at = 0; at < size; at += 999'983) {
      ASSERT_TRUE((*file)->Write(std::string_view(text).substr(at, 999'983)).ok());
    }
    ASSERT_TRUE((*file)->Close().ok());
    EXPECT_TRUE(Inflate(files.text(), Wrapping::kGzip) == text) << size;
  }
}

TEST_F(GzipTest, ReportsDisconnectedReceiver) {
  StringFiles files;
  files.bytes_max = 10;  // the header of gzip
  auto file = OpenCompressed(files, "x", ExportCompression::kGzip);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Write("text").ok());  // which waits in zlib
  EXPECT_EQ((*file)->Close(), absl::UnavailableError("the receiver left"));
}

}  // namespace
}  // namespace neurontrace
