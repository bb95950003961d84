// SPDX-License-Identifier: Apache-2.0
// The goal: callbacks run while their owner exists, and do nothing afterwards.
#include "lib/base/weak_tasks.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

namespace neurontrace {
namespace {

TEST(WeakTasks, RunsWhileTheOwnerExists) {
  std::optional<WeakTasks> tasks;
  tasks.emplace();
  int sum = 0;
  const std::function<void(int)> add = tasks->Wrap([&sum](int more) { sum += more; });
  add(2);
  EXPECT_EQ(sum, 2);
  tasks.reset();
  add(3);
  EXPECT_EQ(sum, 2);
}

}  // namespace
}  // namespace neurontrace
