// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/worker_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/deliver/volume.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;

TEST(WorkerDirectoryTest, IsTheVendorsWithTheContainerWhereThereIsOne) {
  EXPECT_THAT(WorkerDirectories({{.instance_id = "i-0f20", .pid = 1234},
                                 {.instance_id = "i-0f20",
                                  .pid = 1,
                                  .container_id = "0123456789abcdef0123456789abcdef"}}),
              ElementsAre("i-0f20_pid_1234", "i-0f20_pid_1_0123456789ab"));
  EXPECT_EQ(SessionDirectory(1776672348756756905), "1776672348756756905");
  EXPECT_EQ(SessionDirectory(5), "0000000000000000005");
}

TEST(WorkerDirectoryTest, NoTwoAreTheSame) {
  const WorkerIdentity worker{.instance_id = "i-1", .pid = 7, .start_time_ticks = 9};
  EXPECT_THAT(WorkerDirectories({worker, worker, worker}),
              ElementsAre("i-1_pid_7", "i-1_pid_7_9", "i-1_pid_7_9_2"));
}

TEST(WorkerDirectoryTest, WhatAgentsSayStaysAName) {
  for (const char* id : {"../../etc", "", "..", "a/b\n", "\xff\xfe"}) {
    const auto names = WorkerDirectories({{.instance_id = id, .pid = 1, .container_id = "/../x"}});
    EXPECT_TRUE(IsVolumeName(names[0])) << names[0];
    EXPECT_EQ(names[0].find('/'), std::string::npos);
  }
}

}  // namespace
}  // namespace neurontrace
