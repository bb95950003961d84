// SPDX-License-Identifier: Apache-2.0
#include "agent/disk_room.h"

#include <gtest/gtest.h>

#include "lib/base/clock.h"
#include "lib/base/fake_task_runner.h"

namespace neurontrace {
namespace {

TEST(DiskRoom, ReturnsLastReportedDiskSpace) {
  FakeClock clock;
  FakeTaskRunner disk(clock);
  DiskRoom room("/", disk);
  EXPECT_FALSE(room.free_bytes());
  room.Ask();
  EXPECT_FALSE(room.free_bytes());  // it has not answered
  disk.RunUntilIdle();
  ASSERT_TRUE(room.free_bytes());
  EXPECT_GT(*room.free_bytes(), 0u);
}

TEST(DiskRoom, MissingDirectoryIsUnknown) {
  FakeClock clock;
  FakeTaskRunner disk(clock);
  DiskRoom room("/no/such/directory", disk);
  room.Ask();
  disk.RunUntilIdle();
  EXPECT_FALSE(room.free_bytes());
}

TEST(DiskRoom, CanBeDestroyedBeforeDiskResponds) {
  FakeClock clock;
  FakeTaskRunner disk(clock);
  {
    DiskRoom room("/", disk);
    room.Ask();
    room.Ask();
  }
  disk.RunUntilIdle();
}

}  // namespace
}  // namespace neurontrace
