// SPDX-License-Identifier: Apache-2.0
// Any bytes as a digest, as a damaged disk or a backup of unknown origin may hold it. What is
// accepted is the same after it is written and read again, and no event is lost when it is joined
// or made coarser.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "aggregator/view/digest.h"
#include "aggregator/view/digest_folder.h"

namespace neurontrace {
namespace {

void CheckDigest(bool good) {
  if (!good) std::abort();
}

absl::StatusOr<DigestNode> DecodeWhole(std::string_view value) {
  std::string_view items;
  auto node = DecodeDigestHead(value, items);
  if (!node.ok()) return node;
  const absl::Status status = DecodeDigestItems(items, *node);
  return status.ok() ? node : status;
}

uint64_t SumOf(const DigestNode& node) {
  uint64_t events = 0;
  for (const DigestItem& item : node.items) events += item.count;
  return events;
}

void FuzzDigest(std::string_view value) {
  const auto node = DecodeWhole(value);
  if (!node.ok()) return;
  const auto again = DecodeWhole(EncodeDigest(*node));
  CheckDigest(again.ok() && again->items == node->items && again->rows == node->rows &&
              again->names == node->names && again->incoming == node->incoming &&
              again->pending == node->pending);
  const auto joined = JoinDigests({*node});
  CheckDigest(!joined.ok() || SumOf(*joined) == SumOf(*node));
  CheckDigest(!joined.ok() || joined->items.size() <= node->items.size());
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::FuzzDigest({reinterpret_cast<const char*>(data), size});
  return 0;
}
