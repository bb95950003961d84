// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// The order is that of lanes and of samples of one bin.
enum class TransferDirection : uint8_t {
  kHostToDevice,  // dmem_buf_copyin
  kDeviceToHost,  // dmem_buf_copyout
};

// Bytes that one core moved in one direction in one bin of time. A plain value.
struct BandwidthSample {
  uint32_t stream = 0;
  TransferDirection direction = TransferDirection::kHostToDevice;
  // Reference time, a multiple of the bin's length.
  uint64_t start_ns = 0;
  // A share of a transfer's bytes need not be a whole number.
  double bytes = 0;

  double BytesPerSecond(uint64_t bin_ns) const { return bytes * 1e9 / static_cast<double>(bin_ns); }
};

// What is in the samples, and why transfers are not. The sum of the samples' bytes is `bytes`,
// apart from rounding.
struct BandwidthCounts {
  uint64_t transfers = 0;
  // Of these transfers; saturates at UINT64_MAX.
  uint64_t bytes = 0;
  // Transfers without a size: in no sample.
  uint64_t without_size = 0;
  // Transfers whose start or end is not known: in no sample.
  uint64_t open = 0;
  // Transfers beyond a limit of Bandwidth: all their bytes count in the bin of their start.
  uint64_t not_spread = 0;
};

// Spreads the bytes of each transfer evenly over its time into bins of equal length, and returns
// what each core moved in each bin, in the order of time. After the last bin with a transfer
// follows one with 0 bytes, so that a line drawn through the samples ends. Used by one thread at a
// time; the table must outlive it. docs/formats/derived.md defines the figure. Its cost is one
// addition for each transfer and each bin that a transfer spans.
class Bandwidth {
 public:
  // The default length of a bin.
  static constexpr uint64_t kBinNs = 1'000'000;
  // Transfers that span bins and are under way at one time.
  static constexpr size_t kActiveMax = 65'536;
  // The longest transfer that is spread.
  static constexpr uint64_t kSpreadMaxNs = 1'000'000'000;
  // Further bins of all transfers of one call of Take, and of all that are under way: bounds the
  // work and the samples that a hostile capture causes.
  static constexpr uint64_t kSpreadBinsMax = 262'144;

  // A bin of 0 ns counts as kBinNs.
  explicit Bandwidth(ShapeFieldTable& fields, uint64_t bin_ns = kBinNs)
      : fields_(fields), bin_ns_(bin_ns == 0 ? kBinNs : bin_ns) {}

  uint64_t bin_ns() const { return bin_ns_; }
  // Takes the next batch and appends the samples of the bins that end within it. Batches must come
  // in the order of time.
  void Take(const TimelineBatch& batch, std::vector<BandwidthSample>& done);
  // Appends the remaining samples. Called once, after the last batch.
  void Finish(std::vector<BandwidthSample>& done);
  // Returns the counts so far.
  const BandwidthCounts& counts() const { return counts_; }

 private:
  // A transfer that continues after the current bin.
  struct Active {
    uint32_t lane = 0;
    uint64_t end_ns = 0;
    double bytes_per_ns = 0;
  };
  // One lane in the current bin.
  struct LaneBin {
    double bytes = 0;
    bool is_listed = false;
  };

  // A lane is a core and a direction; lanes sort as (stream, direction) does.
  static uint32_t LaneOf(uint32_t stream, TransferDirection direction) {
    return 2 * stream + static_cast<uint32_t>(direction);
  }
  // Adds the transfer's bytes in the current bin and remembers the rest of it.
  void Begin(const TimelineRecord& record, uint32_t lane, uint64_t bytes);
  // Adds bytes to a lane in the current bin.
  void Add(uint32_t lane, double bytes);
  // Appends every bin that ends at `time_ns` or before.
  void Advance(uint64_t time_ns, std::vector<BandwidthSample>& done);
  // Appends the current bin and makes the next one the current bin.
  void EmitBin(std::vector<BandwidthSample>& done);
  uint64_t bin_end_ns() const { return bin_start_ns_ + bin_ns_; }

  ShapeFieldTable& fields_;
  const uint64_t bin_ns_;
  BandwidthCounts counts_;
  // Of the current bin.
  uint64_t bin_start_ns_ = 0;
  std::vector<Active> active_;
  // Further bins of everything in active_.
  uint64_t bins_ahead_ = 0;
  // Further bins that this call of Take has added.
  uint64_t bins_of_call_ = 0;
  std::vector<LaneBin> bins_;  // by lane
  // Lanes with bytes in the current bin or in the one before.
  std::vector<uint32_t> listed_;
};

}  // namespace neurontrace
