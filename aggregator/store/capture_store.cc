// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/capture_store.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "aggregator/store/database.h"
#include "aggregator/store/database_options.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/record_codec.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// How many matches the error for an ambiguous prefix lists.
constexpr size_t kCandidatesNamed = 8;

}  // namespace

// A key of another length is damage; the ids that were read are kept in any case.
absl::Status CaptureStore::Load() {
  const MutexLock lock(mutex_);
  std::set<CaptureId> ids;
  const absl::Status status =
      database_.ForEach(Family::kCaptures, "", [&](std::string_view key, std::string_view) {
        const auto id = CaptureId::FromBytes(key);
        if (!id.ok()) return DataLoss("malformed key of {} bytes in family captures", key.size());
        // A record that cannot be decoded still exists; Get reports the damage.
        ids.insert(*id);
        return absl::OkStatus();
      });
  ids_.merge(ids);
  return status;
}

// The id becomes known only after the write, so nobody finds a capture that is not stored.
absl::Status CaptureStore::Put(const CaptureRecord& record, bool durable) {
  RETURN_IF_ERROR(database_.Put(Family::kCaptures, keys::Capture(record.id),
                                EncodeCaptureRecord(record), durable));
  const MutexLock lock(mutex_);
  ids_.insert(record.id);
  return absl::OkStatus();
}

absl::StatusOr<CaptureRecord> CaptureStore::Get(const CaptureId& id) const {
  const auto value = database_.Get(Family::kCaptures, keys::Capture(id));
  if (absl::IsNotFound(value.status())) return NotFound("no capture {}", id.ToString());
  RETURN_IF_ERROR(value.status());
  return DecodeCaptureRecord(id, *value);
}

absl::StatusOr<std::vector<CaptureRecord>> CaptureStore::List() const {
  std::vector<CaptureRecord> records;
  RETURN_IF_ERROR(
      database_.ForEach(Family::kCaptures, "", [&](std::string_view key, std::string_view value) {
        const auto id = CaptureId::FromBytes(key);
        if (!id.ok()) return DataLoss("malformed key of {} bytes in family captures", key.size());
        auto record = DecodeCaptureRecord(*id, value);
        if (record.ok()) records.push_back(*std::move(record));
        return record.status();
      }));
  return records;
}

std::vector<CaptureId> CaptureStore::Ids() const {
  const MutexLock lock(mutex_);
  return {ids_.begin(), ids_.end()};
}

size_t CaptureStore::size() const {
  const MutexLock lock(mutex_);
  return ids_.size();
}

// Takes time proportional to the number of captures.
absl::StatusOr<CaptureId> CaptureStore::Find(
    std::string_view text, const std::function<bool(const CaptureId&)>& counts) const {
  std::string prefix(text);
  // Ids are base 32 in upper case, and people type them in either.
  std::transform(prefix.begin(), prefix.end(), prefix.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (prefix.empty() || prefix.size() > CaptureId::kTextLength) {
    return InvalidArgument("a capture id has 1 to {} characters, but this one has {}",
                           CaptureId::kTextLength, prefix.size());
  }
  std::vector<CaptureId> found;
  {
    const MutexLock lock(mutex_);
    for (const CaptureId& id : ids_) {
      if (id.ToString().starts_with(prefix)) found.push_back(id);
    }
  }
  // Outside the lock, as it may ask this store.
  if (counts) std::erase_if(found, [&counts](const CaptureId& id) { return !counts(id); });
  if (found.empty()) return NotFound("no capture has an id that begins with '{}'", text);
  if (found.size() == 1) return found.front();
  std::string names;
  for (size_t i = 0; i < std::min(found.size(), kCandidatesNamed); ++i) {
    names += (i == 0 ? "" : ", ") + found[i].ToString();
  }
  if (found.size() > kCandidatesNamed) names += ", …";
  return InvalidArgument("'{}' matches {} captures: {}", prefix, found.size(), names);
}

absl::Status CaptureStore::Delete(const CaptureId& id) {
  rocksdb::WriteBatch batch;
  batch.Delete(database_.family(Family::kCaptures), keys::Capture(id));
  RETURN_IF_ERROR(database_.Write(batch, /*sync=*/true, "deleting a capture's record"));
  const MutexLock lock(mutex_);
  ids_.erase(id);
  return absl::OkStatus();
}

}  // namespace neurontrace
