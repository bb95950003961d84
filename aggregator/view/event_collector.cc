// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/event_collector.h"

#include <fmt/format.h>

#include <algorithm>

#include "aggregator/export/json/json_members.h"
#include "aggregator/export/json/json_text.h"
#include "aggregator/export/rows/row_names.h"
#include "aggregator/view/digest.h"
#include "aggregator/view/digest_feed.h"
#include "aggregator/view/span_answer.h"
#include "lib/base/json_writer.h"
#include "lib/base/time_units.h"
#include "lib/trace/event_json.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

// Browsers hold numbers as doubles.
constexpr uint64_t kDoubleExactMax = uint64_t{1} << 53;

bool IsText(ValueType type) { return type == ValueType::kString || type == ValueType::kJson; }

std::string TextOf(const EventAttribute& attribute) {
  if (IsText(attribute.type)) return std::string(attribute.text);
  std::string text;
  AppendJsonValue(attribute.type, {attribute.value, {}}, text);
  return text;
}

// Appends a value that a browser reads without loss.
void AppendValue(const EventAttribute& attribute, std::string& out) {
  const bool is_large =
      (attribute.type == ValueType::kUint && attribute.value > kDoubleExactMax) ||
      (attribute.type == ValueType::kInt && 0 - attribute.value > kDoubleExactMax);
  if (attribute.type == ValueType::kJson && IsJson(attribute.text)) {
    out += attribute.text;
  } else if (IsText(attribute.type) || is_large) {
    AppendAsJsonString(TextOf(attribute), out);
  } else {
    AppendJsonValue(attribute.type, {attribute.value, {}}, out);
  }
}

std::string FlagTexts(const TimelineRecord& record) {
  JsonWriter json;
  json.Open('[');
  if ((record.flags & kOpen) != 0) json.Value("open");
  if ((record.flags & kStartLost) != 0) json.Value("start_lost");
  if ((record.flags & kDeviceClock) != 0) json.Value("device_clock");
  if ((record.flags & kVendorClock) != 0) json.Value("no_bound");
  if ((record.flags & kInvalidLength) != 0) json.Value("impossible_length");
  return json.Close(']').Take();
}

}  // namespace

EventCollector::EventCollector(Options options) : options_(std::move(options)) {
  if (options_.is_search) density_.resize(options_.bins);
}

absl::Status EventCollector::Begin(const TimelineHeader& header) {
  BeginRows(header);
  attributes_.Begin(header);
  if (options_.digests != nullptr) options_.digests->Begin(header);
  return absl::OkStatus();
}

absl::Status EventCollector::Finish(ExportSummary&) {
  if (options_.digests == nullptr) return absl::OkStatus();
  DigestFeed& digests = *options_.digests;
  while (const DigestedEvent* span = digests.NextIncoming()) AddIncoming(*span);
  while (const DigestedSums* sums = digests.NextSums(UINT64_MAX)) AddSums(*sums);
  chunks_digested_ = digests.chunks();
  shift_ns_ = digests.bin_max_ns() * kDigestSlotBins + digests.device_shift_ns();
  return absl::OkStatus();
}

EventQuery::Place EventCollector::PlaceOf(uint32_t stream) const {
  const TimelineStream& about = header_->streams[stream];
  EventQuery::Place place{.worker_gid = about.rank.worker_gid};
  if (about.description.identity.has_core()) place.core = about.description.identity.nc_idx;
  return place;
}

bool EventCollector::IsFound(const TimelineRecord& record,
                             const std::vector<EventAttribute>& attributes) {
  if (options_.query.is_empty()) return true;
  const EventQuery::Event event{.name = attributes_.NameOf(record),
                                .type = record.start().event_type,
                                .category = attributes_.CategoryOf(record),
                                .duration_ns = record.end_ns - record.start_ns,
                                .place = PlaceOf(record.stream)};
  if (!options_.query.MatchesWithoutArguments(event)) return false;
  if (!needs_arguments()) return true;
  texts_.clear();
  for (const EventAttribute& attribute : attributes) {
    texts_.emplace_back(attribute.name, TextOf(attribute));
  }
  return options_.query.MatchesArguments(event, texts_);
}

