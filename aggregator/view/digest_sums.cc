// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/digest_sums.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <optional>

#include "aggregator/store/stored_bytes.h"
#include "aggregator/timeline/timeline_record.h"
#include "aggregator/view/digest.h"
#include "lib/base/status.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

// Events cannot begin in more bins than their digest has: then a reader may look at each bin.
constexpr uint64_t kBegunRunMax = limits::kDigestRunsMax;

// Most runs are one bin behind the one before: two bytes and the value.
void WriteRuns(const std::vector<DigestRun>& runs, StoredBytesWriter& out) {
  out.Uint(runs.size());
  uint64_t end = 0;
  for (const DigestRun& run : runs) {
    const bool is_long = run.count > 1;
    out.Uint((run.begin - end) * 2 + (is_long ? 1 : 0));
    if (is_long) out.Uint(run.count);
    out.Uint(run.value);
    end = run.begin + run.count;
  }
}

// `bins` is how many there are at most, `count_max` how many one run may have. Returns false for
// runs that WriteRuns does not write.
bool ReadRuns(uint64_t bins, uint64_t count_max, StoredBytesReader& in,
              std::vector<DigestRun>& runs) {
  runs.resize(in.Count(2));
  uint64_t end = 0;
  for (DigestRun& run : runs) {
    const uint64_t gap = in.Uint();
    run.count = gap % 2 == 1 ? in.Uint() : 1;
    run.value = in.Uint();
    if (!in.ok() || run.count == 0 || run.count > count_max || gap / 2 > bins - end ||
        run.count > bins - end - gap / 2) {
      return false;
    }
    run.begin = end + gap / 2;
    end = run.begin + run.count;
  }
  return in.ok();
}

void SkipRuns(StoredBytesReader& in) {
  for (size_t runs = in.Count(2); runs > 0; --runs) {
    if (in.Uint() % 2 == 1) in.Uint();
    in.Uint();
  }
}

void WriteName(const DigestNameSums& name, StoredBytesWriter& out) {
  out.String(name.name.first);
  out.String(name.name.second);
  out.Uint(name.instants);
  out.Uint(name.without_length);
  out.Int(name.self_ns);
  WriteRuns(name.begun, out);
  out.Uint(name.durations.bins().size());
  for (const DurationSketch::Bin& bin : name.durations.bins()) {
    out.Uint(bin.number);
    out.Uint(bin.count);
  }
  out.Uint(name.durations.sum_ns());
  out.Uint(name.durations.min_ns());
  out.Uint(name.durations.max_ns());
}

// Skips everything behind `begun` unless the name `has_all`.
bool ReadName(uint64_t slots, bool has_all, StoredBytesReader& in, DigestNameSums& name) {
  name.name.first = in.Bytes();
  name.name.second = in.Bytes();
  name.instants = in.Uint();
  name.without_length = in.Uint();
  name.self_ns = in.Int();
  if (!ReadRuns(slots, kBegunRunMax, in, name.begun)) return false;
  if (!has_all) {
    constexpr size_t kNumbersBehindBins = 3;
    for (size_t numbers = 2 * in.Count(2) + kNumbersBehindBins; numbers > 0; --numbers) in.Uint();
    return in.ok();
  }
  std::vector<DurationSketch::Bin> bins(in.Count(2));
  for (DurationSketch::Bin& bin : bins) {
    const uint64_t number = in.Uint();
    if (number > UINT16_MAX) return false;
    bin = {static_cast<uint16_t>(number), in.Uint()};
  }
  const uint64_t sum_ns = in.Uint();
  const uint64_t min_ns = in.Uint();
  const uint64_t max_ns = in.Uint();
  auto durations = DurationSketch::FromParts(std::move(bins), sum_ns, min_ns, max_ns);
  if (!in.ok() || !durations) return false;
  name.durations = *std::move(durations);
  return true;
}

}  // namespace

const DigestName& DigestSums::OtherName() {
  static const DigestName kName("(other)", "");
  return kName;
}

bool DigestSums::has_other_names() const {
  return std::ranges::any_of(names,
                             [](const DigestNameSums& name) { return name.name == OtherName(); });
}

