// SPDX-License-Identifier: Apache-2.0
#include "aggregator/watch/core_feed.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <string_view>

#include "absl/hash/hash.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/insight/core_history.h"
#include "aggregator/insight/insight_class.h"
#include "lib/trace/fidelity.h"

namespace neurontrace {
namespace {

// Returns a whole number of a row, which may be stored as text; nullopt without one.
std::optional<uint64_t> NumberOfRow(const DecodedChunk& chunk, uint32_t shape, uint32_t row,
                                    uint16_t key) {
  const auto& keys = chunk.shapes()[shape].keys;
  if (key >= keys.size()) return std::nullopt;
  const uint64_t bits = chunk.column(shape, key)[row];
  if (keys[key].type == ValueType::kUint) return bits;
  if (keys[key].type != ValueType::kString) return std::nullopt;
  return NumberInText(chunk.strings()[bits]);
}

std::string_view TextOfRow(const DecodedChunk& chunk, uint32_t shape, uint32_t row, uint16_t key) {
  const auto& keys = chunk.shapes()[shape].keys;
  if (key >= keys.size() || keys[key].type != ValueType::kString) return {};
  return chunk.strings()[chunk.column(shape, key)[row]];
}

// Returns the key of a shape's rows that has the level of fidelity; nullopt for other shapes.
std::optional<uint16_t> LevelKeyOf(const Shape& shape) {
  if (shape.event_type != kFidelityEventType) return std::nullopt;
  for (size_t key = 0; key < shape.keys.size(); ++key) {
    if (shape.keys[key].name == kFidelityLevelKey) return static_cast<uint16_t>(key);
  }
  return std::nullopt;
}

// Makes room for one more of at most `size_max` elements. There are thousands of cores, and a
// vector that doubles is half empty.
template <typename T>
void Reserve(size_t size_max, std::vector<T>& elements) {
  constexpr size_t kGrowth = 4;
  if (elements.size() < elements.capacity()) return;
  elements.reserve(std::min(size_max, elements.size() + kGrowth));
}

// Whether the rule asks only how much of a gap events of this class fill.
bool FillsGaps(InsightClass kind) {
  return kind == InsightClass::kTransferIo || kind == InsightClass::kMemory;
}

}  // namespace

struct CoreFeed::Plan {
  std::optional<InsightClass> kind;  // nullopt: ignored
  std::optional<uint16_t> level_key;
  Phase phase = Phase::kOther;
  ShapeFields fields;
};

std::vector<CoreFeed::Plan> CoreFeed::PlansOf(const DecodedChunk& chunk) {
  std::vector<Plan> plans(chunk.shapes().size());
  ShapeFieldTable table;
  for (size_t i = 0; i < plans.size(); ++i) {
    // The number has no meaning here: beyond the limit the table keeps nothing.
    const SharedShape shape{
        .number = ShapeFieldTable::kShapesMax, .shape = chunk.shapes()[i], .text = {}};
    plans[i].fields = table.Of(shape);
    plans[i].kind = InsightClassOf(plans[i].fields.type);
    plans[i].phase = shape.shape.phase;
    plans[i].level_key = LevelKeyOf(shape.shape);
  }
  return plans;
}

void CoreFeed::TakeHeader(const ChunkHeader& header, uint64_t arrival_ns) {
  const bool is_missing = has_chunks_ && header.sequence != next_sequence_;
  // What came before the first chunk that is seen here is not part of any window.
  const bool is_first = !has_chunks_;
  const uint64_t since_ns = reached_ns_;
  has_chunks_ = true;
  next_sequence_ = header.sequence + 1;
  if (const RankEvidence* const best = BestEvidence(header.rank_evidence)) {
    worker_gid_ = best->worker_gid;
  }
  const uint64_t until_ns =
      header.is_canary() ? header.canary_realtime_ns : header.last_timestamp_ns;
  if (until_ns >= reached_ns_) {
    reached_ns_ = until_ns;
    reached_arrival_ns_ = arrival_ns;
  }
  newest_ns_ = std::max(newest_ns_, header.last_timestamp_ns);
  if (is_missing) AddLoss(0, true, since_ns, header.first_timestamp_ns);
  for (const Loss& loss : header.losses) {
    if (IsLeftOut(loss)) {
      if (!is_level_known_) SetLevel(FidelityLevelOf(loss));
      continue;
    }
    if (loss.place == LossPlace::kRetention || is_first) continue;
    // What a dead process leaves in its rings comes after all that is judged.
    if (header.end_of_stream && loss.place == LossPlace::kRuntimeRing && loss.events_unknown)
      continue;
    AddLoss(loss.events, loss.events_unknown || loss.events == 0,
            loss.first_timestamp_ns != 0 ? loss.first_timestamp_ns : since_ns,
            loss.last_timestamp_ns != 0 ? loss.last_timestamp_ns : until_ns);
  }
  if (header.replaced && !is_first) {
    AddLoss(header.replaced->events, header.replaced->events_unknown, since_ns, until_ns);
  }
  for (const Suspension& suspension : header.suspensions) {
    AddLoss(0, true, suspension.begin_ns, suspension.end_ns);
  }
  has_ended_ = header.end_of_stream;
}

void CoreFeed::Read(const DecodedChunk& chunk, GroupIds& groups, InsightSink& sink) {
  const std::vector<Plan> plans = PlansOf(chunk);
  const auto shape_of = chunk.shape_of();
  const auto tracking_ids = chunk.tracking_id();
  for (size_t i = 0; i < chunk.size(); ++i) {
    const Plan& plan = plans[shape_of[i]];
    if (plan.level_key) {
      // The trace was restarted, unless the agent alone omits events.
      AddLoss(0, true, chunk.timestamp_ns()[i], chunk.timestamp_ns()[i]);
      SetLevel(
          NumberOfRow(chunk, shape_of[i], chunk.row_of()[i], *plan.level_key).value_or(UINT8_MAX));
      is_level_known_ = true;
    }
    if (!plan.kind) continue;
    const InsightEvent event = EventOf(chunk, i, plan, groups, sink);
    if (plan.phase == Phase::kStart) {
      BeginSpan(tracking_ids[i], event);
    } else if (plan.phase == Phase::kStop) {
      EndSpan(tracking_ids[i], event, sink);
    } else {
      Hold(event, sink);
    }
  }
  // Nothing that ends so much earlier is expected any more.
  const uint64_t due_ns = newest_ns_ - std::min(newest_ns_, limits::kWatchHoldNs);
  const auto held = std::partition_point(
      held_.begin(), held_.end(), [due_ns](const auto& event) { return event.end_ns <= due_ns; });
  Release(static_cast<size_t>(held - held_.begin()), sink);
}

InsightEvent CoreFeed::EventOf(const DecodedChunk& chunk, size_t index, const Plan& plan,
                               GroupIds& groups, InsightSink& sink) {
  const uint64_t at_ns = chunk.timestamp_ns()[index];
  InsightEvent event{.core = core_, .kind = *plan.kind, .start_ns = at_ns, .end_ns = at_ns};
  // A stop is joined with its start, which has the ids.
  if (plan.phase == Phase::kStop) return event;
  const uint32_t shape = chunk.shape_of()[index];
  const uint32_t row = chunk.row_of()[index];
  const auto number = [&](DerivedField field) {
    return NumberOfRow(chunk, shape, row, plan.fields.of(field));
  };
  event.exec_id = number(DerivedField::kExecId).value_or(0);
  event.model = ModelOf(chunk, index, plan, sink);
  if (IsMeeting(event.kind)) {
    event.op_id = number(DerivedField::kOpId).value_or(0);
    event.group = groups.Of({.core = core_,
                             .worker_gid = worker_gid_,
                             .gid = number(DerivedField::kGid),
                             .stream_id = number(DerivedField::kCcStream),
                             .peer = number(DerivedField::kPeer)});
  }
  return event;
}

uint64_t CoreFeed::ModelOf(const DecodedChunk& chunk, size_t index, const Plan& plan,
                           InsightSink& sink) {
  const uint32_t shape = chunk.shape_of()[index];
  const uint32_t row = chunk.row_of()[index];
  const std::string_view name =
      TextOfRow(chunk, shape, row, plan.fields.of(DerivedField::kModelName));
  const std::optional<uint64_t> id =
      NumberOfRow(chunk, shape, row, plan.fields.of(DerivedField::kModelId));
  const auto known = std::find_if(models_.begin(), models_.end(),
                                  [&id](const auto& each) { return id && each.first == *id; });
  if (name.empty()) {
    if (known != models_.end()) return known->second;
    // 0 stands for an unknown model.
    return id ? std::max<uint64_t>(1, absl::HashOf(*id)) : 0;
  }
  const uint64_t hash = std::max<uint64_t>(1, absl::HashOf(name));
  const bool is_named = std::any_of(models_.begin(), models_.end(),
                                    [hash](const auto& each) { return each.second == hash; });
  if (known != models_.end()) {
    known->second = hash;
  } else if ((id || !is_named) && models_.size() < limits::kWatchModelsMax) {
    if (models_.size() == models_.capacity()) models_.reserve(models_.size() + 1);
    models_.emplace_back(id.value_or(UINT64_MAX), hash);
  }
  if (!is_named) sink.OnModel(hash, name);
  return hash;
}

void CoreFeed::BeginSpan(uint64_t tracking_id, const InsightEvent& event) {
  if (open_.size() >= limits::kWatchOpenSpansMax) {
    open_.erase(open_.begin());
    ++counters_.forgotten;
  }
  Reserve(limits::kWatchOpenSpansMax, open_);
  open_.push_back({tracking_id, event});
}

// The innermost of a type and an id closes first, as in SpanPairing.
void CoreFeed::EndSpan(uint64_t tracking_id, const InsightEvent& stop, InsightSink& sink) {
  const auto start = std::find_if(open_.rbegin(), open_.rend(), [&](const Open& open) {
    return open.tracking_id == tracking_id && open.event.kind == stop.kind;
  });
  if (start == open_.rend()) {
    ++counters_.unmatched;
    return;
  }
  InsightEvent event = start->event;
  event.end_ns = std::max(event.start_ns, stop.end_ns);
  open_.erase(std::next(start).base());
  uint64_t& ended_ns = ended_start_ns_[static_cast<size_t>(event.kind)];
  ended_ns = std::max(ended_ns, event.start_ns);
  Hold(event, sink);
}

void CoreFeed::Hold(const InsightEvent& event, InsightSink& sink) {
  if (event.end_ns < released_ns_) {
    ++counters_.late;
    return;
  }
  if (HasPhysicalParts(event.kind) && JoinPart(event)) return;
  if (FillsGaps(event.kind) && JoinCall(event)) return;
  Reserve(limits::kWatchHeldEventsMax + 1, held_);
  const auto at = std::upper_bound(held_.begin(), held_.end(), event, EndsBefore);
  held_.insert(at, event);
  if (held_.size() > limits::kWatchHeldEventsMax) Release(1, sink);
}

// A part that waits already grows, and moves to the place of its new end.
bool CoreFeed::JoinPart(const InsightEvent& part) {
  const auto known = std::find_if(held_.begin(), held_.end(), [&part](const InsightEvent& held) {
    return held.kind == part.kind && held.exec_id == part.exec_id && held.op_id == part.op_id &&
           held.group == part.group && held.start_ns < part.end_ns && part.start_ns < held.end_ns;
  });
  if (known == held_.end()) return false;
  known->start_ns = std::min(known->start_ns, part.start_ns);
  known->end_ns = std::max(known->end_ns, part.end_ns);
  const auto next = std::upper_bound(known + 1, held_.end(), *known, EndsBefore);
  std::rotate(known, known + 1, next);
  return true;
}

// A worker can make hundreds of such calls between two executions, and the rule needs the sum of
// their lengths between one device run and the next. So a row of them waits as one event that ends
// with the last call and has the length that the calls cover: exact unless a call encloses several
// others.
bool CoreFeed::JoinCall(const InsightEvent& call) {
  CallRow& row = call.kind == InsightClass::kMemory ? memory_row_ : io_row_;
  const auto known = std::find_if(held_.rbegin(), held_.rend(), [&call](const InsightEvent& held) {
    return held.kind == call.kind || !FillsGaps(held.kind);
  });
  const bool continues = known != held_.rend() && known->kind == call.kind &&
                         known->end_ns == row.end_ns && call.end_ns >= row.end_ns &&
                         call.end_ns <= row.begin_ns + limits::kWatchJoinNs;
  if (!continues) {
    row = {.begin_ns = call.start_ns, .end_ns = call.end_ns, .last_begin_ns = call.start_ns};
    return false;
  }
  const bool encloses = call.start_ns <= row.last_begin_ns;
  const uint64_t before_ns = encloses ? row.length_before_ns : known->end_ns - known->start_ns;
  const uint64_t from_ns = encloses ? call.start_ns : std::max(call.start_ns, row.end_ns);
  row.begin_ns = std::min(row.begin_ns, call.start_ns);
  row.end_ns = call.end_ns;
  row.last_begin_ns = call.start_ns;
  row.length_before_ns = before_ns;
  known->end_ns = call.end_ns;
  known->start_ns =
      call.end_ns - std::min(before_ns + (call.end_ns - from_ns), call.end_ns - row.begin_ns);
  const auto at = std::prev(known.base());
  std::rotate(at, at + 1, std::upper_bound(at + 1, held_.end(), *at, EndsBefore));
  return true;
}

void CoreFeed::SetLevel(uint64_t level) {
  level_ = static_cast<uint8_t>(std::min<uint64_t>(level, UINT8_MAX));
  level_in_window_ = std::max(level_in_window_, level_);
}

void CoreFeed::Release(size_t count, InsightSink& sink) {
  assert(count <= held_.size());
  if (count == 0) return;
  for (size_t i = 0; i < count; ++i) sink.OnEvent(held_[i]);
  counters_.events += count;
  released_ns_ = held_[count - 1].end_ns;
  held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(count));
}

