// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/pod_attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/pods/fake_node_proc.h"
#include "lib/base/fake_task_runner.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The two sequences are runners of their own, so that either can be slow.
class PodAttributionTest : public ::testing::Test {
 protected:
  void Pass(uint64_t seconds) { runner_.AdvanceNs(seconds * 1'000'000'000); }

  FakeNodeProc node_;
  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  FakeClock io_clock_;
  FakeTaskRunner io_{io_clock_};
  PodCounters counters_;
  int lists_asked_for_ = 0;
  std::vector<PodProcess> workers_;
  std::vector<PodResolver::Change> told_;
  const WorkerPod llama_{"training", "llama-0", "worker"};
  PodResolver looker_{[this]() -> absl::StatusOr<PodAnswer> {
                        return PodAnswer{.containers = {{.pod = llama_, .devices = {3}}}};
                      },
                      ProcessReader(node_.root()), counters_};
  std::unique_ptr<PodAttribution> attribution_ = std::make_unique<PodAttribution>(
      looker_, io_, runner_, clock_,
      PodAttribution::Hooks{
          .processes =
              [this] {
                ++lists_asked_for_;
                return workers_;
              },
          .tell = [this](const PodResolver::Change& change) { told_.push_back(change); }});
};

TEST_F(PodAttributionTest, TellsWhatIsNewOnTheAgentsSequence) {
  workers_ = {node_.PutInPod(7, 'a', {"/dev/null"})};
  attribution_->Start();
  Pass(3);
  EXPECT_THAT(told_, IsEmpty());
  io_.RunUntilIdle();
  EXPECT_THAT(told_, IsEmpty());
  runner_.RunUntilIdle();
  EXPECT_THAT(told_, ElementsAre(PodResolver::Change{workers_[0], llama_}));
}

TEST_F(PodAttributionTest, DoesNotLookAgainWhileTheKubeletIsWaitedFor) {
  attribution_->Start();
  Pass(3);
  EXPECT_EQ(lists_asked_for_, 1);
  Pass(600);
  EXPECT_EQ(lists_asked_for_, 1);
  io_.RunUntilIdle();
  runner_.RunUntilIdle();
  Pass(3);
  EXPECT_EQ(lists_asked_for_, 2);
}

TEST_F(PodAttributionTest, NothingIsToldOnceItIsGone) {
  workers_ = {node_.PutInPod(7, 'a', {"/dev/null"})};
  attribution_->Start();
  Pass(3);
  attribution_.reset();
  io_.RunUntilIdle();
  Pass(60);
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(lists_asked_for_, 1);
}

}  // namespace
}  // namespace neurontrace
