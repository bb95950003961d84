// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/clock_damage.h"

#include <algorithm>
#include <map>
#include <utility>

#include "aggregator/store/clock_evidence_rows.h"
#include "aggregator/store/clock_evidence_store.h"
#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/record_codec.h"
#include "aggregator/store/stream_record.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Evidence measured this long before and after a capture contributes to its models.
constexpr uint64_t kMarginNs = 60 * kNsPerSecond;
constexpr char kEvidenceLost[] =
    "disk damage destroyed, or may have destroyed, evidence of its host's clock; times are less "
    "exact or not aligned";
constexpr char kWritesLost[] =
    "disk damage destroyed part of the store's log; clock evidence may be missing and times may be "
    "less exact";

// The times in which evidence matters for this capture. Without an end everything after the start
// does.
RealtimeWindow WindowOf(const CaptureRecord& record) {
  const uint64_t begin_ns =
      record.started_realtime_ns == 0 ? record.id.CreatedRealtimeNs() : record.started_realtime_ns;
  const uint64_t end_ns = record.ended_realtime_ns;
  return {SubtractSaturating(begin_ns, kMarginNs),
          end_ns == 0 ? UINT64_MAX : AddSaturating(end_ns, kMarginNs)};
}

// Both ends belong to a window.
bool Overlap(const RealtimeWindow& a, const RealtimeWindow& b) {
  return a.begin_ns <= b.end_ns && b.begin_ns <= a.end_ns;
}

// Compares the damage with one capture and writes what concerns it: at most one remark for each
// host, or one warning for the capture.
class CaptureClockDamage {
 public:
  CaptureClockDamage(Database& database, const ClockDamage& damage, const CaptureRecord& record)
      : database_(database),
        evidence_(database, Durability::kSynced),
        damage_(damage),
        record_(record),
        window_(WindowOf(record)) {}

  // Returns whether anything was recorded.
  absl::StatusOr<bool> Remember() {
    // The first stream of each host carries the remark, as the evidence is the host's, not a
    // core's.
    std::map<HostBoot, StreamRecord> streams;  // the first of each host
    RETURN_IF_ERROR(
        database_.ForEach(Family::kStreams, keys::Capture(record_.id),
                          [&streams](std::string_view key, std::string_view value) {
                            const auto parsed = keys::ParseStream(key);
                            if (!parsed) return absl::OkStatus();
                            auto stream = DecodeStreamRecord(parsed->stream, value);
                            if (!stream.ok()) return stream.status();
                            const WorkerIdentity& worker = stream->identity.worker;
                            streams.try_emplace({worker.instance_id, worker.boot_id}, *stream);
                            return absl::OkStatus();
                          }));
    bool any = false;
    for (auto& [host, stream] : streams) {
      ASSIGN_OR_RETURN(const bool lacks, Lacks(host));
      if (!lacks) continue;
      any = true;
      MergeFound({.kind = RemarkKind::kStoreFault, .count = 1, .details = {kEvidenceLost}},
                 stream.remarks);
      RETURN_IF_ERROR(database_.Put(Family::kStreams, keys::Stream(record_.id, stream.number),
                                    EncodeStreamRecord(stream), /*sync=*/false));
    }
    if (any || streams.empty() || !damage_.writes_lost) return any;
    CaptureRecord warned = record_;
    if (warned.warnings.size() >= limits::kCaptureWarningsMax) return false;
    warned.warnings.push_back(kWritesLost);
    RETURN_IF_ERROR(database_.Put(Family::kCaptures, keys::Capture(record_.id),
                                  EncodeCaptureRecord(warned), /*sync=*/false));
    return true;
  }

 private:
  // Returns whether evidence of the host that this capture needs is lost, or may be.
  absl::StatusOr<bool> Lacks(const HostBoot& host) const {
    for (const ClockDamage::Evidence& lost : damage_.lost) {
      // Every host is aligned to the reference clock, so lost evidence of that clock's keeper
      // concerns all.
      const bool concerns = !lost.host || *lost.host == host || IsReferenceHost(*lost.host);
      if (concerns && Overlap(lost.window, window_)) return true;
    }
    // Lost models are fitted again, unless their evidence has been pruned.
    if (!damage_.models_lost || record_.ended_realtime_ns == 0) return false;
    ASSIGN_OR_RETURN(const ClockEvidenceStore::Extent left, evidence_.ExtentOf(host, window_));
    return left.batches == 0;
  }

  Database& database_;
  const ClockEvidenceStore evidence_;
  const ClockDamage& damage_;
  const CaptureRecord& record_;
  const RealtimeWindow window_;
};

}  // namespace

// Keys sort by host and time. Between two keys of one host nothing but evidence of that host can
// have been.
ClockDamage::Evidence LostBetween(std::string_view before, std::string_view after) {
  const auto host = HostOfEvidenceKey(before);
  if (!host || host != HostOfEvidenceKey(after)) return {};
  return {host, {MeasuredOfEvidenceKey(before), MeasuredOfEvidenceKey(after)}};
}

// Captures are read first, because records are written during the second loop.
absl::Status RememberClockDamage(Database& database, const ClockDamage& damage,
                                 const AreClocksFinal& are_final, std::vector<std::string>& notes) {
  if (!damage.any()) return absl::OkStatus();
  std::vector<CaptureRecord> captures;
  RETURN_IF_ERROR(database.ForEach(
      Family::kCaptures, "", [&captures](std::string_view key, std::string_view value) {
        const auto id = CaptureId::FromBytes(key);
        // Unreadable records have been dealt with by the repair itself.
        auto record = id.ok() ? DecodeCaptureRecord(*id, value) : id.status();
        if (record.ok()) captures.push_back(*std::move(record));
        return absl::OkStatus();
      }));
  const ClockModelStore models(database, Durability::kSynced);
  size_t remembered = 0;
  for (const CaptureRecord& record : captures) {
    ASSIGN_OR_RETURN(const std::optional<std::string> header, models.NewestHeader(record.id));
    if (header && are_final && are_final(*header)) continue;
    ASSIGN_OR_RETURN(const bool has, CaptureClockDamage(database, damage, record).Remember());
    remembered += has;
  }
  if (remembered > 0) {
    notes.push_back(
        fmt::format("clock evidence is or may be lost; the certificates of {} captures report this",
                    remembered));
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
