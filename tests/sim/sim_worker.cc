// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_worker.h"

#include <algorithm>
#include <utility>

namespace neurontrace {
namespace {

constexpr size_t kRecordBytes = 64;
constexpr size_t kRowBytes = 40;
// What a fetch document may not use: the tap always finds room to say that a trace began or ended.
constexpr size_t kReservedBytes = 2048;

}  // namespace

void SimWorker::Advance() {
  if (!alive_) return;
  const uint64_t now_ns = world_.clock.MonotonicNs();
  if (!running_) {
    produced_until_ns_ = now_ns;
    return;
  }
  const uint64_t rows = (now_ns - produced_until_ns_) * options_.rows_per_second / kSimSecond;
  if (rows > 0) {
    produced_until_ns_ += rows * kSimSecond / options_.rows_per_second;
    for (uint32_t core = 0; core < options_.cores; ++core) Produce(core, rows);
  }
  if (now_ns >= stalled_ns_ && now_ns >= drained_ns_ + options_.drain_ns) Drain();
}

void SimWorker::Burst(uint64_t rows) {
  if (!alive_ || !running_) return;
  for (uint32_t core = 0; core < options_.cores; ++core) Produce(core, rows);
}

void SimWorker::Produce(uint32_t core, uint64_t rows) {
  Core& at = cores_[core];
  const uint64_t now_ns = world_.clock.RealtimeNs();
  for (uint64_t i = 0; i < rows; ++i) {
    const uint64_t id = ledger_.Produce(*running_, identity_, core);
    at.ring.push_back({id, at.next_local_id++, now_ns + i});
    if (at.ring.size() <= options_.runtime_ring_rows) continue;
    ledger_.SetFate(at.ring.front().id, SimLedger::Fate::kOverwritten);
    at.ring.pop_front();
  }
}

void SimWorker::Drain() {
  drained_ns_ = world_.clock.MonotonicNs();
  for (uint32_t core = 0; core < options_.cores; ++core) {
    std::deque<Row>& ring = cores_[core].ring;
    if (ring.empty()) continue;
    ReportLoss(core);
    Record record{.type = TapRecordType::kFetchDocument, .core = core, .capture = *running_};
    record.rows.assign(ring.begin(), ring.end());
    ring.clear();
    const std::vector<Row> rows = record.rows;
    const bool taken = Write(std::move(record));
    world_.trace.Log("tap of pid {} {} rows {}..{} of core {}", identity_.pid,
                     taken ? "takes" : "refuses", rows.front().nc_local_id, rows.back().nc_local_id,
                     core);
    if (!taken) {
      ++cores_[core].loss.refused_documents;
      cores_[core].loss.refused_events += rows.size();
      cores_[core].loss.refused_ids_end = rows.back().nc_local_id + 1;
    }
    for (const Row& row : rows) {
      ledger_.SetFate(row.id, taken ? SimLedger::Fate::kInTap : SimLedger::Fate::kRefusedByTap);
    }
  }
}

// Before the core's next document, which so has to wait for the word of what is missing before it.
void SimWorker::ReportLoss(uint32_t core) {
  TapLoss& loss = cores_[core].loss;
  if (loss.refused_documents == 0) return;
  Record record{.type = TapRecordType::kLoss, .core = core, .capture = *running_};
  record.loss = loss;
  if (Write(std::move(record))) loss = {};
}

bool SimWorker::Write(Record record) {
  const size_t bytes = kRecordBytes + kRowBytes * record.rows.size();
  const bool is_essential = record.type == TapRecordType::kTraceStopped || ending_;
  const size_t reserved = is_essential ? 0 : kReservedBytes;
  if (write_position_ - committed_ + bytes + reserved > options_.tap_bytes) return false;
  record.position = write_position_;
  record.next_position = write_position_ += bytes;
  record.host_realtime_ns = world_.clock.RealtimeNs();
  records_.push_back(std::move(record));
  return true;
}

CaptureId SimWorker::Start(const CaptureId& capture) {
  if (running_) return *running_;
  running_ = capture;
  produced_until_ns_ = drained_ns_ = world_.clock.MonotonicNs();
  for (Core& core : cores_) core.next_local_id = options_.first_id_is_zero ? 0 : 1;
  if (!Write({.type = TapRecordType::kTraceStarted, .capture = capture})) {
    running_.reset();
    return CaptureId();
  }
  world_.trace.Log("worker {} records {}", ToString(identity_), capture.ToString());
  return capture;
}

void SimWorker::WriteStopped(TapStopReason reason) {
  Drain();
  ending_ = true;
  for (uint32_t core = 0; core < options_.cores; ++core) ReportLoss(core);
  Record record{.type = TapRecordType::kTraceStopped, .capture = *running_};
  record.stopped.reason = static_cast<uint32_t>(reason);
  record.stopped.final_drain_complete = 1;
  if (!Write(std::move(record))) {
    world_.trace.Violate("a model's tap has no room for its last word");
  }
  ending_ = false;
  running_.reset();
}

bool SimWorker::Stop(const CaptureId& capture) {
  if (running_ && *running_ != capture) return false;
  if (running_) {
    Advance();
    WriteStopped(TapStopReason::kCommand);
  }
  return true;
}

void SimWorker::Exit() {
  if (!alive_) return;
  if (running_) WriteStopped(TapStopReason::kProcessExit);
  world_.trace.Log("worker {} ends", ToString(identity_));
  alive_ = false;
  sent_goodbye_ = true;
}

void SimWorker::Die() {
  if (!alive_) return;
  world_.trace.Log("worker {} dies", ToString(identity_));
  alive_ = false;
  running_.reset();
  for (Core& core : cores_) {
    for (const Row& row : core.ring) ledger_.SetFate(row.id, SimLedger::Fate::kDied);
    core.ring.clear();
  }
}

void SimWorker::LoseMemory() {
  ledger_.OnMemoryLost(identity_);
  for (const Record& record : records_) {
    for (const Row& row : record.rows) ledger_.SetFate(row.id, SimLedger::Fate::kTapMemoryLost);
  }
  records_.clear();
  committed_ = write_position_;
}

const SimWorker::Record* SimWorker::RecordAt(uint64_t position) const {
  const auto it =
      std::lower_bound(records_.begin(), records_.end(), position,
                       [](const Record& record, uint64_t at) { return record.position < at; });
  return it == records_.end() ? nullptr : &*it;
}

void SimWorker::Commit(uint64_t position) {
  committed_ = std::max(committed_, position);
  while (!records_.empty() && records_.front().next_position <= committed_) records_.pop_front();
}

}  // namespace neurontrace
