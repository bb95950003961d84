// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "aggregator/derive/duration_sketch.h"
#include "aggregator/view/digest_run_sum.h"

namespace neurontrace {

// A name and its category.
using DigestName = std::pair<std::string, std::string>;

// What a digest measures of its stream in each bin of time. The first three are covered
// nanoseconds, each moment counted once however many spans run.
enum class DigestMeasure : uint8_t {
  kHardware,  // of spans on rows of the hardware
  kOther,     // of all other spans
  kWait,      // of collectives and barriers
  kBegun,     // events that begin in the bin
};
inline constexpr size_t kDigestMeasures = 4;
inline constexpr size_t kDigestCovers = 3;
// Times by cover. Spans are counted in the order of their starts, each from where those before it
// end, so that the covers of consecutive digests can be added.
using DigestCoverTimes = std::array<uint64_t, kDigestCovers>;

// The events of one name.
struct DigestNameSums {
  DigestName name;
  // Of all events those without a length are instants, or spans whose length is unknown or
  // impossible; the others are in `durations`.
  uint64_t instants = 0;
  uint64_t without_length = 0;
  // Time of its spans less that of spans nested in them. Below 0 where the outer span is in an
  // earlier digest: only the sum over digests means something.
  int64_t self_ns = 0;
  DurationSketch durations;
  // How many events begin in each slot, which is kDigestSlotBins bins.
  std::vector<DigestRun> begun;

  uint64_t events() const { return durations.count() + instants + without_length; }
};

// Sums over all events that begin in the chunks of a digest. Counts and lengths are exact, times
// are known to a bin. A plain value.
struct DigestSums {
  std::array<std::vector<DigestRun>, kDigestMeasures> bins;
  // At most limits::kDigestSumNamesMax; further names share kOtherName.
  std::vector<DigestNameSums> names;

  static const DigestName& OtherName();
  // Returns whether there were more names than the limit, so that counts by name are incomplete.
  bool has_other_names() const;
  const std::vector<DigestRun>& of(DigestMeasure measure) const {
    return bins[static_cast<size_t>(measure)];
  }
};

inline constexpr uint64_t kDigestSlotBins = 16;

std::string EncodeDigestSums(const DigestSums& sums);
// What DecodeDigestSums decodes.
enum class DigestSumsPart : uint8_t {
  kAll,
  kBins,
  kBegun,  // of each name
};
// Decodes sums whose bins are `bin_ns` wide. Fails with DATA_LOSS for another version, and for
// bytes that EncodeDigestSums does not write, as far as they are decoded.
absl::StatusOr<DigestSums> DecodeDigestSums(std::string_view value, uint64_t bin_ns,
                                            DigestSumsPart part = DigestSumsPart::kAll);

// Adds up the sums of consecutive digests, whose bins may have different widths.
class DigestSumsJoiner {
 public:
  // `bin_ns` is that of the result: a power of two, not less than that of any part.
  explicit DigestSumsJoiner(uint64_t bin_ns) : bin_ns_(bin_ns) {}
  void Add(const DigestSums& sums, uint64_t bin_ns);
  DigestSums Take();

 private:
  size_t NameNumber(const DigestName& name);

  const uint64_t bin_ns_;
  std::array<DigestRunSum, kDigestMeasures> bins_;
  std::vector<DigestNameSums> names_;
  std::vector<DigestRunSum> begun_;  // by name
  absl::flat_hash_map<DigestName, size_t> name_of_;
};

// Doubles the width of the bins until no list has more than limits::kDigestRunsMax runs. Returns
// the new width.
uint64_t LimitSums(DigestSums& sums, uint64_t bin_ns);

}  // namespace neurontrace
