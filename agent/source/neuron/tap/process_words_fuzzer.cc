// SPDX-License-Identifier: Apache-2.0
// Any bytes as the texts of /proc about a process, which its program wrote itself: its name, its
// mappings, command line, environment and control group. Separated by 0xff, which none of them
// needs.
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "agent/source/neuron/tap/job_facts.h"
#include "agent/source/neuron/tap/peer_identity.h"
#include "agent/source/neuron/tap/runtime_processes.h"
#include "lib/base/clean_text.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

void Check(bool good) {
  if (!good) abort();
}

// A proc file system with one process, removed at the end.
class OneProcess {
 public:
  OneProcess() {
    std::string pattern = std::filesystem::temp_directory_path() / "nt_words_XXXXXX";
    Check(mkdtemp(pattern.data()) != nullptr);
    root = pattern;
    std::filesystem::create_directory(root + "/7");
  }
  ~OneProcess() { std::filesystem::remove_all(root); }
  void Write(const char* name, std::string_view text) const {
    FILE* const file = fopen((root + "/7/" + name).c_str(), "w");
    Check(file != nullptr);
    fwrite(text.data(), 1, text.size(), file);
    fclose(file);
  }
  std::string root;
};

void Fuzz(std::string_view data) {
  static const OneProcess process;
  for (const char* name : {"stat", "maps", "cmdline", "environ", "cgroup"}) {
    const size_t end = data.find('\xff');
    process.Write(name, data.substr(0, end));
    data.remove_prefix(end == std::string_view::npos ? data.size() : end + 1);
  }
  RuntimeProcesses processes(process.root);
  while (!processes.Poll(1)) {
  }
  processes.Find([](uint32_t, uint64_t) { return false; });
  const ProcFiles files(process.root);
  files.StartTimeTicks(7);
  const std::string container = files.ContainerId(7);
  Check(container.empty() || container.size() == 64);
  const ProcessDescription words = ReadProcessDescription(process.root, 7, IsJobVariable);
  const auto facts = FindJobFacts(words.environment);
  Check(facts.size() <= limits::kWorkerJobFactsMax);
  for (const KeyValue& fact : facts) Check(fact.value == CleanText(fact.value, fact.value.size()));
  FindJob(words.environment);
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::Fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
