// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/bandwidth.h"

#include <algorithm>

namespace neurontrace {

void Bandwidth::Take(const TimelineBatch& batch, std::vector<BandwidthSample>& done) {
  for (const TimelineRecord* record : batch.records) {
    if (record->kind != RecordKind::kSpan) continue;
    const ShapeFields& fields = fields_.Of(*record->shape);
    const bool is_in = fields.type == DerivedType::kCopyIn;
    if (!is_in && fields.type != DerivedType::kCopyOut) continue;
    if ((record->flags & (kOpen | kStartLost)) != 0) {
      ++counts_.open;
      continue;
    }
    const auto bytes = StartNumber(*record, fields, DerivedField::kSize);
    if (!bytes) {
      ++counts_.without_size;
      continue;
    }
    Advance(record->start_ns, done);
    Begin(*record,
          {record->stream,
           is_in ? TransferDirection::kHostToDevice : TransferDirection::kDeviceToHost},
          *bytes);
  }
  Advance(batch.end_ns, done);
}

void Bandwidth::Finish(std::vector<BandwidthSample>& done) {
  while (!bytes_.empty()) GiveOutBin(done);
}

void Bandwidth::Begin(const TimelineRecord& record, const Lane& lane, uint64_t bytes) {
  ++counts_.transfers;
  counts_.bytes = counts_.bytes > UINT64_MAX - bytes ? UINT64_MAX : counts_.bytes + bytes;
  if (bytes_.empty() && active_.empty()) {
    bin_start_ns_ = record.start_ns - record.start_ns % bin_ns_;
  }
  double& binned = bytes_[lane];
  const uint64_t length_ns = record.end_ns - record.start_ns;
  if (record.end_ns <= bin_end_ns()) {
    binned += static_cast<double>(bytes);
  } else if (length_ns > kSpreadMaxNs || active_.size() >= kActiveMax) {
    ++counts_.not_spread;
    binned += static_cast<double>(bytes);
  } else {
    const double per_ns = static_cast<double>(bytes) / static_cast<double>(length_ns);
    binned += per_ns * static_cast<double>(bin_end_ns() - record.start_ns);
    active_.push_back({lane, record.end_ns, per_ns});
  }
}

void Bandwidth::Advance(uint64_t time_ns, std::vector<BandwidthSample>& done) {
  while (!bytes_.empty() && bin_end_ns() <= time_ns) GiveOutBin(done);
}

// Goes on to the next bin, in which a lane of this one stands with 0 at least, once.
void Bandwidth::GiveOutBin(std::vector<BandwidthSample>& done) {
  std::map<Lane, double> next;
  for (const auto& [lane, bytes] : bytes_) {
    done.push_back({lane.stream, lane.direction, bin_start_ns_, bytes});
    if (bytes > 0) next.emplace(lane, 0);
  }
  bin_start_ns_ += bin_ns_;
  for (const Active& active : active_) {
    const uint64_t covered_ns = std::min(active.end_ns, bin_end_ns()) - bin_start_ns_;
    next[active.lane] += active.bytes_per_ns * static_cast<double>(covered_ns);
  }
  std::erase_if(active_, [this](const Active& a) { return a.end_ns <= bin_end_ns(); });
  bytes_ = std::move(next);
}

}  // namespace neurontrace
