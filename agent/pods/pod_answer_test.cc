// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/pod_answer.h"

#include <gtest/gtest.h>

#include "lib/trace/pod_limits.h"

namespace neurontrace {
namespace {

using Numbers = std::set<uint32_t>;

void Give(::v1::ContainerResources& container, const std::string& resource,
          const std::vector<std::string>& ids) {
  ::v1::ContainerDevices& given = *container.add_devices();
  given.set_resource_name(resource);
  for (const std::string& id : ids) given.add_device_ids(id);
}

::v1::ContainerResources& AddContainer(::v1::ListPodResourcesResponse& answer,
                                       const std::string& name_space, const std::string& pod,
                                       const std::string& container) {
  ::v1::PodResources& added = *answer.add_pod_resources();
  added.set_namespace_(name_space);
  added.set_name(pod);
  ::v1::ContainerResources& in = *added.add_containers();
  in.set_name(container);
  return in;
}

TEST(PodAnswerTest, TakesContainersWithNeuronDevicesAndCores) {
  ::v1::ListPodResourcesResponse from;
  auto& worker = AddContainer(from, "training", "llama-0", "worker");
  Give(worker, "aws.amazon.com/neuron", {"3", "2"});
  Give(worker, "aws.amazon.com/neuron", {"0"});  // one entry for each NUMA node
  Give(worker, "vpc.amazonaws.com/efa", {"0000:10:1b.0"});
  Give(AddContainer(from, "training", "old-1", "main"), "aws.amazon.com/neurondevice", {"4"});
  Give(AddContainer(from, "serving", "small", "main"), "aws.amazon.com/neuroncore", {"17", "16"});
  AddContainer(from, "kube-system", "coredns-x", "coredns");
  Give(AddContainer(from, "kube-system", "efa", "efa"), "vpc.amazonaws.com/efa", {"x"});

  const auto answer = ReadPodAnswer(from);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->containers.size(), 3u);
  EXPECT_EQ(answer->containers[0],
            (PodContainer{{"training", "llama-0", "worker"}, Numbers{0, 2, 3}, {}}));
  EXPECT_EQ(answer->containers[1], (PodContainer{{"training", "old-1", "main"}, Numbers{4}, {}}));
  EXPECT_EQ(answer->containers[2],
            (PodContainer{{"serving", "small", "main"}, {}, Numbers{16, 17}}));
  EXPECT_EQ(answer->refused, 0u);
}

TEST(PodAnswerTest, SkipsInvalidContainers) {
  ::v1::ListPodResourcesResponse from;
  const std::string device = "aws.amazon.com/neuron";
  const std::vector<std::string> bad_names = {
      "", "a b", "UPPER", "new\nline", "\x1b[31m", "sl/ash", std::string(254, 'a')};
  for (const std::string& name : bad_names) {
    Give(AddContainer(from, "n", name, "c"), device, {"0"});
  }
  Give(AddContainer(from, std::string(64, 'n'), "p", "c"), device, {"0"});
  Give(AddContainer(from, "n", "p", std::string(64, 'c')), device, {"0"});
  for (const std::string id : {"", "-1", "1024", "neuron0", "0x1", "4294967296", " 1", "1 "}) {
    Give(AddContainer(from, "n", "p", "c"), device, {"1", id});
  }
  Give(AddContainer(from, "n", "p", "c"), "aws.amazon.com/neuroncore", {"16384"});
  Give(AddContainer(from, "n", std::string(253, 'p'), "c"), device, {"1023"});

  const auto answer = ReadPodAnswer(from);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->containers.size(), 1u);
  EXPECT_EQ(answer->refused, 18u);
}

TEST(PodAnswerTest, RefusesAnswersBeyondTheLimits) {
  ::v1::ListPodResourcesResponse pods;
  for (size_t i = 0; i <= limits::kPodsPerNodeMax; ++i) pods.add_pod_resources();
  EXPECT_EQ(ReadPodAnswer(pods).status().code(), absl::StatusCode::kResourceExhausted);
  pods.mutable_pod_resources()->RemoveLast();
  EXPECT_TRUE(ReadPodAnswer(pods).ok());

  ::v1::ListPodResourcesResponse containers;
  ::v1::PodResources& pod = *containers.add_pod_resources();
  for (size_t i = 0; i <= limits::kPodContainersMax; ++i) pod.add_containers();
  EXPECT_EQ(ReadPodAnswer(containers).status().code(), absl::StatusCode::kResourceExhausted);

  ::v1::ListPodResourcesResponse devices;
  Give(AddContainer(devices, "n", "p", "c"), "example.com/other",
       std::vector<std::string>(limits::kPodDeviceIdsMax, "0"));
  EXPECT_EQ(ReadPodAnswer(devices).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(PodAnswerTest, CoresPerDeviceComeFromNode) {
  const auto per_device = [](const std::vector<std::string>& devices,
                             const std::vector<std::string>& cores) {
    ::v1::AllocatableResourcesResponse answer;
    ::v1::ContainerDevices& d = *answer.add_devices();
    d.set_resource_name("aws.amazon.com/neuron");
    for (const std::string& id : devices) d.add_device_ids(id);
    ::v1::ContainerDevices& c = *answer.add_devices();
    c.set_resource_name("aws.amazon.com/neuroncore");
    for (const std::string& id : cores) c.add_device_ids(id);
    return CoresPerDevice(answer);
  };
  EXPECT_EQ(per_device({"0", "1"}, {"0", "1", "2", "3"}), 2u);
  EXPECT_EQ(per_device({"1"}, {"7", "6"}), 4u) << "the first device is unhealthy";
  EXPECT_EQ(per_device({"0", "1"}, {"0", "1", "2"}), 0u);
  EXPECT_EQ(per_device({}, {"0", "1"}), 0u);
  EXPECT_EQ(per_device({"0"}, {}), 0u);
  EXPECT_EQ(per_device({"0"}, {"nc0"}), 0u);
}

}  // namespace
}  // namespace neurontrace
