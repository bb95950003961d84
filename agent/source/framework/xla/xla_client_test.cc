// SPDX-License-Identifier: Apache-2.0
// The client against real gRPC on a loopback port, with servers that record, are busy, hostile, or
// end in the middle. Waits are for answers.
#include "agent/source/framework/xla/xla_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <future>
#include <map>

#include "agent/source/framework/xla/fake_profiler_service.h"
#include "agent/source/framework/xspace_test_support.h"
#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using Kind = XlaAnswer::Kind;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr size_t kAnswerBytesMax = size_t{1} << 20;

// Receives answers, and waits for them.
class AnswerBox final : public XlaAnswers {
 public:
  void OnAnswer(const std::string& session, const XlaAnswer& answer) override {
    const MutexLock lock(mutex_);
    const bool is_first = answers_.emplace(session, answer).second;
    EXPECT_TRUE(is_first) << session;
    changed_.NotifyAll();
  }
  XlaAnswer WaitFor(const std::string& session) {
    MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() NT_REQUIRES(mutex_) { return answers_.contains(session); });
    return answers_.at(session);
  }
  size_t size() {
    const MutexLock lock(mutex_);
    return answers_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, XlaAnswer> answers_ NT_GUARDED_BY(mutex_);
};

class XlaClientTest : public ::testing::Test {
 protected:
  XlaClientTest() : thread_([this] { loop_.Run(); }) {
    OnSequence([this] { client_ = std::make_unique<XlaClient>(directory_.path(), loop_); });
    service_.SetXSpace(xspace_test::Plane("/host:CPU", "") + xspace_test::Environment(1));
  }
  ~XlaClientTest() override {
    OnSequence([this] { client_.reset(); });
    loop_.Quit();
    thread_.join();
    StopServer();
  }

