// SPDX-License-Identifier: Apache-2.0
// Goal: a trace compressed or in parts holds what it holds plain and whole, and each part opens by
// itself. Method: the same capture in every form, each validated and counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <set>

#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

class PftraceParts : public ExportFixture {
 protected:
  static constexpr uint64_t kSpans = 6'000;

  // Four workers; a span of each lasts from its begin to its end.
  void SetUp() override {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const uint32_t stream = AddCore("i-a", 10 + rank, 0, rank);
      script_.Span("nrt_load", kBase + rank, kBase + 10'000'000, 1'000'000, 8);
      for (uint64_t i = 0; i < kSpans; ++i) {
        script_.Span("nrt_execute", kBase + i * 1'000, kBase + i * 1'000 + 500, i + 1, 7,
                     {{"model_id", i}, {"exec_id", i * 7}});
        if (i % 1'000 == 999) Close(stream);
      }
    }
  }
  std::map<std::string, std::string> ExportFiles(const ExportRequest& request) {
    StringFiles files;
    const auto summary = ExportCapture(source_, **FindExportFormat("perfetto"), request, files, {});
    EXPECT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(files.open_files, 0u);
    if (summary.ok()) {
      EXPECT_EQ(summary->progress.bytes_written, files.bytes);
    }
    return files.files;
  }
  // Of all parts together; each part is sound.
  struct Found {
    uint64_t slices = 0;
    size_t parts = 0;
    size_t bytes_max = 0;
    std::set<std::pair<std::string, uint64_t>> begins;  // row, begin
  };
  static Found Read(const std::map<std::string, std::string>& files) {
    Found found;
    for (const auto& [name, text] : files) {
      if (name.ends_with(".json")) continue;
      ++found.parts;
      found.bytes_max = std::max(found.bytes_max, text.size());
      const TraceReport report = ExpectSound(text);
      EXPECT_EQ(report.summary.open_slices, 0u);
      if (text.starts_with("\x1f\x8b") || report.summary.compressed_packets > 0) {
        found.slices += report.summary.slices;
        continue;
      }
      for (const pftrace_check::Track& track : pftrace_check::Check(text).tracks) {
        if (!track.is_thread && !track.row.ends_with("neuron_rt")) continue;
        for (const pftrace_check::Slice& slice : track.slices) {
          ++found.slices;
          found.begins.emplace(track.row, slice.start_ns);
        }
      }
    }
    return found;
  }
};

TEST_F(PftraceParts, CompressedItHoldsTheSame) {
  const std::string plain = Export("perfetto");
  const TraceReport whole = ExpectSound(plain);
  for (const ExportCompression compression :
       {ExportCompression::kGzip, ExportCompression::kPackets}) {
    const std::string packed = Export("perfetto", {.compression = compression});
    EXPECT_LT(packed.size(), plain.size() / 4);
    const TraceReport report = ExpectSound(packed);
    EXPECT_EQ(report.summary.slices, whole.summary.slices);
    EXPECT_EQ(report.summary.arguments, whole.summary.arguments);
    EXPECT_EQ(report.summary.last_ns, whole.summary.last_ns);
    EXPECT_EQ(report.summary.compressed_packets > 0, compression == ExportCompression::kPackets);
  }
  const auto files = ExportFiles({.compression = ExportCompression::kGzip});
  EXPECT_THAT(files, Contains(Key("system_profile.pftrace.gz")));
  EXPECT_THAT(ExportError("json", {.compression = ExportCompression::kPackets}),
              HasSubstr("packets"));
}

TEST_F(PftraceParts, ByTimeEachSpanStandsInOnePartAtItsLength) {
  const Found whole = Read(ExportFiles({}));
  EXPECT_EQ(whole.slices, 4 * (kSpans + 1));
  const auto files = ExportFiles({.max_file_bytes = 1 << 20});
  const Found found = Read(files);
  EXPECT_GE(found.parts, 3u);
  EXPECT_EQ(found.slices, whole.slices);
  EXPECT_EQ(found.begins, whole.begins);
  EXPECT_LT(found.bytes_max, 3u << 20);
  ASSERT_THAT(files, Contains(Key("system_profile.parts.json")));
  EXPECT_THAT(files.at("system_profile.parts.json"),
              HasSubstr("\"file\": \"system_profile.part0001.pftrace\""));
}

TEST_F(PftraceParts, ByWorkerEachHasItsRowsInOnePart) {
  const Found whole = Read(ExportFiles({}));
  const auto files = ExportFiles({.max_file_bytes = 2 << 20, .split_by_worker = true});
  const Found found = Read(files);
  EXPECT_EQ(found.parts, 4u);
  EXPECT_EQ(found.begins, whole.begins);
  const auto part = pftrace_check::Check(files.at("system_profile.part0002.pftrace"));
  EXPECT_THAT(part.processes, ::testing::ElementsAre("i-a-pid11"));
  EXPECT_THAT(files.at("system_profile.parts.json"), HasSubstr("\"workers\": [\"gid1\"]"));
}

TEST_F(PftraceParts, AWorkerWithoutEventsHasNoPart) {
  const uint32_t idle = AddCore("i-a", 14, 0, 4);
  Close(idle);
  EXPECT_EQ(Read(ExportFiles({.max_file_bytes = 2 << 20, .split_by_worker = true})).parts, 4u);
}

TEST_F(PftraceParts, PartsAreCompressedToo) {
  const Found found = Read(ExportFiles({.compression = ExportCompression::kGzip,
                                        .max_file_bytes = 1 << 20,
                                        .split_by_worker = true}));
  EXPECT_EQ(found.slices, Read(ExportFiles({})).slices);
}

TEST_F(PftraceParts, PartsThatAreTooSmallAreRefused) {
  EXPECT_THAT(ExportError("perfetto", {.max_file_bytes = 1'000}), HasSubstr("at least 1MiB"));
}

}  // namespace
}  // namespace neurontrace
