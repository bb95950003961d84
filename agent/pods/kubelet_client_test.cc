// SPDX-License-Identifier: Apache-2.0
// The client against real gRPC on a real socket, with a kubelet that is away, slow, hostile or
// older.
#include "agent/pods/kubelet_client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

constexpr uint64_t kPatientNs = 60'000'000'000;
constexpr uint64_t kImpatientNs = 50'000'000;

// What a kubelet answers; the methods run on gRPC's threads.
class FakeKubelet final : public ::v1::PodResourcesLister::Service {
 public:
  grpc::Status List(grpc::ServerContext*, const ::v1::ListPodResourcesRequest*,
                    ::v1::ListPodResourcesResponse* answer) override {
    std::unique_lock lock(mutex_);
    ++asked_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !hangs_; });
    *answer = pods;
    return status;
  }
  grpc::Status GetAllocatableResources(grpc::ServerContext*,
                                       const ::v1::AllocatableResourcesRequest*,
                                       ::v1::AllocatableResourcesResponse* answer) override {
    *answer = allocatable;
    return allocatable_status;
  }

  void SetHangs(bool hangs) {
    const std::lock_guard lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }
  void WaitUntilAsked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return asked_ > 0; });
  }

  // Set while nobody asks.
  ::v1::ListPodResourcesResponse pods;
  ::v1::AllocatableResourcesResponse allocatable;
  grpc::Status status;
  grpc::Status allocatable_status;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  int asked_ = 0;
};

void Give(::v1::ContainerDevices& given, const std::string& resource,
          const std::vector<std::string>& ids) {
  given.set_resource_name(resource);
  for (const std::string& id : ids) given.add_device_ids(id);
}

class KubeletClientTest : public ::testing::Test {
 protected:
  KubeletClientTest() {
    std::string directory = ::testing::TempDir() + "/nt-pods-XXXXXX";
    EXPECT_NE(mkdtemp(directory.data()), nullptr);
    directory_ = directory;
    socket_ = directory + "/kubelet.sock";
  }
  ~KubeletClientTest() override {
    kubelet_.SetHangs(false);
    StopKubelet();
    std::filesystem::remove_all(directory_);
  }

  void StartKubelet() {
    std::filesystem::remove(socket_);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(&kubelet_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void StopKubelet() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  ::v1::ContainerResources& AddContainer(const std::string& pod) {
    ::v1::PodResources& added = *kubelet_.pods.add_pod_resources();
    added.set_namespace_("training");
    added.set_name(pod);
    ::v1::ContainerResources& container = *added.add_containers();
    container.set_name("worker");
    return container;
  }

  std::string directory_;
  std::string socket_;
  FakeKubelet kubelet_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(KubeletClientTest, ReadsPodResources) {
  ::v1::ContainerResources& container = AddContainer("llama-0");
  Give(*container.add_devices(), "aws.amazon.com/neuron", {"0", "1"});
  // A field that the next Kubernetes may have.
  container.GetReflection()->MutableUnknownFields(&container)->AddVarint(77, 1);
  StartKubelet();
  KubeletClient client(socket_, kPatientNs);
  const auto answer = client.List();
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_EQ(answer->containers.size(), 1u);
  EXPECT_EQ(answer->containers[0].pod, (WorkerPod{"training", "llama-0", "worker"}));
  EXPECT_EQ(answer->containers[0].devices, (std::set<uint32_t>{0, 1}));
  EXPECT_EQ(answer->cores_per_device, 0u);
}

TEST_F(KubeletClientTest, QueriesCoresOfDevice) {
  Give(*AddContainer("small").add_devices(), "aws.amazon.com/neuroncore", {"2"});
  Give(*kubelet_.allocatable.add_devices(), "aws.amazon.com/neuron", {"0", "1"});
  Give(*kubelet_.allocatable.add_devices(), "aws.amazon.com/neuroncore", {"0", "1", "2", "3"});
  StartKubelet();
  KubeletClient client(socket_, kPatientNs);
  auto answer = client.List();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->cores_per_device, 2u);
  for (const grpc::StatusCode code : {grpc::StatusCode::UNIMPLEMENTED, grpc::StatusCode::UNKNOWN}) {
    kubelet_.allocatable_status = grpc::Status(code, "an older one");
    answer = client.List();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->cores_per_device, 0u);
  }
}

TEST_F(KubeletClientTest, RecoversWhenKubeletReturns) {
  Give(*AddContainer("llama-0").add_devices(), "aws.amazon.com/neuron", {"0"});
  KubeletClient client(socket_, kPatientNs);
  EXPECT_EQ(client.List().status().code(), absl::StatusCode::kUnavailable);
  // A second start makes a new socket in the place of the old one.
  for (int start = 0; start < 2; ++start) {
    StartKubelet();
    absl::Status status = absl::UnavailableError("not asked");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!status.ok() && std::chrono::steady_clock::now() < deadline) {
      status = client.List().status();
      if (!status.ok()) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // tidy: poll
    }
    EXPECT_TRUE(status.ok()) << status;
    StopKubelet();
  }
  EXPECT_FALSE(client.List().ok());
}

TEST_F(KubeletClientTest, DoesNotWaitForSlowKubelet) {
  kubelet_.SetHangs(true);
  StartKubelet();
  KubeletClient client(socket_, kImpatientNs);
  EXPECT_EQ(client.List().status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(KubeletClientTest, CancelEndsCurrentAndLaterCalls) {
  kubelet_.SetHangs(true);
  StartKubelet();
  KubeletClient client(socket_, kPatientNs);
  std::thread canceller([&] {
    kubelet_.WaitUntilAsked();
    client.Cancel();
  });
  EXPECT_EQ(client.List().status().code(), absl::StatusCode::kCancelled);
  canceller.join();
  EXPECT_EQ(client.List().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(KubeletClientTest, RejectsOversizedOrNonTextReplies) {
  StartKubelet();
  KubeletClient client(socket_, kPatientNs);
  AddContainer(std::string(limits::kPodResourcesBytesMax, 'a'));
  EXPECT_EQ(client.List().status().code(), absl::StatusCode::kResourceExhausted);
  kubelet_.pods.Clear();
  for (size_t i = 0; i <= limits::kPodsPerNodeMax; ++i) kubelet_.pods.add_pod_resources();
  EXPECT_EQ(client.List().status().code(), absl::StatusCode::kResourceExhausted);
  kubelet_.pods.Clear();
  AddContainer("\xff\xfe");
  EXPECT_FALSE(client.List().ok());
  kubelet_.pods.Clear();
  EXPECT_TRUE(client.List().ok());
  kubelet_.status =
      grpc::Status(grpc::StatusCode::INTERNAL, "a\x1b[31mb" + std::string(5'000, 'x'));
  const absl::Status status = client.List().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(status.message()).find('\x1b'), std::string::npos);
  EXPECT_LE(status.message().size(), 2'000u);
}

TEST_F(KubeletClientTest, ForeignServerAtSocketIsError) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_.c_str(), sizeof address.sun_path - 1);
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 8), 0);
  std::thread stranger([&] {
    const std::string garbage(100'000, '\x7f');
    for (;;) {
      const UniqueFd peer(accept(listener.get(), nullptr, nullptr));
      if (!peer.valid()) return;
      (void)send(peer.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    }
  });
  KubeletClient client(socket_, 2'000'000'000);
  EXPECT_FALSE(client.List().ok());
  shutdown(listener.get(), SHUT_RDWR);
  stranger.join();
}

}  // namespace
}  // namespace neurontrace
