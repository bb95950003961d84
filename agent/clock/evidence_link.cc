// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/evidence_link.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "lib/trace/clock_evidence_codec.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

// The bounds of the growing delay between two calls.
constexpr uint64_t kReconnectFirstNs = 200'000'000;
constexpr uint64_t kReconnectLongestNs = 15'000'000'000;
// More would fill the connection's buffers with batches that a lost connection repeats.
constexpr uint64_t kUnansweredMax = 8;  // batches on their way
// Charged for each batch, so that many small ones are limited too.
constexpr size_t kBatchOverheadBytes = 64;

// The time of the latest entry, from which a batch's age is computed when it is sent. Ages rather
// than times are sent because raw starts at zero with each boot.
uint64_t LastRaw(const ClockEvidence& evidence) {
  uint64_t raw_ns = 0;
  for (const auto& s : evidence.snapshots) raw_ns = std::max(raw_ns, s.raw_end_ns);
  for (const auto& e : evidence.exchanges) raw_ns = std::max(raw_ns, e.receive_raw_ns);
  for (const auto& e : evidence.events) raw_ns = std::max(raw_ns, e.raw_end_ns);
  for (const auto& r : evidence.utc) raw_ns = std::max(raw_ns, r.raw_ns);
  return raw_ns;
}

}  // namespace

EvidenceLink::EvidenceLink(EvidenceConnector connector, const HostClocks& clocks,
                           TaskRunner& runner, Random& random, AccessListener& listener)
    : connector_(std::move(connector)),
      clocks_(clocks),
      runner_(runner),
      listener_(listener),
      backoff_(random, kReconnectFirstNs, kReconnectLongestNs) {}

EvidenceLink::~EvidenceLink() = default;

void EvidenceLink::Start() { Connect(); }

void EvidenceLink::Connect() {
  if (stream_ != nullptr) return;
  ++counters_.calls;
  // A receipt may have been lost with the last call, so everything in the backlog is sent again.
  writing_ = false;
  sent_number_ = 0;
  stream_ = connector_(*this);
}

void EvidenceLink::OnAccess(const std::optional<ProbeAccess>& access) {
  if (has_access_) return;
  has_access_ = true;
  backoff_.Reset();
  listener_.OnAccess(access);
  Pump();
}

void EvidenceLink::OnReceipt(uint64_t number) {
  if (number > sent_number_) return;  // of nothing that was sent
  while (!backlog_.empty() && backlog_.front().number <= number) {
    backlog_bytes_ -= backlog_.front().observations.size() + kBatchOverheadBytes;
    backlog_.pop_front();
    ++counters_.batches_stored;
  }
  Pump();
}

void EvidenceLink::OnWritten() {
  writing_ = false;
  Pump();
}

void EvidenceLink::OnClosed(const absl::Status& status) {
  spdlog::debug("clock: the report call ended: {}", status.ToString());
  if (std::exchange(has_access_, false)) listener_.OnLost();
  // A stream must not be destroyed inside its own callback, so a task ends the call. By then
  // another call may be open, which the number of calls shows.
  runner_.PostTask(weak_tasks_.Wrap([this, call = counters_.calls] {
    if (call == counters_.calls) stream_.reset();
  }));
  runner_.PostDelayedTask(weak_tasks_.Wrap([this] { Connect(); }), backoff_.NextDelayNs());
}

void EvidenceLink::Put(const ClockEvidence& batch) {
  backlog_.push_back({.number = ++last_number_,
                      .raw_ns = LastRaw(batch),
                      .observations = EncodeClockEvidence(batch)});
  backlog_bytes_ += backlog_.back().observations.size() + kBatchOverheadBytes;
  // The newest batch always stays: the present matters more than the past.
  while (backlog_.size() > 1 && (backlog_bytes_ > limits::kClockBacklogBytesMax ||
                                 backlog_.size() > limits::kClockBacklogBatchesMax)) {
    backlog_bytes_ -= backlog_.front().observations.size() + kBatchOverheadBytes;
    backlog_.pop_front();
    ++counters_.batches_dropped;
  }
  Pump();
}

void EvidenceLink::Pump() {
  if (stream_ == nullptr || !has_access_ || writing_ || backlog_.empty()) return;
  const uint64_t first = backlog_.front().number;
  // After a reconnect sent_number_ is 0, so all that is not acknowledged is sent again in order.
  const uint64_t next = std::max(sent_number_ + 1, first);
  if (next > backlog_.back().number || next >= first + kUnansweredMax) return;
  const Kept& kept = backlog_[next - first];
  const uint64_t now_ns = clocks_.RawNs();
  writing_ = true;
  sent_number_ = next;
  ++counters_.batches_sent;
  counters_.bytes_sent += kept.observations.size();
  stream_->Send({.number = kept.number,
                 .age_ns = now_ns - std::min(now_ns, kept.raw_ns),
                 .observations = kept.observations});
}

}  // namespace neurontrace
