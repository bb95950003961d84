// SPDX-License-Identifier: Apache-2.0
// Goal: a file reads the same plain and gzipped, however its bytes come, and a damaged one ends
// where it is damaged. Method: one trace in all forms.
#include <zlib.h>

#include "lib/base/status.h"
#include "lib/validate/trace_maker.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Gzip(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

class TraceFile : public TraceMaker {
 protected:
  void SetUp() override {
    Row();
    for (int i = 0; i < 20'000; ++i) {
      Event(kBegin, 2, 5, Named("a slice"));
      Event(kEnd, 2, 10);
    }
  }
};

TEST_F(TraceFile, ReadsTheSameInEveryForm) {
  const std::string half = trace_.substr(0, trace_.size() / 2);
  const std::string rest = trace_.substr(trace_.size() / 2);
  for (const std::string& file : {trace_, Gzip(trace_), Gzip(half) + Gzip(rest)}) {
    for (const size_t step : {size_t{1'000}, size_t{SIZE_MAX}}) {
      const TraceReport report = Validate(file, step);
      EXPECT_THAT(ChecksOf(report), IsEmpty());
      EXPECT_EQ(report.summary.slices, 20'000u);
      EXPECT_EQ(report.summary.file_bytes, file.size());
      EXPECT_EQ(report.summary.uncompressed_bytes, trace_.size());
    }
  }
}

TEST_F(TraceFile, AGzipFileThatEndsEarly) {
  const std::string file = Gzip(trace_);
  const TraceReport report = Validate(file.substr(0, file.size() / 2));
  EXPECT_EQ(report.findings.count(TraceCheck::kCompression), 1u);
  EXPECT_GT(report.summary.slices, 1'000u) << "what is there is read";
}

TEST_F(TraceFile, AGzipFileThatIsDamaged) {
  std::string file = Gzip(trace_);
  for (size_t i = file.size() / 2; i < file.size() / 2 + 40; ++i) file[i] ^= 0x55;
  const TraceReport report = Validate(file);
  EXPECT_GE(report.findings.errors(), 1u);
}

TEST_F(TraceFile, AnErrorOfTheReaderIsNoFinding) {
  size_t calls = 0;
  const auto report = ValidateTrace([&](char* out, size_t max) -> absl::StatusOr<size_t> {
    if (calls++ > 0) return Unavailable("the disk is gone");
    const size_t count = std::min<size_t>(max, 1'000);
    std::memcpy(out, trace_.data(), count);
    return count;
  });
  EXPECT_EQ(report.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(report.status().message(), HasSubstr("the disk is gone"));
}

}  // namespace
}  // namespace neurontrace
