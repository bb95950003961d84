// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/clock_evidence_store.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "aggregator/store/clock_evidence_rows.h"
#include "aggregator/store/database.h"
#include "lib/base/status.h"
#include "lib/trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

// Calls `visit(measured realtime, value)` for each batch of a host in a window, until it fails.
// Keys are ordered by time, so the walk ends at the window's end.
template <typename Visit>
absl::Status ForEachBatch(const Database& database, const HostBoot& host,
                          const RealtimeWindow& window, Visit visit) {
  const std::string prefix = EvidencePrefix(host);
  const std::unique_ptr<rocksdb::Iterator> it(
      database.db().NewIterator({}, database.family(Family::kClockObservations)));
  for (it->Seek(EvidenceAt(host, window.begin_ns)); it->Valid() && it->key().starts_with(prefix);
       it->Next()) {
    const std::string_view key = ToView(it->key());
    if (key.size() != prefix.size() + kEvidenceKeyTailBytes) return DataLoss("malformed key");
    if (MeasuredOfEvidenceKey(key) > window.end_ns) break;
    RETURN_IF_ERROR(visit(MeasuredOfEvidenceKey(key), ToView(it->value())));
  }
  return FromRocksDb(it->status(), "reading clock evidence");
}

// All fields of an entry, raw time first: sorting by them orders each list by time and puts
// duplicates next to each other.
auto Fields(const ClockSnapshot& of) {
  return std::tie(of.raw_begin_ns, of.raw_end_ns, of.realtime_ns, of.monotonic_ns, of.boottime_ns,
                  of.frequency, of.tick_us, of.status, of.tai_offset_s);
}
auto Fields(const ClockExchange& of) {
  return std::tie(of.send_raw_ns, of.reference_receive_ns, of.reference_send_ns, of.receive_raw_ns,
                  of.reference_epoch, of.path);
}
auto Fields(const ClockEvent& of) {
  return std::tie(of.raw_begin_ns, of.raw_end_ns, of.kind, of.amount_ns);
}
auto Fields(const UtcReading& of) {
  return std::tie(of.raw_ns, of.utc_earliest_ns, of.utc_latest_ns, of.source);
}

template <typename Entry>
// Sorts and removes duplicates: agents send evidence again if its acknowledgement was lost,
// possibly grouped into other batches.
void SortOnce(std::vector<Entry>& entries) {
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) { return Fields(a) < Fields(b); });
  const auto twice = std::ranges::unique(entries);
  entries.erase(twice.begin(), twice.end());
}

