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

// A chunk's events in columns, for readers. Decode checks lengths, indexes, enums, order of
// timestamps, limits and trailing bytes; accepted columns are safe to use without further checks.
// It does not check the content of texts: strings need not be UTF-8, and a value of type kJson need
// not be JSON. Reused from chunk to chunk without allocating. Views point into the columns passed
// to Decode, which must outlive their use, and are valid until the next Decode. One thread at a
// time.
class DecodedChunk {
 public:
  // Whether Decode reads the attribute columns.
  enum class Attributes : uint8_t { kSkip, kDecode };

  DecodedChunk();
  ~DecodedChunk();
  DecodedChunk(DecodedChunk&&) noexcept;
  DecodedChunk& operator=(DecodedChunk&&) noexcept;

  // Decodes uncompressed `columns`; an empty text has no events. Fails with INVALID_ARGUMENT,
  // naming the place, if anything is wrong; the object is then empty. With kSkip only the lengths
  // of attribute columns are checked: columns from outside have to be decoded with kDecode once.
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

  // Returns the column of key number `key` of a shape: one entry for each row. Entries are the bits
  // of null (0), bool, uint, int and double (always finite), or an index into strings() for string
  // and JSON. Empty if decoded with kSkip.
  std::span<const uint64_t> column(uint32_t shape, uint32_t key) const;

  // Return one event by number, for code that is not on a hot path; `value` requires kDecode.
  EventFields fields(size_t event) const;
  AttributeValue value(size_t event, uint32_t key) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
