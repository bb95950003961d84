// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/span_joiner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "lib/base/clean_text.h"

// How it works: there is one stack of open spans for each track. A begin is pushed, and an end is
// matched from the top. A span's number is one more than the index of its begin, so the result
// needs nothing but the elements before. An end costs time linear in the spans that are open on its
// track.
namespace neurontrace {
namespace {

// Bytes of a span's name in a remark.
constexpr size_t kOpenNameShownMax = 64;

// Adds an attribute to the event, unless it has as many as it may have.
void AddText(FrameworkEvent& event, std::string_view key, ValueType type, std::string_view text) {
  if (event.values.size() >= limits::kAttributesPerEventMax) return;
  event.shape.keys.push_back({key, type, KeyScope::kTop});
  event.values.push_back({0, text});
}

// Removes from the end of a span what it shares with the begin, which keeps it. Exporters show both
// together.
void DropNameOfBegin(std::string_view begin_name, FrameworkEvent& event) {
  constexpr std::array<std::string_view, 6> kShared = {"pid", "tid", "id", "id2", "scope", "phase"};
  size_t kept = 0;
  for (size_t i = 0; i < event.values.size(); ++i) {
    const ShapeKey& key = event.shape.keys[i];
    const bool is_shared = std::find(kShared.begin(), kShared.end(), key.name) != kShared.end() ||
                           (key.name == "name" && begin_name == event.name);
    if (key.scope == KeyScope::kTop && is_shared) continue;
    event.shape.keys[kept] = key;
    event.values[kept++] = event.values[i];
  }
  event.shape.keys.resize(kept);
  event.values.resize(kept);
}

// Returns the text by which a remark names a span without an end; `number` counts from 1.
std::string DescribeOpen(uint64_t number, std::string_view name) {
  return fmt::format("element {} ({})", number - 1, CleanText(name, kOpenNameShownMax));
}

}  // namespace

size_t SpanJoiner::BytesOf(const Open& open) { return open.event_type.size() + open.name.size(); }

SpanJoiner::Outcome SpanJoiner::Join(uint64_t element, FrameworkEvent& event, bool is_lost) {
  switch (event.edge.kind) {
    case SpanEdge::Kind::kNone:
      return Outcome::kNone;
    case SpanEdge::Kind::kBegin:
      return Begin(element, event, is_lost);
    case SpanEdge::Kind::kEnd:
      return End(element, event, is_lost);
  }
  return Outcome::kNone;
}

SpanJoiner::Outcome SpanJoiner::Begin(uint64_t element, FrameworkEvent& event, bool is_lost) {
  // From 1, as 0 means "no tracking id" to readers.
  Open open{.number = element + 1,
            .start_ns = event.fields.timestamp_ns,
            .is_lost = is_lost,
            .event_type = std::string(event.shape.event_type),
            .name = std::string(event.edge.name)};
  event.shape.present |= FieldBit(Field::kTrackingId);
  event.fields.tracking_id = open.number;
  ++open_count_;
  open_bytes_ += BytesOf(open);
  stacks_[event.edge.track].push_back(std::move(open));
  if (open_count_ > limits_.spans || open_bytes_ > limits_.bytes) GiveUpOlderHalf();
  return Outcome::kBegun;
}

SpanJoiner::Outcome SpanJoiner::End(uint64_t element, FrameworkEvent& event, bool is_lost) {
  event.shape.present |= FieldBit(Field::kTrackingId);
  event.fields.tracking_id = element + 1;
  // Until a begin is found, the end has a number of its own.
  const auto found = stacks_.find(event.edge.track);
  if (found == stacks_.end()) return Outcome::kBeginLost;
  Stack& stack = found->second;
  const std::string_view name = event.edge.name;
  // The innermost one with that name; an end without a name closes the innermost of all.
  const auto at = std::find_if(stack.rbegin(), stack.rend(), [name](const Open& open) {
    return name.empty() || open.name.empty() || open.name == name;
  });
  if (at == stack.rend()) return Outcome::kBeginLost;
  auto ended = std::prev(at.base());
  if (!event.edge.is_async) {
    // What began inside it on the same thread cannot end any more.
    for (auto inner = std::next(ended); inner != stack.end(); ++inner) Leave(*inner);
    stack.erase(std::next(ended), stack.end());
    ended = std::prev(stack.end());
  }
  Open open = std::move(*ended);
  stack.erase(ended);
  if (stack.empty()) stacks_.erase(found);
  // The end is not kept, so its begin stays without one in the stream.
  if (is_lost) {
    Leave(open);
    return Outcome::kJoined;
  }
  Forget(open);
  // The begin was not kept, so an end that referred to it would have no partner.
  if (open.is_lost) return Outcome::kBeginLost;
  event.fields.tracking_id = open.number;
  DropNameOfBegin(open.name, event);
  // Writers may give the category only at one end. Its own value is kept as an attribute.
  if (event.shape.event_type != open.event_type) {
    if (event.edge.has_category) AddText(event, "cat", ValueType::kString, event.shape.event_type);
    event_type_ = std::move(open.event_type);
    event.shape.event_type = event_type_;
  }
  if (event.fields.timestamp_ns < open.start_ns) {
    event.fields.timestamp_ns = open.start_ns;
    AddText(event, "ts", ValueType::kJson, event.time_text);
    AddText(event, kDurationMadeUpKey, ValueType::kString, "negative");
    event.invalid_duration = "negative";
  }
  return Outcome::kJoined;
}

void SpanJoiner::Forget(const Open& open) {
  --open_count_;
  open_bytes_ -= std::min(open_bytes_, BytesOf(open));
}

void SpanJoiner::Leave(const Open& open) {
  Forget(open);
  if (open.is_lost) return;
  ++left_;
  if (left_names_.size() < kNamedMax) left_names_.push_back(DescribeOpen(open.number, open.name));
}

// Half at a time, so that the cost of finding the oldest is spread over many spans.
void SpanJoiner::GiveUpOlderHalf() {
  // Two passes: the first finds the median number, the second removes what is below it.
  std::vector<uint64_t> numbers;
  for (const auto& [track, stack] : stacks_) {
    for (const Open& open : stack) numbers.push_back(open.number);
  }
  const auto middle = numbers.begin() + static_cast<ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  // By numbers, which ascend in the file: the oldest half goes.
  const uint64_t first_kept = *middle;
  std::vector<Open> old;
  absl::erase_if(stacks_, [&](auto& entry) {
    Stack& stack = entry.second;
    const auto kept = std::find_if(stack.begin(), stack.end(), [first_kept](const Open& open) {
      return open.number >= first_kept;
    });
    std::move(stack.begin(), kept, std::back_inserter(old));
    stack.erase(stack.begin(), kept);
    return stack.empty();
  });
  std::sort(old.begin(), old.end(),
            [](const Open& a, const Open& b) { return a.number < b.number; });
  for (const Open& open : old) Leave(open);
  given_up_ += old.size();
}

SpanJoiner::Unended SpanJoiner::unended() const {
  Unended unended{.count = left_, .first = left_names_};
  std::vector<const Open*> open;
  for (const auto& [track, stack] : stacks_) {
    for (const Open& span : stack) {
      if (!span.is_lost) open.push_back(&span);
    }
  }
  unended.count += open.size();
  std::sort(open.begin(), open.end(),
            [](const Open* a, const Open* b) { return a->number < b->number; });
  for (const Open* span : open) {
    if (unended.first.size() == kNamedMax) break;
    unended.first.push_back(DescribeOpen(span->number, span->name));
  }
  return unended;
}

}  // namespace neurontrace
