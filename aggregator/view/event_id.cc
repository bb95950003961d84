// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/event_id.h"

#include <fmt/format.h>

#include <charconv>

#include "aggregator/timeline/chunk_source.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Mixes a number into a hash (FNV-1a with a word at a time).
uint64_t Mixed(uint64_t hash, uint64_t value) {
  constexpr uint64_t kPrime = 0x100000001b3;
  constexpr int kHalf = 32;
  hash = (hash ^ value) * kPrime;
  return hash ^ hash >> kHalf;
}

// Parses the number in front of `text`, and removes it with the hyphen behind it.
template <typename Number>
bool TakeNumber(std::string_view& text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  const bool has_more = text.starts_with('-');
  if (has_more) text.remove_prefix(1);
  return has_more || text.empty();
}

}  // namespace

EventId EventId::Of(const TimelineRecord& record, uint32_t stream, std::string_view name) {
  const uint64_t hash = Mixed(Mixed(HashEventType(name), record.thread_id), record.id);
  return {
      .stream = stream, .raw_start_ns = record.raw_start_ns(), .hash = static_cast<uint32_t>(hash)};
}

absl::StatusOr<EventId> EventId::Parse(std::string_view text) {
  EventId id;
  std::string_view rest = text;
  const bool is_complete = TakeNumber(rest, id.stream) && TakeNumber(rest, id.raw_start_ns) &&
                           TakeNumber(rest, id.hash) && rest.empty() && !text.ends_with('-');
  if (!is_complete) {
    return InvalidArgument(
        "event: '{}' is not the id of an event; ids are in the answers of events and search",
        text.substr(0, 64));
  }
  return id;
}

std::string EventId::ToString() const {
  return fmt::format("{}-{}-{}", stream, raw_start_ns, hash);
}

}  // namespace neurontrace
