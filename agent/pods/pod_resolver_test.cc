// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/pods/fake_node_proc.h"
#include "agent/pods/fake_pod_lister.h"
#include "agent/pods/pod_resolver.h"
#include "lib/base/time_units.h"
#include "lib/trace/pod_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr char kDevice3[] = "/dev/null";
constexpr char kDevice5[] = "/dev/zero";

// A node with workers in pods, and a kubelet that may be away.
class PodResolverTest : public ::testing::Test {
 protected:
  using Change = PodResolver::Change;

  void Give(const WorkerPod& pod, std::set<uint32_t> devices) {
    kubelet_.answer.containers.push_back({.pod = pod, .devices = std::move(devices)});
  }
  std::vector<Change> Poll(const std::vector<PodProcess>& processes) {
    return resolver_.Poll(processes, now_ns_);
  }
  std::vector<Change> PollAfter(uint64_t seconds, const std::vector<PodProcess>& processes) {
    now_ns_ += seconds * kNsPerSecond;
    return Poll(processes);
  }

  FakeNodeProc node_;
  FakePodLister kubelet_;
  uint64_t now_ns_ = 1'000 * kNsPerSecond;
  PodCounters counters_;
  PodResolver resolver_{kubelet_, ProcessReader(node_.root()), counters_};
  const WorkerPod llama_{"training", "llama-0", "worker"};
  const WorkerPod small_{"serving", "small", "main"};
};

TEST_F(PodResolverTest, AssignsWorkerToPodByDevices) {
  Give(llama_, {3, 4});
  Give(small_, {5});
  const PodProcess a = node_.PutInPod(7, 'a', {kDevice3});
  const PodProcess b = node_.PutInPod(8, 'b', {kDevice5});
  EXPECT_THAT(Poll({a, b}), UnorderedElementsAre(Change{a, llama_}, Change{b, small_}));
  EXPECT_EQ(counters_.asked, 1u);
  EXPECT_EQ(counters_.attributed, 2u);
  EXPECT_THAT(PollAfter(600, {a, b}), IsEmpty()) << "said once";
  EXPECT_EQ(counters_.asked, 1u) << "nothing to ask for";
}

TEST_F(PodResolverTest, QueriesOnlyForPodWorkersWithOpenDevices) {
  Give(llama_, {3});
  const PodProcess host = node_.Put(7, "0::/user.slice\n", {kDevice3});
  const PodProcess idle = node_.PutInPod(8, 'a', {"/etc/hostname"});
  EXPECT_THAT(PollAfter(60, {host, idle}), IsEmpty());
  EXPECT_EQ(counters_.asked, 0u);
  node_.PutInPod(8, 'a', {});
  std::filesystem::create_symlink(kDevice3, node_.root() + "/8/fd/9");
  EXPECT_THAT(PollAfter(3, {host, idle}), ElementsAre(Change{idle, llama_}));
}

TEST_F(PodResolverTest, AssignsOtherWorkersByPodUid) {
  Give(llama_, {3});
  const PodProcess first = node_.PutInPod(7, 'a', {kDevice3});
  Poll({first});
  const PodProcess second = node_.PutInPod(8, 'a', {});
  EXPECT_THAT(Poll({first, second}),
              ElementsAre(Change{second, WorkerPod{"training", "llama-0", ""}}));
  EXPECT_EQ(counters_.asked, 1u);
}

TEST_F(PodResolverTest, BacksOffForUnknownPods) {
  const PodProcess worker = node_.PutInPod(7, 'a', {kDevice3});
  std::vector<uint64_t> asked_at;
  for (uint64_t second = 0; second < 300; ++second) {
    const uint64_t before = counters_.asked;
    EXPECT_THAT(PollAfter(1, {worker}), IsEmpty());
    if (counters_.asked != before) asked_at.push_back(second);
  }
  EXPECT_THAT(asked_at, ElementsAre(0, 3, 9, 21, 45, 93, 153, 213, 273));
  EXPECT_EQ(counters_.ambiguous, 0u);
  // Something new: not as rarely.
  Give(small_, {5});
  const PodProcess newcomer = node_.PutInPod(8, 'b', {kDevice5});
  PollAfter(3, {worker, newcomer});
  EXPECT_EQ(counters_.attributed, 1u);
}

