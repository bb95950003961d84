// SPDX-License-Identifier: Apache-2.0
// The whole command line against an operator service with state, over gRPC's in-process channel:
// what is asked of the service, what is printed, and the exit codes.
#include "cli/command.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <vector>

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FakeOperator final : public v1::OperatorService::Service {
 public:
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::GetStatusReply* reply) override {
    reply->set_aggregator_id("agg-1");
    reply->set_agents_connected(1);
    auto* agent = reply->add_agents();
    agent->mutable_hello()->set_instance_id("i-a");
    agent->set_connected(true);
    return grpc::Status::OK;
  }
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest* request,
                           v1::ListWorkersReply* reply) override {
    workers_request = *request;
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
    *reply = capture;
    return grpc::Status::OK;
  }
  grpc::Status StopCapture(grpc::ServerContext*, const v1::CaptureReference* request,
                           v1::Capture* reply) override {
    stopped = request->capture_id();
    *reply = capture;
    return grpc::Status::OK;
  }
  grpc::Status WatchCapture(grpc::ServerContext*, const v1::CaptureReference*,
                            grpc::ServerWriter<v1::Capture>* writer) override {
    writer->Write(capture);
    return grpc::Status::OK;
  }
  grpc::Status GetCapture(grpc::ServerContext*, const v1::CaptureReference* request,
                          v1::Capture* reply) override {
    if (request->capture_id() != capture.capture_id()) {
      return {grpc::StatusCode::NOT_FOUND,
              "no capture begins with '" + request->capture_id() + "'"};
    }
    *reply = capture;
    return grpc::Status::OK;
  }
  grpc::Status Export(grpc::ServerContext*, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportReply>* writer) override {
    export_request = *request;
    v1::ExportReply reply;
    reply.set_data("first ");
    writer->Write(reply);
    reply.set_data("second");
    writer->Write(reply);
    if (export_breaks) return grpc::Status::OK;
    reply.clear_data();
    reply.mutable_done()->mutable_total()->set_spans(2);
    reply.mutable_done()->set_capture_incomplete(capture.state() == v1::CAPTURE_STATE_INCOMPLETE);
    reply.mutable_done()->set_verdict(capture.certificate().verdict());
    if (!export_leaves_out.empty()) {
      reply.mutable_done()->set_capture_incomplete(true);
      reply.mutable_done()->set_verdict(export_leaves_out);
    }
    writer->Write(reply);
    return grpc::Status::OK;
  }

  v1::Capture capture;
  v1::CaptureSpec spec;
  v1::ListWorkersRequest workers_request;
  v1::ExportRequest export_request;
  std::string stopped;
  bool export_breaks = false;
  std::string export_leaves_out;  // the verdict
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

  int RunCli(std::initializer_list<const char*> arguments) {
    std::vector<const char*> argv = {"neurontrace"};
    argv.insert(argv.end(), arguments);
    Context context;
    context.aggregator = "in-process";
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

  FakeOperator service_;
  std::unique_ptr<grpc::Server> server_;
  std::string out_;
  std::string err_;
};