void CoreFeed::MarkLost() { AddLoss(0, true, newest_ns_, reached_ns_); }

// Stops may be among what was lost, so nothing that was open before is known to be open still.
void CoreFeed::AddLoss(uint64_t events, bool is_unknown, uint64_t begin_ns, uint64_t end_ns) {
  open_.clear();
  const bool is_first = losses_.lost_events == 0 && !losses_.lost_unknown;
  losses_.lost_events += events;
  losses_.lost_unknown |= is_unknown;
  end_ns = std::max(begin_ns, end_ns);
  losses_.loss_begin_ns = is_first ? begin_ns : std::min(losses_.loss_begin_ns, begin_ns);
  losses_.loss_end_ns = std::max(losses_.loss_end_ns, end_ns);
}

void CoreFeed::ShowOpen(uint64_t alive_at_ns, InsightSink& sink) {
  // While events come, the next chunk may have earlier ones.
  if (alive_at_ns < newest_ns_ + limits::kWatchHoldNs) return;
  Release(held_.size(), sink);
  for (const Open& open : open_) {
    if (open.event.start_ns + limits::kWatchOpenAfterNs > alive_at_ns) continue;
    // The rule asks nothing of it, and keeps only a few open spans of a core.
    if (FillsGaps(open.event.kind)) continue;
    // A later one of its class has ended: its own stop was never recorded.
    if (open.event.start_ns < ended_start_ns_[static_cast<size_t>(open.event.kind)]) continue;
    InsightEvent event = open.event;
    event.is_open = true;
    event.end_ns = alive_at_ns;
    sink.OnEvent(event);
  }
}

