// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/utc_sources.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "lib/base/clock.h"
#include "lib/base/fake_file_system.h"
#include "lib/base/fake_task_runner.h"
#include "lib/base/random.h"
#include "lib/clock/fake_host_clocks.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {
namespace {

// /dev/null is the device: it opens, and never answers as a clock.
TEST(UtcSources, SearchesAgainForAHardwareClockThatDoesNotAnswer) {
  constexpr char kBound[] = "/ptp/null/device/phc_error_bound";
  constexpr int kAsksPerSearch = 60;
  FakeClock clock;
  FakeTaskRunner runner(clock);
  const FakeHostClocks host;
  FakeFileSystem files;
  SeededRandom random(1);
  ClockEvidence out;
  UtcPaths paths;
  paths.phc = {.shown = "/ptp", .devices = "/dev"};
  paths.chrony = {.directory = "/nowhere", .port = 0};
  files.SetContents(kBound, "1000\n");
  UtcSources utc({runner, host, files, random}, paths, out);
  const auto refused_of = [&](int asks) {
    const uint64_t before = utc.counters().refused;
    for (int i = 0; i < asks; ++i) utc.Ask(std::nullopt);
    return utc.counters().refused - before;
  };
  EXPECT_EQ(refused_of(1), 1u);
  ASSERT_TRUE(files.Remove(kBound).ok());
  refused_of(kAsksPerSearch);
  EXPECT_EQ(refused_of(kAsksPerSearch), 0u) << "it is gone";
  files.SetContents(kBound, "1000\n");
  refused_of(kAsksPerSearch);
  EXPECT_EQ(refused_of(1), 1u) << "it is found again";
}

}  // namespace
}  // namespace neurontrace
