// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/runtime.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace neurontrace {
namespace {

constexpr size_t kDefaultBytes = 4'096;

size_t BytesVariable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? kDefaultBytes : std::strtoull(text, nullptr, 10);
}

bool IsOn(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr && std::string_view(text) == "1";
}

bool WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return static_cast<bool>(file.flush());
}

// Bytes that look like nothing, the same for the same seed (splitmix64).
std::string Noise(size_t bytes, uint64_t seed) {
  std::string noise;
  noise.reserve(bytes + 8);
  while (noise.size() < bytes) {
    uint64_t z = seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    noise.append(reinterpret_cast<const char*>(&z), sizeof z);
  }
  noise.resize(bytes);
  return noise;
}

// Writes what the runtime's profiler leaves for one process, in its layout:
//
//   OUTPUT/<instance>_pid_<pid>/<timestamp>/{neff_<hash>_vnc_0.neff, profile_nc_0_session_1.ntff,
//                                            ntrace.pb, trace_info.pb[, cpu_util.pb][,
//                                            host_mem.pb]}
//
// The instance is FAKE_NRT_INSTANCE_ID. The .pb files' real schema is private: here their text says
// what they are. The NEFF is the same for all processes, as that of ranks with one model is; NEFF
// and NTFF have FAKE_NRT_NEFF_BYTES and FAKE_NRT_NTFF_BYTES. Without FAKE_NRT_INSTANCE_ID nothing
// is written. False where a file cannot be.
bool WriteInspectFiles(const std::string& output_dir) {
  const char* const instance = std::getenv("FAKE_NRT_INSTANCE_ID");
  if (instance == nullptr) return true;
  const auto pid = static_cast<uint64_t>(getpid());
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const std::filesystem::path folder = std::filesystem::path(output_dir) /
                                       (std::string(instance) + "_pid_" + std::to_string(pid)) /
                                       std::to_string(now.count());
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string of_process = " of process " + std::to_string(pid) + "\n";
  bool good = !error;
  good = WriteFile(folder / "neff_0123456789abcdef_vnc_0.neff",
                   Noise(BytesVariable("FAKE_NRT_NEFF_BYTES"), 1)) &&
         good;
  good = WriteFile(folder / "profile_nc_0_session_1.ntff",
                   Noise(BytesVariable("FAKE_NRT_NTFF_BYTES"), pid)) &&
         good;
  good = WriteFile(folder / "ntrace.pb", "system trace" + of_process) && good;
  good = WriteFile(folder / "trace_info.pb", "trace info" + of_process) && good;
  if (IsOn("NEURON_RT_INSPECT_CPU_UTIL")) {
    good = WriteFile(folder / "cpu_util.pb", "processors" + of_process) && good;
  }
  if (IsOn("NEURON_RT_INSPECT_HOST_MEMORY")) {
    good = WriteFile(folder / "host_mem.pb", "memory" + of_process) && good;
  }
  return good;
}

// Never freed: threads of the workload may emit until the very end of the process.
std::atomic<Runtime*>& Instance() {
  static std::atomic<Runtime*> instance = [] {
    pthread_atfork(nullptr, nullptr, [] { Instance().store(new Runtime()); });
    return new Runtime();
  }();
  return instance;
}

uint64_t NumberVariable(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : std::strtoull(value, nullptr, 10);
}

}  // namespace

Runtime& Runtime::Get() { return *Instance().load(); }

FormTable& Runtime::Forms() {
  static FormTable* forms = new FormTable();
  return *forms;
}

Runtime::Runtime() {
  for (auto& gid : gids_) gid.store(-1);
}

NRT_STATUS Runtime::Init() {
  {
    const std::lock_guard lock(mutex_);
    if (IsOpen()) return NRT_SUCCESS;
    const uint64_t planted = NumberVariable("FAKE_NRT_INIT_STATUS", NRT_SUCCESS);
    if (planted != NRT_SUCCESS) return static_cast<NRT_STATUS>(planted);
    const auto topology = Topology::FromEnvironment();
    if (!topology) return NRT_INVALID;
    topology_ = *topology;
    for (auto& gid : gids_) gid.store(-1);
    cores_.store(topology_.visible);
    phase_.store(RuntimePhase::kOpen);
  }
  if (NumberVariable("NEURON_RT_INSPECT_ENABLE", 0) != 1) return NRT_SUCCESS;
  if (NumberVariable("NEURON_RT_INSPECT_SYSTEM_PROFILE", 1) == 0) return NRT_SUCCESS;
  CaptureSettings settings;
  settings.max_events_per_nc =
      NumberVariable("NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC", 1'000'000);
  const char* dir = std::getenv("NEURON_RT_INSPECT_OUTPUT_DIR");
  BeginInspect(settings, dir == nullptr || *dir == '\0' ? "./output" : dir);
  return NRT_SUCCESS;
}

