// SPDX-License-Identifier: Apache-2.0
#include "lib/daemon/daemon_process.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <optional>

#include "lib/base/build_facts.h"
#include "lib/base/post_and_wait.h"
#include "lib/health/daemon_metrics.h"
#include "lib/health/metric_builders.h"

namespace neurontrace {
namespace {

// How long a page waits for the daemon's sequence before it shows the rest. A sequence that is busy
// for longer is a fact that the page reports.
constexpr std::chrono::seconds kStatusTimeout{2};
constexpr char kCertificateCondition[] = "certificate";

}  // namespace

DaemonProcess::DaemonProcess(Deps deps, const Options& options, ConfigReload::Hooks hooks)
    : deps_(std::move(deps)),
      program_(options.program),
      names_(options.metrics),
      labels_(options.labels),
      security_(options.security),
      reload_(options.config_file, options.options, options.at_once, std::move(hooks), deps_.clock),
      security_watch_(options.security, options.address, options.side, deps_.clock),
      log_lines_left_out_(MakeCounter(*deps_.registry, names_.log_lines_left_out,
                                      "Log lines suppressed because too many were alike", labels_)),
      config_taken_(MakeCounter(*deps_.registry, names_.config_taken,
                                "Changed versions of the --config file that were applied",
                                labels_)),
      config_refused_(MakeCounter(*deps_.registry, names_.config_refused,
                                  "Changed versions of the --config file that were invalid",
                                  labels_)),
      config_good_(MakeGauge(
          *deps_.registry, names_.config_good,
          "0 while the --config file is invalid and the previous values are in effect", labels_)),
      options_after_restart_(
          MakeGauge(*deps_.registry, names_.options_after_restart,
                    "Options whose values in the file need a restart to take effect", labels_)) {}

void DaemonProcess::DeclareCertificates() {
  // Warned once, at the start: other users can read a private key.
  for (const std::string& sentence : DescribeOpenSecrets(security_)) SPDLOG_WARN("{}", sentence);
  if (!security_.has_tls()) return;
  // Ready at first, because the start has checked the files.
  deps_.health.Declare(kCertificateCondition, HealthState::Severity::kReadiness, "");
  deps_.health.Set(kCertificateCondition, true);
}

absl::Status DaemonProcess::StartPages(const std::string& address,
                                       const std::vector<std::string>& names) {
  const auto metrics = std::make_shared<DaemonMetrics>(
      deps_.registry, deps_.health,
      DaemonMetrics::Options{program_, names_.ready_condition, labels_, names_.sequence_age,
                             &deps_.turns});
  ASSIGN_OR_RETURN(pages_, HealthServer::Start(address, metrics, deps_.health, names));
  return absl::OkStatus();
}

void DaemonProcess::AddStatusPage(TaskRunner& sequence,
                                  std::function<std::vector<StatusTable>()> tables) {
  pages_->AddStatusPage({.program = program_,
                         .build = BuildFacts(program_, {}),
                         .tables = [this, &sequence, make = std::move(tables)](bool is_local) {
                           // The page must be shown even if the daemon hangs, because that is when
                           // it is needed.
                           auto tables = PostAndWait(sequence, program_, kStatusTimeout, make);
                           if (!tables.ok()) {
                             return std::vector<StatusTable>{
                                 {"Busy", {}, {{std::string(tables.status().message())}}}};
                           }
                           AppendTables(is_local, *tables);
                           return *std::move(tables);
                         }});
}

// Appends warnings and configuration. Log lines may name jobs, and options contain paths, so they
// are shown only to callers on this machine.
void DaemonProcess::AppendTables(bool is_local, std::vector<StatusTable>& tables) const {
  if (!is_local) {
    tables.push_back(
        {"Configuration and warnings",
         {},
         {{"are shown only on this machine: open the page there, or through a port-forward"}}});
    return;
  }
  StatusTable warnings{"Newest warnings and errors", {}, {}};
  for (std::string& line : deps_.log.RecentWarnings()) warnings.rows.push_back({std::move(line)});
  tables.push_back(std::move(warnings));
  const ConfigReload::State state = reload_.state();
  StatusTable options{"Configuration", {"option", "is", "after a restart"}, {}};
  if (!state.problem.empty()) options.rows.push_back({"the file is invalid", state.problem, ""});
  for (const auto& [name, text] : reload_.in_force()) {
    std::string later;
    for (const OptionChange& change : state.after_restart) {
      if (change.name == name) later = change.after;
    }
    if (!text.empty() || !later.empty()) options.rows.push_back({name, text, std::move(later)});
  }
  tables.push_back(std::move(options));
}

void DaemonProcess::ReloadChangedFiles(bool anyway) {
  reload_.Poll(anyway);
  // The watch returns a status only if it has changed.
  const std::optional<absl::Status> news = security_watch_.Poll();
  if (!news) return;
  deps_.health.Set(kCertificateCondition, news->ok(), std::string(news->message()));
  if (news->ok()) {
    SPDLOG_INFO("new connections use the new TLS files");
  } else {
    SPDLOG_ERROR("new connections fail: {}", std::string(news->message()));
  }
}

void DaemonProcess::Publish() {
  // Counters of other objects are copied at each call.
  const ConfigReload::State state = reload_.state();
  RaiseCounter(log_lines_left_out_, static_cast<double>(deps_.log.left_out()));
  RaiseCounter(config_taken_, static_cast<double>(state.taken));
  RaiseCounter(config_refused_, static_cast<double>(state.refused));
  config_good_.Set(state.problem.empty() ? 1 : 0);
  options_after_restart_.Set(static_cast<double>(state.after_restart.size()));
}

}  // namespace neurontrace
