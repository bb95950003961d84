// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/digest_builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/timeline/device_stamp.h"
#include "aggregator/timeline/timeline_reader.h"
#include "aggregator/view/counter_values.h"
#include "aggregator/view/digest_folder.h"
#include "aggregator/view/digest_summer.h"
#include "aggregator/view/digest_tables.h"
#include "aggregator/view/span_answer.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

// An entry of a stream's index without what only pairing needs.
struct DigestChunk {
  uint64_t sequence = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
};

// The chunks of a stream in the order of its index, from `from` on.
absl::StatusOr<std::vector<DigestChunk>> ReadChunks(ChunkSource& source, uint32_t stream,
                                                    IndexPosition from) {
  constexpr size_t kEntriesPerRead = 256;
  std::vector<DigestChunk> chunks;
  std::vector<ChunkEntry> entries;
  do {
    RETURN_IF_ERROR(source.ReadIndex(stream, from, kEntriesPerRead, entries));
    for (const ChunkEntry& entry : entries) {
      chunks.push_back({entry.sequence, entry.first_timestamp_ns, entry.last_timestamp_ns});
    }
    if (!entries.empty()) {
      from = {entries.back().last_timestamp_ns, entries.back().sequence + 1};
    }
  } while (entries.size() == kEntriesPerRead);
  return chunks;
}

// One group of chunks of a stream. The chunks behind it have no events here, but their stops end
// spans of the group, as far as kDigestHorizonChunks.
class DigestSource final : public ChunkSource {
 public:
  // `chunks` has the group's chunks and those behind them; it is not read later.
  DigestSource(ChunkSource& source, const CaptureId& capture, const StreamDescription& stream,
               const std::vector<DigestChunk>& chunks, uint64_t first, uint64_t until)
      : source_(source), first_(first), until_(until) {
    capture_.id = capture;
    capture_.streams = {stream};
    size_t behind = 0;
    for (const DigestChunk& chunk : chunks) {
      const std::pair position(chunk.last_ns, chunk.sequence);
      if (Has(chunk.sequence)) begin_ = std::min(begin_, position);
      if (Has(chunk.sequence)) end_ = std::max(end_, position);
    }
    for (const DigestChunk& chunk : chunks) {
      const std::pair position(chunk.last_ns, chunk.sequence);
      if (position <= end_ || behind == limits::kDigestHorizonChunks) continue;
      ++behind;
      horizon_ = position;
    }
    horizon_ = std::max(horizon_, end_);
  }

  absl::StatusOr<CaptureDescription> Describe() override { return capture_; }
  absl::Status ReadIndex(uint32_t stream, IndexPosition from, size_t entries_max,
                         std::vector<ChunkEntry>& entries) override {
    if (std::pair(from.last_timestamp_ns, from.sequence) < begin_) {
      from = {begin_.first, begin_.second};
    }
    RETURN_IF_ERROR(source_.ReadIndex(stream, from, entries_max, entries));
    while (!entries.empty() &&
           std::pair(entries.back().last_timestamp_ns, entries.back().sequence) > horizon_) {
      entries.pop_back();
    }
    for (ChunkEntry& entry : entries) {
      if (Has(entry.sequence)) continue;
      entry.event_count = 0;  // its events belong to another digest
      if (entry.sequence < first_) entry.foreign_stops.clear();
    }
    return absl::OkStatus();
  }
  absl::Status ReadColumns(uint32_t stream, uint64_t sequence, std::string& columns) override {
    return source_.ReadColumns(stream, sequence, columns);
  }
  void ReportUnreadable(uint32_t stream, uint64_t sequence, const absl::Status& why) override {
    source_.ReportUnreadable(stream, sequence, why);
  }

 private:
  bool Has(uint64_t sequence) const { return sequence >= first_ && sequence < until_; }

  ChunkSource& source_;
  const uint64_t first_;
  const uint64_t until_;
  CaptureDescription capture_;
  // Positions in the index: the first and the last of the group, and the last that is read.
  std::pair<uint64_t, uint64_t> begin_ = {UINT64_MAX, UINT64_MAX};
  std::pair<uint64_t, uint64_t> end_ = {0, 0};
  std::pair<uint64_t, uint64_t> horizon_ = {0, 0};
};

