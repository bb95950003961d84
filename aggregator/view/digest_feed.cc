// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/digest_feed.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <optional>
#include <tuple>

#include "aggregator/timeline/timeline_reader.h"
#include "aggregator/view/digest_builder.h"
#include "aggregator/view/span_answer.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// Returns the sequence of the first chunk in the index that ends at or after `raw_ns`, or
// UINT64_MAX.
absl::StatusOr<uint64_t> SequenceAt(ChunkSource& source, uint32_t stream, uint64_t raw_ns) {
  std::vector<ChunkEntry> entries;
  RETURN_IF_ERROR(source.ReadIndex(stream, {raw_ns, 0}, 1, entries));
  return entries.empty() ? UINT64_MAX : entries.front().sequence;
}

DigestSumsPart SumsPartOf(DigestUse use) {
  if (use == DigestUse::kBins) return DigestSumsPart::kBins;
  return use == DigestUse::kCounts ? DigestSumsPart::kBegun : DigestSumsPart::kAll;
}

}  // namespace

uint64_t DigestFeed::Reference(const Stream& stream, uint64_t raw_ns) {
  return std::min(stream.clock->ToReference(raw_ns), kTimeMaxNs);
}

uint64_t DigestFeed::ChunksInWindow(const Capture& capture, const Window& window) {
  const absl::flat_hash_set<uint32_t> shown(capture.streams.begin(), capture.streams.end());
  double chunks = 0;
  for (const StreamDescription& stream : capture.description.streams) {
    if (!shown.contains(stream.number) || stream.events == 0) continue;
    const ClockMap& clock = capture.clocks.maps.For(stream.identity.worker, stream.clock_domain);
    const uint64_t begin_ns = clock.ToReference(stream.first_timestamp_ns);
    const uint64_t end_ns = std::max(begin_ns, clock.ToReference(stream.last_timestamp_ns)) + 1;
    const uint64_t from_ns = std::max(begin_ns, window.from_ns);
    const uint64_t to_ns = std::min(end_ns, window.to_ns);
    if (from_ns >= to_ns) continue;
    chunks += static_cast<double>(stream.chunks) * static_cast<double>(to_ns - from_ns) /
              static_cast<double>(end_ns - begin_ns);
  }
  return static_cast<uint64_t>(chunks);
}

absl::StatusOr<DigestFeed> DigestFeed::Make(const DigestStore& store, ChunkSource& source,
                                            const Capture& capture, const Window& window,
                                            const absl::flat_hash_set<uint32_t>& excluded) {
  DigestFeed feed(window, capture.description.id, store.OpenReader());
  const absl::flat_hash_set<uint32_t> shown(capture.streams.begin(), capture.streams.end());
  // Events that a reader draws by a device's clock may be that far from the runtime's time.
  if (capture.clocks.maps.has_devices()) feed.device_shift_ns_ = DeviceTimes::kShiftMaxNs;
  for (const StreamDescription& about : capture.description.streams) {
    if (!shown.contains(about.number) || excluded.contains(about.number)) continue;
    if (about.events == 0 || !DigestBuilder::IsDigested(about)) continue;
    // Samples of hosts are no events.
    if (window.use != DigestUse::kItems && about.identity.kind == StreamKind::kHost) continue;
    Stream stream{.number = about.number, .description = &about};
    stream.clock = &capture.clocks.maps.For(about.identity.worker, about.clock_domain);
    stream.known_until_ns = Reference(stream, about.last_timestamp_ns);
    stream.from_raw_ns = std::max(stream.clock->ToRaw(window.from_ns), about.first_timestamp_ns);
    RETURN_IF_ERROR(feed.ChooseParts(source, stream));
    if (stream.parts.empty()) continue;
    for (const Part& part : stream.parts) {
      feed.chunks_ += part.node.chunks;
      feed.unreadable_chunks_ += part.node.unreadable_chunks;
      if (part.node.chunks > 0) feed.bin_max_ns_ = std::max(feed.bin_max_ns_, part.node.bin_ns);
    }
    stream.has_all = stream.parts.front().node.first <= about.first_sequence &&
                     stream.parts.back().node.until >= about.next_sequence;
    for (size_t i = 1; i < stream.parts.size(); ++i) {
      stream.has_all &= stream.parts[i].node.first == stream.parts[i - 1].node.until;
    }
    feed.digests_ += stream.parts.size();
    feed.stream_of_[about.number] = feed.streams_.size();
    feed.streams_.push_back(std::move(stream));
  }
  // Only now, as it keeps pointers into the parts.
  for (Stream& stream : feed.streams_) feed.NoteCrossing(stream);
  return feed;
}

