// SPDX-License-Identifier: Apache-2.0
// A stand-in for a process of jax: it initialises the (simulated) runtime, which is preloaded with
// the tap, and serves XLA's ProfilerService at the port of NEURONTRACE_XLA_PORT. It ends when its
// standard input does.
//
// usage: xla_worker record | busy | hostile | dying | silent
//
// A trace of `record` has a step of 100 ms each, and the process id 1, as in a container. `busy`
// profiles by itself, `hostile` answers with something else, `dying` ends while it records, and
// `silent` serves nothing.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "agent/source/framework/xla/fake_profiler_service.h"
#include "agent/source/framework/xspace_test_support.h"
#include "lib/trace/framework_trace.h"

namespace neurontrace {
namespace {

namespace xspace = xspace_test;

constexpr int64_t kPsPerMs = 1'000'000'000;
constexpr uint64_t kStepMs = 100;
constexpr int64_t kStepName = 1, kStepNumber = 7;

std::string TraceOf(const tensorflow::ProfileOptions& options) {
  std::string steps;
  for (uint64_t ms = 0; ms < options.duration_ms(); ms += kStepMs) {
    steps += xspace::Event(kStepName, static_cast<int64_t>(ms) * kPsPerMs, kStepMs * kPsPerMs,
                           xspace::Bytes(4, xspace::UintStat(kStepNumber, ms / kStepMs)));
  }
  return xspace::Plane("/host:CPU", xspace::Line(41, "python", 0, steps) +
                                        xspace::EventName(kStepName, "train") +
                                        xspace::StatName(kStepNumber, "step_num") +
                                        xspace::ProcessId(1)) +
         xspace::Environment(options.start_timestamp_ns());
}

class Service final : public FakeProfilerService {
 public:
  explicit Service(std::string kind) : FakeProfilerService(true), kind_(std::move(kind)) {
    SetBusy(kind_ == "busy");
  }

 private:
  std::string XSpaceFor(const tensorflow::ProfileRequest& request) override {
    if (kind_ == "dying") _exit(0);
    return kind_ == "hostile" ? "<html></html>" : TraceOf(request.opts());
  }

  const std::string kind_;
};

int Run(const std::string& kind) {
  using Init = int (*)(int, const char*, const char*);
  const auto init = reinterpret_cast<Init>(dlsym(RTLD_DEFAULT, "nrt_init"));
  if (init == nullptr || init(1, "", "") != 0) return 1;
  Service service(kind);
  std::unique_ptr<grpc::Server> server;
  if (kind != "silent") {
    const char* const port = getenv(kXlaPortVariable);
    if (port == nullptr) return 2;
    grpc::ServerBuilder builder;
    // Where jax.profiler.start_server listens.
    builder.AddListeningPort(std::string("[::]:") + port, grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    if (server == nullptr) return 3;
  }
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  if (server != nullptr) server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return argc == 2 ? neurontrace::Run(argv[1]) : 4; }
