// SPDX-License-Identifier: Apache-2.0
// Any bytes as the head, items and sums of a digest, each with its length in front, as a damaged
// disk or a backup of unknown origin may hold it. What is accepted is the same after it is written
// and read again, and no event is lost when it is joined or made coarser.
#include <algorithm>
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

// Removes a part from the front of the input: two bytes with its length, then itself.
std::string_view TakePart(std::string_view& input) {
  if (input.size() < 2) return {};
  const size_t length = static_cast<uint8_t>(input[0]) | static_cast<uint8_t>(input[1]) << 8;
  const std::string_view part = input.substr(2, length);
  input.remove_prefix(std::min(input.size(), 2 + length));
  return part;
}

absl::StatusOr<DigestNode> DecodeWhole(std::string_view head, std::string_view items,
                                       std::string_view sums) {
  auto node = DecodeDigestHead(head);
  if (!node.ok()) return node;
  if (const absl::Status status = DecodeDigestItems(items, *node); !status.ok()) return status;
  for (const DigestSumsPart part : {DigestSumsPart::kBins, DigestSumsPart::kBegun}) {
    DecodeDigestSums(sums, node->bin_ns, part).status().IgnoreError();
  }
  auto decoded = DecodeDigestSums(sums, node->bin_ns);
  if (!decoded.ok()) return decoded.status();
  node->sums = *std::move(decoded);
  return node;
}

uint64_t SumOf(const DigestNode& node) {
  uint64_t events = 0;
  for (const DigestItem& item : node.items) events += item.count;
  return events;
}

void FuzzDigest(std::string_view value) {
  const std::string_view head = TakePart(value);
  const std::string_view items = TakePart(value);
  const auto node = DecodeWhole(head, items, TakePart(value));
  if (!node.ok()) return;
  const auto again =
      DecodeWhole(EncodeDigestHead(*node), EncodeDigestItems(*node), EncodeDigestSums(node->sums));
  CheckDigest(again.ok() && again->items == node->items && again->rows == node->rows &&
              again->names == node->names && again->incoming == node->incoming &&
              again->pending == node->pending);
  CheckDigest(EncodeDigestSums(again->sums) == EncodeDigestSums(node->sums));
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