// Takes what is coarse enough first, then fills the holes with finer digests. The sequences between
// those at the window's ends are a guess that costs nothing if it is wrong: chunks that come out of
// order are read one by one.
absl::Status DigestFeed::ChooseParts(ChunkSource& source, Stream& stream) const {
  const StreamDescription& about = *stream.description;
  const uint64_t to_raw_ns = stream.clock->ToRaw(window_.to_ns);
  uint64_t lowest = about.first_sequence;
  if (stream.from_raw_ns > about.first_timestamp_ns) {
    ASSIGN_OR_RETURN(lowest, SequenceAt(source, stream.number, stream.from_raw_ns));
  }
  uint64_t last = about.next_sequence;
  if (to_raw_ns <= about.last_timestamp_ns) {
    ASSIGN_OR_RETURN(const uint64_t highest, SequenceAt(source, stream.number, to_raw_ns));
    last = std::min(highest, last);
  }
  std::vector<Part>& parts = stream.parts;
  // Heads of a few digests are side by side: then all are read in their order, finest first.
  std::array<std::vector<Part>, kDigestLevels> heads;
  const bool is_short = last - std::min(lowest, last) < DigestChunks(1);
  for (uint8_t level = 0; is_short && level < kDigestLevels; ++level) {
    heads[level] = ReadHeads(stream, level, lowest, last);
  }
  for (uint8_t level = kDigestLevels; level-- > 0;) {
    if (!is_short) heads[level] = ReadHeads(stream, level, lowest, last);
    std::vector<Part> found;
    for (Part& head : heads[level]) {
      if (IsTaken(parts, head.node) || !IsUsable(stream, head.node, level)) continue;
      found.push_back(std::move(head));
    }
    for (Part& part : found) parts.push_back(std::move(part));
    std::ranges::sort(parts, {}, [](const Part& part) { return part.node.first; });
  }
  return absl::OkStatus();
}

// Digests are a shortcut: what cannot be read of them is read from the chunks.
std::vector<DigestFeed::Part> DigestFeed::ReadHeads(const Stream& stream, uint8_t level,
                                                    uint64_t lowest, uint64_t last) const {
  const uint64_t step = DigestChunks(level);
  std::vector<Part> heads;
  size_t taken = 0;  // of the parts, which are in the order of their sequences
  for (uint64_t from = lowest - lowest % step; from <= last;) {
    while (taken < stream.parts.size() && stream.parts[taken].node.until <= from) ++taken;
    if (taken < stream.parts.size() && stream.parts[taken].node.first <= from) {
      from = stream.parts[taken].node.until;
      continue;
    }
    const auto stored = reader_->Next(capture_, stream.number, level, from);
    if (!stored.ok() || !stored->has_value() || (*stored)->first > last) break;
    from = (*stored)->first + step;
    auto node = DecodeDigestHead((*stored)->value);
    if (!node.ok()) continue;
    heads.push_back({.node = *std::move(node), .level = level, .place = (*stored)->first});
  }
  return heads;
}

bool DigestFeed::IsTaken(const std::vector<Part>& parts, const DigestNode& node) {
  const auto behind = std::ranges::lower_bound(parts, node.until, {},
                                               [](const Part& part) { return part.node.first; });
  return behind != parts.begin() && (behind - 1)->node.until > node.first;
}

bool DigestFeed::IsFineEnough(const DigestNode& node, uint8_t level) const {
  switch (window_.use) {
    case DigestUse::kItems:
      // Merged items are up to twice as long as the width.
      return node.width_ns <= window_.merge_ns / 2;
    case DigestUse::kSums:
    case DigestUse::kCounts:
      return level == 0 || node.bin_ns <= window_.merge_ns / kDigestSlotBins;
    case DigestUse::kBins:
      break;
  }
  return node.bin_ns <= window_.merge_ns ||
         (level == 0 && node.bin_ns / kBinExcessMax <= window_.merge_ns);
}