// Turns the records of one group of chunks into a digest.
class DigestMaker {
 public:
  DigestMaker(DigestNode& node, bool is_host)
      : node_(node),
        tables_(node),
        folder_(node),
        summer_(node.bin_ns, node.covered_before_ns),
        is_host_(is_host) {}

  // Takes the spans that are open at the end of the digest before.
  absl::Status Inherit(const DigestNode& before);
  absl::Status Add(const TimelineRecord& record);
  // Completes the node. Fails if too many spans end behind the digest. Those whose stop is before
  // `stale_ns` and did not come, because its chunk is damaged, are forgotten before that.
  absl::Status Finish(uint64_t stale_ns);
  bool has_open() const { return has_open_; }

 private:
  // What is looked up by name once for each shape.
  struct ShapePlan {
    RowSource source = RowSource::kRuntime;
    std::optional<uint32_t> core_key;
    uint64_t type_hash = 0;
    uint32_t name = 0;
    uint8_t flags = 0;
    bool is_wait = false;
  };
  // A row of events that was looked up.
  struct LatestRow {
    RowSource source = RowSource::kRuntime;
    uint64_t thread_id = 0;
    std::optional<uint64_t> core;
    std::optional<uint32_t> number;
  };
  const ShapePlan& PlanOf(const SharedShape& shape);
  absl::StatusOr<uint32_t> RowNumber(const TimelineRecord& record, const ShapePlan& plan);
  absl::Status AddCounters(const TimelineRecord& record);
  // Returns whether the stop ends a span that an earlier digest has.
  bool EndsInherited(const DigestItem& stop, uint64_t type_hash);
  void AddToSums(const TimelineRecord& record, const ShapePlan& plan, const DigestItem& item);

  DigestNode& node_;
  DigestTables tables_;
  DigestFolder folder_;
  DigestSummer summer_;
  ShapeFieldTable fields_;
  const bool is_host_;
  bool has_open_ = false;
  absl::flat_hash_map<uint64_t, ShapePlan> plans_;  // by SharedShape::number
  std::array<LatestRow, 8>
      latest_rows_;  // by physical core or thread: events alternate between few
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, std::vector<DigestSpan>> inherited_;
  absl::flat_hash_map<uint64_t, DigestSpan> own_;  // by span_id
};

absl::Status DigestMaker::Inherit(const DigestNode& before) {
  std::vector<DigestSpan> spans;
  RETURN_IF_ERROR(tables_.AddSpans(before, before.pending, spans));
  for (const DigestSpan& span : spans) inherited_[{span.type_hash, span.stop_ns}].push_back(span);
  std::ranges::sort(spans, [](const DigestSpan& a, const DigestSpan& b) {
    return std::pair(a.start_ns, b.stop_ns) < std::pair(b.start_ns, a.stop_ns);
  });
  for (const DigestSpan& span : spans) summer_.Inherit(span.row, span.name, span.stop_ns);
  return absl::OkStatus();
}

const DigestMaker::ShapePlan& DigestMaker::PlanOf(const SharedShape& shared) {
  const auto [known, is_new] = plans_.try_emplace(shared.number);
  if (!is_new) return known->second;
  const Shape& shape = shared.shape;
  ShapePlan& plan = known->second;
  plan.source = RowSourceOf(shape.event_type);
  if (plan.source == RowSource::kHardware) plan.core_key = DeviceCoreKey(shape);
  plan.type_hash = HashEventType(shape.event_type);
  plan.name = tables_.NameNumber(
      {std::string(shape.event_type), std::string(ToString(RowSourceOf(shape.event_type)))});
  // Times are the runtime's, as the device's map may become better later.
  if (DeviceStampKey(shape)) plan.flags = kViewNoBound;
  const DerivedType type = fields_.Of(shared).type;
  plan.is_wait = type == DerivedType::kCollective || type == DerivedType::kHostBarrier;
  return plan;
}