TEST_F(PodResolverTest, LimitsQueriesToOnePerThreeSeconds) {
  std::vector<PodProcess> workers;
  for (uint32_t i = 0; i < 30; ++i) {
    workers.push_back(node_.PutInPod(10 + i, static_cast<char>("abcdef"[i % 6]), {kDevice3}));
    Poll(workers);
    now_ns_ += kNsPerSecond / 10;
  }
  EXPECT_EQ(counters_.asked, 1u);
}

TEST_F(PodResolverTest, RetriesUnavailableKubelet) {
  kubelet_.is_away = true;
  Give(llama_, {3});
  const PodProcess worker = node_.PutInPod(7, 'a', {kDevice3});
  EXPECT_THAT(Poll({worker}), IsEmpty());
  EXPECT_EQ(counters_.failed, 1u);
  kubelet_.is_away = false;
  EXPECT_THAT(PollAfter(2, {worker}), IsEmpty());
  EXPECT_THAT(PollAfter(1, {worker}), ElementsAre(Change{worker, llama_}));
  EXPECT_EQ(counters_.failed, 1u);
  EXPECT_EQ(counters_.asked, 2u);
}

TEST_F(PodResolverTest, SharedDeviceAssignsNoPod) {
  Give(llama_, {3});
  Give(small_, {3});
  const PodProcess worker = node_.PutInPod(7, 'a', {kDevice3});
  EXPECT_THAT(Poll({worker}), IsEmpty());
  EXPECT_THAT(PollAfter(60, {worker}), IsEmpty());
  EXPECT_EQ(counters_.ambiguous, 1u) << "each worker once";
  kubelet_.answer.containers.pop_back();
  EXPECT_THAT(PollAfter(60, {worker}), ElementsAre(Change{worker, llama_}));
}

// A privileged container can open devices that were given to another pod.
TEST_F(PodResolverTest, RejectsTwoPodsForOneWorker) {
  Give(llama_, {3});
  const PodProcess intruder = node_.PutInPod(7, 'b', {kDevice3});
  const PodProcess owner = node_.PutInPod(8, 'a', {kDevice3});
  EXPECT_THAT(Poll({intruder, owner}), IsEmpty());
  EXPECT_EQ(counters_.ambiguous, 2u);
  EXPECT_THAT(PollAfter(60, {owner}), ElementsAre(Change{owner, llama_})) << "alone again";
}

TEST_F(PodResolverTest, RevokesContradictedAssignment) {
  Give(llama_, {3});
  const PodProcess intruder = node_.PutInPod(7, 'b', {kDevice3});
  EXPECT_THAT(Poll({intruder}), ElementsAre(Change{intruder, llama_}));
  const PodProcess owner = node_.PutInPod(8, 'a', {kDevice3});
  EXPECT_THAT(PollAfter(3, {intruder, owner}), ElementsAre(Change{intruder, std::nullopt}));
  EXPECT_THAT(PollAfter(60, {intruder, owner}), IsEmpty());
  EXPECT_EQ(counters_.ambiguous, 2u);
}

TEST_F(PodResolverTest, RejectsOneUidForTwoPods) {
  Give(llama_, {3});
  Give(small_, {5});
  const PodProcess a = node_.PutInPod(7, 'a', {kDevice3});
  const PodProcess b = node_.PutInPod(8, 'a', {kDevice5});
  EXPECT_THAT(Poll({a, b}), IsEmpty());
  EXPECT_EQ(counters_.ambiguous, 2u);
}

// A StatefulSet's pod comes again under its name.
TEST_F(PodResolverTest, RecreatedPodHasNewUid) {
  Give(llama_, {3});
  const PodProcess before = node_.PutInPod(7, 'a', {kDevice3});
  EXPECT_THAT(Poll({before}), ElementsAre(Change{before, llama_}));
  node_.proc().Remove(7);
  const PodProcess after = node_.PutInPod(9, 'b', {kDevice3});
  EXPECT_THAT(PollAfter(3, {after}), ElementsAre(Change{after, llama_}));
  EXPECT_EQ(counters_.ambiguous, 0u);
}

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

TEST(PodMatchingTest, DeviceBelongsToOwnerOfItsCores) {
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

TEST(PodMatchingTest, ContainersOfOnePodMatchThePod) {
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
