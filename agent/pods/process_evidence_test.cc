// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/process_evidence.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/pods/fake_node_proc.h"

namespace neurontrace {
namespace {

constexpr char kUid[] = "0f1c2a3b-4d5e-6f70-8192-a3b4c5d6e7f8";
constexpr char kSliceUid[] = "0f1c2a3b_4d5e_6f70_8192_a3b4c5d6e7f8";
const std::string kId(64, 'c');

TEST(PodUidTest, IsFoundAsEachDriverAndVersionWritesIt) {
  const struct {
    const char* what;
    std::string cgroup;
  } cases[] = {
      {"v2, systemd", fmt::format("0::/kubepods.slice/kubepods-burstable.slice/"
                                  "kubepods-burstable-pod{}.slice/cri-containerd-{}.scope\n",
                                  kSliceUid, kId)},
      {"v2, systemd, guaranteed",
       fmt::format("0::/kubepods.slice/kubepods-pod{}.slice/crio-{}.scope\n", kSliceUid, kId)},
      {"v2, cgroupfs", fmt::format("0::/kubepods/besteffort/pod{}/{}\n", kUid, kId)},
      {"v2, seen from the agent's own namespace",
       fmt::format("0::/../../kubepods-pod{}.slice/cri-containerd-{}.scope\n", kSliceUid, kId)},
      {"v2, cgroupfs, from the agent's own namespace",
       fmt::format("0::/../../pod{}/{}", kUid, kId)},
      {"v1, cgroupfs",
       fmt::format("12:cpuset:/kubepods/pod{0}/{1}\n11:cpu,cpuacct:/kubepods/pod{0}/{1}\n"
                   "1:name=systemd:/kubepods/pod{0}/{1}\n0::/\n",
                   kUid, kId)},
      {"v1, systemd",
       fmt::format("4:memory:/kubepods.slice/kubepods-pod{0}.slice/docker-{1}.scope\n"
                   "3:freezer:/\n",
                   kSliceUid, kId)},
      {"under another root",
       fmt::format("0::/system.slice/kubelet/kubepods/burstable/pod{}/{}\n", kUid, kId)},
  };
  for (const auto& c : cases) EXPECT_EQ(PodUidOf(c.cgroup), kUid) << c.what;
  const std::string hash(32, 'd');
  EXPECT_EQ(PodUidOf("0::/kubepods/pod" + hash + "/" + kId), hash) << "a static pod";
}

TEST(PodUidTest, IsEmptyOutsideOfPods) {
  for (const std::string cgroup :
       {"", "0::/", "0::/user.slice/user-1000.slice/session-1.scope\n", "0::/podman/pod.slice\n",
        "0::/kubepods.slice/kubepods-pod.slice/x", "garbage", ":::", "\n\n\n",
        "0::/kubepods/pod0f1c2a3b-4d5e-6f70-8192-a3b4c5d6e7f/x",
        "0::/kubepods/pod0f1c2a3b-4d5e-6f70-8192-a3b4c5d6e7fg/x",
        "0::/kubepods/pod0f1c2a3b04d5e06f70081920a3b4c5d6e7f8/x"}) {
    EXPECT_EQ(PodUidOf(cgroup), "") << cgroup;
  }
}

// Whoever may make control groups in a container can give them any name.
TEST(PodUidTest, IsThatOfTheOutermostGroup) {
  const std::string other = FakeNodeProc::Uid('e');
  EXPECT_EQ(PodUidOf(fmt::format("0::/kubepods/pod{}/{}/pod{}/x\n", kUid, kId, other)), kUid);
  EXPECT_EQ(
      PodUidOf(fmt::format("2:cpu:/kubepods/pod{}/x\n1:memory:/kubepods/pod{}/x\n", kUid, other)),
      "")
      << "two hierarchies that do not agree";
}

class ProcessReaderTest : public ::testing::Test {
 protected:
  FakeNodeProc node_;
  const ProcessReader reader_{node_.root()};
};

TEST_F(ProcessReaderTest, FindsTheDriversNumber) {
  EXPECT_EQ(reader_.NeuronMajor(), 1u);
  std::ofstream(node_.root() + "/devices")
      << "Character devices:\n  1 mem\nBlock devices:\n 9 neuron\n";
  EXPECT_EQ(reader_.NeuronMajor(), std::nullopt);
  std::filesystem::remove(node_.root() + "/devices");
  EXPECT_EQ(reader_.NeuronMajor(), std::nullopt);
}

TEST_F(ProcessReaderTest, IdentifiesDevicesByNumber) {
  const std::string lie = node_.root() + "/neuron4";  // a file that is called like a device
  std::ofstream(lie) << "x";
  const PodProcess worker =
      node_.PutInPod(7, 'a', {"/dev/null", "/dev/full", "/dev/full", lie, "/dev/tty", "/nowhere"});
  const auto evidence = reader_.Read(worker, 1);
  ASSERT_TRUE(evidence);
  EXPECT_EQ(*evidence, (ProcessEvidence{.pod_uid = FakeNodeProc::Uid('a'), .devices = {3, 7}}));
  EXPECT_TRUE(reader_.Read(worker, 2)->devices.empty());
  EXPECT_TRUE(reader_.Read(worker, std::nullopt)->devices.empty());
}

TEST_F(ProcessReaderTest, IgnoresReusedPid) {
  PodProcess worker = node_.PutInPod(7, 'a', {"/dev/null"});
  ++worker.start_time_ticks;
  EXPECT_EQ(reader_.Read(worker, 1), std::nullopt);
  EXPECT_EQ(reader_.Read({.pid = 8, .start_time_ticks = 1}, 1), std::nullopt);
}

TEST_F(ProcessReaderTest, ReportsWhetherFilesWereReadable) {
  const PodProcess worker = node_.PutInPod(7, 'a', {});
  EXPECT_TRUE(reader_.Read(worker, 1)->files_are_readable);
  std::filesystem::remove_all(node_.root() + "/7/fd");
  EXPECT_FALSE(reader_.Read(worker, 1)->files_are_readable);
}

}  // namespace
}  // namespace neurontrace