bool DigestFeed::IsUsable(const Stream& stream, const DigestNode& node, uint8_t level) const {
  if (node.first < stream.description->first_sequence) return false;  // partly expired
  if (node.is_late) return false;  // the stop of an open span may be in an earlier digest
  if (node.has_open && node.complete_at != stream.description->next_sequence) return false;
  if (node.chunks == 0) return true;
  if (!IsFineEnough(node, level)) return false;
  const bool needs_names = window_.use == DigestUse::kSums || window_.use == DigestUse::kCounts;
  if (needs_names && node.has_other_names) return false;
  const uint64_t begin_ns = Reference(stream, SubtractSaturating(node.begin_ns, device_shift_ns_));
  const uint64_t end_ns = Reference(stream, AddSaturating(node.end_ns, device_shift_ns_));
  if (window_.use == DigestUse::kBins) {
    return begin_ns < window_.to_ns && end_ns >= window_.from_ns;
  }
  return begin_ns >= window_.from_ns && end_ns < window_.to_ns;
}

void DigestFeed::NoteCrossing(Stream& stream) {
  const auto at = static_cast<uint32_t>(&stream - streams_.data());
  absl::flat_hash_map<SpanKey, uint32_t> seen;
  uint64_t lost_until_ns = 0;
  for (const Part& part : stream.parts) {
    lost_until_ns = std::max(lost_until_ns, part.node.lost_until_ns);
    stream.lost_until_ns.push_back(lost_until_ns);
    // A span stays in the lists of all digests up to its stop: it is noted once.
    absl::flat_hash_map<SpanKey, uint32_t> here;
    for (const DigestSpan& span : part.node.pending) {
      // Of a span from before the window only the stop is known where its start is not read.
      if (span.start_ns < stream.from_raw_ns) continue;
      ++here[{stream.number, span.type_hash, span.stop_ns}];
    }
    for (const auto& [key, count] : here) seen[key] = std::max(seen[key], count);
    for (const DigestSpan& span : part.node.incoming) {
      if (span.start_ns >= stream.from_raw_ns) continue;  // in another digest, or read
      incoming_.push_back({.stream = at, .node = &part.node, .span = &span});
    }
  }
  pending_.insert(seen.begin(), seen.end());
}

bool DigestFeed::HasAll(uint32_t stream) const {
  const auto known = stream_of_.find(stream);
  return known != stream_of_.end() && streams_[known->second].has_all;
}

void DigestFeed::Mask(uint32_t stream, std::vector<ChunkEntry>& entries) {
  const auto known = stream_of_.find(stream);
  if (known == stream_of_.end()) return;
  const Stream& about = streams_[known->second];
  const std::vector<Part>& parts = about.parts;
  for (ChunkEntry& entry : entries) {
    const auto after = std::ranges::upper_bound(parts, entry.sequence, {},
                                                [](const Part& part) { return part.node.first; });
    const bool is_digested = after != parts.begin() && entry.sequence < (after - 1)->node.until;
    if (is_digested) entry.event_count = 0;
    // Starts in later chunks may be those of stops that earlier digests have without a start.
    const auto earlier = static_cast<size_t>(after - parts.begin()) - (is_digested ? 1 : 0);
    if (earlier > 0 && entry.first_timestamp_ns <= about.lost_until_ns[earlier - 1]) {
      conflicts_.insert(stream);
    }
  }
}

// Bins of different streams have nothing to do with each other where no event is read, and counts
// never. Then those of a stream follow its first at once, in the order in which they are stored.
std::optional<uint64_t> DigestFeed::GroupedAt(const Stream& stream) const {
  const bool is_free =
      window_.use == DigestUse::kCounts || (window_.use == DigestUse::kBins && stream.has_all);
  if (!is_free) return std::nullopt;
  std::optional<uint64_t> first_ns;
  uint64_t before_ns = 0;
  for (const Part& part : stream.parts) {
    if (part.node.chunks == 0) continue;
    const uint64_t begin_ns = Reference(stream, part.node.begin_ns);
    if (begin_ns < before_ns) return std::nullopt;
    if (!first_ns) first_ns = begin_ns;
    before_ns = begin_ns;
  }
  return first_ns;
}

