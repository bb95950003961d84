// SPDX-License-Identifier: Apache-2.0
// Goal: parts are about as large as they are to be, together hold what the whole trace holds, and
// the index names the content of each. Method: captures by chance with everything that a trace
// derives or holds back, in every form and at several sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;

class PftracePartSize : public ExportFixture {
 protected:
  // A line of the index.
  struct Indexed {
    std::string file;
    uint64_t bytes = 0;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
  };
  // Row, name, begin and end of a slice that was recorded, and how often.
  using Slices = std::map<std::tuple<std::string, std::string, uint64_t, uint64_t>, int>;

  uint64_t Below(uint64_t limit) {
    return std::uniform_int_distribution<uint64_t>(0, limit)(random_);
  }

  // So many spans of one core: short and long, inside each other and not, executions, collectives,
  // copies and allocations, some with much text, some at one moment, some that never end.
  void FillCore(uint32_t stream, uint64_t spans) {
    uint64_t at_ns = kBase + Below(1'000);
    for (uint64_t i = 0; i < spans; ++i) {
      at_ns += Below(20) == 0 ? 0 : Below(40'000);
      const uint64_t end_ns = at_ns + (Below(30) == 0 ? Below(300'000'000) : Below(100'000));
      AddSpan(i + 1, at_ns, end_ns);
      if (i % 1'500 == 1'499 || i + 1 == spans) Close(stream);
    }
  }
  void AddSpan(uint64_t id, uint64_t at_ns, uint64_t end_ns) {
    switch (Below(9)) {
      case 0:
        script_.Span("nc_exec_running", at_ns, end_ns, id, 7, {{"exec_id", id}});
        return;
      case 1:
        script_.Span("cc_running", at_ns, end_ns, id, 7,
                     {{"exec_id", id / 4}, {"op_id", id % 4}, {"algorithm", std::string("ring")}});
        return;
      case 2:
        script_.Span("dmem_buf_copyin", at_ns, end_ns, id, 7, {{"size", Below(1 << 30)}});
        return;
      case 3:
        script_.Span("nrt_dma_mem_alloc", at_ns, end_ns, id, 7,
                     {{"size", Below(1 << 20)}, {"hbm_idx", Below(3)}});
        return;
      case 4:
        script_.Span("nrt_load", at_ns, end_ns, id, 7,
                     {{"path", std::string(Below(3'000), static_cast<char>('a' + id % 26))}});
        return;
      case 5:
        script_.Start("nrt_never_ends", at_ns, id, 7 + Below(3), {});
        return;
      default:
        script_.Span("nrt_execute", at_ns, end_ns, id, 7 + Below(3),
                     {{"model_id", id}, {"exec_id", id * 7}});
    }
  }

  std::map<std::string, std::string> ExportFiles(const ExportRequest& request) {
    StringFiles files;
    const auto summary = ExportCapture(source_, **FindExportFormat("perfetto"), request, files, {});
    EXPECT_TRUE(summary.ok()) << summary.status();
    EXPECT_EQ(files.open_files, 0u);
    return files.files;
  }

  static Slices Recorded(const std::string& text) {
    Slices slices;
    for (const pftrace_check::Track& track : pftrace_check::Check(text).tracks) {
      const bool is_row = track.row.ends_with("-neuron_rt") || track.row.ends_with("-neuron_hw");
      if (!is_row) continue;
      for (const pftrace_check::Slice& slice : track.slices) {
        ++slices[{track.row, slice.name, slice.start_ns, slice.end_ns}];
      }
    }
    return slices;
  }

  static std::vector<Indexed> ReadIndex(const std::string& text) {
    const auto text_of = [&](size_t& at, const std::string& key) {
      at = text.find("\"" + key + "\": \"", at) + key.size() + 5;
      return text.substr(at, text.find('"', at) - at);
    };
    std::vector<Indexed> lines;
    for (size_t at = text.find("\"parts\""); text.find("{\"file\"", at) != std::string::npos;) {
      Indexed line;
      line.file = text_of(at, "file");
      line.bytes = std::stoull(text_of(at, "bytes"));
      line.begin_ns = std::stoull(text_of(at, "begin_ns"));
      line.end_ns = std::stoull(text_of(at, "end_ns"));
      lines.push_back(line);
    }
    return lines;
  }

  // The index names every file with its size; where parts follow each other they leave nothing out.
  void ExpectIndexed(const std::map<std::string, std::string>& files, bool is_by_worker) {
    const std::vector<Indexed> lines = ReadIndex(files.at("system_profile.parts.json"));
    ASSERT_EQ(lines.size() + 1, files.size());
    std::string last;
    for (size_t i = 0; i < lines.size(); ++i) {
      ASSERT_TRUE(files.contains(lines[i].file)) << lines[i].file;
      EXPECT_EQ(lines[i].bytes, files.at(lines[i].file).size());
      EXPECT_LT(last, lines[i].file);
      last = lines[i].file;
      EXPECT_LE(lines[i].begin_ns, lines[i].end_ns);
      if (is_by_worker || i == 0) continue;
      EXPECT_EQ(lines[i].begin_ns, lines[i - 1].end_ns);
    }
  }
  // What begins in a part begins in the time that the index has for it.
  static void ExpectWithin(const Slices& slices, const Indexed& line) {
    for (const auto& [slice, count] : slices) {
      EXPECT_GE(std::get<2>(slice), line.begin_ns) << line.file;
      EXPECT_LT(std::get<2>(slice), line.end_ns) << line.file;
    }
  }

  void ExpectParts(const ExportRequest& request, const Slices& whole) {
    SCOPED_TRACE(testing::Message() << request.max_file_bytes << " bytes, compression "
                                    << static_cast<int>(request.compression) << ", by worker "
                                    << request.split_by_worker);
    const auto files = ExportFiles(request);
    ASSERT_TRUE(files.contains("system_profile.parts.json"));
    Slices all;
    for (const auto& [name, text] : files) {
      if (name.ends_with(".json")) continue;
      EXPECT_LE(text.size(), request.max_file_bytes + request.max_file_bytes / 2) << name;
      ExpectSound(text);
    }
    ExpectIndexed(files, request.split_by_worker);
    if (request.compression != ExportCompression::kNone) return;
    for (const Indexed& line : ReadIndex(files.at("system_profile.parts.json"))) {
      const Slices of_part = Recorded(files.at(line.file));
      ExpectWithin(of_part, line);
      for (const auto& [slice, count] : of_part) all[slice] += count;
    }
    EXPECT_EQ(all, whole) << "nothing twice, nothing left out, every length as it is";
  }

  std::mt19937_64 random_{20'261'122};
};

TEST_F(PftracePartSize, PartsEqualWhole) {
  for (uint32_t worker = 0; worker < 5; ++worker) {
    FillCore(AddCore(worker < 3 ? "i-a" : "i-b", 10 + worker, 0, worker), 1'500 + Below(3'000));
  }
  const Slices whole = Recorded(ExportFiles({}).begin()->second);
  ASSERT_GT(whole.size(), 5'000u);
  for (const bool is_by_worker : {false, true}) {
    for (const uint64_t bytes : {kMiB, kMiB + Below(kMiB), 3 * kMiB}) {
      ExpectParts({.max_file_bytes = bytes, .split_by_worker = is_by_worker}, whole);
    }
    for (const auto compression : {ExportCompression::kGzip, ExportCompression::kPackets}) {
      ExpectParts(
          {.compression = compression, .max_file_bytes = kMiB, .split_by_worker = is_by_worker},
          whole);
    }
  }
}

TEST_F(PftracePartSize, PartsAreFilledWell) {
  FillCore(AddCore("i-a", 10, 0, 0), 40'000);
  const auto files = ExportFiles({.max_file_bytes = 2 * kMiB});
  const auto lines = ReadIndex(files.at("system_profile.parts.json"));
  ASSERT_GT(lines.size(), 3u);
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    EXPECT_GE(lines[i].bytes, 2 * kMiB) << lines[i].file;
    // At most what is written at once, and the ends of it.
    EXPECT_LT(lines[i].bytes, 2 * kMiB + kMiB / 2) << lines[i].file;
  }
}

TEST_F(PftracePartSize, SpansThatAreOpenWhereAPartEndsHaveTheirEndsInIt) {
  for (uint32_t worker = 0; worker < 4; ++worker) {
    const uint32_t stream = AddCore("i-a", 10 + worker, 0, worker);
    for (uint64_t i = 0; i < 6'000; ++i) {
      script_.Span("nrt_load", kBase + i * 1'000, kBase + 1'000'000'000 - i, i + 1, 7 + i % 64);
      if (i % 1'500 == 1'499) Close(stream);
    }
  }
  const Slices whole = Recorded(ExportFiles({}).begin()->second);
  ExpectParts({.max_file_bytes = kMiB}, whole);
}

// The case that documents name: what begins at one moment is not divided.
TEST_F(PftracePartSize, OneMomentIsNotDivided) {
  const uint32_t stream = AddCore("i-a", 10, 0, 0);
  for (uint64_t i = 0; i < 12'000; ++i) {
    script_.Span("nrt_execute", kBase, kBase + 100 + i, i + 1, 7 + i % 64, {{"exec_id", i}});
    if (i % 1'500 == 1'499) Close(stream);
  }
  script_.Span("nrt_load", kBase + 1'000'000, kBase + 1'000'100, 99'999);
  Close(stream);
  const auto files = ExportFiles({.max_file_bytes = kMiB});
  const auto lines = ReadIndex(files.at("system_profile.parts.json"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_GT(lines[0].bytes, kMiB);
  EXPECT_LT(lines[1].bytes, kMiB / 8);
  for (const Indexed& line : lines) ExpectSound(files.at(line.file));
}

TEST_F(PftracePartSize, PartsWithoutRoomForEventsAreRefused) {
  FillCore(AddCore("i-a", 10, 0, 0), 100);
  const std::string certificate(kMiB, 'x');
  const Certificate about;
  EXPECT_THAT(
      ExportError("perfetto",
                  {.max_file_bytes = kMiB, .certificate = &about, .certificate_json = certificate}),
      HasSubstr("are too small"));
}

}  // namespace
}  // namespace neurontrace