absl::StatusOr<uint32_t> DigestMaker::RowNumber(const TimelineRecord& record,
                                                const ShapePlan& plan) {
  std::optional<uint64_t> core;
  if (plan.core_key) core = record.values[*plan.core_key];
  LatestRow& latest = latest_rows_[(core.value_or(0) + record.thread_id) % latest_rows_.size()];
  const bool is_known = latest.number && latest.source == plan.source &&
                        latest.thread_id == record.thread_id && latest.core == core;
  if (is_known) return *latest.number;
  ASSIGN_OR_RETURN(
      const uint32_t number,
      tables_.RowNumber({.source = plan.source, .thread_id = record.thread_id, .core = core}));
  latest = {plan.source, record.thread_id, core, number};
  return number;
}

absl::Status DigestMaker::AddCounters(const TimelineRecord& record) {
  const uint32_t no_name = tables_.NameNumber({});
  for (const CounterValue& counter : CounterValuesOf(record, is_host_)) {
    DigestItem item{.start_ns = record.start_ns, .end_ns = record.start_ns, .name = no_name};
    item.longest_ns = std::bit_cast<uint32_t>(static_cast<float>(counter.value));
    ASSIGN_OR_RETURN(item.row,
                     tables_.RowNumber({.counter = counter.counter, .counter_key = counter.key}));
    folder_.Add(item);
  }
  return absl::OkStatus();
}

bool DigestMaker::EndsInherited(const DigestItem& stop, uint64_t type_hash) {
  const auto known = inherited_.find({type_hash, stop.start_ns});
  if (known == inherited_.end()) return false;
  const DigestSpan span = known->second.back();
  known->second.pop_back();
  if (known->second.empty()) inherited_.erase(known);
  // One that begins here overlaps these chunks; every window that has these has its begin, too.
  if (span.start_ns < node_.begin_ns) node_.incoming.push_back(span);
  return true;
}

void DigestMaker::AddToSums(const TimelineRecord& record, const ShapePlan& plan,
                            const DigestItem& item) {
  summer_.Add({.start_ns = item.start_ns,
               .end_ns = item.end_ns,
               .row = item.row,
               .name = item.name,
               .is_span = record.kind == RecordKind::kSpan,
               .has_length = (record.flags & (kInvalidLength | kStartLost | kOpen)) == 0,
               .is_cover = (record.flags & (kInvalidLength | kStartLost)) == 0,
               .is_hardware = plan.source == RowSource::kHardware,
               .is_wait = plan.is_wait});
}

// The events are those that RowExporter draws.
absl::Status DigestMaker::Add(const TimelineRecord& record) {
  switch (record.kind) {
    case RecordKind::kCounter:
      return AddCounters(record);
    case RecordKind::kStopAttributes:
      own_.erase(record.span_id);
      return absl::OkStatus();
    case RecordKind::kFlowStart:
    case RecordKind::kFlowStep:
    case RecordKind::kFlowEnd:
      return absl::OkStatus();
    default:
      if (is_host_) return absl::OkStatus();
  }
  const ShapePlan& plan = PlanOf(*record.shape);
  DigestItem item{.start_ns = record.start_ns,
                  .end_ns = record.end_ns,
                  .longest_ns = record.end_ns - record.start_ns,
                  .name = plan.name,
                  .flags = plan.flags};
  ASSIGN_OR_RETURN(item.row, RowNumber(record, plan));
  if ((record.flags & kStartLost) != 0) {
    if (EndsInherited(item, plan.type_hash)) return absl::OkStatus();
    item.flags |= kViewStartLost;
    node_.lost_until_ns = std::max(node_.lost_until_ns, record.start_ns);
  }
  if ((record.flags & kOpen) != 0) {
    item.flags |= kViewOpen;
    item.end_ns = DigestItem::kOpenEnd;
    has_open_ = true;
  }
  if ((record.flags & kStopFollows) != 0) {
    own_[record.span_id] = {.type_hash = plan.type_hash,
                            .start_ns = record.start_ns,
                            .stop_ns = record.end_ns,
                            .row = item.row,
                            .name = item.name,
                            .flags = item.flags};
  }
  folder_.Add(item);
  AddToSums(record, plan, item);
  return absl::OkStatus();
}

