// SPDX-License-Identifier: Apache-2.0
// Drives continuous captures for a test, over the operators' service:
//
//   continuous_driver ADDRESS start KEEP_SECONDS     prints the id
//   continuous_driver ADDRESS show ID                prints events, expired, lost and bytes
//   continuous_driver ADDRESS export ID FROM_SECONDS FILE
//                                                    the last seconds in the format EVENTS; prints
//                                                    verdict and notes
//   continuous_driver ADDRESS stop ID                waits for its end, and prints the verdict
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace {
namespace {

constexpr std::chrono::seconds kPatience(60);

class Driver {
 public:
  explicit Driver(const std::string& address)
      : stub_(v1::OperatorService::NewStub(
            grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    context_.set_wait_for_ready(true);
  }

  grpc::Status Start(const std::string& keep_seconds) {
    v1::StartCaptureRequest request;
    v1::CaptureSpec& spec = *request.mutable_spec();
    spec.set_name("continuous");
    spec.set_mode(v1::CAPTURE_MODE_CONTINUOUS);
    spec.set_include_neuron(true);
    spec.set_all_events(true);
    spec.set_retention_ns(std::strtoull(keep_seconds.c_str(), nullptr, 10) * 1'000'000'000);
    v1::Capture capture;
    const grpc::Status status = stub_->StartCapture(&context_, request, &capture);
    if (status.ok()) fmt::print("{}\n", capture.capture_id());
    return status;
  }

  grpc::Status Show(const std::string& id) {
    v1::CaptureReference request;
    request.set_capture_id(id);
    v1::Capture capture;
    const grpc::Status status = stub_->GetCapture(&context_, request, &capture);
    if (status.ok()) {
      fmt::print("{} {} {} {}\n{}\n", capture.events(), capture.events_expired(),
                 capture.events_lost(), capture.bytes(), capture.certificate().verdict());
    }
    return status;
  }

  grpc::Status Export(const std::string& id, const std::string& from_seconds,
                      const std::string& path) {
    v1::ExportRequest request;
    request.set_capture_id(id);
    request.set_format(v1::EXPORT_FORMAT_EVENTS);
    request.set_window_is_before_now(true);
    request.set_window_start_ns(std::strtoull(from_seconds.c_str(), nullptr, 10) * 1'000'000'000);
    const auto call = stub_->Export(&context_, request);
    std::ofstream file(path, std::ios::binary);
    v1::ExportReply reply;
    while (call->Read(&reply)) {
      file << reply.data();
      if (!reply.has_done()) continue;
      fmt::print("{}\n", reply.done().verdict());
      for (const std::string& note : reply.done().notes()) fmt::print("{}\n", note);
    }
    return call->Finish();
  }

  grpc::Status Stop(const std::string& id) {
    v1::CaptureReference request;
    request.set_capture_id(id);
    v1::Capture capture;
    if (grpc::Status status = stub_->StopCapture(&context_, request, &capture); !status.ok()) {
      return status;
    }
    grpc::ClientContext watching;
    watching.set_deadline(std::chrono::system_clock::now() + kPatience);
    const auto call = stub_->WatchCapture(&watching, request);
    while (call->Read(&capture)) continue;
    fmt::print("{}\n", capture.certificate().verdict());
    return call->Finish();
  }

 private:
  const std::unique_ptr<v1::OperatorService::Stub> stub_;
  grpc::ClientContext context_;
};

int Main(const std::vector<std::string>& words) {
  if (words.size() < 3) return 2;
  Driver driver(words[0]);
  grpc::Status status(grpc::StatusCode::INVALID_ARGUMENT, "start, show, export or stop");
  if (words[1] == "start") status = driver.Start(words[2]);
  if (words[1] == "show") status = driver.Show(words[2]);
  if (words[1] == "export" && words.size() == 5)
    status = driver.Export(words[2], words[3], words[4]);
  if (words[1] == "stop") status = driver.Stop(words[2]);
  if (!status.ok()) fmt::print(stderr, "continuous_driver: {}\n", status.error_message());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return neurontrace::Main({argv + 1, argv + argc}); }