void Runtime::Close() {
  if (!IsOpen()) {
    misuse.Report("nrt_close: the runtime is not initialised");
    return;
  }
  if (trace_calls.load() != 0) misuse.Report("nrt_close: while a trace function was running");
  if (capture.owner() == CaptureOwner::kInspect) EndInspect();
  phase_.store(RuntimePhase::kClosed);
  capture.Stop();
  if (buffers.live() != 0) {
    std::fprintf(stderr, "fake_nrt: note: nrt_close: %zu fetch buffers were never given back\n",
                 buffers.live());
  }
}

Topology Runtime::topology() const {
  const std::lock_guard lock(mutex_);
  return topology_;
}

NRT_STATUS Runtime::SetGlobalId(int64_t nc_idx, uint32_t global_id) {
  if (!IsOpen()) return phase() == RuntimePhase::kClosed ? NRT_CLOSED : NRT_UNINITIALIZED;
  if (nc_idx < 0 || nc_idx >= cores_.load()) return NRT_INVALID;
  gids_[static_cast<size_t>(nc_idx)].store(static_cast<int32_t>(global_id));
  return NRT_SUCCESS;
}

NRT_STATUS Runtime::Fetch(const FetchBounds& bounds, char** text, size_t* bytes) {
  const uint32_t cores = cores_.load();
  if (bounds.nc_idx && *bounds.nc_idx >= cores) return NRT_INVALID;
  if (capture.owner() == CaptureOwner::kNone) return NRT_FAILURE;
  FetchBuffer buffer(buffers, capture.ExpectBytes(bounds, cores));
  if (!capture.Fetch(bounds, cores, gids_, buffer)) return NRT_RESOURCE;
  *bytes = buffer.size();
  *text = buffers.HandOut(buffer);
  return NRT_SUCCESS;
}

NRT_STATUS Runtime::BeginInspect(const CaptureSettings& settings, const std::string& output_dir) {
  if (!capture.Start(CaptureOwner::kInspect, settings, cores_.load())) return NRT_FAILURE;
  const std::lock_guard lock(mutex_);
  inspect_dir_ = output_dir;
  return NRT_SUCCESS;
}

NRT_STATUS Runtime::EndInspect() {
  if (capture.owner() != CaptureOwner::kInspect) return NRT_FAILURE;
  // Stopped first, so that the totals are final; they outlive the rings.
  capture.Stop();
  const RingTotals totals = capture.totals();
  const std::lock_guard lock(mutex_);
  std::error_code error;
  std::filesystem::create_directories(inspect_dir_, error);
  const std::string path = inspect_dir_ + "/fake_inspect_pid_" + std::to_string(getpid()) + ".json";
  std::ofstream file(path);
  file << "{\"accepted\":" << totals.accepted << ",\"overwritten\":" << totals.overwritten
       << ",\"stolen\":" << totals.fetched << "}\n";
  return file.flush() && WriteInspectFiles(inspect_dir_) ? NRT_SUCCESS : NRT_RESOURCE;
}

TraceCall::TraceCall(std::string_view function) : runtime_(Runtime::Get()), function_(function) {
  runtime_.trace_calls.fetch_add(1);
  const RuntimePhase phase = runtime_.phase();
  if (phase == RuntimePhase::kBeforeInit) {
    status_ = Misuse("called before nrt_init", NRT_UNINITIALIZED);
  } else if (phase == RuntimePhase::kClosed) {
    status_ = Misuse("called after nrt_close", NRT_CLOSED);
  }
}

NRT_STATUS TraceCall::Misuse(std::string_view what, NRT_STATUS status) const {
  runtime_.misuse.Report(std::string(function_).append(": ").append(what));
  return status;
}

}  // namespace neurontrace