template <typename Entry>
void Append(std::vector<Entry>& to, const std::vector<Entry>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

// The checksum in the key makes a repeated batch replace itself.
absl::Status ClockEvidenceStore::Put(const std::vector<ClockEvidenceBatch>& batches) {
  rocksdb::WriteBatch writes;
  for (const ClockEvidenceBatch& batch : batches) {
    writes.Put(database_.family(Family::kClockObservations), EvidenceKey(batch),
               batch.observations);
  }
  return database_.Write(writes, durability_ == Durability::kSynced, "storing clock evidence");
}

absl::StatusOr<ClockEvidenceStore::Extent> ClockEvidenceStore::ExtentOf(
    const HostBoot& host, const RealtimeWindow& window) const {
  Extent extent;
  RETURN_IF_ERROR(ForEachBatch(database_, host, window,
                               [&](uint64_t measured_realtime_ns, std::string_view value) {
                                 ++extent.batches;
                                 extent.bytes += value.size();
                                 extent.last_measured_realtime_ns = measured_realtime_ns;
                                 return absl::OkStatus();
                               }));
  return extent;
}

// Sorting at the end removes what overlapping batches repeat; they are stored as they came.
absl::StatusOr<ClockEvidence> ClockEvidenceStore::Read(const HostBoot& host,
                                                       const RealtimeWindow& window) const {
  ClockEvidence evidence;
  RETURN_IF_ERROR(
      ForEachBatch(database_, host, window, [&](uint64_t, std::string_view value) -> absl::Status {
        const auto batch = DecodeClockEvidence(value);
        if (!batch.ok()) {
          return DataLoss("clock evidence of {}: {}", host.instance_id,
                          std::string(batch.status().message()));
        }
        Append(evidence.snapshots, batch->snapshots);
        Append(evidence.exchanges, batch->exchanges);
        Append(evidence.events, batch->events);
        Append(evidence.utc, batch->utc);
        return absl::OkStatus();
      }));
  SortOnce(evidence.snapshots);
  SortOnce(evidence.exchanges);
  SortOnce(evidence.events);
  SortOnce(evidence.utc);
  return evidence;
}

absl::StatusOr<uint64_t> ClockEvidenceStore::LastMeasuredNs(const HostBoot& host) const {
  const std::string prefix = EvidencePrefix(host);
  const std::unique_ptr<rocksdb::Iterator> it(
      database_.db().NewIterator({}, database_.family(Family::kClockObservations)));
  // Behind every key of the host with any time and checksum; the key before it is the last.
  it->SeekForPrev(EvidenceAt(host, ~uint64_t{0}) + std::string(4, '\xff'));
  RETURN_IF_ERROR(FromRocksDb(it->status(), "reading clock evidence"));
  if (!it->Valid() || !it->key().starts_with(prefix)) return uint64_t{0};
  if (it->key().size() != prefix.size() + kEvidenceKeyTailBytes) return DataLoss("malformed key");
  return MeasuredOfEvidenceKey(ToView(it->key()));
}

// Skips from host to host, as each may have many batches.
absl::StatusOr<std::vector<HostBoot>> ClockEvidenceStore::Hosts() const {
  std::vector<HostBoot> hosts;
  const std::unique_ptr<rocksdb::Iterator> it(
      database_.db().NewIterator({}, database_.family(Family::kClockObservations)));
  it->SeekToFirst();
  while (it->Valid()) {
    auto host = HostOfEvidenceKey(ToView(it->key()));
    if (!host) return DataLoss("malformed key in {}", FamilyName(Family::kClockObservations));
    SeekPastPrefix(*it, EvidencePrefix(*host));
    hosts.push_back(*std::move(host));
  }
  RETURN_IF_ERROR(FromRocksDb(it->status(), "reading clock evidence"));
  return hosts;
}

absl::StatusOr<ClockEvidenceStore::Pruned> ClockEvidenceStore::Prune(
    uint64_t before_ns, std::vector<RealtimeWindow> keep) {
  // Keys of a host and windows are then walked together, each once.
  std::ranges::sort(keep, {}, &RealtimeWindow::begin_ns);
  ASSIGN_OR_RETURN(const std::vector<HostBoot> hosts, Hosts());
  Pruned pruned;
  for (const HostBoot& host : hosts) RETURN_IF_ERROR(PruneHost(host, before_ns, keep, pruned));
  return pruned;
}

// Keys and windows are both sorted by time, so one pass over each suffices.
absl::Status ClockEvidenceStore::PruneHost(const HostBoot& host, uint64_t before_ns,
                                           const std::vector<RealtimeWindow>& keep,
                                           Pruned& pruned) {
  const std::string prefix = EvidencePrefix(host);
  rocksdb::WriteBatch writes;
  const std::unique_ptr<rocksdb::Iterator> it(
      database_.db().NewIterator({}, database_.family(Family::kClockObservations)));
  it->Seek(prefix);
  for (size_t next = 0; it->Valid() && it->key().starts_with(prefix);) {
    if (it->key().size() != prefix.size() + kEvidenceKeyTailBytes) {
      return DataLoss("malformed key");
    }
    const uint64_t measured_ns = MeasuredOfEvidenceKey(ToView(it->key()));
    if (measured_ns >= before_ns) break;
    while (next < keep.size() && keep[next].end_ns < measured_ns) ++next;
    if (next < keep.size() && keep[next].begin_ns <= measured_ns) {
      // Everything after is kept; the end plus one would wrap around.
      if (keep[next].end_ns == ~uint64_t{0}) break;
      // A long window is skipped instead of walked through.
      it->Seek(EvidenceAt(host, keep[next].end_ns + 1));
      continue;
    }
    ++pruned.batches;
    pruned.bytes += it->key().size() + it->value().size();
    writes.Delete(database_.family(Family::kClockObservations), it->key());
    it->Next();
  }
  RETURN_IF_ERROR(FromRocksDb(it->status(), "pruning clock evidence"));
  if (writes.Count() == 0) return absl::OkStatus();
  // No sync: what a crash restores is pruned again.
  return database_.Write(writes, /*sync=*/false, "pruning clock evidence");
}

absl::StatusOr<std::vector<ReferenceEpoch>> ClockEvidenceStore::Epochs() const {
  std::vector<ReferenceEpoch> epochs;
  RETURN_IF_ERROR(database_.ForEach(Family::kMeta, kEpochKeyPrefix,
                                    [&](std::string_view, std::string_view value) {
                                      auto epoch = DecodeEpoch(value);
                                      if (epoch.ok()) epochs.push_back(*std::move(epoch));
                                      return epoch.status();
                                    }));
  return epochs;
}

// Synced, because evidence may name the epoch's number at once, and a later run must not use the
// number again.
absl::StatusOr<ReferenceEpoch> ClockEvidenceStore::ContinueEpoch(std::string_view raw_origin,
                                                                 uint64_t offset_ns,
                                                                 uint64_t now_realtime_ns) {
  ASSIGN_OR_RETURN(const std::vector<ReferenceEpoch> epochs, Epochs());
  if (!epochs.empty() && !raw_origin.empty() && epochs.back().raw_origin == raw_origin) {
    return epochs.back();
  }
  const ReferenceEpoch epoch{.number = epochs.empty() ? 1 : epochs.back().number + 1,
                             .raw_origin = std::string(raw_origin),
                             .offset_ns = offset_ns,
                             .begun_realtime_ns = now_realtime_ns};
  RETURN_IF_ERROR(
      database_.Put(Family::kMeta, EpochKey(epoch.number), EncodeEpoch(epoch), /*sync=*/true));
  return epoch;
}

}  // namespace neurontrace
