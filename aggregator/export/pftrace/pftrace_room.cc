// SPDX-License-Identifier: Apache-2.0
// How much a trace that is not finished still takes: the half of PftraceExporter that parts ask.
// Every figure is an upper bound, of what the writing functions beside it write at the worst.
#include <fmt/format.h>

#include <algorithm>

#include "aggregator/export/pftrace/pftrace_exporter.h"

namespace neurontrace {
namespace {

// An event's packet, fields and own arguments, and the names of these, once each.
constexpr uint64_t kEventBytes = 1'024;
// A row with its levels, a lane, and the arguments that all its events have in common.
constexpr uint64_t kRowBytes = 4'096;
constexpr uint64_t kModelNameBytes = 512;
// An attribute besides the bytes of its name and of its text; an arrow's id.
constexpr uint64_t kAttributeBytes = 48;
constexpr uint64_t kFlowBytes = 16;
constexpr uint64_t kEndBytes = 48;
constexpr uint64_t kLossBytes = 2'048;
// Warnings of the end, each once and of bounded length, and a header that falls due.
constexpr uint64_t kLastWarningsBytes = 4'096;

uint64_t BytesOfAttributes(const TimelineRecord& record, const Shape& shape,
                           std::span<const uint64_t> values) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    bytes += kAttributeBytes + shape.keys[i].name.size();
    const ValueType type = shape.keys[i].type;
    if (type == ValueType::kString || type == ValueType::kJson) {
      bytes += record.text(values[i]).size();
    }
  }
  return bytes;
}

uint64_t BytesOf(const TimelineRecord& record) {
  uint64_t bytes = kEventBytes + kRowBytes + kModelNameBytes + kEndBytes + 4 * kFlowBytes +
                   record.start().event_type.size() +
                   BytesOfAttributes(record, record.start(), record.start_values());
  if (record.has_stop()) bytes += BytesOfAttributes(record, record.stop(), record.stop_values());
  return bytes;
}

}  // namespace

uint64_t PftraceExporter::BytesToFinish() const {
  uint64_t bytes = kLastWarningsBytes + ends_.size() * kEndBytes + flows_at_ends_ * kFlowBytes +
                   (derivation_ ? derivation_->BytesToCome() : 0);
  return bytes + HeadBytes();
}

uint64_t PftraceExporter::HeadBytes() const {
  if (is_head_written_) return 0;
  uint64_t bytes = 0;
  if (header_->certificate != nullptr) bytes += kEventBytes + header_->certificate_json.size();
  for (const std::string& warning : header_->warnings) bytes += kEventBytes + warning.size();
  return bytes;
}

uint64_t PftraceExporter::BytesWithoutRecords(uint64_t until_ns) const {
  uint64_t bytes = clocks_.BytesBefore(until_ns);
  for (size_t i = next_loss_; i < losses_.size() && losses_[i].at_ns < until_ns; ++i) {
    bytes += kLossBytes + losses_[i].loss.detail.size();
  }
  return bytes;
}

size_t PftraceExporter::CountThatFit(const TimelineBatch& batch, size_t first, uint64_t room) {
  uint64_t bytes = 0;
  size_t count = 0;
  for (size_t i = first; i < batch.records.size(); ++i) {
    bytes += BytesOf(*batch.records[i]) + derivation_->BytesOf(*batch.records[i]);
    if (bytes > room) break;
    const bool is_last = i + 1 == batch.records.size();
    const uint64_t next_ns = is_last ? batch.end_ns : batch.records[i + 1]->start_ns;
    // What happens at one time stays together: its order is that of one batch.
    if (!is_last && next_ns == batch.records[i]->start_ns) continue;
    if (bytes + BytesWithoutRecords(next_ns) > room) break;
    count = i + 1 - first;
  }
  return count;
}

void PftraceExporter::WarnOfStops(ExportSummary& summary) const {
  uint64_t count = stops_.beyond_limit();
  // What goes on in another file has its stops there; where none follows no stop is known.
  if (end_ns_ != UINT64_MAX) count += stops_missed_ + stops_.awaited();
  if (count == 0) return;
  summary.warnings.push_back(fmt::format(
      "{} spans are shown without the attributes of their stops, if they have any: these come "
      "in a later part, or too many at once",
      count));
}

}  // namespace neurontrace