std::string EncodeDigestSums(const DigestSums& sums) {
  StoredBytesWriter out(kDigestVersion);
  for (const std::vector<DigestRun>& runs : sums.bins) WriteRuns(runs, out);
  out.Uint(sums.names.size());
  for (const DigestNameSums& name : sums.names) WriteName(name, out);
  return out.Take();
}

absl::StatusOr<DigestSums> DecodeDigestSums(std::string_view value, uint64_t bin_ns,
                                            DigestSumsPart part) {
  StoredBytesReader in(value);
  if (in.Uint() != kDigestVersion) return DataLoss("digest sums of another version");
  const uint64_t bins = kTimeMaxNs / bin_ns + 1;
  DigestSums sums;
  bool is_valid = true;
  for (size_t i = 0; i < kDigestMeasures; ++i) {
    if (part == DigestSumsPart::kBegun) {
      SkipRuns(in);
      continue;
    }
    // An open span may cover everything that follows.
    const uint64_t count_max = i < kDigestCovers ? bins : kBegunRunMax;
    is_valid = is_valid && ReadRuns(bins, count_max, in, sums.bins[i]);
  }
  if (is_valid && part == DigestSumsPart::kBins) return sums;
  constexpr size_t kNameBytesMin = 10;
  sums.names.resize(is_valid ? in.Count(kNameBytesMin) : 0);
  for (DigestNameSums& name : sums.names) {
    is_valid =
        is_valid && ReadName(bins / kDigestSlotBins + 1, part == DigestSumsPart::kAll, in, name);
  }
  if (!is_valid || !in.Finished()) return DataLoss("malformed digest sums");
  return sums;
}

void DigestSumsJoiner::Add(const DigestSums& sums, uint64_t bin_ns) {
  assert(bin_ns <= bin_ns_ && std::has_single_bit(bin_ns));
  const uint64_t factor = bin_ns_ / bin_ns;
  for (size_t i = 0; i < kDigestMeasures; ++i) {
    for (const DigestRun& run : sums.bins[i]) bins_[i].AddFolded(run, factor);
  }
  for (const DigestNameSums& part : sums.names) {
    const size_t at = NameNumber(part.name);
    DigestNameSums& name = names_[at];
    name.instants += part.instants;
    name.without_length += part.without_length;
    // Modulo 2^64, as a stored value may be anything.
    name.self_ns = static_cast<int64_t>(static_cast<uint64_t>(name.self_ns) +
                                        static_cast<uint64_t>(part.self_ns));
    name.durations.Merge(part.durations);
    for (const DigestRun& run : part.begun) begun_[at].AddFolded(run, factor);
  }
}

size_t DigestSumsJoiner::NameNumber(const DigestName& name) {
  const auto known = name_of_.find(name);
  if (known != name_of_.end()) return known->second;
  if (names_.size() == limits::kDigestSumNamesMax) return names_.size() - 1;
  const bool is_last = names_.size() == limits::kDigestSumNamesMax - 1;
  names_.push_back({.name = is_last ? DigestSums::OtherName() : name});
  begun_.emplace_back();
  name_of_[names_.back().name] = names_.size() - 1;
  return names_.size() - 1;
}

DigestSums DigestSumsJoiner::Take() {
  DigestSums sums;
  for (size_t i = 0; i < kDigestMeasures; ++i) sums.bins[i] = bins_[i].Take();
  for (size_t i = 0; i < names_.size(); ++i) names_[i].begun = begun_[i].Take();
  sums.names = std::move(names_);
  return sums;
}

uint64_t LimitSums(DigestSums& sums, uint64_t bin_ns) {
  const auto is_within = [&] {
    return std::ranges::all_of(
        sums.bins, [](const auto& runs) { return runs.size() <= limits::kDigestRunsMax; });
  };
  while (!is_within() && bin_ns < kDigestWidthMax) {
    DigestSumsJoiner joiner(bin_ns * 2);
    joiner.Add(sums, bin_ns);
    sums = joiner.Take();
    bin_ns *= 2;
  }
  return bin_ns;
}

}  // namespace neurontrace
