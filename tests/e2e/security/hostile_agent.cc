// SPDX-License-Identifier: Apache-2.0
// An agent with a good certificate and bad manners, for a test:
//
//   hostile_agent ADDRESS CA CERTIFICATE KEY CAPTURE VICTIM
//
// Does one wrong thing after the other to CAPTURE, some in the name of the agent VICTIM, and prints
// for each a line: its name, a tab, what the aggregator said.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/crc32c.h"
#include "lib/trace/chunk_header.h"
#include "lib/wire/chunk_envelope.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"
#include "neurontrace/v1/artifact_gateway.grpc.pb.h"

namespace neurontrace {
namespace {

constexpr std::chrono::seconds kPatience(30);
constexpr char kMyself[] = "agent-hostile";

std::string TextOf(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Words(const grpc::Status& status) {
  return fmt::format("{} {}", static_cast<int>(status.error_code()), status.error_message());
}

class HostileAgent {
 public:
  HostileAgent(const std::shared_ptr<grpc::Channel>& channel, const CaptureId& capture,
               std::string victim)
      : stub_(v1::AgentGateway::NewStub(channel)),
        artifacts_(v1::ArtifactGateway::NewStub(channel)),
        capture_(capture),
        victim_(std::move(victim)) {}

  void Misbehave() {
    v1::AgentReport heartbeat;
    heartbeat.mutable_heartbeat()->set_host_realtime_ns(1);
    Report("no hello", {heartbeat});
    v1::AgentReport hello;
    hello.mutable_hello()->set_protocol_version(1);
    hello.mutable_hello()->set_agent_id(std::string(100'000, 'a'));
    Report("long name", {hello});
    v1::AgentReport huge;
    huge.mutable_hello()->set_agent_id(std::string(size_t{16} << 20, 'a'));
    Report("huge hello", {huge});

    v1::ChunkEnvelope envelope;
    envelope.set_header("\xff\xff\xff\xff");
    envelope.set_crc32c(Crc32c(envelope.header().data(), envelope.header().size()));
    Upload("no header", envelope);
    envelope = EnvelopeOf(kMyself, capture_);
    envelope.set_crc32c(envelope.crc32c() + 1);
    Upload("wrong checksum", envelope);
    Upload("another's stream", EnvelopeOf(victim_, capture_));
    Upload("no such capture", EnvelopeOf(kMyself, *CaptureId::FromBytes(std::string(16, '\1'))));
    envelope.set_columns(std::string(size_t{16} << 20, 'a'));
    Upload("huge chunk", envelope);
    Upload("nobody", EnvelopeOf(kMyself, capture_), "");
    Offer("path out of it", "..", "../../etc/passwd");
    Offer("name with a line", "i-1_pid_7", "ntrace.pb\nerror: all is lost");
  }

 private:
  static void Send(const char* what, const std::string& words) {
    fmt::print("{}\t{}\n", what, words);
  }

  v1::ChunkEnvelope EnvelopeOf(const std::string& agent, const CaptureId& capture) const {
    Chunk chunk;
    chunk.header.capture_id = capture;
    chunk.header.stream = {.agent_id = agent,
                           .worker = {.instance_id = "i-0001",
                                      .boot_id = "b",
                                      .pid = 7,
                                      .start_time_ticks = 9,
                                      .container_id = ""},
                           .kind = StreamKind::kNeuronCore,
                           .nc_idx = 0,
                           .name = ""};
    chunk.header.producer_version = "0";
    v1::ChunkEnvelope envelope;
    ToEnvelope(std::move(chunk), 1, &envelope);
    return envelope;
  }

  void Report(const char* what, const std::vector<v1::AgentReport>& reports) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    const auto call = stub_->Control(&context);
    for (const v1::AgentReport& report : reports) call->Write(report);
    v1::AgentOrder order;
    while (call->Read(&order)) continue;
    Send(what, Words(call->Finish()));
  }

  void Upload(const char* what, const v1::ChunkEnvelope& envelope,
              const std::string& agent = kMyself) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    if (!agent.empty()) context.AddMetadata("neurontrace-agent-id", agent);
    const auto call = stub_->Upload(&context);
    call->Write(envelope);
    call->WritesDone();
    std::string words;
    v1::UploadAck ack;
    while (call->Read(&ack)) {
      if (ack.refusal() != v1::REFUSAL_CODE_NONE) {
        words += fmt::format("{} {} ", v1::RefusalCode_Name(ack.refusal()), ack.message());
      }
    }
    Send(what, words + Words(call->Finish()));
  }

  void Offer(const char* what, const std::string& directory, const std::string& name) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    v1::ArtifactOffer offer;
    offer.set_capture_id(std::string(capture_.bytes()));
    offer.set_agent_id(kMyself);
    offer.set_directory(directory);
    offer.set_name(name);
    offer.set_sha256(std::string(32, 'x'));
    offer.set_bytes(5);
    v1::ArtifactAnswer answer;
    const grpc::Status status = artifacts_->Offer(&context, offer, &answer);
    Send(what, Words(status));
  }

  const std::unique_ptr<v1::AgentGateway::Stub> stub_;
  const std::unique_ptr<v1::ArtifactGateway::Stub> artifacts_;
  const CaptureId capture_;
  const std::string victim_;
};

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) {
  using namespace neurontrace;
  if (argc != 7) return 2;
  const auto capture = CaptureId::Parse(argv[5]);
  if (!capture.ok()) return 2;
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = TextOf(argv[2]);
  options.pem_cert_chain = TextOf(argv[3]);
  options.pem_private_key = TextOf(argv[4]);
  HostileAgent agent(grpc::CreateChannel(argv[1], grpc::SslCredentials(options)), *capture,
                     argv[6]);
  agent.Misbehave();
  return 0;
}