  void StartServer(grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
    grpc::ServerBuilder builder;
    builder.SetMaxSendMessageSize(-1);
    builder.SetDefaultCompressionAlgorithm(compression);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  // Ends calls at once, as a process does that dies.
  void StopServer() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
  }
  void OnSequence(const std::function<void()>& task) {
    std::promise<void> done;
    loop_.PostTask([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  XlaOrder Order(const std::string& session) const {
    return {.session = session,
            .address = "ipv4:127.0.0.1:" + std::to_string(port_),
            .begin_realtime_ns = 1'700'000'000'000'000'007,
            .duration_ns = 2'500'000'000,
            .timeout_ns = 600 * kSecond,
            .answer_bytes_max = kAnswerBytesMax};
  }
  void Begin(const XlaOrder& order) {
    OnSequence([&] { client_->Begin(order, answers_); });
  }
  bool IsSaved(const std::string& session) const {
    return std::filesystem::exists(directory_.path() + "/" + session + "/worker.xplane.pb");
  }

  TemporaryDirectory directory_;
  FakeProfilerService service_;
  int port_ = 1;  // where nobody listens
  std::unique_ptr<grpc::Server> server_;
  EventLoop loop_;
  std::thread thread_;
  AnswerBox answers_;
  std::unique_ptr<XlaClient> client_;
};

TEST_F(XlaClientTest, AsksForTheHostFromThePlannedMomentAndSavesTheAnswer) {
  StartServer();
  XlaOrder order = Order("a");
  order.with_stacks = true;
  Begin(order);
  const tensorflow::ProfileRequest request = service_.WaitForRequest();
  EXPECT_EQ(request.duration_ms(), 2'500u);
  EXPECT_EQ(request.opts().duration_ms(), 2'500u);
  EXPECT_EQ(request.opts().start_timestamp_ns(), 1'700'000'000'000'000'007u);
  EXPECT_EQ(request.opts().version(), 1u);
  EXPECT_EQ(request.opts().host_tracer_level(), 2u);
  EXPECT_EQ(request.opts().device_tracer_level(), 0u) << "devices are the tap's";
  EXPECT_EQ(request.opts().python_tracer_level(), 1u);
  EXPECT_EQ(request.session_id(), "a");
  EXPECT_EQ(request.repository_root(), directory_.path());
  EXPECT_TRUE(request.emit_xspace());
  EXPECT_EQ(answers_.size(), 0u);
  service_.Release();
  EXPECT_EQ(answers_.WaitFor("a").kind, Kind::kSaved);
  EXPECT_TRUE(IsSaved("a"));
}

TEST_F(XlaClientTest, ASecondSessionIsRefusedByTheProcess) {
  StartServer();
  service_.SetBusy(true);
  Begin(Order("a"));
  const XlaAnswer answer = answers_.WaitFor("a");
  EXPECT_EQ(answer.kind, Kind::kFailed);
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(answer.status.message(), "Another profiling session active.");
}

TEST_F(XlaClientTest, NobodyListens) {
  Begin(Order("a"));
  EXPECT_EQ(answers_.WaitFor("a").status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(XlaClientTest, AProcessThatDiesInTheMiddleIsUnavailable) {
  StartServer();
  Begin(Order("a"));
  service_.WaitForRequest();
  StopServer();
  const XlaAnswer answer = answers_.WaitFor("a");
  EXPECT_EQ(answer.kind, Kind::kFailed);
  EXPECT_FALSE(answer.status.ok());
  EXPECT_FALSE(IsSaved("a"));
}

TEST_F(XlaClientTest, RefusesWhatIsTooLargeOrNoXSpace) {
  StartServer();
  service_.SetXSpace(xspace_test::Plane(std::string(kAnswerBytesMax, 'x'), ""));
  service_.Release();
  Begin(Order("large"));
  EXPECT_EQ(answers_.WaitFor("large").status.code(), absl::StatusCode::kResourceExhausted);
  service_.SetXSpace("<html>nothing here</html>");
  service_.Release();
  Begin(Order("html"));
  const XlaAnswer answer = answers_.WaitFor("html");
  EXPECT_EQ(answer.kind, Kind::kNotXSpace);
  EXPECT_EQ(answer.bytes, 25u);
  EXPECT_FALSE(IsSaved("large") || IsSaved("html"));
  // Servers that know no emit_xspace write by themselves.
  service_.SetXSpace("");
  service_.Release();
  Begin(Order("none"));
  EXPECT_EQ(answers_.WaitFor("none").kind, Kind::kWithout);
}

// 8 MiB of zeros are 8 kB on the way.
TEST_F(XlaClientTest, RefusesCompressedAnswers) {
  StartServer(GRPC_COMPRESS_GZIP);
  service_.SetXSpace(xspace_test::Plane(std::string(8 * kAnswerBytesMax, '\0'), ""));
  service_.Release();
  Begin(Order("a"));
  const XlaAnswer answer = answers_.WaitFor("a");
  EXPECT_EQ(answer.kind, Kind::kFailed) << answer.status;
  EXPECT_FALSE(IsSaved("a"));
}

TEST_F(XlaClientTest, AnEndedSessionAnswersAndACancelledOneDoesNot) {
  StartServer();
  Begin(Order("ended"));
  service_.WaitForRequest(1);
  OnSequence([&] { client_->End("ended"); });
  EXPECT_EQ(answers_.WaitFor("ended").kind, Kind::kSaved);
  Begin(Order("cancelled"));
  service_.WaitForRequest(2);
  OnSequence([&] { client_->Cancel("cancelled"); });
  EXPECT_EQ(answers_.WaitFor("cancelled").status.code(), absl::StatusCode::kCancelled);
  service_.WaitForCancelled();
  // Both are over.
  OnSequence([&] {
    client_->End("ended");
    client_->Cancel("cancelled");
  });
  EXPECT_EQ(answers_.size(), 2u);
}

TEST_F(XlaClientTest, ADestroyedClientEndsItsSessionsWithoutAnAnswer) {
  StartServer();
  Begin(Order("a"));
  service_.WaitForRequest();
  OnSequence([this] { client_.reset(); });
  service_.WaitForCancelled();
  OnSequence([] {});
  EXPECT_EQ(answers_.size(), 0u);
}

TEST_F(XlaClientTest, AnAnswerThatCannotBeSavedIsReported) {
  StartServer();
  std::filesystem::create_directory(directory_.path() + "/a");
  service_.Release();
  Begin(Order("a"));
  const XlaAnswer answer = answers_.WaitFor("a");
  EXPECT_EQ(answer.kind, Kind::kNotSaved);
  EXPECT_THAT(std::string(answer.status.message()), HasSubstr(directory_.path() + "/a"));
}

}  // namespace
}  // namespace neurontrace
