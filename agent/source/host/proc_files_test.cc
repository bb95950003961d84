// SPDX-License-Identifier: Apache-2.0
// What /proc says, as numbers: real texts of several kernels, and texts that no kernel writes.
#include "agent/source/host/proc_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kStat[] =
    "cpu  300 20 100 4000 50 6 7 8 90 10\n"
    "cpu0 200 10 60 2000 25 3 4 5 90 10\n"
    "cpu2 100 10 40 2000 25 3 3 3 0 0\n"
    "intr 12345 0 0\n"
    "ctxt 99\n";

TEST(ProcFilesTest, ReadsProcessorsInTheirOrderWithGuestsCountedOnce) {
  const auto cpus = ParseCpuTimes(kStat);
  ASSERT_TRUE(cpus.ok()) << cpus.status();
  EXPECT_THAT(*cpus, ElementsAre(CpuTimes{CpuTimes::kAverage, 4491, 4050}, CpuTimes{0, 2307, 2025},
                                 CpuTimes{2, 2184, 2025}));
}

TEST(ProcFilesTest, ReadsTheFourTimesOfTheOldestKernels) {
  const auto cpus = ParseCpuTimes("cpu 1 2 3 4\n");
  ASSERT_TRUE(cpus.ok()) << cpus.status();
  EXPECT_THAT(*cpus, ElementsAre(CpuTimes{CpuTimes::kAverage, 10, 4}));
}

TEST(ProcFilesTest, RejectsInvalidProcFiles) {
  EXPECT_THAT(ParseCpuTimes("").status().message(), HasSubstr("the first line is not a processor"));
  EXPECT_THAT(ParseCpuTimes("intr 1\n").status().message(),
              HasSubstr("the first line is not a processor"));
  EXPECT_THAT(ParseCpuTimes("cpu 1 2 3\n").status().message(), HasSubstr("too few times"));
  EXPECT_THAT(ParseCpuTimes("cpu 1 2 3 -4\n").status().message(), HasSubstr("not a number"));
  EXPECT_THAT(ParseCpuTimes("cpu 1 2 3 99999999999999999999\n").status().message(),
              HasSubstr("not a number"));
  EXPECT_THAT(ParseCpuTimes("cpux 1 2 3 4\n").status().message(),
              HasSubstr("invalid processor number"));
  EXPECT_THAT(ParseCpuTimes("cpu0 1 2 3 4\ncpu0 1 2 3 4\n").status().message(),
              HasSubstr("listed twice"));
  std::string many;
  for (size_t i = 0; i <= limits::kHostCpusMax + 1; ++i) many += fmt::format("cpu{} 1 2 3 4\n", i);
  EXPECT_EQ(ParseCpuTimes(many).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ProcFilesTest, SumsOfHostileTimesSaturate) {
  const auto cpus = ParseCpuTimes("cpu 18446744073709551615 1 1 18446744073709551615 9\n");
  ASSERT_TRUE(cpus.ok()) << cpus.status();
  EXPECT_THAT(*cpus, ElementsAre(CpuTimes{CpuTimes::kAverage, UINT64_MAX, UINT64_MAX}));
}

TEST(ProcFilesTest, ShareIsNonIdleTime) {
  const CpuShare share = ShareBetween({0, 1000, 900}, {0, 1100, 967});
  EXPECT_TRUE(share.known);
  EXPECT_EQ(share.percent, 33.0);
  EXPECT_EQ(ShareBetween({0, 1000, 900}, {0, 1003, 901}).percent, 66.67);
}

TEST(ProcFilesTest, ShareStaysBetweenNothingAndAllWhateverTheCountersDo) {
  EXPECT_FALSE(ShareBetween({0, 1000, 900}, {0, 1000, 900}).known) << "no time went by";
  EXPECT_FALSE(ShareBetween({0, 1000, 900}, {0, 10, 9}).known) << "it was away";
  EXPECT_EQ(ShareBetween({0, 1000, 900}, {0, 1100, 890}).percent, 100.0) << "idle ran backwards";
  EXPECT_EQ(ShareBetween({0, 1000, 100}, {0, 1100, 900}).percent, 0.0) << "more idle than time";
}

TEST(ProcFilesTest, ReadsMemory) {
  const auto memory = ParseMemory(
      "MemTotal:       2000 kB\nMemFree:         100 kB\nMemAvailable:    500 kB\nBuffers: 1 kB\n");
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(*memory, (MemoryReading{2000 * 1024, 1500 * 1024}));
  EXPECT_EQ(PercentUsed(*memory), 75.0);
  EXPECT_EQ(PercentUsed({}), 0.0);
}

TEST(ProcFilesTest, RejectsMissingOrExcessiveMemory) {
  EXPECT_THAT(ParseMemory("MemTotal: 1 kB\n").status().message(),
              HasSubstr("MemAvailable is missing"));
  EXPECT_THAT(ParseMemory("MemAvailable: 1 kB\n").status().message(),
              HasSubstr("MemTotal is missing"));
  EXPECT_THAT(ParseMemory("MemTotal: 1 MB\n").status().message(), HasSubstr("not a number of kB"));
  EXPECT_THAT(ParseMemory("MemTotal: 18446744073709551615 kB\n").status().message(),
              HasSubstr("not a number of kB"));
  const auto memory = ParseMemory("MemTotal: 1 kB\nMemAvailable: 2 kB\n");
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(memory->used_bytes, 0u);
}

}  // namespace
}  // namespace neurontrace
