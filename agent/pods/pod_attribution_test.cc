// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/pod_attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "agent/pods/fake_node_proc.h"
#include "agent/pods/fake_pod_lister.h"
#include "lib/base/fake_task_runner.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps the changes, and counts how often the processes were asked for.
class FakePodWorkers final : public PodWorkers {
 public:
  std::vector<PodProcess> Processes() override {
    ++asked;
    return processes;
  }
  void OnPodChange(const PodResolver::Change& change) override { changes.push_back(change); }

  int asked = 0;
  std::vector<PodProcess> processes;
  std::vector<PodResolver::Change> changes;
};

// The two sequences are runners of their own, so that either can be slow.
class PodAttributionTest : public ::testing::Test {
 protected:
  PodAttributionTest() { kubelet_.answer.containers.push_back({.pod = llama_, .devices = {3}}); }
  void Pass(uint64_t seconds) { runner_.AdvanceNs(seconds * 1'000'000'000); }

  FakeNodeProc node_;
  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  FakeClock io_clock_;
  FakeTaskRunner io_{io_clock_};
  PodCounters counters_;
  FakePodWorkers workers_;
  const WorkerPod llama_{"training", "llama-0", "worker"};
  FakePodLister kubelet_;
  PodResolver resolver_{kubelet_, ProcessReader(node_.root()), counters_};
  std::unique_ptr<PodAttribution> attribution_ =
      std::make_unique<PodAttribution>(resolver_, io_, runner_, clock_, workers_);
};

TEST_F(PodAttributionTest, ReportsChangesOnAgentSequence) {
  workers_.processes = {node_.PutInPod(7, 'a', {"/dev/null"})};
  attribution_->Start();
  Pass(3);
  EXPECT_THAT(workers_.changes, IsEmpty());
  io_.RunUntilIdle();
  EXPECT_THAT(workers_.changes, IsEmpty());
  runner_.RunUntilIdle();
  EXPECT_THAT(workers_.changes, ElementsAre(PodResolver::Change{workers_.processes[0], llama_}));
}

TEST_F(PodAttributionTest, DoesNotPollWhileQueryIsPending) {
  attribution_->Start();
  Pass(3);
  EXPECT_EQ(workers_.asked, 1);
  Pass(600);
  EXPECT_EQ(workers_.asked, 1);
  io_.RunUntilIdle();
  runner_.RunUntilIdle();
  Pass(3);
  EXPECT_EQ(workers_.asked, 2);
}

TEST_F(PodAttributionTest, ReportsNothingAfterDestruction) {
  workers_.processes = {node_.PutInPod(7, 'a', {"/dev/null"})};
  attribution_->Start();
  Pass(3);
  attribution_.reset();
  io_.RunUntilIdle();
  Pass(60);
  EXPECT_THAT(workers_.changes, IsEmpty());
  EXPECT_EQ(workers_.asked, 1);
}

}  // namespace
}  // namespace neurontrace