absl::Status DigestMaker::Finish(uint64_t stale_ns) {
  for (const auto& [key, spans] : inherited_) {
    node_.pending.insert(node_.pending.end(), spans.begin(), spans.end());
  }
  for (const auto& [id, span] : own_) node_.pending.push_back(span);
  if (node_.pending.size() > limits::kDigestPendingMax) {
    std::erase_if(node_.pending,
                  [stale_ns](const DigestSpan& span) { return span.stop_ns < stale_ns; });
  }
  if (node_.pending.size() > limits::kDigestPendingMax) {
    return ResourceExhausted("{} spans end in later chunks; a digest has room for {}",
                             node_.pending.size(), limits::kDigestPendingMax);
  }
  // The same chunks make the same bytes.
  std::ranges::sort(node_.pending, [](const DigestSpan& a, const DigestSpan& b) {
    return std::tuple(a.stop_ns, a.start_ns, a.type_hash) <
           std::tuple(b.stop_ns, b.start_ns, b.type_hash);
  });
  node_.sums = summer_.Take(node_.names);
  node_.has_other_names = node_.sums.has_other_names();
  node_.covered_until_ns = summer_.covered_ns();
  node_.bin_ns = LimitSums(node_.sums, node_.bin_ns);
  return absl::OkStatus();
}

// Reads one group of chunks. Its node has its sequences. `before` is the digest in front of it, or
// nullptr. Returns whether a span is open at its end.
absl::StatusOr<bool> ReadGroup(ChunkSource& source, const CaptureId& capture,
                               const StreamDescription& stream,
                               const std::vector<DigestChunk>& chunks, const DigestNode* before,
                               DigestNode& node) {
  for (const DigestChunk& chunk : chunks) {
    if (chunk.sequence < node.first || chunk.sequence >= node.until) continue;
    ++node.chunks;
    node.begin_ns = std::min({node.begin_ns, chunk.first_ns, kTimeMaxNs});
    node.end_ns = std::max(node.end_ns, std::min(chunk.last_ns, kTimeMaxNs));
  }
  if (node.chunks > 0) {
    node.width_ns = std::bit_ceil(
        (node.end_ns - node.begin_ns) / (limits::kDigestBinsOfChunk * node.chunks) + 1);
    node.bin_ns = std::min(node.width_ns, kDigestWidthMax / kDigestBinWidths) * kDigestBinWidths;
  }
  if (before != nullptr) node.covered_before_ns = before->covered_until_ns;
  DigestMaker maker(node, stream.identity.kind == StreamKind::kHost);
  if (before != nullptr) RETURN_IF_ERROR(maker.Inherit(*before));
  if (node.chunks > 0) {
    DigestSource group(source, capture, stream, chunks, node.first, node.until);
    TimelineOptions options;
    options.filter.host_samples = true;
    ASSIGN_OR_RETURN(const auto reader, TimelineReader::Open(group, std::move(options)));
    TimelineBatch batch;
    while (true) {
      ASSIGN_OR_RETURN(const bool has_batch, reader->Next(batch));
      if (!has_batch) break;
      for (const TimelineRecord* record : batch.records) RETURN_IF_ERROR(maker.Add(*record));
    }
    node.unreadable_chunks = reader->counts().unreadable_chunks;
  }
  const uint64_t begin_ns = node.chunks == 0 ? 0 : node.begin_ns;
  RETURN_IF_ERROR(maker.Finish(SubtractSaturating(begin_ns, stream.chunk_span_max_ns)));
  node = LimitDigest(std::move(node));
  return maker.has_open();
}

// Returns whether all sequences of [first, until) are among the chunks. Chunks without events never
// are.
bool HasChunks(const std::vector<DigestChunk>& chunks, uint64_t first, uint64_t until) {
  const auto found = std::ranges::count_if(chunks, [&](const DigestChunk& chunk) {
    return chunk.sequence >= first && chunk.sequence < until;
  });
  return static_cast<uint64_t>(found) == until - first;
}

uint64_t GroupOf(uint64_t sequence, uint8_t level) {
  return sequence - sequence % DigestChunks(level);
}

