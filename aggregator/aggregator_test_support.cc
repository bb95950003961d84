// SPDX-License-Identifier: Apache-2.0
#include "aggregator/aggregator_test_support.h"

#include <chrono>
#include <utility>

#include "lib/trace/agent_info.h"
#include "lib/trace/event_chunk_builder.h"
#include "lib/wire/agent_hello.h"
#include "lib/wire/chunk_envelope.h"
#include "lib/wire/conversions.h"
#include "lib/wire/grpc_channel.h"

namespace neurontrace {
namespace {

std::unique_ptr<grpc::ClientContext> MakeContext() {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  context->set_wait_for_ready(true);
  return context;
}

}  // namespace

std::map<std::string, double> ValuesOf(const prometheus::Registry& registry,
                                       const std::string& name) {
  std::map<std::string, double> values;
  for (const auto& family : registry.Collect()) {
    if (family.name != name) continue;
    for (const auto& metric : family.metric) {
      std::string labels;
      for (const auto& label : metric.label) labels += (labels.empty() ? "" : ",") + label.value;
      const bool is_counter = family.type == prometheus::MetricType::Counter;
      values[labels] = is_counter ? metric.counter.value : metric.gauge.value;
    }
  }
  return values;
}

WorkerIdentity TestWorker(const std::string& agent_id, uint32_t pid) {
  return {.instance_id = "i-" + agent_id, .boot_id = "boot", .pid = pid, .start_time_ticks = 1};
}

v1::ChunkEnvelope TestEnvelope(const CaptureId& capture, const std::string& agent_id,
                               uint32_t nc_idx, uint64_t sequence, bool end_of_stream,
                               uint32_t events) {
  EventChunkBuilder builder;
  const uint32_t present = FieldBit(Field::kTimestamp) | FieldBit(Field::kTrackingId);
  for (uint32_t i = 0; i < events; ++i) {
    const auto shape = builder.InternShape({.event_type = "nc_exec_running",
                                            .phase = i % 2 == 0 ? Phase::kStart : Phase::kStop,
                                            .present = present});
    (void)builder.Append(
        *shape,
        {.timestamp_ns = 1'000 + sequence * 1'000 + i, .tracking_id = sequence * 100 + i / 2}, {});
  }
  Chunk chunk;
  chunk.header.capture_id = capture;
  chunk.header.stream = {.agent_id = agent_id,
                         .worker = TestWorker(agent_id),
                         .kind = StreamKind::kNeuronCore,
                         .nc_idx = nc_idx};
  chunk.header.sequence = sequence;
  chunk.header.source_position = sequence * 4'096;
  chunk.header.source_skip = 7;
  chunk.header.end_of_stream = end_of_stream;
  chunk.header.rank_evidence = {{RankSource::kTorchrun, nc_idx, 64, "RANK"}};
  if (events > 0) {
    const EncodedColumns encoded = builder.Finish();
    chunk.header.event_count = encoded.event_count;
    chunk.header.first_timestamp_ns = encoded.first_timestamp_ns;
    chunk.header.last_timestamp_ns = encoded.last_timestamp_ns;
    chunk.header.columns_bytes = static_cast<uint32_t>(encoded.bytes.size());
    chunk.columns = CompressColumns(encoded.bytes);
  }
  v1::ChunkEnvelope envelope;
  ToEnvelope(std::move(chunk), nc_idx, &envelope);
  return envelope;
}

TestAgent::TestAgent(const std::string& address, const std::string& agent_id)
    : agent_id_(agent_id), stub_(v1::AgentGateway::NewStub(MakeChannel(address, {}))) {}

TestAgent::~TestAgent() {
  if (control_context_ != nullptr) control_context_->TryCancel();
  if (upload_context_ != nullptr) upload_context_->TryCancel();
  if (control_ != nullptr) (void)control_->Finish();
  if (upload_ != nullptr) (void)upload_->Finish();
}

v1::AgentOrder TestAgent::Connect(uint32_t protocol_version) {
  control_context_ = MakeContext();
  control_ = stub_->Control(control_context_.get());
  v1::AgentReport report;
  ToProto(AgentInfo{.protocol_version = protocol_version,
                    .agent_id = agent_id_,
                    .agent_version = "test",
                    .instance_id = "i-" + agent_id_,
                    .boot_id = "boot"},
          report.mutable_hello());
  control_->Write(report);
  return ReadOrder();
}

v1::AgentOrder TestAgent::Connect() { return Connect(kProtocolVersion); }

v1::AgentOrder TestAgent::ReadOrder() {
  v1::AgentOrder order;
  do {
    if (!control_->Read(&order)) order.Clear();
  } while (order.has_set_triggers());
  return order;
}

bool TestAgent::TakePart(const CaptureId& capture) {
  const v1::AgentOrder arm = ReadOrder();
  ReportStatus(capture, CaptureWorkerState::kArmed);
  ReportAgent(capture, 1, false);
  return arm.start_capture().arm() && ReadOrder().has_begin_capture();
}

void TestAgent::Report(const v1::AgentReport& report) { control_->Write(report); }

void TestAgent::ReportWorker(const std::string& job, uint32_t pid) {
  v1::AgentReport report;
  ToProto(WorkerInfo{.identity = TestWorker(agent_id_, pid),
                     .state = WorkerState::kIdle,
                     .job = job,
                     .cores = {{.nc_idx = 0}}},
          report.mutable_worker());
  Report(report);
}

void TestAgent::ReportStatus(const CaptureId& capture, CaptureWorkerState state,
                             uint64_t events_read, uint32_t streams) {
  v1::AgentReport report;
  ToProto(CaptureWorkerStatus{.capture_id = capture,
                              .worker = TestWorker(agent_id_),
                              .state = state,
                              .events_read = events_read,
                              .events_stored = events_read,
                              .streams = streams},
          report.mutable_capture_worker());
  Report(report);
}

void TestAgent::ReportAgent(const CaptureId& capture, uint32_t matched_workers, bool finished) {
  v1::AgentReport report;
  report.mutable_capture_agent()->set_capture_id(std::string(capture.bytes()));
  report.mutable_capture_agent()->set_matched_workers(matched_workers);
  report.mutable_capture_agent()->set_finished(finished);
  Report(report);
}

grpc::Status TestAgent::EndControl() {
  control_->WritesDone();
  v1::AgentOrder order;
  while (control_->Read(&order)) {
  }
  const grpc::Status status = control_->Finish();
  control_.reset();
  return status;
}

void TestAgent::OpenUpload(bool with_name) {
  upload_context_ = MakeContext();
  if (with_name) upload_context_->AddMetadata("neurontrace-agent-id", agent_id_);
  upload_ = stub_->Upload(upload_context_.get());
}

void TestAgent::OpenNamelessUpload() { OpenUpload(false); }

void TestAgent::Send(const v1::ChunkEnvelope& envelope) {
  if (upload_ == nullptr) OpenUpload(true);
  upload_->Write(envelope);
}

v1::UploadAck TestAgent::ReadAck() {
  v1::UploadAck ack;
  if (!upload_->Read(&ack)) ack.set_message("the call is over");
  return ack;
}

v1::UploadAck TestAgent::Upload(const v1::ChunkEnvelope& envelope) {
  Send(envelope);
  return ReadAck();
}

grpc::Status TestAgent::EndUpload() {
  upload_->WritesDone();
  v1::UploadAck ack;
  while (upload_->Read(&ack)) {
  }
  const grpc::Status status = upload_->Finish();
  upload_.reset();
  return status;
}

TestOperator::TestOperator(const std::string& address)
    : stub_(v1::OperatorService::NewStub(MakeChannel(address, {}))) {}

grpc::Status TestOperator::Start(const v1::CaptureSpec& spec, v1::Capture& capture) {
  const auto context = MakeContext();
  v1::StartCaptureRequest request;
  *request.mutable_spec() = spec;
  return stub_->StartCapture(context.get(), request, &capture);
}

CaptureId TestOperator::Start(uint64_t duration_ns) {
  v1::CaptureSpec spec;
  spec.set_include_neuron(true);
  spec.set_duration_ns(duration_ns);
  spec.set_mode(v1::CAPTURE_MODE_CONTINUOUS);
  spec.set_retention_ns(86'400'000'000'000);
  v1::Capture capture;
  if (!Start(spec, capture).ok()) return {};
  return *CaptureId::Parse(capture.capture_id());
}

grpc::Status TestOperator::Stop(const std::string& id, v1::Capture& capture) {
  const auto context = MakeContext();
  v1::CaptureReference request;
  request.set_capture_id(id);
  return stub_->StopCapture(context.get(), request, &capture);
}

grpc::Status TestOperator::Get(const std::string& id, v1::Capture& capture) {
  const auto context = MakeContext();
  v1::CaptureReference request;
  request.set_capture_id(id);
  return stub_->GetCapture(context.get(), request, &capture);
}

grpc::Status TestOperator::Delete(const std::string& id) {
  const auto context = MakeContext();
  v1::CaptureReference request;
  request.set_capture_id(id);
  v1::DeleteCaptureReply reply;
  return stub_->DeleteCapture(context.get(), request, &reply);
}

grpc::Status TestOperator::Update(const v1::UpdateCaptureRequest& request, v1::Capture& capture) {
  const auto context = MakeContext();
  return stub_->UpdateCapture(context.get(), request, &capture);
}

v1::Capture TestOperator::WatchToEnd(const CaptureId& id) {
  const auto context = MakeContext();
  v1::CaptureReference request;
  request.set_capture_id(id.ToString());
  const auto reader = stub_->WatchCapture(context.get(), request);
  v1::Capture capture;
  v1::Capture last;
  while (reader->Read(&capture)) last = capture;
  (void)reader->Finish();
  return last;
}

v1::ListCapturesReply TestOperator::List() {
  const auto context = MakeContext();
  v1::ListCapturesReply reply;
  (void)stub_->ListCaptures(context.get(), {}, &reply);
  return reply;
}

v1::GetStatusReply TestOperator::Status() {
  const auto context = MakeContext();
  v1::GetStatusReply reply;
  (void)stub_->GetStatus(context.get(), {}, &reply);
  return reply;
}

v1::ListWorkersReply TestOperator::Workers(const std::string& job) {
  const auto context = MakeContext();
  v1::ListWorkersRequest request;
  request.set_job(job);
  v1::ListWorkersReply reply;
  (void)stub_->ListWorkers(context.get(), request, &reply);
  return reply;
}

}  // namespace neurontrace
