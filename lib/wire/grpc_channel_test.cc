// SPDX-License-Identifier: Apache-2.0
// A real server and channel on loopback: messages up to the limit pass, larger ones are refused.
#include "lib/wire/grpc_channel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>

#include "lib/trace/limits.h"
#include "lib/wire/server_port.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace {
namespace {

// Answers with as many bytes as the name it was asked for has.
class EchoService final : public v1::OperatorService::Service {
 public:
  grpc::Status GetCapture(grpc::ServerContext*, const v1::CaptureReference* request,
                          v1::Capture* reply) override {
    reply->set_capture_id(request->capture_id());
    return grpc::Status::OK;
  }
  // Answers with the caller's port, at once and again on command.
  grpc::Status WatchCapture(grpc::ServerContext* context, const v1::CaptureReference*,
                            grpc::ServerWriter<v1::Capture>* writer) override {
    v1::Capture capture;
    capture.set_capture_id(context->peer());
    writer->Write(capture);
    proceed.get_future().wait_for(std::chrono::seconds(60));  // no longer where the test has failed
    writer->Write(capture);
    return grpc::Status::OK;
  }
  grpc::Status DeleteCapture(grpc::ServerContext* context, const v1::CaptureReference*,
                             v1::DeleteCaptureReply*) override {
    const std::lock_guard lock(mutex);
    peer = context->peer();
    return grpc::Status::OK;
  }

  std::promise<void> proceed;
  std::mutex mutex;
  std::string peer;  // guarded by mutex; of the last DeleteCapture
};

class GrpcChannelTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(limits::kGrpcConnectionAgeMsMax); }
  void Start(int connection_age_ms) {
    grpc::ServerBuilder builder;
    ConfigureServer(builder, connection_age_ms);
    auto port = ServerPort::Listen({.address = "127.0.0.1:0", .descriptors_max = 1'024});
    ASSERT_TRUE(port.ok()) << port.status();
    port_ = *std::move(port);
    const std::shared_ptr<grpc::ServerCredentials> plain[] = {grpc::InsecureServerCredentials()};
    port_->AddTo(builder, plain);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    port_->Start();
    stub_ = v1::OperatorService::NewStub(MakeChannel(address(), ChannelSecurity()));
  }
  void TearDown() override {
    port_.reset();
    server_->Shutdown();
  }

  std::string address() const { return "127.0.0.1:" + std::to_string(port_->port()); }

  grpc::Status Echo(size_t bytes) {
    grpc::ClientContext context;
    v1::CaptureReference request;
    request.set_capture_id(std::string(bytes, 'x'));
    v1::Capture reply;
    const grpc::Status status = stub_->GetCapture(&context, request, &reply);
    EXPECT_EQ(reply.capture_id().size(), status.ok() ? bytes : 0);
    return status;
  }

  EchoService service_;
  std::unique_ptr<ServerPort> port_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::OperatorService::Stub> stub_;
};

TEST_F(GrpcChannelTest, PassesMessagesUpToTheLimitBothWays) {
  const grpc::Status status = Echo(limits::kGrpcMessageBytesMax - 16);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(GrpcChannelTest, RefusesLargerMessages) {
  EXPECT_EQ(Echo(limits::kGrpcMessageBytesMax + 1).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GrpcChannelTest, AnOldConnectionKeepsItsCallsAndTakesNoOthers) {
  TearDown();
  Start(200);
  grpc::ClientContext context;
  const auto watch = stub_->WatchCapture(&context, {});
  v1::Capture first, last;
  ASSERT_TRUE(watch->Read(&first));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::string peer = first.capture_id();
  while (peer == first.capture_id() && std::chrono::steady_clock::now() < deadline) {
    grpc::ClientContext call;
    v1::DeleteCaptureReply reply;
    const grpc::Status status = stub_->DeleteCapture(&call, {}, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const std::lock_guard lock(service_.mutex);
    peer = service_.peer;
  }
  EXPECT_NE(peer, first.capture_id());
  service_.proceed.set_value();
  EXPECT_TRUE(watch->Read(&last));
  EXPECT_FALSE(watch->Read(&last));
  EXPECT_TRUE(watch->Finish().ok());
}

}  // namespace
}  // namespace neurontrace
