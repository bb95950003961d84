// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/digest_reader.h"

#include <rocksdb/iterator.h>

#include <string>
#include <utility>

#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Returns the digest under the iterator if it belongs to this level of the stream.
absl::StatusOr<std::optional<StoredDigest>> DigestAt(const rocksdb::Iterator& it,
                                                     const CaptureId& capture, uint32_t stream,
                                                     uint8_t level) {
  if (!it.Valid()) {
    RETURN_IF_ERROR(FromRocksDb(it.status(), "reading digests"));
    return std::nullopt;
  }
  const auto key = keys::ParseDigest(ToView(it.key()));
  if (!key) return DataLoss("malformed key in {}", FamilyName(Family::kDigests));
  if (key->capture != capture || key->stream != stream || key->level != level) return std::nullopt;
  return StoredDigest{.level = level, .first = key->first, .value = it.value().ToString()};
}

}  // namespace

DigestReader::DigestReader(std::unique_ptr<rocksdb::Iterator> iterator)
    : iterator_(std::move(iterator)) {}

DigestReader::~DigestReader() = default;

absl::StatusOr<std::optional<StoredDigest>> DigestReader::Next(const CaptureId& capture,
                                                               uint32_t stream, uint8_t level,
                                                               uint64_t from) {
  if (!Step(capture, stream, level, from)) {
    iterator_->Seek(ToSlice(keys::Digest(capture, stream, level, from)));
  }
  return DigestAt(*iterator_, capture, stream, level);
}

// Not from one stream to the next: all items of the first are between them.
bool DigestReader::Step(const CaptureId& capture, uint32_t stream, uint8_t level, uint64_t from) {
  if (!iterator_->Valid()) return false;
  const auto at = keys::ParseDigest(ToView(iterator_->key()));
  const bool is_near = at && at->capture == capture && at->stream == stream &&
                       (at->level == level || at->level + 1 == level);
  if (!is_near) return false;
  const std::string key = keys::Digest(capture, stream, level, from);
  if (ToView(iterator_->key()) == key) return true;
  if (ToView(iterator_->key()) > key) return false;
  iterator_->Next();
  return iterator_->Valid() && ToView(iterator_->key()) >= key;
}

absl::StatusOr<std::optional<StoredDigest>> DigestReader::Last(const CaptureId& capture,
                                                               uint32_t stream, uint8_t level) {
  iterator_->SeekForPrev(ToSlice(keys::Digest(capture, stream, level, UINT64_MAX)));
  return DigestAt(*iterator_, capture, stream, level);
}

}  // namespace neurontrace
