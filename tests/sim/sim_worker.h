// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "lib/trace/ids.h"
#include "tap/buffer_format.h"
#include "tests/sim/sim_ledger.h"
#include "tests/sim/sim_world.h"

namespace neurontrace {

// A worker process with a runtime and a tap, as an agent sees it: one ring of events a core that
// overwrites its oldest, a drain thread that copies all of it into the tap's buffer from time to
// time, and that buffer, which refuses the newest when it is full. The buffer outlives the process
// for as long as an agent holds it. One trace at a time.
class SimWorker {
 public:
  struct Options {
    uint32_t cores = 2;
    uint64_t rows_per_second = 200;  // of each core
    size_t runtime_ring_rows = 256;
    size_t tap_bytes = 256 << 10;
    uint64_t drain_ns = 50'000'000;
    bool first_id_is_zero = true;
  };
  struct Row {
    uint64_t id = 0;  // the ledger's
    uint64_t nc_local_id = 0;
    uint64_t timestamp_ns = 0;
  };
  struct Record {
    uint64_t position = 0;
    uint64_t next_position = 0;
    TapRecordType type = TapRecordType::kFetchDocument;
    uint32_t core = 0;
    CaptureId capture;
    uint64_t host_realtime_ns = 0;
    std::vector<Row> rows;
    TapTraceStopped stopped = {};
    TapLoss loss = {};
  };

  SimWorker(SimWorld& world, SimLedger& ledger, WorkerIdentity identity, const Options& options)
      : world_(world),
        ledger_(ledger),
        identity_(std::move(identity)),
        options_(options),
        cores_(options.cores) {}

  const WorkerIdentity& identity() const { return identity_; }
  bool alive() const { return alive_; }
  bool sent_goodbye() const { return sent_goodbye_; }

  // --- The process ---
  void Advance();  // lets the runtime and the drain thread work
  void StallDrain(uint64_t ns) { stalled_ns_ = world_.clock.MonotonicNs() + ns; }
  void Burst(uint64_t rows);  // on every core, at once
  void Exit();                // in good order
  void Die();
  // The machine is gone, or nobody holds the buffer.
  void LoseMemory();

  // --- The tap's commands ---
  // The capture that the tap runs now: another one than asked for is in the way.
  CaptureId Start(const CaptureId& capture);
  std::optional<CaptureId> running() const { return running_; }
  // Drains, and stops; false when another capture runs.
  bool Stop(const CaptureId& capture);

  // --- The buffer ---
  const Record* RecordAt(uint64_t position) const;
  uint64_t committed() const { return committed_; }
  uint64_t write_position() const { return write_position_; }
  size_t tap_bytes() const { return options_.tap_bytes; }
  void Commit(uint64_t position);

 private:
  struct Core {
    std::deque<Row> ring;
    uint64_t next_local_id = 0;
    TapLoss loss = {};  // not reported yet
  };

  void Produce(uint32_t core, uint64_t rows);
  void Drain();
  // False when there is no room for it.
  bool Write(Record record);
  void ReportLoss(uint32_t core);
  void WriteStopped(TapStopReason reason);

  SimWorld& world_;
  SimLedger& ledger_;
  const WorkerIdentity identity_;
  const Options options_;
  std::vector<Core> cores_;
  bool alive_ = true;
  bool sent_goodbye_ = false;
  bool ending_ = false;  // a trace
  std::optional<CaptureId> running_;
  uint64_t produced_until_ns_ = 0;
  uint64_t drained_ns_ = 0;
  uint64_t stalled_ns_ = 0;

  std::deque<Record> records_;
  uint64_t write_position_ = 0;
  uint64_t committed_ = 0;
};

}  // namespace neurontrace
