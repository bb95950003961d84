// SPDX-License-Identifier: Apache-2.0
// Goal: a stop's attributes are not lost because it comes late: neither where its span has no
// length in the trace, nor, without a word, where it lies in a later part. Method: captures in
// memory whose stops are chunks later, exported, read back by pftrace_check.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/export/rows/lanes.h"
#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

using pftrace_check::Report;
using pftrace_check::Slice;
using pftrace_check::Track;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class PftraceLateStops : public ExportFixture {
 protected:
  // Enough events that what follows is in another batch.
  void AddTicks(uint32_t stream, uint64_t from_ns) {
    for (uint64_t i = 0; i < 20'000; ++i) {
      script_.Instant("tick", from_ns + i * 1'000, 0, 8, {{"number", i}});
      if (i % 4'000 == 3'999) Close(stream);
    }
  }
};

TEST_F(PftraceLateStops, SqueezedSpanBecomesInstant) {
  constexpr uint64_t kSpans = Lanes::kLanesMax + 2;
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  // None encloses another: each needs a lane of its own, and there is none for two.
  for (uint64_t i = 0; i < kSpans; ++i) {
    script_.Start("span", kBase + i, i + 1, 7, {}, 1'000 + i);
  }
  Close(stream);
  AddTicks(stream, kBase + 10'000);
  for (uint64_t i = 0; i < kSpans; ++i) {
    script_.Stop("span", kBase + 100'000'000 + i, i + 1, 7, {{"freed_bytes", i}});
  }
  Close(stream);
  const std::string trace = Export("perfetto");
  ExpectSound(trace);
  const Report report = pftrace_check::Check(trace);
  EXPECT_THAT(report.errors, IsEmpty());
  std::vector<const Slice*> late;
  uint64_t with_stop = 0;
  for (const Track& track : report.tracks) {
    for (const Slice& slice : track.slices) with_stop += slice.arguments.contains("freed_bytes");
    for (const Slice& instant : track.instants) {
      if (instant.name == "span") late.push_back(&instant);
    }
  }
  EXPECT_EQ(with_stop, Lanes::kLanesMax);
  ASSERT_THAT(late, SizeIs(2));
  for (const uint64_t i : {uint64_t{0}, uint64_t{1}}) {
    const uint64_t span = Lanes::kLanesMax + i;
    EXPECT_EQ(late[i]->start_ns, kBase + 100'000'000 + span);
    EXPECT_THAT(late[i]->arguments, Contains(Pair("freed_bytes", fmt::format("{}", span))));
    EXPECT_THAT(late[i]->arguments, Contains(Pair("stop_of_id", fmt::format("{}", 1'000 + span))));
  }
}

TEST_F(PftraceLateStops, WithoutAttributesIsNothingToShow) {
  constexpr uint64_t kSpans = Lanes::kLanesMax + 2;
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  for (uint64_t i = 0; i < kSpans; ++i) {
    script_.Start("span", kBase + i, i + 1, 7, {}, 1'000 + i);
  }
  Close(stream);
  for (uint64_t i = 0; i < kSpans; ++i) {
    script_.Stop("span", kBase + 100'000'000 + i, i + 1, 7);
  }
  Close(stream);
  const Report report = pftrace_check::Check(Export("perfetto"));
  EXPECT_THAT(report.errors, IsEmpty());
  EXPECT_EQ(report.slices, kSpans);
  for (const Track& track : report.tracks) {
    for (const Slice& instant : track.instants) EXPECT_NE(instant.name, "span");
  }
}

TEST_F(PftraceLateStops, InALaterPartIsCounted) {
  const uint32_t stream = AddCore("i-a", 11, 0, 4);
  for (uint64_t i = 0; i < 3; ++i) {
    script_.Start("span", kBase + i, i + 1, 7, {}, 1'000 + i);
  }
  Close(stream);
  AddTicks(stream, kBase + 10'000);
  for (uint64_t i = 0; i < 3; ++i) {
    script_.Stop("span", kBase + 100'000'000 + i, i + 1, 7, {{"freed_bytes", i}});
  }
  Close(stream);
  StringFiles files;
  const auto summary = ExportCapture(source_, **FindExportFormat("perfetto"),
                                     {.max_file_bytes = 1 << 20}, files, {});
  ASSERT_TRUE(summary.ok()) << summary.status();
  ASSERT_GE(files.files.size(), 3u) << "two parts and the index";
  EXPECT_THAT(summary->warnings,
              Contains(HasSubstr("part0001.pftrace: 3 spans are shown without the attributes")));
  EXPECT_THAT(files.files.at("system_profile.part0001.pftrace"),
              HasSubstr("3 spans are shown without the attributes"));
  Export("perfetto");
  EXPECT_THAT(summary_.warnings, IsEmpty()) << "in one file nothing is missed";
}

}  // namespace
}  // namespace neurontrace
