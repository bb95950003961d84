// SPDX-License-Identifier: Apache-2.0
#include "agent/source/artifact/process_start.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "base/clock.h"

namespace neurontrace {
namespace {

TEST(ProcessStart, OfThisProcessIsALittleWhileAgo) {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  const uint64_t now = SystemClock().RealtimeNs();
  const uint64_t start = ProcessStartNs(std::stoull(field));
  EXPECT_LE(start, now);
  EXPECT_LT(now - start, 600'000'000'000u);
}

TEST(ProcessStart, TicksArePartsOfASecond) {
  const auto per_second = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  const uint64_t boot = ProcessStartNs(0);
  EXPECT_NEAR(static_cast<double>(ProcessStartNs(per_second * 3 / 2) - boot), 1.5e9, 1e8);
}

}  // namespace
}  // namespace neurontrace