void EventCollector::CountHits(uint32_t stream, uint64_t start_ns, uint64_t count) {
  total_ += count;
  streams_with_hits_.insert(header_->streams[stream].description.number);
  const uint64_t at_ns = std::clamp(start_ns, options_.from_ns, options_.to_ns - 1);
  const auto share = static_cast<double>(at_ns - options_.from_ns) /
                     static_cast<double>(options_.to_ns - options_.from_ns);
  density_[std::min<size_t>(static_cast<size_t>(share * static_cast<double>(density_.size())),
                            density_.size() - 1)] += count;
}

void EventCollector::AddIncoming(const DigestedEvent& span) {
  const bool is_found = options_.query.MatchesWithoutArguments({.name = span.name->first,
                                                                .type = span.name->first,
                                                                .category = span.name->second,
                                                                .place = PlaceOf(span.stream)});
  if (is_found) CountHits(span.stream, span.start_ns, 1);
}

// Hits count in the middle of their slot.
void EventCollector::AddSums(const DigestedSums& sums) {
  const EventQuery::Place place = PlaceOf(sums.stream);
  const uint64_t slot_ns = sums.node->bin_ns * kDigestSlotBins;
  for (const DigestNameSums& name : sums.sums.names) {
    const bool is_found = options_.query.MatchesWithoutArguments({.name = name.name.first,
                                                                  .type = name.name.first,
                                                                  .category = name.name.second,
                                                                  .place = place});
    if (!is_found) continue;
    for (const DigestRun& run : name.begun) {
      for (uint64_t slot = run.begin; slot < run.begin + run.count; ++slot) {
        CountHits(sums.stream, sums.clock->ToReference(slot * slot_ns + slot_ns / 2), run.value);
      }
    }
  }
}

void EventCollector::UseCounts(const EventCollector& counted) {
  total_ = counted.total_;
  density_ = counted.density_;
  streams_with_hits_ = counted.streams_with_hits_;
  chunks_digested_ = counted.chunks_digested_;
  shift_ns_ = counted.shift_ns_;
}

std::vector<uint32_t> EventCollector::StreamsWithHits() const {
  return {streams_with_hits_.begin(), streams_with_hits_.end()};
}

uint64_t EventCollector::FirstHitNs() const {
  const auto first = std::ranges::find_if(density_, [](uint64_t hits) { return hits > 0; });
  const auto share = static_cast<double>(first - density_.begin()) /
                     static_cast<double>(std::max<size_t>(density_.size(), 1));
  const auto after_ns =
      static_cast<uint64_t>(share * static_cast<double>(options_.to_ns - options_.from_ns));
  // Rounding may be a bin's part off, as a slot may, and a device's clock may show a hit earlier.
  const uint64_t margin_ns = shift_ns_ + (options_.to_ns - options_.from_ns) / options_.bins;
  return options_.from_ns + SubtractSaturating(after_ns, margin_ns);
}

absl::Status EventCollector::WriteEvent(const TimelineRecord& record, uint64_t,
                                        const Placement& placement) {
  if (options_.digests != nullptr && options_.digests->HasEvent(record)) return absl::OkStatus();
  if (is_full_) return absl::OkStatus();
  // Those that are not found take their level as well.
  if (placement.row >= levels_.size()) levels_.resize(placement.row + 1);
  const uint8_t depth = levels_[placement.row].Place(record.start_ns, record.end_ns);
  static const std::vector<EventAttribute> kNotRead;
  const std::vector<EventAttribute>* attributes = &kNotRead;
  if (needs_arguments()) attributes = &attributes_.Of(record);
  const bool is_found = IsFound(record, *attributes);
  if (!needs_arguments() && !options_.is_search) {
    if (is_found) {
      attributes = &attributes_.Of(record);
    } else {
      attributes_.Skip(record);
    }
  }
  if (!is_found) return absl::OkStatus();
  if (options_.is_search) {
    CountHits(record.stream, record.start_ns, 1);
  } else {
    ++total_;
  }
  if (total_ <= options_.skip) return absl::OkStatus();
  if (found_.size() >= options_.limit || bytes_ >= limits::kViewEventBytesMax) {
    // A search counts to the end.
    is_full_ = !options_.is_search || options_.is_counted_elsewhere;
    full_at_ns_ = record.start_ns;
    return absl::OkStatus();
  }
  Found& found = found_.emplace_back();
  found.head = HeadOf(record, rows_.row(placement.row), depth);
  if (!options_.is_search) {
    found.arguments = ArgumentsOf(*attributes);
    if ((record.flags & kStopFollows) != 0) waiting_[record.span_id] = found_.size() - 1;
  }
  bytes_ += found.head.size() + found.arguments.size();
  return absl::OkStatus();
}

