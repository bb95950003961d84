// SPDX-License-Identifier: Apache-2.0
// The two calls over real gRPC on a loopback port: what is sent up arrives, what is sent down
// reaches the sequence, and ends of every kind leave nothing behind. Waits are for conditions on
// the loop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <vector>

#include "agent/grpc_streams.h"
#include "lib/base/event_loop.h"
#include "lib/wire/grpc_channel.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Acknowledges each chunk with the next number, and answers a hello as the test sets.
class Gateway final : public v1::AgentGateway::Service {
 public:
  grpc::Status Upload(grpc::ServerContext* context,
                      grpc::ServerReaderWriter<v1::UploadAck, v1::ChunkEnvelope>* stream) override {
    const auto agent = context->client_metadata().find("neurontrace-agent-id");
    {
      std::lock_guard lock(mutex);
      agent_id = agent == context->client_metadata().end()
                     ? "none"
                     : std::string(agent->second.data(), agent->second.size());
    }
    v1::ChunkEnvelope envelope;
    for (uint64_t n = 1; stream->Read(&envelope); ++n) {
      v1::UploadAck ack;
      ack.set_stream_ref(envelope.stream_ref());
      ack.set_next_sequence(n);
      stream->Write(ack);
      if (n == end_after_chunks) return {grpc::StatusCode::ABORTED, "enough"};
    }
    return grpc::Status::OK;
  }
  grpc::Status Control(grpc::ServerContext*,
                       grpc::ServerReaderWriter<v1::AgentOrder, v1::AgentReport>* stream) override {
    v1::AgentReport report;
    while (stream->Read(&report)) {
      {
        std::lock_guard lock(mutex);
        reports.push_back(report.ShortDebugString());
      }
      if (report.has_hello()) {
        for (const v1::AgentOrder& order : orders) stream->Write(order);
      }
    }
    return grpc::Status::OK;
  }

  uint64_t end_after_chunks = UINT64_MAX;
  std::vector<v1::AgentOrder> orders;
  std::mutex mutex;
  std::string agent_id;              // guarded by mutex
  std::vector<std::string> reports;  // guarded by mutex
};

class Listener final : public UploadStream::Listener, public ControlStream::Listener {
 public:
  explicit Listener(std::function<void()> changed) : changed_(std::move(changed)) {}

  void OnWritten() override { Record("written"); }
  void OnAck(const v1::UploadAck& ack) override {
    Record("ack " + std::to_string(ack.next_sequence()));
  }
  void OnWelcome(const Welcome& welcome) override {
    Record("welcome " + welcome.aggregator_id + " " + std::to_string(welcome.captures.size()));
  }
  void OnStartCapture(const CaptureResume& capture) override {
    Record((capture.arm ? "arm " : "start ") + capture.spec.name);
  }
  void OnBeginCapture(const CaptureId&, const CaptureBegin& begin) override {
    Record("begin " + std::to_string(begin.host_raw_ns));
  }
  void OnStopCapture(const CaptureId&, uint64_t host_raw_ns) override {
    Record(host_raw_ns == 0 ? "stop" : "stop " + std::to_string(host_raw_ns));
  }
  void OnSetTriggers(const std::vector<TriggerRule>& rules, uint64_t version) override {
    Record("triggers " + std::to_string(rules.size()) + " " + std::to_string(version));
  }
  void OnCollectStacks(const StacksOrder& order) override {
    Record("stacks " + std::to_string(order.workers.size()));
  }
  void OnClosed(const absl::Status& status) override {
    closed = status;
    Record("closed");
  }

  std::vector<std::string> notes;
  absl::Status closed;

 private:
  void Record(std::string note) {
    notes.push_back(std::move(note));
    changed_();
  }
  const std::function<void()> changed_;
};

