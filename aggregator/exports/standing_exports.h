// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/audit_log.h"
#include "aggregator/deliver/export_roots.h"
#include "aggregator/deliver/standing_queue.h"
#include "aggregator/operator/capture_exporter.h"
#include "aggregator/operator/standing_export_lister.h"
#include "aggregator/session/capture_observer.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"
#include "lib/base/file_system.h"
#include "lib/base/mutex.h"
#include "lib/base/random.h"

namespace neurontrace {

// Makes the exports that rules ask for, one at a time, on a thread of its own. An export that its
// end cancels is resumed after the next start.
// thread: standing exports: makes the exports that rules ask for, one at a time
class StandingExports final : public CaptureObserver, public StandingExportLister {
 public:
  struct Deps {
    Store& store;
    prometheus::Registry& registry;
    const Clock& clock;
    Random& random;
    // Called on this object's thread.
    CaptureExporter& exporter;
    AuditLog& audit;
  };
  // Parses rules. Fails with INVALID_ARGUMENT or FAILED_PRECONDITION for a rule that cannot be
  // followed: its syntax, its formats, a destination outside the roots, or a name that is used
  // twice.
  static absl::StatusOr<std::vector<StandingRule>> ReadRules(const std::vector<std::string>& rules,
                                                             const ExportRoots& roots);
  // `path` names the file with the state of the queue.
  StandingExports(const Deps& deps, const std::string& path, std::vector<StandingRule> rules);
  ~StandingExports() override;
  StandingExports(const StandingExports&) = delete;
  StandingExports& operator=(const StandingExports&) = delete;

  // Starts the thread, unless there are no rules. Called once.
  void Begin();
  // Cancels the current export and starts no further one. May be called on any thread.
  void Quit() { is_ending_ = true; }
  // Waits for the thread's end, which is final.
  void End();
  // Queues the exports of the capture. May be called on any thread.
  void OnCaptureEnded(const CaptureRecord& record) override;
  v1::ListStandingExportsReply List() const override;

 private:
  // Offers every ended capture of the store to the queue, which ignores those it knows.
  void OfferAll();
  // Returns whether the store certainly has no such capture.
  bool IsGone(const CaptureId& capture) const;
  // Makes all exports that are due, and posts itself again.
  void RunAndReschedule();
  // Makes one export and records its result.
  void Do(const StandingQueue::Task& task);
  // Saves the queue's state and moves its counters into the metrics and into listed_.
  void SaveAndCount();
  // Fill listed_: with the rules, once; with the numbers of the queue; with the export that is
  // being made; with its result.
  void ListRules();
  void ListCounts();
  void ListRunning(const StandingQueue::Task& task);
  void ListResult(const StandingQueue::Task& task, const absl::Status& status,
                  const std::string& written_to);
  // Returns the rule in listed_.
  v1::StandingExport& ListedRule(const StandingRule& rule) NT_REQUIRES(listed_mutex_);

  const Deps deps_;
  // Counters of docs/operator/metrics.md, moved there by SaveAndCount.
  prometheus::Counter& done_;
  prometheus::Counter& failed_;
  prometheus::Counter& forgone_;
  prometheus::Counter& retried_;
  prometheus::Gauge& pending_;
  SystemFileSystem files_;
  // Set by the constructor of queue_, hence declared before it.
  std::string problem_;
  // Used on loop_ only, as is counted_.
  StandingQueue queue_;
  StandingQueue::Counts counted_;
  // What List returns, written on loop_.
  mutable Mutex listed_mutex_;
  v1::ListStandingExportsReply listed_ NT_GUARDED_BY(listed_mutex_);
  // Set by any thread, read by the export at each progress report.
  std::atomic<bool> is_ending_ = false;
  // Runs on thread_; posting is allowed on any thread.
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