void CoreFeed::StartWindow() {
  losses_ = {};
  level_in_window_ = level_;
}

bool CoreFeed::LacksCalls(InsightClass calls) const {
  assert(FillsGaps(calls));
  const bool is_io = calls == InsightClass::kTransferIo;
  return level_in_window_ >= (is_io ? kFidelityWithoutTensorCalls : kFidelityWithoutAllocations);
}

void CoreFeed::AddLosses(CoreCondition& condition) const {
  condition.lost_events = losses_.lost_events;
  condition.lost_unknown = losses_.lost_unknown;
  condition.loss_begin_ns = losses_.loss_begin_ns;
  condition.loss_end_ns = losses_.loss_end_ns;
  if (level_in_window_ <= kFidelityWithoutTensorCalls) return;
  // Steps of executions are left out for the budget, so that work looks shorter.
  condition.lost_unknown = true;
  condition.loss_end_ns = std::max(condition.loss_end_ns, reached_ns_);
  if (condition.loss_begin_ns == 0) condition.loss_begin_ns = reached_ns_;
}

size_t CoreFeed::memory_bytes() const {
  return sizeof(*this) + open_.capacity() * sizeof(Open) + held_.capacity() * sizeof(InsightEvent) +
         models_.capacity() * sizeof(models_[0]);
}

}  // namespace neurontrace
