// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/inspect_files.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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

}  // namespace

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

}  // namespace neurontrace