void DigestFeed::Begin(const TimelineHeader& header) {
  for (uint32_t i = 0; i < header.streams.size(); ++i) {
    const auto known = stream_of_.find(header.streams[i].description.number);
    if (known != stream_of_.end()) streams_[known->second].index = i;
  }
  for (uint32_t stream = 0; stream < streams_.size(); ++stream) {
    // A stream that the reader does not show has no digests either.
    if (streams_[stream].index == UINT32_MAX) continue;
    const std::optional<uint64_t> group_ns = GroupedAt(streams_[stream]);
    for (uint32_t part = 0; part < streams_[stream].parts.size(); ++part) {
      const DigestNode& node = streams_[stream].parts[part].node;
      if (node.chunks == 0) continue;
      // Its first item is not before this; the part is decoded when its turn comes.
      turns_.push_back({.start_ns = group_ns.value_or(Reference(streams_[stream], node.begin_ns)),
                        .end_ns = UINT64_MAX,
                        .stream = stream,
                        .part = part});
    }
  }
  std::ranges::make_heap(turns_, std::greater<>());
  header_ = &header;
}

bool DigestFeed::HasEvent(const TimelineRecord& record) {
  constexpr uint8_t kCrossing = kStartLost | kStopFollows | kOpen;
  if (record.kind != RecordKind::kSpan || (record.flags & kCrossing) == 0) return false;
  const SpanKey key{header_->streams[record.stream].description.number,
                    HashEventType(record.start().event_type), record.raw_start_ns()};
  if ((record.flags & kStartLost) == 0) {
    if (record.start_ns < window_.from_ns) ++read_[key];
    return false;
  }
  const auto known = pending_.find(key);
  if (known == pending_.end()) return false;
  if (--known->second == 0) pending_.erase(known);
  return true;
}

// The longest items first where they begin together: an item comes before a read event that is
// shorter.
const DigestedEvent* DigestFeed::Next(uint64_t start_ns, uint64_t end_ns) {
  // Once the window's begin is reached, every span from before it that is read has been.
  if (start_ns >= window_.from_ns && NextIncoming() != nullptr) return &event_;
  while (!turns_.empty()) {
    const Turn turn = turns_.front();
    const bool is_before =
        turn.start_ns < start_ns || (turn.start_ns == start_ns && turn.end_ns >= end_ns);
    if (!is_before) return nullptr;
    std::ranges::pop_heap(turns_, std::greater<>());
    turns_.pop_back();
    Part& part = streams_[turn.stream].parts[turn.part];
    if (part.is_decoded) {
      Fill(streams_[turn.stream], part.node, part.node.items[part.at++]);
      Queue(turn.stream, turn.part);
      return &event_;
    }
    part.is_decoded = true;
    const auto items = ReadValue(streams_[turn.stream], part, kDigestItemsLevel);
    if (!items.ok() || !DecodeDigestItems(*items, part.node).ok()) {
      part.node.items.clear();
      unreadable_chunks_ += part.node.chunks;
    }
    Queue(turn.stream, turn.part);
  }
  return nullptr;
}

void DigestFeed::Queue(uint32_t stream, uint32_t part_number) {
  Part& part = streams_[stream].parts[part_number];
  if (part.at >= part.node.items.size()) {
    // The tables stay: incoming spans and the latest event point to them.
    part.node.items = {};
    part.at = 0;
    return;
  }
  const DigestItem& item = part.node.items[part.at];
  const uint64_t end_ns = item.end_ns == DigestItem::kOpenEnd
                              ? streams_[stream].known_until_ns
                              : Reference(streams_[stream], item.end_ns);
  turns_.push_back({.start_ns = Reference(streams_[stream], item.start_ns),
                    .end_ns = end_ns,
                    .stream = stream,
                    .part = part_number});
  std::ranges::push_heap(turns_, std::greater<>());
}

