// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/memory_use.h"

#include <algorithm>
#include <utility>

namespace neurontrace {
namespace {

// The names in the vendor's SystemProfileHbmUsage, in the order of HbmCategory.
constexpr std::array<std::string_view, kHbmCategories> kCategoryNames = {
    "generic",
    "tensor_instructions",
    "scalar_instructions",
    "gpsimd_instructions",
    "vector_instructions",
    "sync_instructions",
    "io",
    "dram_spill",
    "weights",
    "profiler_buffers",
    "scalar_table",
    "shared_scratchpad",
    "tensors",
    "ucode_lib",
    "gpsimd_stdio",
    "collectives",
    "scratchpad",
    "dma_rings_runtime",
    "dma_rings_spill",
    "dma_rings_io",
    "dma_rings_collectives",
    "unknown",
};

// Ignores the locale: the runtime writes ASCII.
constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool IsWordCharacter(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// Letters and digits of a text in lower case: versions of the runtime write the categories with
// different separators.
class PlainText {
 public:
  constexpr explicit PlainText(std::string_view text) {
    for (const char c : text.substr(0, kBytesMax)) {
      if (IsWordCharacter(Lower(c))) bytes_[size_++] = Lower(c);
    }
  }
  constexpr std::string_view text() const { return {bytes_.data(), size_}; }

 private:
  static constexpr size_t kBytesMax = 64;
  std::array<char, kBytesMax> bytes_ = {};
  size_t size_ = 0;
};

// The names in the form of PlainText, made by the compiler.
template <size_t... kCategory>
constexpr std::array<PlainText, kHbmCategories> PlainNames(std::index_sequence<kCategory...>) {
  return {PlainText(kCategoryNames[kCategory])...};
}
constexpr std::array<PlainText, kHbmCategories> kPlainNames =
    PlainNames(std::make_index_sequence<kHbmCategories>());

// Returns whether the runtime refused the allocation or release: its code is not 0. Columns of type
// kInt hold negative numbers only, so such a code is never 0.
bool IsRefused(const Shape& shape, const ShapeFields& fields, std::optional<uint64_t> code) {
  const uint16_t key = fields.of(DerivedField::kReturnCode);
  return code.value_or(0) != 0 ||
         (key != ShapeFields::kNone && shape.keys[key].type == ValueType::kInt);
}

}  // namespace

std::string_view ToString(HbmCategory category) {
  return kCategoryNames[static_cast<size_t>(category)];
}

// There are few categories, and only starts are looked up.
HbmCategory HbmCategoryOf(std::string_view usage_type) {
  const PlainText wanted(usage_type);
  for (size_t i = 0; i < kHbmCategories; ++i) {
    if (kPlainNames[i].text() == wanted.text()) return static_cast<HbmCategory>(i);
  }
  return HbmCategory::kUnknown;
}

HbmUse::HbmUse(std::span<const TimelineStream> streams, ShapeFieldTable& fields)
    : streams_(streams), fields_(fields) {}

// The result is cached for the place, because comparing identities takes longer.
std::optional<uint32_t> HbmUse::ProcessOf(const TimelineRecord& record, const ShapeFields& fields) {
  // An event without these numbers counts for HBM 0 of device 0.
  const Place place(record.stream, StartNumber(record, fields, DerivedField::kDevice).value_or(0),
                    StartNumber(record, fields, DerivedField::kHbm).value_or(0));
  const auto known = process_at_.find(place);
  if (known != process_at_.end()) return known->second;
  const auto process = FindProcess(place);
  if (process && process_at_.size() < kMemoriesMax) process_at_.emplace(place, *process);
  return process;
}

// Memories of one instance are shared by its processes; each pair has its own use.
std::optional<uint32_t> HbmUse::FindProcess(const Place& place) {
  const auto& [stream, device, hbm] = place;
  const WorkerIdentity& worker = streams_[stream].description.identity.worker;
  const HbmIdentity identity{worker.instance_id, device, hbm};
  auto memory = memory_numbers_.find(identity);
  if (memory == memory_numbers_.end()) {
    if (memories_.size() >= kMemoriesMax) return std::nullopt;
    memory = memory_numbers_.emplace(identity, static_cast<uint32_t>(memories_.size())).first;
    memories_.push_back(identity);
    // Samples before the first event of a process lack its use, which nobody reported.
    now_.push_back({.hbm = memory->second});
  }
  const std::pair key(memory->second, worker);
  const auto known = process_numbers_.find(key);
  if (known != process_numbers_.end()) return known->second;
  if (processes_.size() >= kMemoriesMax) return std::nullopt;
  const auto number = static_cast<uint32_t>(processes_.size());
  process_numbers_.emplace(key, number);
  processes_.push_back({.memory = memory->second});
  return number;
}

// Only what the event reports at its end counts, so its start tells only where and for what.
void HbmUse::AddSpan(const TimelineRecord& record, const ShapeFields& fields) {
  if ((record.flags & (kOpen | kStartLost)) != 0) {
    ++counts_.open;
    return;
  }
  const auto process = ProcessOf(record, fields);
  // Changes pile up if events of one time take long to end, as in hostile captures.
  if (!process || waiting_.size() >= kPendingMax || changes_.size() >= kPendingMax) {
    ++counts_.dropped;
    return;
  }
  const Waiting about{*process, HbmCategoryOf(StartText(record, fields, DerivedField::kUsage))};
  // The totals are attributes of the stop, which is in a later chunk.
  if ((record.flags & kStopFollows) != 0) {
    waiting_.insert_or_assign(record.span_id, about);
    return;
  }
  if (!record.has_stop()) {
    ++counts_.without_total;
    return;
  }
  const ShapeFields& stop = fields_.Of(*record.stop_shape);
  Push(about, record.end_ns, StopNumber(record, stop, DerivedField::kUsageTotalBytes),
       StopNumber(record, stop, DerivedField::kTotalBytes),
       IsRefused(record.stop(), stop, StopNumber(record, stop, DerivedField::kReturnCode)));
}

// The attributes of the stop arrive as a record of their own, in a later batch.
void HbmUse::AddStop(const TimelineRecord& record) {
  const auto waiting = waiting_.find(record.span_id);
  if (waiting == waiting_.end()) return;
  const ShapeFields& fields = fields_.Of(*record.shape);
  Push(waiting->second, record.start_ns,
       StartNumber(record, fields, DerivedField::kUsageTotalBytes),
       StartNumber(record, fields, DerivedField::kTotalBytes),
       IsRefused(record.start(), fields, StartNumber(record, fields, DerivedField::kReturnCode)));
  waiting_.erase(waiting);
}

// A refused event changed nothing.
void HbmUse::Push(const Waiting& about, uint64_t time_ns, std::optional<uint64_t> category_bytes,
                  std::optional<uint64_t> total_bytes, bool is_refused) {
  if (is_refused) {
    ++counts_.failed;
    return;
  }
  // Only both together describe the state after the event.
  if (!category_bytes || !total_bytes) {
    ++counts_.without_total;
    return;
  }
  changes_.push(
      {time_ns, next_order_++, about.process, about.category, *category_bytes, *total_bytes});
}

// Reports are applied in the order of their ends, which differs from that of their starts.
void HbmUse::EmitBefore(uint64_t time_ns, std::vector<HbmSample>& done) {
  while (!changes_.empty() && (time_ns == UINT64_MAX || changes_.top().time_ns < time_ns)) {
    const Change change = changes_.top();
    changes_.pop();
    ProcessUse& use = processes_[change.process];
    HbmSample& sample = now_[use.memory];
    // Unsigned sums wrap and unwrap again: hostile numbers make a wrong figure, and nothing worse.
    auto& category = use.category_bytes[static_cast<size_t>(change.category)];
    sample.category_bytes[static_cast<size_t>(change.category)] += change.category_bytes - category;
    sample.total_bytes += change.total_bytes - use.total_bytes;
    category = change.category_bytes;
    use.total_bytes = change.total_bytes;
    sample.time_ns = change.time_ns;
    ++counts_.samples;
    done.push_back(sample);
  }
}

// Reports before the end of the batch are complete: every event that ends there has begun.
void HbmUse::Take(const TimelineBatch& batch, std::vector<HbmSample>& done) {
  for (const TimelineRecord* record : batch.records) {
    const bool is_span = record->kind == RecordKind::kSpan;
    if (!is_span && record->kind != RecordKind::kStopAttributes) continue;
    const ShapeFields& fields = fields_.Of(*record->shape);
    if (fields.type != DerivedType::kAllocate && fields.type != DerivedType::kDeallocate) continue;
    if (is_span) {
      AddSpan(*record, fields);
    } else {
      AddStop(*record);
    }
  }
  EmitBefore(batch.end_ns, done);
}

// Events that still wait for their stop never report.
void HbmUse::Finish(std::vector<HbmSample>& done) {
  counts_.open += waiting_.size();
  waiting_.clear();
  EmitBefore(UINT64_MAX, done);
}

}  // namespace neurontrace
