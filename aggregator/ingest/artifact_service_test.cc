// SPDX-License-Identifier: Apache-2.0
// The service behind a real gRPC server over a store in a directory; time passes as the test says.
#include "aggregator/ingest/artifact_service.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "aggregator/store/store_test_support.h"
#include "lib/base/sha256.h"
#include "lib/base/task_runner.h"

namespace neurontrace {
namespace {

using ::testing::SizeIs;

// Runs what is posted when it is asked to, whatever the delay; posted to from gRPC's threads.
class RunnerOnDemand final : public TaskRunner {
 public:
  void PostTask(Task task) override { PostDelayedTask(std::move(task), 0); }
  void PostDelayedTask(Task task, uint64_t) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
  }
  void AddReadableWatch(int, Task) override {}
  void RemoveReadableWatch(int) override {}
  bool RunsTasksOnCurrentThread() const override { return false; }

  // Runs one after the other as they come, until Quit.
  void Run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return quit_ || !tasks_.empty(); });
      if (quit_) return;
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }
  void Quit() {
    const std::lock_guard lock(mutex_);
    quit_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool quit_ = false;
};

class ArtifactServiceTest : public ::testing::Test {
 protected:
  ArtifactServiceTest() {
    EXPECT_TRUE(store_->captures().Put(TestCapture(1), true).ok());
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = v1::ArtifactGateway::NewStub(server_->InProcessChannel({}));
  }
  ~ArtifactServiceTest() override {
    server_->Shutdown();
    server_->Wait();
  }
  v1::ArtifactOffer OfferOf(const std::string& content) const {
    Sha256 sha;
    sha.Update(content);
    v1::ArtifactOffer offer;
    offer.set_capture_id(std::string(TestCaptureId(1).bytes()));
    offer.set_agent_id("agent");
    offer.set_directory("i-1_pid_7");
    offer.set_name("ntrace.pb");
    offer.set_sha256(sha.Finish());
    offer.set_bytes(content.size());
    return offer;
  }
  v1::ArtifactAnswer Offer(const v1::ArtifactOffer& offer) {
    grpc::ClientContext context;
    v1::ArtifactAnswer answer;
    EXPECT_TRUE(stub_->Offer(&context, offer, &answer).ok());
    return answer;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_ = Store::Open(directory_.path(), {}).value();
  prometheus::Registry registry_;
  RunnerOnDemand runner_;
  ArtifactService service_{store_->artifacts(), runner_, registry_, nullptr};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::ArtifactGateway::Stub> stub_;
};

TEST_F(ArtifactServiceTest, StalledUploadEndsAndResumesLater) {
  const std::string content(3'000'000, 'x');
  v1::ArtifactOffer offer = OfferOf(content);
  ASSERT_EQ(Offer(offer).outcome(), v1::ARTIFACT_OUTCOME_SEND);
  {
    grpc::ClientContext context;
    v1::ArtifactAnswer answer;
    const auto writer = stub_->Put(&context, &answer);
    v1::ArtifactPart part;
    *part.mutable_offer() = offer;
    part.set_content(content.substr(0, 1'000'000));
    ASSERT_TRUE(writer->Write(part));
    const ArtifactFiles& files = store_->artifacts().files();
    while (files.Received(offer.sha256()) < 1'000'000) std::this_thread::yield();
    std::thread time([this] { runner_.Run(); });  // and nothing more comes
    EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
    runner_.Quit();
    time.join();
  }
  // The client hears of the end before the server's thread has let go of it.
  auto put = [&](uint64_t from) {
    grpc::ClientContext context;
    v1::ArtifactAnswer answer;
    const auto writer = stub_->Put(&context, &answer);
    v1::ArtifactPart part;
    *part.mutable_offer() = offer;
    part.set_offset(from);
    part.set_content(content.substr(from));
    writer->Write(part);
    writer->WritesDone();
    EXPECT_TRUE(writer->Finish().ok());
    return answer.outcome();
  };
  v1::ArtifactOutcome outcome = v1::ARTIFACT_OUTCOME_BUSY;
  while (outcome == v1::ARTIFACT_OUTCOME_BUSY) {
    const v1::ArtifactAnswer answer = Offer(offer);
    ASSERT_EQ(answer.outcome(), v1::ARTIFACT_OUTCOME_SEND);
    EXPECT_EQ(answer.offset(), 1'000'000u);
    outcome = put(answer.offset());
  }
  EXPECT_EQ(outcome, v1::ARTIFACT_OUTCOME_KEPT);
  EXPECT_TRUE(store_->artifacts().files().Has(offer.sha256()));
}

TEST_F(ArtifactServiceTest, SamePlacesInTwoInspectDirectoriesAreTwo) {
  for (const std::string root : {"/pods/a", "/pods/b"}) {
    v1::ArtifactOffer offer = OfferOf("of " + root);
    offer.set_root(ArtifactRootOf(root));
    ASSERT_EQ(Offer(offer).outcome(), v1::ARTIFACT_OUTCOME_SEND);
    grpc::ClientContext context;
    v1::ArtifactAnswer answer;
    const auto writer = stub_->Put(&context, &answer);
    v1::ArtifactPart part;
    *part.mutable_offer() = offer;
    part.set_content("of " + root);
    EXPECT_TRUE(writer->Write(part));
    writer->WritesDone();
    EXPECT_TRUE(writer->Finish().ok());
    EXPECT_EQ(answer.outcome(), v1::ARTIFACT_OUTCOME_KEPT);
  }
  EXPECT_THAT(store_->artifacts().List(TestCaptureId(1)).value(), SizeIs(2));
  v1::ArtifactOffer offer = OfferOf("text");
  offer.set_root("/pods/a");
  grpc::ClientContext context;
  v1::ArtifactAnswer answer;
  EXPECT_EQ(stub_->Offer(&context, offer, &answer).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

// An agent's id is compared, logged and shown.
TEST_F(ArtifactServiceTest, RejectsInvalidAgentId) {
  v1::ArtifactOffer offer = OfferOf("x");
  for (const std::string& id : {std::string(), std::string("a\nb"), std::string("\x1b[2J"),
                                std::string(limits::kIdentityStringBytesMax + 1, 'x')}) {
    offer.set_agent_id(id);
    EXPECT_TRUE(absl::IsInvalidArgument(FromProto(offer).status())) << id;
    v1::ArtifactForgone forgone;
    forgone.set_capture_id(offer.capture_id());
    forgone.set_directory(offer.directory());
    forgone.set_name(offer.name());
    forgone.set_agent_id(id);
    EXPECT_TRUE(absl::IsInvalidArgument(FromProto(forgone).status())) << id;
  }
}

TEST_F(ArtifactServiceTest, ListsForgoneArtifactsUntilStored) {
  v1::ArtifactForgone forgone;
  forgone.set_capture_id(std::string(TestCaptureId(1).bytes()));
  forgone.set_agent_id("agent");
  forgone.set_directory("i-1_pid_7");
  forgone.set_name("ntrace.pb");
  forgone.set_reason("full\n" + std::string(1000, 'x'));
  const auto forgo = [&] {
    grpc::ClientContext context;
    v1::ArtifactAnswer answer;
    const grpc::Status status = stub_->Forgo(&context, forgone, &answer);
    return std::pair(status.error_code(), answer.outcome());
  };
  EXPECT_EQ(forgo(), std::pair(grpc::StatusCode::OK, v1::ARTIFACT_OUTCOME_KEPT));
  const auto noted = store_->artifacts().Forgone(TestCaptureId(1)).value();
  ASSERT_THAT(noted, SizeIs(1));
  EXPECT_EQ(noted[0].reason, "full?" + std::string(251, 'x'));
  forgone.set_capture_id(std::string(TestCaptureId(9).bytes()));
  EXPECT_EQ(forgo(), std::pair(grpc::StatusCode::OK, v1::ARTIFACT_OUTCOME_UNKNOWN_CAPTURE));
  forgone.set_root("no root");
  EXPECT_EQ(forgo().first, grpc::StatusCode::INVALID_ARGUMENT);
  forgone.clear_root();
  forgone.set_name("../passwd");
  EXPECT_EQ(forgo().first, grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace neurontrace
