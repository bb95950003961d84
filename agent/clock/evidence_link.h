// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "agent/clock/evidence_stream.h"
#include "lib/base/backoff.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Delivers clock evidence to the aggregator: keeps every batch until it is acknowledged, and
// reconnects with a growing delay for as long as it lives. Delivery is at least once: after a
// reconnect, batches without a receipt are sent again. While no aggregator is reached the backlog
// grows to limits::kClockBacklogBytesMax or kClockBacklogBatchesMax; then the oldest batches are
// dropped and counted. Lives on the sequence of `runner`; all references outlive it.
class EvidenceLink final : private EvidenceStream::Listener {
 public:
  // Learns which aggregator can be probed. Called on the sequence.
  class AccessListener {
   public:
    virtual ~AccessListener() = default;
    // An aggregator accepts evidence: how to probe it over UDP, or nothing if it answers no probes
    // there.
    virtual void OnAccess(const std::optional<ProbeAccess>& access) = 0;
    // The call to that aggregator has ended.
    virtual void OnLost() = 0;
  };
  // Since construction; only grow.
  struct Counters {
    uint64_t calls = 0;
    uint64_t batches_sent = 0;
    uint64_t bytes_sent = 0;
    // Batches that an aggregator has acknowledged.
    uint64_t batches_stored = 0;
    uint64_t batches_dropped = 0;
  };

  // `connector` starts a call each time; `clocks` gives the age of a batch when it is sent.
  EvidenceLink(EvidenceConnector connector, const HostClocks& clocks, TaskRunner& runner,
               Random& random, AccessListener& listener);
  ~EvidenceLink() override;

  // Connects. Called once.
  void Start();
  // Appends a batch and sends what may be sent.
  void Put(const ClockEvidence& batch);

  // Returns true while an aggregator accepts evidence.
  bool connected() const { return has_access_; }
  // Return the size of what is not acknowledged; the bytes include an overhead for each batch.
  size_t backlog_batches() const { return backlog_.size(); }
  size_t backlog_bytes() const { return backlog_bytes_; }
  const Counters& counters() const { return counters_; }

 private:
  // A batch that has no receipt yet.
  struct Kept {
    uint64_t number = 0;
    // Raw at its last entry, from which its age is computed when it is sent.
    uint64_t raw_ns = 0;
    // The batch as EncodeClockEvidence made it.
    std::string observations;
  };
  // Starts a call, unless one is open.
  void Connect();
  // EvidenceStream::Listener. OnAccess: evidence may be sent from now on.
  void OnAccess(const std::optional<ProbeAccess>& access) override;
  // Forgets every batch up to `number`, as it is stored. Ignored if nothing with that number was
  // sent.
  void OnReceipt(uint64_t number) override;
  void OnWritten() override;
  // Reports the loss of an aggregator that gave access, and schedules the next call.
  void OnClosed(const absl::Status& status) override;
  // Sends the next batch, if the stream takes one and few enough are unanswered.
  void Pump();

  const EvidenceConnector connector_;
  const HostClocks& clocks_;
  TaskRunner& runner_;
  AccessListener& listener_;
  Backoff backoff_;
  std::unique_ptr<EvidenceStream> stream_;
  // True from the first event of a call until its last.
  bool has_access_ = false;
  // True from a Send of the stream until its OnWritten.
  bool writing_ = false;
  // The number of the newest batch; they are numbered from 1.
  uint64_t last_number_ = 0;
  // The number of the last batch that was sent in this call; 0: none.
  uint64_t sent_number_ = 0;
  // What is not acknowledged, oldest first, with consecutive numbers.
  std::deque<Kept> backlog_;
  size_t backlog_bytes_ = 0;
  Counters counters_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
