// SPDX-License-Identifier: Apache-2.0
#include "aggregator/exports/standing_exports.h"

#include <spdlog/spdlog.h>

#include <cassert>
#include <cctype>
#include <utility>

#include "aggregator/access/system_audit_events.h"
#include "aggregator/clocks/clock_model_cache.h"
#include "lib/base/status.h"
#include "lib/health/metric_builders.h"

namespace neurontrace {
namespace {

// Short enough for retries that are due; the queue costs nothing while it is empty.
constexpr uint64_t kPollNs = 1'000'000'000;

// Returns EXPORT_FORMAT_SUMMARY_JSON for "summary-json", and UNSPECIFIED for an unknown name.
v1::ExportFormat ExportFormatByName(const std::string& name) {
  std::string whole = "EXPORT_FORMAT_";
  for (const char c : name) {
    whole += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  v1::ExportFormat format = v1::EXPORT_FORMAT_UNSPECIFIED;
  return v1::ExportFormat_Parse(whole, &format) ? format : v1::EXPORT_FORMAT_UNSPECIFIED;
}

}  // namespace

absl::StatusOr<std::vector<StandingRule>> StandingExports::ReadRules(
    const std::vector<std::string>& rules, const ExportRoots& roots) {
  std::vector<StandingRule> parsed;
  for (const std::string& text : rules) {
    ASSIGN_OR_RETURN(StandingRule rule, ParseStandingRule(text));
    RETURN_IF_ERROR(roots.Check(rule.to).status());
    for (const std::string& format : rule.formats) {
      if (ExportFormatByName(format) == v1::EXPORT_FORMAT_UNSPECIFIED) {
        return InvalidArgument("--standing-export {}: unknown format '{}'", rule.name, format);
      }
    }
    for (const StandingRule& other : parsed) {
      if (other.name == rule.name) {
        return InvalidArgument("--standing-export: the name {} is used twice", rule.name);
      }
    }
    parsed.push_back(std::move(rule));
  }
  return parsed;
}

// A damaged state file is no reason not to start: its readable part is used, and the problem
// logged.
StandingExports::StandingExports(const Deps& deps, const std::string& path,
                                 std::vector<StandingRule> rules)
    : deps_(deps),
      done_(MakeCounter(deps.registry, "neurontrace_aggregator_standing_exports_done_total",
                        "Standing exports written")),
      failed_(MakeCounter(deps.registry, "neurontrace_aggregator_standing_exports_failed_total",
                          "Standing exports that failed permanently or were refused")),
      forgone_(MakeCounter(deps.registry, "neurontrace_aggregator_standing_exports_abandoned_total",
                           "Standing exports abandoned because their capture was deleted")),
      retried_(MakeCounter(deps.registry, "neurontrace_aggregator_standing_exports_retried_total",
                           "Failed attempts of standing exports that are retried")),
      pending_(MakeGauge(deps.registry, "neurontrace_aggregator_standing_exports_pending",
                         "Standing exports not yet written")),
      queue_({files_, deps.clock, deps.random}, path, std::move(rules), problem_) {
  if (!problem_.empty()) SPDLOG_WARN("standing exports: {}", problem_);
  ListRules();
  ListCounts();
}

StandingExports::~StandingExports() { End(); }

// Without rules there is no thread, and OnCaptureEnded does nothing.
void StandingExports::Begin() {
  if (queue_.rules().empty()) return;
  loop_.PostTask([this] {
    OfferAll();
    RunAndReschedule();
  });
  thread_ = std::thread([this] { loop_.Run(); });
}

// The current export notices is_ending_ at its next progress report.
void StandingExports::End() {
  Quit();
  if (!thread_.joinable()) return;
  loop_.Quit();
  thread_.join();
}

// The capture is exported once its clock models are final, which is some time after its end.
void StandingExports::OnCaptureEnded(const CaptureRecord& record) {
  if (queue_.rules().empty()) return;
  loop_.PostTask([this, record] { queue_.Offer(record, ClockModelCache::FinalAtNs(record)); });
}

// Captures may have ended while the aggregator was not running, or before a rule was added.
void StandingExports::OfferAll() {
  const auto records = deps_.store.captures().List();
  if (!records.ok()) {
    SPDLOG_WARN("standing exports: {}", std::string(records.status().message()));
    return;
  }
  for (const CaptureRecord& record : *records) {
    if (HasEnded(record.state)) queue_.Offer(record, ClockModelCache::FinalAtNs(record));
  }
}

// Only NOT_FOUND: a store that fails for a moment must not make the queue forget an export.
bool StandingExports::IsGone(const CaptureId& capture) const {
  return absl::IsNotFound(deps_.store.captures().Get(capture).status());
}

void StandingExports::RunAndReschedule() {
  // Before exports, so that none is started for a deleted capture.
  queue_.ForgetDeleted([this](const CaptureId& capture) { return IsGone(capture); });
  while (const auto task = queue_.Next()) {
    if (is_ending_) return;
    Do(*task);
    SaveAndCount();
  }
  SaveAndCount();
  if (!is_ending_) loop_.PostDelayedTask([this] { RunAndReschedule(); }, kPollNs);
}

v1::ListStandingExportsReply StandingExports::List() const {
  const MutexLock lock(listed_mutex_);
  return listed_;
}

void StandingExports::ListRules() {
  const MutexLock lock(listed_mutex_);
  for (const StandingRule& rule : queue_.rules()) {
    v1::StandingExport& listed = *listed_.add_exports();
    listed.set_name(rule.name);
    listed.set_to(rule.to);
    for (const std::string& format : rule.formats) listed.add_formats(format);
    listed.set_job(rule.job);
    listed.set_capture(rule.capture);
    listed.set_incomplete(rule.incomplete);
  }
}

void StandingExports::ListCounts() {
  const std::vector<StandingQueue::RuleCounts> counts = queue_.CountByRule();
  const MutexLock lock(listed_mutex_);
  for (size_t i = 0; i < counts.size(); ++i) {
    v1::StandingExport& listed = *listed_.mutable_exports(static_cast<int>(i));
    listed.set_pending(counts[i].pending);
    listed.set_done(counts[i].done);
    listed.set_failed(counts[i].failed);
  }
}

// Rules are listed in the order of the queue, which owns them.
v1::StandingExport& StandingExports::ListedRule(const StandingRule& rule) {
  const auto index = static_cast<int>(&rule - queue_.rules().data());
  assert(index >= 0 && index < listed_.exports_size());
  return *listed_.mutable_exports(index);
}

void StandingExports::ListRunning(const StandingQueue::Task& task) {
  const MutexLock lock(listed_mutex_);
  ListedRule(*task.rule).set_running_capture(task.capture.ToString());
}

void StandingExports::ListResult(const StandingQueue::Task& task, const absl::Status& status,
                                 const std::string& written_to) {
  const MutexLock lock(listed_mutex_);
  v1::StandingExport& listed = ListedRule(*task.rule);
  listed.clear_running_capture();
  listed.set_last_realtime_ns(deps_.clock.RealtimeNs());
  listed.set_last_capture(task.capture.ToString());
  listed.set_last_written_to(status.ok() ? written_to : "");
  listed.set_last_problem(status.ok() ? "" : std::string(status.message()));
}

// Makes the request that an operator would make, and records its result in the queue and in the
// audit log.
void StandingExports::Do(const StandingQueue::Task& task) {
  v1::ExportRequest request;
  request.set_capture_id(task.capture.ToString());
  request.set_destination(task.rule->to);
  request.set_format(ExportFormatByName(task.rule->formats.front()));
  for (size_t i = 1; i < task.rule->formats.size(); ++i) {
    request.add_more_formats(ExportFormatByName(task.rule->formats[i]));
  }
  ListRunning(task);
  std::string written_to;
  const auto record = deps_.store.captures().Get(task.capture);
  absl::Status status = record.status();
  if (status.ok()) {
    // Written before the export, so that the log also has exports that the process did not survive.
    deps_.audit.Write(ExportedByRule({.action = "export.begin",
                                      .rule = task.rule->name,
                                      .capture = task.capture,
                                      .where = task.rule->to}));
    status = deps_.exporter.ExportCapture(*record, request, [&](const v1::ExportReply& reply) {
      if (reply.has_done()) written_to = reply.done().written_to();
      return !is_ending_;
    });
  }
  ListResult(task, status, written_to);
  // Cancelled by the end of the process: the task stays queued, and the next start resumes it.
  if (is_ending_ && !status.ok()) return;
  // Volumes use NOT_FOUND as well, for their own files; only a deleted capture is forgotten.
  if (absl::IsNotFound(status) && IsGone(task.capture)) {
    queue_.Forget(task.capture);
  } else {
    queue_.Finish(task, status);
  }
  deps_.audit.Write(ExportedByRule({.action = "export",
                                    .rule = task.rule->name,
                                    .capture = task.capture,
                                    .where = status.ok() ? written_to : task.rule->to,
                                    .outcome = status}));
  if (status.ok()) {
    SPDLOG_INFO("standing export {}: wrote {}", task.rule->name, written_to);
  } else {
    SPDLOG_WARN("standing export {} of capture {}: {}", task.rule->name, task.capture.ToString(),
                std::string(status.message()));
  }
}

// A failed save is repeated by the next call. A restart before that repeats exports, which find
// their files in place.
void StandingExports::SaveAndCount() {
  if (queue_.has_changed()) ListCounts();
  if (const absl::Status status = queue_.Save(); !status.ok()) {
    SPDLOG_WARN("standing exports: {}", std::string(status.message()));
  }
  const StandingQueue::Counts& now = queue_.counts();
  // The queue's counts are totals of this process; Prometheus counters take increments.
  done_.Increment(static_cast<double>(now.done - counted_.done));
  failed_.Increment(static_cast<double>(now.failed - counted_.failed));
  forgone_.Increment(static_cast<double>(now.forgone - counted_.forgone));
  retried_.Increment(static_cast<double>(now.retried - counted_.retried));
  pending_.Set(static_cast<double>(now.pending));
  counted_ = now;
}

}  // namespace neurontrace