void DigestFeed::Fill(const Stream& stream, const DigestNode& node, const DigestItem& item) {
  event_ = {.stream = stream.index,
            .start_ns = Reference(stream, item.start_ns),
            .longest_ns = item.longest_ns,
            .count = item.count,
            .flags = item.flags,
            .row = &node.rows[item.row],
            .name = &node.names[item.name]};
  event_.end_ns = std::max(event_.start_ns, item.end_ns == DigestItem::kOpenEnd
                                                ? stream.known_until_ns
                                                : Reference(stream, item.end_ns));
  if (event_.row->is_counter()) {
    event_.value = std::bit_cast<float>(static_cast<uint32_t>(item.longest_ns));
    return;
  }
  if (item.count > 1) return;
  event_.longest_ns = event_.end_ns - event_.start_ns;
  if (event_.longest_ns == 0) event_.flags |= kViewInstant;
}

const DigestedEvent* DigestFeed::NextIncoming() {
  while (incoming_at_ < incoming_.size()) {
    const Incoming& next = incoming_[incoming_at_++];
    const Stream& stream = streams_[next.stream];
    if (stream.index == UINT32_MAX) continue;
    const DigestSpan& span = *next.span;
    const auto known = read_.find({stream.number, span.type_hash, span.start_ns});
    if (known != read_.end()) {
      if (--known->second == 0) read_.erase(known);
      continue;
    }
    Fill(stream, *next.node,
         {.start_ns = span.start_ns,
          .end_ns = span.stop_ns,
          .row = span.row,
          .name = span.name,
          .flags = span.flags});
    // A reader of the single events does not find its start either. It ends in the window.
    if (event_.end_ns <= window_.from_ns) continue;
    return &event_;
  }
  return nullptr;
}

const DigestedSums* DigestFeed::NextSums(uint64_t start_ns) {
  while (!turns_.empty() && turns_.front().start_ns <= start_ns) {
    const Turn turn = turns_.front();
    std::ranges::pop_heap(turns_, std::greater<>());
    turns_.pop_back();
    const Stream& stream = streams_[turn.stream];
    const Part& part = stream.parts[turn.part];
    const auto value = ReadValue(stream, part, kDigestSumsLevel);
    auto sums = value.ok() ? DecodeDigestSums(*value, part.node.bin_ns, SumsPartOf(window_.use))
                           : value.status();
    if (!sums.ok()) {
      unreadable_chunks_ += part.node.chunks;
      continue;
    }
    summed_ = {.stream = stream.index,
               .clock = stream.clock,
               .known_until_ns = stream.known_until_ns,
               .node = &part.node,
               .is_first = turn.part == 0,
               .sums = *std::move(sums)};
    return &summed_;
  }
  return nullptr;
}

absl::StatusOr<std::string> DigestFeed::ReadValue(const Stream& stream, const Part& part,
                                                  uint8_t levels) const {
  const auto level = static_cast<uint8_t>(part.level + levels);
  ASSIGN_OR_RETURN(auto found, reader_->Next(capture_, stream.number, level, part.place));
  if (!found || found->first != part.place) return DataLoss("a part of a digest is absent");
  return std::move(found->value);
}

std::vector<DigestedCrossing> DigestFeed::Crossing() const {
  std::vector<DigestedCrossing> crossing;
  for (const Stream& stream : streams_) {
    if (stream.index == UINT32_MAX) continue;
    // A span stays in the lists of all digests up to its stop.
    absl::flat_hash_set<std::tuple<uint64_t, uint64_t, uint64_t>> seen;
    for (const Part& part : stream.parts) {
      for (const DigestSpan& span : part.node.pending) {
        if (span.start_ns < stream.from_raw_ns) continue;
        if (!seen.emplace(span.type_hash, span.start_ns, span.stop_ns).second) continue;
        crossing.push_back({.stream = stream.index,
                            .start_ns = Reference(stream, span.start_ns),
                            .end_ns = Reference(stream, span.stop_ns),
                            .row = &part.node.rows[span.row],
                            .name = &part.node.names[span.name],
                            .is_summed = span.start_ns >= part.node.begin_ns});
      }
    }
  }
  std::ranges::sort(crossing, [](const DigestedCrossing& a, const DigestedCrossing& b) {
    return std::pair(a.start_ns, b.end_ns) < std::pair(b.start_ns, a.end_ns);
  });
  return crossing;
}

}  // namespace neurontrace