// The arguments of a stop in a later chunk follow those of its start.
absl::Status EventCollector::WriteStop(const TimelineRecord& record) {
  const auto waiting = waiting_.find(record.span_id);
  if (waiting == waiting_.end()) return absl::OkStatus();
  std::string& arguments = found_[waiting->second].arguments;
  JsonMembers members(arguments);
  for (const EventAttribute& attribute : attributes_.ForStop(record)) {
    members.AppendFreeKey(attribute.name, "stop_");
    AppendValue(attribute, arguments);
  }
  waiting_.erase(waiting);
  return absl::OkStatus();
}

std::string EventCollector::ArgumentsOf(const std::vector<EventAttribute>& attributes) {
  std::string out;
  for (const EventAttribute& attribute : attributes) {
    AppendJsonKey(attribute.name, out);
    AppendValue(attribute, out);
  }
  return out;
}

std::string EventCollector::HeadOf(const TimelineRecord& record, const ExportRow& row,
                                   uint8_t depth) {
  const uint32_t stream = header_->streams[record.stream].description.number;
  const std::optional<uint64_t> bound_ns = attributes_.BoundOf(record);
  JsonWriter json;
  std::string name;
  AppendAsJsonString(attributes_.NameOf(record), name);
  const bool is_span = record.kind == RecordKind::kSpan;
  json.Open('{').Member("id", EventId::Of(record, stream, attributes_.NameOf(record)).ToString());
  json.Member("stream", stream);
  json.Member("row", ViewRowId(rows_.process(row.process).label, row.name));
  json.Member("row_name", row.name).Key("name").Json(name);
  json.Member("type", record.start().event_type)
      .Member("category", attributes_.CategoryOf(record))
      .Member("phase", is_span ? "span" : "instant")
      .Member("start_ns", fmt::format("{}", record.start_ns))
      .Member("end_ns", fmt::format("{}", record.end_ns))
      .Member("duration_ns", fmt::format("{}", record.end_ns - record.start_ns))
      .Member("depth", depth)
      .Member("bound_known", bound_ns.has_value())
      .Member("bound_ns", fmt::format("{}", bound_ns.value_or(0)))
      .Member("thread_id", fmt::format("{}", record.thread_id));
  if ((record.flags & kHasNrtaSeqId) != 0) {
    json.Member("sequence_id", fmt::format("{}", record.nrta_seq_id()));
  }
  json.Key("flags").Json(FlagTexts(record));
  return json.Take();
}

std::string EventCollector::Json(bool is_complete, uint64_t chunks_scanned) const {
  std::string out = options_.is_search ? "{\"hits\":[" : "{\"events\":[";
  for (const Found& found : found_) {
    if (out.back() != '[') out += ',';
    out += found.head;
    if (!options_.is_search) {
      // Each argument begins with a comma.
      const std::string_view arguments = found.arguments;
      out += fmt::format(",\"args\":{{{}}}", arguments.substr(arguments.empty() ? 0 : 1));
    }
    out += '}';
  }
  const uint64_t listed = options_.skip + found_.size();
  const bool has_more = is_full_ || total_ > listed;
  out += fmt::format("],\"next\":\"{}\",\"scanned_chunks\":{},\"complete\":{}",
                     has_more ? fmt::format("{}", listed) : "", chunks_scanned, is_complete);
  if (options_.is_search) {
    out += fmt::format(",\"total\":\"{}\",\"ranks\":{},\"density\":[{}]", total_,
                       streams_with_hits_.size(), fmt::join(density_, ","));
    out += fmt::format(",\"digested_chunks\":{},\"shift_ns\":\"{}\"", chunks_digested_, shift_ns_);
  }
  return out + "}";
}

}  // namespace neurontrace
