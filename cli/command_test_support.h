// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/command.h"

// An operator service with state, and the whole command line against it over gRPC's in-process
// channel.
namespace neurontrace::cli {

inline constexpr char kCaptureId[] = "01JD8Z2M6WQJ4V1T0S3R5XK7PA";

class FakeOperator final : public v1::OperatorService::Service {
 public:
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::GetStatusReply* reply) override {
    reply->set_aggregator_id("agg-1");
    reply->set_agents_connected(1);
    reply->set_view_url(view_url);
    if (store_problem) *reply->mutable_store_problem() = *store_problem;
    auto* agent = reply->add_agents();
    agent->mutable_hello()->set_instance_id("i-a");
    agent->set_connected(true);
    return grpc::Status::OK;
  }
  grpc::Status CollectStacks(grpc::ServerContext*, const v1::CollectStacksRequest* request,
                             v1::GetStacksReply* reply) override {
    stacks_request = *request;
    *reply->add_stacks() = stacks;
    return grpc::Status::OK;
  }
  // Each question finds one worker more that has answered.
  grpc::Status GetStacks(grpc::ServerContext*, const v1::CaptureReference*,
                         v1::GetStacksReply* reply) override {
    *reply->add_stacks() = stacks;
    if (stacks.pending() > 0) stacks.set_pending(stacks.pending() - 1);
    return grpc::Status::OK;
  }
  grpc::Status ListAgents(grpc::ServerContext*, const v1::ListAgentsRequest*,
                          v1::ListAgentsReply* reply) override {
    auto* agent = reply->add_agents();
    agent->mutable_hello()->set_instance_id("i-a");
    agent->set_connected(!agent_is_away);
    return grpc::Status::OK;
  }
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest* request,
                           v1::ListWorkersReply* reply) override {
    workers_request = *request;
    if (jobs_conflict) reply->add_jobs()->set_has_conflict(true);
    if (!has_workers) return grpc::Status::OK;
    auto* worker = reply->add_workers();
    worker->mutable_identity()->set_instance_id("i-a");
    worker->mutable_identity()->set_pid(42);
    worker->set_state(v1::WORKER_STATE_BUSY_OTHER_PROFILER);
    for (int i = 0; i < 4; ++i) {
      auto* core = worker->add_cores();
      core->set_nc_idx(i);
      auto* evidence = core->add_rank_evidence();
      evidence->set_worker_gid(32 + i + (i == 3 ? 5 : 0));
      evidence->set_detail("RANK=32");
    }
    return grpc::Status::OK;
  }
  grpc::Status StartCapture(grpc::ServerContext*, const v1::StartCaptureRequest* request,
                            v1::Capture* reply) override {
    spec = request->spec();
    if (!start_status.ok()) return start_status;
    *reply = capture;
    return grpc::Status::OK;
  }
  grpc::Status StopCapture(grpc::ServerContext*, const v1::CaptureReference* request,
                           v1::Capture* reply) override {
    stopped = request->capture_id();
    if (capture.state() == v1::CAPTURE_STATE_RECORDING) {
      capture.set_state(v1::CAPTURE_STATE_COMPLETE);
    }
    *reply = capture;
    return grpc::Status::OK;
  }
  // Knows `capture` alone.
  grpc::Status UpdateCapture(grpc::ServerContext*, const v1::UpdateCaptureRequest* request,
                             v1::Capture* reply) override {
    updates.push_back(*request);
    if (request->capture_id() != capture.capture_id()) {
      return {grpc::StatusCode::NOT_FOUND,
              "no capture has an id that begins with '" + request->capture_id() + "'"};
    }
    if (request->has_name()) capture.mutable_spec()->set_name(request->name());
    if (request->has_starred()) capture.set_starred(request->starred());
    if (request->has_retention_ns()) {
      capture.mutable_spec()->set_retention_ns(request->retention_ns());
    }
    std::set<std::string> tags(capture.tags().begin(), capture.tags().end());
    tags.insert(request->add_tags().begin(), request->add_tags().end());
    for (const std::string& tag : request->remove_tags()) tags.erase(tag);
    capture.clear_tags();
    for (const std::string& tag : tags) capture.add_tags(tag);
    *reply = capture;
    return grpc::Status::OK;
  }
  grpc::Status WatchCapture(grpc::ServerContext*, const v1::CaptureReference*,
                            grpc::ServerWriter<v1::Capture>* writer) override {
    if (watch_refusals > 0) {
      --watch_refusals;
      return {grpc::StatusCode::UNAVAILABLE, "nobody is behind this address"};
    }
    for (const v1::Capture& step : steps) writer->Write(step);
    writer->Write(capture);
    return watch_status;
  }
  grpc::Status ListCaptures(grpc::ServerContext*, const v1::ListCapturesRequest*,
                            v1::ListCapturesReply* reply) override {
    for (const v1::Capture& one : stored) *reply->add_captures() = one;
    return grpc::Status::OK;
  }
  grpc::Status ListTriggers(grpc::ServerContext*, const v1::ListTriggersRequest*,
                            v1::ListTriggersReply* reply) override {
    *reply = triggers;
    return grpc::Status::OK;
  }
  grpc::Status FireTrigger(grpc::ServerContext*, const v1::FireTriggerRequest* request,
                           v1::FireTriggerReply* reply) override {
    fired = *request;
    *reply = fire_reply;
    return grpc::Status::OK;
  }
  grpc::Status GetCapture(grpc::ServerContext*, const v1::CaptureReference* request,
                          v1::Capture* reply) override {
    if (request->capture_id() != capture.capture_id()) {
      return {grpc::StatusCode::NOT_FOUND,
              "no capture begins with '" + request->capture_id() + "'"};
    }
    *reply = got.value_or(capture);
    return grpc::Status::OK;
  }
  grpc::Status Export(grpc::ServerContext* call, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportReply>* writer) override {
    export_request = *request;
    if (export_script) return export_script(*call, *request, *writer);
    v1::ExportReply reply;
    reply.set_file("named/by.aggregator");
    writer->Write(reply);
    reply.set_data("first ");
    writer->Write(reply);
    reply.set_data("second");
    writer->Write(reply);
    if (export_breaks) return grpc::Status::OK;
    reply.set_file_end(true);
    writer->Write(reply);
    reply.mutable_done()->mutable_total()->set_spans(2);
    reply.mutable_done()->set_capture_incomplete(capture.state() == v1::CAPTURE_STATE_INCOMPLETE);
    reply.mutable_done()->set_verdict(capture.certificate().verdict());
    if (!export_warning.empty()) reply.mutable_done()->add_warnings(export_warning);
    if (!export_leaves_out.empty()) {
      reply.mutable_done()->set_capture_incomplete(true);
      reply.mutable_done()->set_verdict(export_leaves_out);
    }
    writer->Write(reply);
    return grpc::Status::OK;
  }
  grpc::Status ListArtifacts(grpc::ServerContext*, const v1::CaptureReference*,
                             v1::ListArtifactsReply* reply) override {
    *reply = artifacts;
    return grpc::Status::OK;
  }
  grpc::Status GetArtifact(grpc::ServerContext*, const v1::GetArtifactRequest*,
                           grpc::ServerWriter<v1::GetArtifactReply>* writer) override {
    for (const char* const piece : {"first ", "second"}) {
      v1::GetArtifactReply reply;
      reply.set_data(piece);
      writer->Write(reply);
    }
    return artifact_status;
  }
  grpc::Status Explain(grpc::ServerContext*, const v1::ExplainRequest* request,
                       v1::InsightReport* reply) override {
    explain_request = *request;
    *reply = insight;
    return explain_status;
  }
  grpc::Status ExplainCapture(grpc::ServerContext*, const v1::ExplainRequest* request,
                              grpc::ServerWriter<v1::ExplainReply>* writer) override {
    explain_request = *request;
    v1::ExplainReply reply;
    reply.mutable_progress()->set_chunks_read(1);
    reply.mutable_progress()->set_chunks_total(2);
    writer->Write(reply);
    if (explain_breaks) return explain_status;
    *reply.mutable_report() = insight;
    if (explain_status.ok()) writer->Write(reply);
    return explain_status;
  }

  v1::Capture capture;
  std::vector<v1::Capture> steps;   // that WatchCapture tells before `capture`
  std::optional<v1::Capture> got;   // that GetCapture tells instead of it
  std::vector<v1::Capture> stored;  // that ListCaptures tells
  grpc::Status start_status;
  grpc::Status watch_status;
  int watch_refusals = 0;  // of so many calls
  // Answers instead, where there is one.
  std::function<grpc::Status(const grpc::ServerContext&, const v1::ExportRequest&,
                             grpc::ServerWriter<v1::ExportReply>&)>
      export_script;
  v1::ListTriggersReply triggers;
  v1::FireTriggerRequest fired;
  v1::FireTriggerReply fire_reply;
  std::vector<v1::UpdateCaptureRequest> updates;
  v1::CaptureSpec spec;
  v1::ListWorkersRequest workers_request;
  bool has_workers = true;
  bool jobs_conflict = false;
  bool agent_is_away = false;
  v1::ExportRequest export_request;
  std::string stopped;
  bool export_breaks = false;
  std::string view_url;
  std::optional<v1::StoreProblem> store_problem;  // that GetStatus tells
  std::string export_leaves_out;                  // the verdict
  std::string export_warning;
  v1::ExplainRequest explain_request;
  v1::CollectStacksRequest stacks_request;
  v1::StacksReport stacks;
  v1::InsightReport insight;
  v1::ListArtifactsReply artifacts;
  grpc::Status artifact_status;  // after the bytes
  grpc::Status explain_status;
  bool explain_breaks = false;  // before the report
};

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    service_.capture.set_capture_id("01JD8Z2M6WQJ4V1T0S3R5XK7PA");
    service_.capture.set_state(v1::CAPTURE_STATE_COMPLETE);
    service_.capture.set_events(1234);
    auto* worker = service_.capture.add_workers();
    worker->mutable_worker()->set_instance_id("i-a");
    worker->mutable_worker()->set_pid(42);
    worker->set_state(v1::CAPTURE_WORKER_STATE_COMPLETE);
    worker->set_events_read(1234);
    auto* stream = service_.capture.add_streams();
    stream->set_events(1234);
    stream->set_first_timestamp_ns(1'755'115'507'555'000'000);
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~CommandLineTest() override { server_->Shutdown(); }

  int RunCli(const std::vector<const char*>& arguments) {
    std::vector<const char*> argv = {"neurontrace"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    Context context;
    context.aggregator = "in-process:1";
    context.security.insecure = true;  // whatever that name looks like
    context.config_places = config_places_;
    context.export_retry_ms = export_retry_ms_;
    context.make_stub = [this](const Context&) {
      return v1::OperatorService::NewStub(server_->InProcessChannel({}));
    };
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = RunCommandLine(static_cast<int>(argv.size()), argv.data(), context);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }

  std::vector<ConfigPlace> config_places_;
  uint32_t export_retry_ms_ = 60'000;
  FakeOperator service_;
  std::unique_ptr<grpc::Server> server_;
  std::string out_;
  std::string err_;
};

}  // namespace neurontrace::cli
