// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "lib/trace/event.h"

namespace neurontrace {

// A chunk's events in columns, for readers. Decode checks everything it touches: lengths, indexes,
// enums, order of timestamps, limits, trailing bytes; what it accepts is safe to use without
// further checks. It does not check what text holds: strings need not be UTF-8, and a value of type
// kJson need not be JSON. Reused from chunk to chunk without allocating. Views point into the
// columns passed to Decode, which must outlive their use. One thread at a time.
class DecodedChunk {
 public:
  enum class Attributes : uint8_t { kSkip, kDecode };

  DecodedChunk();
  ~DecodedChunk();
  DecodedChunk(DecodedChunk&&) noexcept;
  DecodedChunk& operator=(DecodedChunk&&) noexcept;

  // `columns` uncompressed; no bytes are no events. INVALID_ARGUMENT with the place on anything
  // wrong; the object is then empty. With kSkip attribute columns are not looked into beyond their
  // lengths (decode them at the door once).
  absl::Status Decode(std::string_view columns, Attributes attributes = Attributes::kDecode);

  size_t size() const;  // events
  std::span<const std::string_view> strings() const;
  std::span<const Shape> shapes() const;       // names point into the columns
  std::span<const uint16_t> shape_of() const;  // per event: index into shapes()
  std::span<const uint32_t> row_of() const;    // per event: its row among the events of its shape
  std::span<const uint64_t> timestamp_ns() const;  // per event, not decreasing
  std::span<const uint64_t> id() const;            // per event, 0 where absent; the same below
  std::span<const uint64_t> nc_local_id() const;
  std::span<const uint64_t> tracking_id() const;
  std::span<const uint64_t> thread_id() const;
  std::span<const uint64_t> nrta_seq_id() const;
  std::span<const int64_t> worker_gid() const;

  // The column of key number `key` of a shape: one entry a row. Bits for null (0), bool, uint, int
  // and double (always finite); an index into strings() for string and JSON. Empty when decoded
  // with kSkip.
  std::span<const uint64_t> column(uint32_t shape, uint32_t key) const;

  // Convenience for slow paths: one event by number; `value` only when decoded with kDecode.
  EventFields fields(size_t event) const;
  AttributeValue value(size_t event, uint32_t key) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