TEST_F(CommandLineTest, ShowsStatusAsTableAndJson) {
  EXPECT_EQ(RunCli({"status"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("agg-1"));
  EXPECT_THAT(out_, HasSubstr("connected"));
  EXPECT_EQ(RunCli({"status", "--output", "json"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("\"agents_connected\": 1"));
}

TEST_F(CommandLineTest, ShowsRanksAsRangesWithTheirEvidence) {
  EXPECT_EQ(RunCli({"workers", "--instance", "i-a,i-b"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("32-34,40"));
  EXPECT_THAT(out_, HasSubstr("RANK=32"));
  EXPECT_THAT(out_, HasSubstr("busy: other profiler"));
  EXPECT_EQ(service_.workers_request.instance_ids_size(), 2);
}

TEST_F(CommandLineTest, SendsTheWholeSelectionOfACapture) {
  EXPECT_EQ(RunCli({"capture", "--duration", "500ms", "--core", "0,2-3", "--event-type",
                    "hardware,^cc_running", "--job", "llama", "--no-framework"}),
            kExitDone);
  EXPECT_EQ(service_.spec.duration_ns(), 500'000'000u);
  EXPECT_EQ(service_.spec.neuron_cores_size(), 3);
  EXPECT_EQ(service_.spec.event_types_size(), 2);
  EXPECT_EQ(service_.spec.job(), "llama");
  EXPECT_TRUE(service_.spec.include_neuron());
  EXPECT_FALSE(service_.spec.include_framework());
  EXPECT_THAT(out_, HasSubstr("1,234 stored"));
}

TEST_F(CommandLineTest, StartPrintsNothingButTheId) {
  EXPECT_EQ(RunCli({"capture", "start"}), kExitDone);
  EXPECT_EQ(out_, "01JD8Z2M6WQJ4V1T0S3R5XK7PA\n");
  EXPECT_EQ(RunCli({"capture", "stop", "01JD8Z2M6WQJ4V1T0S3R5XK7PA"}), kExitDone);
  EXPECT_EQ(service_.stopped, "01JD8Z2M6WQJ4V1T0S3R5XK7PA");
}

TEST_F(CommandLineTest, TellsByItsExitCodeHowACaptureEnded) {
  service_.capture.set_state(v1::CAPTURE_STATE_INCOMPLETE);
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitIncomplete);
  service_.capture.clear_workers();
  service_.capture.set_events(0);
  service_.capture.add_warnings("no worker matched");
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("warning: no worker matched"));
}

TEST_F(CommandLineTest, ShowAndExportOfAnIncompleteCaptureHaveCodeThreeAndSayWhy) {
  const std::string path = testing::TempDir() + "/cli_summary.json";
  service_.capture.mutable_certificate()->set_verdict("complete: every event is stored");
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("\ncomplete: every event is stored\n"));
  service_.capture.set_state(v1::CAPTURE_STATE_INCOMPLETE);
  service_.capture.mutable_certificate()->set_verdict("incomplete: 3 of 9 events lost");
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA"}), kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("\nincomplete: 3 of 9 events lost\n"));
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--output", "json"}),
            kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("\"verdict\": \"incomplete: 3 of 9 events lost\""));
  EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--format", "summary-json", "-o",
                    path.c_str()}),
            kExitIncomplete);
  EXPECT_EQ(service_.export_request.format(), v1::EXPORT_FORMAT_SUMMARY_JSON);
  EXPECT_THAT(out_, HasSubstr("capture incomplete: 3 of 9 events lost"));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(CommandLineTest, StopOfACaptureThatLostSomethingHasCodeThree) {
  for (const char* output : {"table", "json"}) {
    service_.capture.set_state(v1::CAPTURE_STATE_COMPLETE);
    const auto stop = [&] {
      return RunCli({"capture", "stop", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--output", output});
    };
    EXPECT_EQ(stop(), kExitDone);
    service_.capture.set_state(v1::CAPTURE_STATE_INCOMPLETE);
    service_.capture.mutable_certificate()->set_verdict("incomplete: 3 of 9 events lost");
    EXPECT_EQ(stop(), kExitIncomplete);
    EXPECT_THAT(out_, HasSubstr("incomplete: 3 of 9 events lost"));
  }
}

TEST_F(CommandLineTest, AnExportThatLeavesStoredChunksOutHasCodeThreeInEveryFormat) {
  service_.export_leaves_out = "incomplete: 1 stored chunk cannot be read";
  for (const char* format : {"perfetto", "json", "events", "summary-json"}) {
    for (const char* output : {"table", "json"}) {
      EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--format", format, "--output",
                        output, "-o", (testing::TempDir() + "/cli_left_out").c_str()}),
                kExitIncomplete);
      EXPECT_THAT(out_, HasSubstr("incomplete: 1 stored chunk cannot be read")) << format;
    }
    // The file goes to standard output, what is said of it does not.
    EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--format", format, "-o", "-"}),
              kExitIncomplete);
    EXPECT_EQ(out_, "first second");
    EXPECT_THAT(err_, HasSubstr("incomplete: 1 stored chunk cannot be read"));
    // At a capture's end, too: of the capture itself nothing is missing.
    EXPECT_EQ(RunCli({"capture", "stop", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--format", format, "-o",
                      (testing::TempDir() + "/cli_left_out").c_str()}),
              kExitIncomplete);
  }
}

