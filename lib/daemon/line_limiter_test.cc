// SPDX-License-Identifier: Apache-2.0
// The goal: a flood of one kind of line leaves room for the others, and is reported as one number.
#include "lib/daemon/line_limiter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

constexpr uint64_t kStart = 5 * kNsPerSecond;

class LineLimiterTest : public testing::Test {
 protected:
  // How many of `count` lines at one moment pass; `{}` in the text becomes a number.
  int Pass(const std::string& text, int count, uint64_t at_ns) {
    int passed = 0;
    for (int i = 0; i < count; ++i) {
      passed += limiter_->Judge(text + " " + std::to_string(i), at_ns).passes ? 1 : 0;
    }
    return passed;
  }

  const std::unique_ptr<LineLimiter> limiter_ = std::make_unique<LineLimiter>();
};

TEST_F(LineLimiterTest, OneKindGetsItsShareAndThenOneASecond) {
  EXPECT_EQ(Pass("connection lost", 1'000, kStart), int{limits::kLogLinesOfKindAtOnce});
  EXPECT_EQ(limiter_->left_out(), 1'000 - limits::kLogLinesOfKindAtOnce);
  EXPECT_EQ(Pass("connection lost", 5, kStart + kNsPerSecond - 1), 0);
  const auto next = limiter_->Judge("connection lost 7", kStart + kNsPerSecond);
  EXPECT_TRUE(next.passes);
  EXPECT_EQ(next.left_out, 1'000 - limits::kLogLinesOfKindAtOnce + 5);
  EXPECT_FALSE(limiter_->Judge("connection lost 8", kStart + kNsPerSecond).passes);
}

TEST_F(LineLimiterTest, OtherKindsAreNotHeldBack) {
  Pass("connection lost", 1'000, kStart);
  EXPECT_EQ(Pass("disk full", 1, kStart), 1);
  EXPECT_EQ(limiter_->Judge("store opened", kStart).left_out, 0u);
}

TEST_F(LineLimiterTest, AQuietWhileGivesTheShareBack) {
  Pass("connection lost", 1'000, kStart);
  EXPECT_EQ(Pass("connection lost", 1'000, kStart + 3'600 * kNsPerSecond),
            int{limits::kLogLinesOfKindAtOnce});
}

TEST_F(LineLimiterTest, ManyKindsTogetherAreBoundedToo) {
  uint32_t passed = 0;
  for (int i = 0; i < 5'000; ++i) {
    std::string text = "kind ";
    for (int rest = i; rest > 0; rest /= 26) text += static_cast<char>('a' + rest % 26);
    passed += limiter_->Judge(text, kStart).passes ? 1 : 0;
  }
  EXPECT_EQ(passed, limits::kLogLinesAtOnce);
  EXPECT_EQ(Pass("later", 1, kStart + kNsPerSecond), 1);
}

}  // namespace
}  // namespace neurontrace
