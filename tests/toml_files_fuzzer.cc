// SPDX-License-Identifier: Apache-2.0
// Any text is a good file of each kind that people write, or it is said what is wrong with it, in a
// bounded number of lines; and nobody is somebody for showing nothing.
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/config.h"
#include "aggregator/access/access_rules.h"
#include "aggregator/config.h"
#include "aggregator/deliver/standing_queue.h"
#include "cli/config_file.h"
#include "lib/base/fuzz_input.h"
#include "lib/base/toml_file.h"
#include "lib/trace/access_limits.h"
#include "lib/trace/limits.h"
#include "lib/triggers/trigger_file.h"
#include "lib/triggers/trigger_rule_check.h"

namespace neurontrace {
namespace {

// The lines of INI that an error shows as TOML come on top of its problems.
constexpr size_t kWordsLinesMax = 2 * kTomlProblemsMax;

void CheckMessage(const absl::Status& status) {
  const absl::string_view words = status.message();
  const auto lines = static_cast<size_t>(std::count(words.begin(), words.end(), '\n'));
  CheckPromise(!words.empty() && lines < kWordsLinesMax, "it is said what is wrong, and briefly");
}

void FuzzDaemons(const std::string& path) {
  std::string program = "neurontrace";
  std::string option = "--config";
  std::string file = path;
  char* argv[] = {program.data(), option.data(), file.data(), nullptr};
  if (const auto config = ReadAgentConfig(3, argv); !config.ok()) CheckMessage(config.status());
  if (const auto config = ReadAggregatorConfig(3, argv); !config.ok())
    CheckMessage(config.status());
}

void FuzzCommand(const std::string& path) {
  CLI::App app;
  std::string aggregator;
  std::vector<std::string> cores;
  uint32_t limit = 0;
  bool quiet = false;
  app.add_option("--aggregator", aggregator);
  app.add_flag("--quiet", quiet);
  CLI::App* const capture = app.add_subcommand("capture", "");
  capture->add_option("--core", cores)->allow_extra_args(false);
  capture->add_subcommand("start", "")->add_option("--limit", limit);
  cli::ConfigOrigins origins;
  const absl::Status status = cli::ApplyConfig(app, {{path, "file", true}}, origins);
  if (!status.ok()) CheckMessage(status);
}

void FuzzRules(std::string_view text) {
  if (const auto rules = ParseTriggerFile(text, "f"); !rules.ok()) {
    CheckMessage(rules.status());
  } else {
    CheckPromise(rules->size() <= limits::kTriggerRulesMax, "there are not too many rules");
    for (const TriggerRule& rule : *rules) {
      CheckPromise(CheckTriggerRule(rule).ok(), "each rule of a good file is good");
    }
  }
  if (const auto rules = ParseAccessFile(text, "f"); !rules.ok()) {
    CheckMessage(rules.status());
  } else {
    CheckPromise(rules->size() <= limits::kAccessRulesMax, "there are not too many rules");
    CheckPromise(!rules->ByCertificate({}) && !rules->ByToken(""), "nothing is no credential");
  }
  if (const auto rule = ParseStandingRule(text); !rule.ok()) CheckMessage(rule.status());
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  static const int file = memfd_create("config", MFD_CLOEXEC);
  static const std::string open_path = "/proc/self/fd/" + std::to_string(file);
  CheckPromise(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == static_cast<ssize_t>(size),
               "the file can be written");
  FuzzDaemons(open_path);
  FuzzCommand(open_path);
  FuzzRules(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