class GrpcStreamsTest : public ::testing::Test {
 protected:
  void StartServer() {
    grpc::ServerBuilder builder;
    int port = 0;
    ConfigureServer(builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&gateway_);
    server_ = builder.BuildAndStart();
    channel_ = MakeChannel("127.0.0.1:" + std::to_string(port), {});
  }
  // Runs the loop until `condition` holds; ten seconds are for ever.
  void RunUntil(std::function<bool()> condition) {
    condition_ = std::move(condition);
    EventLoop& loop = *loop_;
    loop.PostTask([this] { Changed(); });
    loop.PostDelayedTask(
        [&loop] {
          ADD_FAILURE() << "waited in vain";
          loop.Quit();
        },
        10'000'000'000);
    loop.Run();
  }
  void Changed() {
    if (condition_ && condition_()) loop_->Quit();
  }
  bool Has(const std::string& note) const {
    return std::find(listener_.notes.begin(), listener_.notes.end(), note) != listener_.notes.end();
  }

  Gateway gateway_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<EventLoop> loop_ = std::make_unique<EventLoop>();
  std::function<bool()> condition_;
  Listener listener_{[this] { Changed(); }};
};

std::shared_ptr<v1::ChunkEnvelope> Envelope(uint32_t ref) {
  auto envelope = std::make_shared<v1::ChunkEnvelope>();
  envelope->set_stream_ref(ref);
  envelope->set_columns(std::string(100'000, 'c'));
  return envelope;
}

TEST_F(GrpcStreamsTest, ChunksGoUpAndAcknowledgementsComeDown) {
  StartServer();
  const auto connect = MakeGrpcUploadConnector(channel_, "agent-7", *loop_);
  const auto stream = connect(listener_);
  stream->Write(Envelope(3));
  RunUntil([&] { return Has("ack 1") && Has("written"); });
  std::lock_guard lock(gateway_.mutex);
  EXPECT_EQ(gateway_.agent_id, "agent-7");
}

TEST_F(GrpcStreamsTest, ReportsEndOfCallLast) {
  gateway_.end_after_chunks = 1;
  StartServer();
  const auto connect = MakeGrpcUploadConnector(channel_, "a", *loop_);
  const auto stream = connect(listener_);
  stream->Write(Envelope(1));
  RunUntil([&] { return Has("closed"); });
  EXPECT_EQ(listener_.notes.back(), "closed");
  EXPECT_EQ(listener_.closed.code(), absl::StatusCode::kAborted);
  stream->Write(Envelope(1));  // Harmless: the call is over.
}

TEST_F(GrpcStreamsTest, UnreachableServerClosesCall) {
  StartServer();
  server_->Shutdown();
  const auto connect = MakeGrpcUploadConnector(channel_, "a", *loop_);
  const auto stream = connect(listener_);
  stream->Write(Envelope(1));
  RunUntil([&] { return Has("closed"); });
  EXPECT_EQ(listener_.closed.code(), absl::StatusCode::kUnavailable);
}

TEST_F(GrpcStreamsTest, StreamsCanBeDestroyedAtAnyTime) {
  StartServer();
  const auto connect = MakeGrpcUploadConnector(channel_, "a", *loop_);
  for (int i = 0; i < 20; ++i) {
    auto stream = connect(listener_);
    if (i % 2 == 0) stream->Write(Envelope(1));
    stream.reset();
  }
  const size_t before = listener_.notes.size();
  auto last = connect(listener_);
  last->Write(Envelope(1));
  RunUntil([&] { return Has("ack 1"); });
  EXPECT_LE(listener_.notes.size(), before + 2) << "streams that are gone say nothing";
}

TEST_F(GrpcStreamsTest, ConvertsOrdersAndReports) {
  CaptureId id;
  SystemClock clock;
  SystemRandom random;
  id = CaptureId::Make(clock, random);
  v1::AgentOrder welcome;
  welcome.mutable_welcome()->set_aggregator_id("agg");
  auto& resume = *welcome.mutable_welcome()->add_captures();
  resume.mutable_start()->set_capture_id(std::string(id.bytes()));
  resume.mutable_start()->mutable_spec()->set_include_neuron(true);
  v1::AgentOrder start;
  start.mutable_start_capture()->set_capture_id(std::string(id.bytes()));
  start.mutable_start_capture()->mutable_spec()->set_name("demo");
  start.mutable_start_capture()->mutable_spec()->set_include_neuron(true);
  v1::AgentOrder stop;
  stop.mutable_stop_capture()->set_capture_id(std::string(id.bytes()));
  v1::AgentOrder of_a_later_version;
  gateway_.orders = {welcome, of_a_later_version, start, stop};
  StartServer();
  const auto connect = MakeGrpcControlConnector(channel_, *loop_);
  const auto stream = connect(listener_);
  AgentInfo info;
  info.agent_id = "agent-7";
  stream->Send(info);
  RunUntil([&] { return Has("stop") && Has("written"); });
  std::vector<std::string> orders = listener_.notes;
  std::erase(orders, "written");
  EXPECT_THAT(orders, ElementsAre("welcome agg 1", "start demo", "stop"));
  std::lock_guard lock(gateway_.mutex);
  EXPECT_THAT(gateway_.reports.at(0), HasSubstr("agent_id: \"agent-7\""));
}

TEST_F(GrpcStreamsTest, InvalidOrderClosesCall) {
  v1::AgentOrder order;
  order.mutable_start_capture()->set_capture_id("short");
  gateway_.orders = {order};
  StartServer();
  const auto connect = MakeGrpcControlConnector(channel_, *loop_);
  const auto stream = connect(listener_);
  stream->Send(AgentInfo());
  RunUntil([&] { return Has("closed"); });
  EXPECT_EQ(listener_.closed.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace neurontrace
