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
#include "aggregator/session/capture_observer.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"
#include "lib/base/file_system.h"
#include "lib/base/random.h"

namespace neurontrace {

// The exports that rules ask for, with their thread, one at a time. What its end cancels the next
// start goes on with.
// thread: standing exports: makes the exports that rules ask for, one at a time
class StandingExports final : public CaptureObserver {
 public:
  struct Deps {
    Store& store;
    prometheus::Registry& registry;
    const Clock& clock;
    Random& random;
    CaptureExporter& exporter;  // called on the thread of this
    AuditLog& audit;
  };
  // Parses rules. Fails with INVALID_ARGUMENT or FAILED_PRECONDITION for a rule that cannot be
  // followed: its words, its formats, a destination outside the roots, two of one name.
  static absl::StatusOr<std::vector<StandingRule>> ReadRules(const std::vector<std::string>& rules,
                                                             const ExportRoots& roots);
  // `path` names the file of its state.
  StandingExports(const Deps& deps, const std::string& path, std::vector<StandingRule> rules);
  ~StandingExports() override;
  StandingExports(const StandingExports&) = delete;
  StandingExports& operator=(const StandingExports&) = delete;

  // Starts the thread. Once.
  void Begin();
  // From now on nothing is begun, and what is under way is cancelled. Any thread.
  void Quit() { is_ending_ = true; }
  // Waits for the thread's end. It is not begun again.
  void End();
  // Queues the exports of the capture. Any thread.
  void OnCaptureEnded(const CaptureRecord& record) override;

 private:
  void LookAtAll();
  bool IsGone(const CaptureId& capture) const;
  void RunAndAgain();
  void Do(const StandingQueue::Task& task);
  void SaveAndCount();

  const Deps deps_;
  prometheus::Counter& done_;
  prometheus::Counter& failed_;
  prometheus::Counter& forgone_;
  prometheus::Counter& retried_;
  prometheus::Gauge& pending_;
  SystemFileSystem files_;
  std::string problem_;
  StandingQueue queue_;  // used on loop_ only, as the next
  StandingQueue::Counts counted_;
  std::atomic<bool> is_ending_ = false;
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