TEST_F(CommandLineTest, TheStreamOfAWorkerHasAWordForItsCore) {
  v1::StreamIdentity& identity = *service_.capture.mutable_streams(0)->mutable_identity();
  identity.mutable_worker()->set_instance_id("i-a");
  identity.set_kind(v1::STREAM_KIND_NEURON_CORE);
  identity.set_nc_idx(-1);
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("  worker  "));
  EXPECT_THAT(out_, Not(HasSubstr("429496")));
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--output", "json"}),
            kExitDone);
  EXPECT_THAT(out_, HasSubstr("\"nc_idx\": -1"));
}

TEST_F(CommandLineTest, RefusesWrongUsageWithCodeTwo) {
  EXPECT_EQ(RunCli({}), kExitUsage);
  EXPECT_EQ(RunCli({"capture", "--duration", "soon"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("'soon' is not a duration"));
  EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--format", "csv"}), kExitUsage);
  EXPECT_EQ(RunCli({"capture", "--core", "3-1"}), kExitUsage);
}

TEST_F(CommandLineTest, HelpOfEveryCommandHasAnExample) {
  for (const char* command :
       {"status", "workers", "clocks", "capture", "captures", "export", "completion"}) {
    EXPECT_EQ(RunCli({command, "--help"}), kExitDone) << command;
    EXPECT_THAT(out_, HasSubstr("Example")) << command;
  }
}

TEST_F(CommandLineTest, ExportWritesTheWholeFileUnderItsName) {
  const std::string path = testing::TempDir() + "/cli_export.json";
  EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "-o", path.c_str(), "--from", "1s",
                    "--to", "1755115509000000000"}),
            kExitDone);
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  EXPECT_EQ(content.str(), "first second");
  EXPECT_EQ(service_.export_request.format(), v1::EXPORT_FORMAT_JSON);  // by the file's ending
  EXPECT_EQ(service_.export_request.window_start_ns(), 1'000'000'000u);
  EXPECT_TRUE(service_.export_request.window_start_is_relative());
  EXPECT_EQ(service_.export_request.window_end_ns(), 1'755'115'509'000'000'000u);
  EXPECT_FALSE(service_.export_request.window_end_is_relative());
}

TEST_F(CommandLineTest, ExportThatBreaksOffLeavesNoFile) {
  service_.export_breaks = true;
  const std::string directory = testing::TempDir() + "/cli_broken_export";
  std::filesystem::create_directories(directory);
  const std::string path = directory + "/trace.pftrace";
  EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "-o", path.c_str()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("ended the export"));
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST_F(CommandLineTest, AListOptionLeavesTheNextWordAlone) {
  const std::string path = testing::TempDir() + "/cli_list_option.pftrace";
  EXPECT_EQ(RunCli({"export", "-o", path.c_str(), "--core", "0,1", "--instance", "i-a",
                    "01JD8Z2M6WQJ4V1T0S3R5XK7PA"}),
            kExitDone);
  EXPECT_EQ(service_.export_request.neuron_cores_size(), 2);
  EXPECT_EQ(service_.export_request.instance_ids_size(), 1);
}

TEST_F(CommandLineTest, SaysWhatIsNotThere) {
  EXPECT_EQ(RunCli({"captures", "show", "01XX"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("no capture begins with '01XX'"));
}

TEST_F(CommandLineTest, CompletionKnowsEveryCommandAndOption) {
  EXPECT_EQ(RunCli({"completion", "bash"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("'capture stop') words="));
  EXPECT_THAT(out_, HasSubstr("--system-trace-primary-group"));
}

}  // namespace
}  // namespace neurontrace::cli
