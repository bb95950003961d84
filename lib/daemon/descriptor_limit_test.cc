// SPDX-License-Identifier: Apache-2.0
// In processes of their own, as a limit that was lowered stays so.
#include "lib/daemon/daemon_main.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

// Ends the process: 0 where the soft limit is then the hard one, with the words on stderr.
void RaiseWith(rlim_t hard) {
  rlimit limit = {.rlim_cur = 128, .rlim_max = hard};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) std::_Exit(3);
  const absl::Status status = RaiseDescriptorLimit();
  std::fputs(std::string(status.message()).c_str(), stderr);
  getrlimit(RLIMIT_NOFILE, &limit);
  std::_Exit(status.ok() ? (limit.rlim_cur == hard ? 0 : 2) : 1);
}

TEST(DescriptorLimitTest, IsRaisedToWhatItMayBe) {
  EXPECT_EXIT(RaiseWith(limits::kDescriptorsMin), testing::ExitedWithCode(0), "");
}

TEST(DescriptorLimitTest, ReportsLowLimit) {
  EXPECT_EXIT(RaiseWith(limits::kDescriptorsMin - 1), testing::ExitedWithCode(1),
              "may open 511 files and connections but needs 512");
}

}  // namespace
}  // namespace neurontrace