// Returns the whole digest that has this head. Fails if one of its values is damaged, absent or of
// another version.
absl::StatusOr<DigestNode> ReadDigest(DigestReader& reader, const CaptureId& capture,
                                      uint32_t stream, const StoredDigest& head) {
  ASSIGN_OR_RETURN(DigestNode node, DecodeDigestHead(head.value));
  const auto read = [&](uint8_t levels) -> absl::StatusOr<std::string> {
    const auto level = static_cast<uint8_t>(head.level + levels);
    ASSIGN_OR_RETURN(auto found, reader.Next(capture, stream, level, head.first));
    if (!found || found->first != head.first) return DataLoss("a part of a digest is absent");
    return std::move(found->value);
  };
  ASSIGN_OR_RETURN(const std::string items, read(kDigestItemsLevel));
  RETURN_IF_ERROR(DecodeDigestItems(items, node));
  ASSIGN_OR_RETURN(const std::string sums, read(kDigestSumsLevel));
  ASSIGN_OR_RETURN(node.sums, DecodeDigestSums(sums, node.bin_ns));
  return node;
}

}  // namespace

// Where the digests of a stream continue.
struct DigestBuilder::Chain {
  uint64_t at = 0;
  std::optional<DigestNode> before;  // without items and sums
  bool is_broken = false;            // what is stored is of another version, or damaged
};

// Returns where in the index the chunks behind the chain begin, unless they are late.
IndexPosition DigestBuilder::ScanFrom(const Chain& chain, const StreamDescription& stream) {
  if (!chain.before || chain.before->chunks == 0) return {};
  return {SubtractSaturating(chain.before->begin_ns, stream.chunk_span_max_ns), 0};
}

bool DigestBuilder::IsDigested(const StreamDescription& stream) {
  const StreamKind kind = stream.identity.kind;
  return (kind == StreamKind::kNeuronCore || kind == StreamKind::kHost) && !stream.has_own_time();
}

absl::StatusOr<DigestBuilder::Chain> DigestBuilder::Resume(const CaptureId& capture,
                                                           const StreamDescription& stream) const {
  Chain chain{.at = stream.first_sequence};
  ASSIGN_OR_RETURN(const auto last, store_.Last(capture, stream.number, 0));
  if (!last) return chain;
  auto head = DecodeDigestHead(last->value);
  if (!head.ok() || head->until > stream.next_sequence) {
    chain.is_broken = true;
    return chain;
  }
  if (head->open_from != UINT64_MAX && head->complete_at != stream.next_sequence) {
    // Chunks came after all: they may end spans that were taken to be open.
    chain.at = head->open_from;
  } else if (!head->is_full(0) && head->until < stream.next_sequence) {
    chain.at = head->first;
  } else if (head->until >= stream.first_sequence) {
    chain.at = head->until;
    chain.before = *std::move(head);
    return chain;
  }
  chain.at = std::max(chain.at, stream.first_sequence);
  if (chain.at == 0) return chain;
  ASSIGN_OR_RETURN(const auto before,
                   store_.Next(capture, stream.number, 0, GroupOf(chain.at - 1, 0)));
  if (!before) return chain;
  auto node = DecodeDigestHead(before->value);
  if (node.ok() && node->until == chain.at) chain.before = *std::move(node);
  return chain;
}

