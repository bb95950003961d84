// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/digest_reader.h"

#include <rocksdb/iterator.h>

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
  iterator_->Seek(ToSlice(keys::Digest(capture, stream, level, from)));
  return DigestAt(*iterator_, capture, stream, level);
}

absl::StatusOr<std::optional<StoredDigest>> DigestReader::Last(const CaptureId& capture,
                                                               uint32_t stream, uint8_t level) {
  iterator_->SeekForPrev(ToSlice(keys::Digest(capture, stream, level, UINT64_MAX)));
  return DigestAt(*iterator_, capture, stream, level);
}

}  // namespace neurontrace
