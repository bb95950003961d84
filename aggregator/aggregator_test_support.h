// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <prometheus/registry.h>

#include <map>
#include <memory>
#include <string>

#include "lib/trace/capture_record.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace {

// The counters or gauges of one name, by the values of their labels with commas between them.
std::map<std::string, double> ValuesOf(const prometheus::Registry& registry,
                                       const std::string& name);

// A chunk of `events` start and stop events of stream `nc_idx` of agent `agent_id`, as it travels.
v1::ChunkEnvelope TestEnvelope(const CaptureId& capture, const std::string& agent_id,
                               uint32_t nc_idx, uint64_t sequence, bool end_of_stream = false,
                               uint32_t events = 8);
WorkerIdentity TestWorker(const std::string& agent_id, uint32_t pid = 4711);

// Plays one agent against a real aggregator, step by step. Every call ends after half a minute, so
// that a test fails and does not hang. One thread.
class TestAgent {
 public:
  TestAgent(const std::string& address, const std::string& agent_id);
  ~TestAgent();

  // Control. A read that fails gives a message with nothing in it. The rules of triggers, which
  // may come at any time, are passed over.
  v1::AgentOrder Connect(uint32_t protocol_version);
  v1::AgentOrder Connect();
  v1::AgentOrder ReadOrder();
  // Reads the order to arm, arms the one worker of TestWorker, and reads the order to begin.
  // Returns false if another order comes.
  bool TakePart(const CaptureId& capture);
  void Report(const v1::AgentReport& report);
  void ReportWorker(const std::string& job, uint32_t pid = 4711);
  void ReportStatus(const CaptureId& capture, CaptureWorkerState state, uint64_t events_read = 0,
                    uint32_t streams = 1);
  void ReportAgent(const CaptureId& capture, uint32_t matched_workers, bool finished);
  grpc::Status EndControl();

  // Upload.
  void Send(const v1::ChunkEnvelope& envelope);
  v1::UploadAck ReadAck();
  // Sends one chunk and reads one answer.
  v1::UploadAck Upload(const v1::ChunkEnvelope& envelope);
  grpc::Status EndUpload();
  // Without the agent's name, as no agent would.
  void OpenNamelessUpload();

 private:
  void OpenUpload(bool with_name);

  const std::string agent_id_;
  std::unique_ptr<v1::AgentGateway::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> control_context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::AgentReport, v1::AgentOrder>> control_;
  std::unique_ptr<grpc::ClientContext> upload_context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ChunkEnvelope, v1::UploadAck>> upload_;
};

// For tests: plays an operator. Calls end after half a minute.
class TestOperator {
 public:
  explicit TestOperator(const std::string& address);

  grpc::Status Start(const v1::CaptureSpec& spec, v1::Capture& capture);
  // Of everything, and of whoever comes: a standing capture does not need anybody to begin.
  CaptureId Start(uint64_t duration_ns = 0);
  grpc::Status Stop(const std::string& id, v1::Capture& capture);
  grpc::Status Get(const std::string& id, v1::Capture& capture);
  grpc::Status Delete(const std::string& id);
  grpc::Status Update(const v1::UpdateCaptureRequest& request, v1::Capture& capture);
  // Watches until the capture has ended, and gives its last state.
  v1::Capture WatchToEnd(const CaptureId& id);
  v1::ListCapturesReply List();
  v1::GetStatusReply Status();
  v1::ListWorkersReply Workers(const std::string& job);

 private:
  std::unique_ptr<v1::OperatorService::Stub> stub_;
};

}  // namespace neurontrace
