// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/pod_matching.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

const WorkerPod kTrainer{"training", "llama-0", "worker"};
const WorkerPod kSmall{"serving", "small", "main"};
const WorkerPod kTiny{"serving", "tiny", "main"};

TEST(PodMatchingTest, APodHasTheDevicesItWasGiven) {
  const PodAnswer answer{{{kTrainer, {0, 1, 2}, {}}, {kSmall, {3}, {}}}};
  EXPECT_EQ(MatchPod(answer, {0}).pod, kTrainer);
  EXPECT_EQ(MatchPod(answer, {0, 1, 2}).pod, kTrainer);
  EXPECT_EQ(MatchPod(answer, {3}).pod, kSmall);
  for (const std::set<uint32_t>& devices :
       {std::set<uint32_t>{2, 3}, std::set<uint32_t>{4}, std::set<uint32_t>{}}) {
    EXPECT_EQ(MatchPod(answer, devices).pod, std::nullopt);
    EXPECT_FALSE(MatchPod(answer, devices).ambiguous);
  }
}

TEST(PodMatchingTest, ADeviceBelongsToWhoeverHasOneOfItsCores) {
  PodAnswer answer{{{kTrainer, {}, {0, 1, 2, 3}}, {kSmall, {}, {4}}, {kTiny, {}, {7, 8}}}};
  EXPECT_EQ(MatchPod(answer, {0}).pod, std::nullopt) << "how many cores a device has is not known";
  answer.cores_per_device = 2;
  EXPECT_EQ(MatchPod(answer, {0, 1}).pod, kTrainer);
  EXPECT_EQ(MatchPod(answer, {2}).pod, kSmall);
  EXPECT_EQ(MatchPod(answer, {3}).pod, kTiny);
  EXPECT_EQ(MatchPod(answer, {4}).pod, kTiny);
  EXPECT_EQ(MatchPod(answer, {5}).pod, std::nullopt);
  answer.cores_per_device = 8;
  EXPECT_EQ(MatchPod(answer, {0}).pod, std::nullopt) << "three pods share it";
  EXPECT_TRUE(MatchPod(answer, {0}).ambiguous);
  EXPECT_EQ(MatchPod(answer, {0, 1}).pod, kTiny) << "alone has cores of both";
}

TEST(PodMatchingTest, ContainersOfOnePodLeaveThePod) {
  const WorkerPod sidecar{"training", "llama-0", "sidecar"};
  const PodAnswer shared{{{kTrainer, {}, {0}}, {sidecar, {}, {1}}}, 2};
  EXPECT_EQ(MatchPod(shared, {0}).pod, (WorkerPod{"training", "llama-0", ""}));
  const PodAnswer twice{{{kTrainer, {0}, {}}, {kTrainer, {0}, {}}}};
  EXPECT_EQ(MatchPod(twice, {0}).pod, kTrainer);
}

// A pod that ended can still be listed with what it had.
TEST(PodMatchingTest, TwoPodsWithOneDeviceAreAmbiguous) {
  const PodAnswer answer{{{kTrainer, {0}, {}}, {kSmall, {0}, {}}}};
  EXPECT_EQ(MatchPod(answer, {0}).pod, std::nullopt);
  EXPECT_TRUE(MatchPod(answer, {0}).ambiguous);
}

}  // namespace
}  // namespace neurontrace