absl::StatusOr<std::optional<DigestNode>> DigestBuilder::Join(const CaptureId& capture,
                                                              uint32_t stream, uint8_t level,
                                                              uint64_t first) const {
  const auto reader = store_.OpenReader();
  std::vector<DigestNode> nodes;
  const uint64_t end = first + DigestChunks(level);
  for (uint64_t from = first; from < end;) {
    ASSIGN_OR_RETURN(const auto stored, reader->Next(capture, stream, level - 1, from));
    if (!stored || stored->first >= end) break;
    auto node = ReadDigest(*reader, capture, stream, *stored);
    // One of another version is made again, and this one after it.
    if (!node.ok() || (!nodes.empty() && nodes.back().until != node->first)) return std::nullopt;
    from = stored->first + DigestChunks(level - 1);
    nodes.push_back(*std::move(node));
  }
  if (nodes.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(DigestNode joined, JoinDigests(nodes));
  return joined;
}

absl::Status DigestBuilder::PutWithLevels(const CaptureId& capture, const StreamDescription& stream,
                                          const DigestNode& node, bool is_last,
                                          Built& built) const {
  const auto put = [&](uint8_t level, const DigestNode& digest) {
    const uint64_t first = GroupOf(digest.first, level);
    const std::array<StoredDigest, 3> values = {
        StoredDigest{level, first, EncodeDigestHead(digest)},
        {static_cast<uint8_t>(level + kDigestItemsLevel), first, EncodeDigestItems(digest)},
        {static_cast<uint8_t>(level + kDigestSumsLevel), first, EncodeDigestSums(digest.sums)}};
    ++built.digests;
    for (const StoredDigest& value : values) built.bytes += value.value.size();
    return store_.Put(capture, stream.number, values);
  };
  RETURN_IF_ERROR(put(0, node));
  for (uint8_t level = 1; level < kDigestLevels; ++level) {
    if (!node.is_full(level) && !is_last) break;
    ASSIGN_OR_RETURN(const auto joined,
                     Join(capture, stream.number, level, GroupOf(node.first, level)));
    if (!joined) break;
    RETURN_IF_ERROR(put(level, *joined));
  }
  return absl::OkStatus();
}

absl::StatusOr<DigestBuilder::Built> DigestBuilder::BuildStream(ChunkSource& source,
                                                                const CaptureId& capture,
                                                                const StreamDescription& stream,
                                                                bool has_ended, uint64_t& retry_at,
                                                                Pacer& pacer) {
  Built built;
  if (!IsDigested(stream) || stream.next_sequence == 0) return built;
  const uint64_t next = stream.next_sequence;
  ASSIGN_OR_RETURN(Chain chain, Resume(capture, stream));
  for (uint8_t level = 0; level < kDigestLevels; ++level) {
    const uint64_t expired = chain.is_broken ? UINT64_MAX : GroupOf(stream.first_sequence, level);
    if (expired == 0) continue;
    ASSIGN_OR_RETURN(const auto oldest, store_.Next(capture, stream.number, level, 0));
    if (!oldest || oldest->first >= expired) continue;
    for (const uint8_t levels : {uint8_t{0}, kDigestItemsLevel, kDigestSumsLevel}) {
      RETURN_IF_ERROR(store_.DeleteRange(capture, stream.number,
                                         static_cast<uint8_t>(level + levels), 0, expired));
    }
  }
  std::vector<DigestChunk> chunks;
  bool has_all = false;
  while (chain.at < next) {
    built.chunks_left = next - chain.at;
    const uint64_t until = std::min(GroupOf(chain.at, 0) + kDigestBaseChunks, next);
    const bool is_full = until == GroupOf(chain.at, 0) + kDigestBaseChunks;
    // The chunk behind shows where most spans of the group end.
    if (!has_ended && (!is_full || until == next || next < retry_at)) return built;
    // A chunk may come later than its times: then the whole index is read.
    if (chunks.empty()) {
      ASSIGN_OR_RETURN(chunks, ReadChunks(source, stream.number, ScanFrom(chain, stream)));
    }
    if (!has_all && !HasChunks(chunks, chain.at, until)) {
      ASSIGN_OR_RETURN(chunks, ReadChunks(source, stream.number, {}));
      has_all = true;
    }
    DigestNode node{.first = chain.at, .until = until};
    ASSIGN_OR_RETURN(const bool has_open, ReadGroup(source, capture, stream, chunks,
                                                    chain.before ? &*chain.before : nullptr, node));
    const uint64_t horizon = until + limits::kDigestHorizonChunks;
    node.has_open = has_open && next < horizon;
    if (node.has_open && !has_ended) {
      retry_at = std::min(until + 2 * (next - until), horizon);
      return built;
    }
    retry_at = 0;
    const uint64_t lost_ns = chain.before ? chain.before->chain_lost_ns : 0;
    node.is_late = node.chunks > 0 && node.begin_ns <= lost_ns;
    node.chain_lost_ns = std::max(lost_ns, node.lost_until_ns);
    if (chain.before) node.open_from = chain.before->open_from;
    if (node.has_open) node.open_from = std::min(node.open_from, node.first);
    if (node.open_from != UINT64_MAX) node.complete_at = next;
    RETURN_IF_ERROR(PutWithLevels(capture, stream, node, has_ended && until == next, built));
    chain.at = until;
    node.items.clear();
    node.sums = {};
    chain.before = std::move(node);
    built.chunks_left = next - chain.at;
    if (!pacer.Continue()) return built;
  }
  return built;
}

}  // namespace neurontrace
