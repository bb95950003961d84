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

bool ReadName(uint64_t slots, StoredBytesReader& in, DigestNameSums& name) {
  name.name.first = in.Bytes();
  name.name.second = in.Bytes();
  name.instants = in.Uint();
  name.without_length = in.Uint();
  name.self_ns = in.Int();
  if (!ReadRuns(slots, kBegunRunMax, in, name.begun)) return false;
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

// Events come in the order of time, so that most runs are the one before.
void DigestRunSum::Add(const DigestRun& run) {
  if (run.value == 0) return;
  const uint64_t end = run.begin + run.count;
  if (edges_.size() >= 2 && edges_.back().first == end && edges_.rbegin()[1].first == run.begin) {
    edges_.back().second -= run.value;
    edges_.rbegin()[1].second += run.value;
    return;
  }
  edges_.emplace_back(run.begin, run.value);
  edges_.emplace_back(end, 0 - run.value);
}

void DigestRunSum::AddFolded(const DigestRun& run, uint64_t factor) {
  assert(std::has_single_bit(factor) && run.count > 0);
  const uint64_t end = run.begin + run.count;
  // The whole bins inside, and what is left of it at both ends.
  const uint64_t first_whole = run.begin / factor + (run.begin % factor == 0 ? 0 : 1);
  const uint64_t end_whole = end / factor;
  if (first_whole > end_whole) return Add({run.begin / factor, 1, run.value * run.count});
  if (const uint64_t head = first_whole * factor - run.begin; head > 0) {
    Add({first_whole - 1, 1, run.value * head});
  }
  if (end_whole > first_whole) Add({first_whole, end_whole - first_whole, run.value * factor});
  if (const uint64_t tail = end - end_whole * factor; tail > 0) {
    Add({end_whole, 1, run.value * tail});
  }
}

std::vector<DigestRun> DigestRunSum::Take() {
  std::ranges::sort(edges_);
  std::vector<DigestRun> runs;
  uint64_t value = 0;
  for (size_t i = 0; i < edges_.size();) {
    const uint64_t at = edges_[i].first;
    for (; i < edges_.size() && edges_[i].first == at; ++i) value += edges_[i].second;
    if (value == 0 || i == edges_.size()) continue;
    const DigestRun run{at, edges_[i].first - at, value};
    const bool continues =
        !runs.empty() && runs.back().value == value && runs.back().begin + runs.back().count == at;
    if (continues) {
      runs.back().count += run.count;
    } else {
      runs.push_back(run);
    }
  }
  edges_.clear();
  return runs;
}

std::string EncodeDigestSums(const DigestSums& sums) {
  StoredBytesWriter out(kDigestVersion);
  for (const std::vector<DigestRun>& runs : sums.bins) WriteRuns(runs, out);
  out.Uint(sums.names.size());
  for (const DigestNameSums& name : sums.names) WriteName(name, out);
  return out.Take();
}

absl::StatusOr<DigestSums> DecodeDigestSums(std::string_view value, uint64_t bin_ns) {
  StoredBytesReader in(value);
  if (in.Uint() != kDigestVersion) return DataLoss("digest sums of another version");
  const uint64_t bins = kTimeMaxNs / bin_ns + 1;
  DigestSums sums;
  bool is_valid = true;
  for (size_t i = 0; i < kDigestMeasures; ++i) {
    // An open span may cover everything that follows.
    const uint64_t count_max = i < kDigestCovers ? bins : kBegunRunMax;
    is_valid = is_valid && ReadRuns(bins, count_max, in, sums.bins[i]);
  }
  constexpr size_t kNameBytesMin = 10;
  sums.names.resize(is_valid ? in.Count(kNameBytesMin) : 0);
  for (DigestNameSums& name : sums.names) {
    is_valid = is_valid && ReadName(bins / kDigestSlotBins + 1, in, name);
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

void DigestSummer::Inherit(uint32_t row, uint32_t name, uint64_t stop_ns) {
  if (row >= open_.size()) open_.resize(row + 1);
  open_[row].push_back({stop_ns, name});
}

DigestNameSums& DigestSummer::NameAt(uint32_t name) {
  if (name >= names_.size()) {
    names_.resize(name + 1);
    begun_.resize(name + 1);
  }
  return names_[name];
}

void DigestSummer::Cover(DigestMeasure measure, uint64_t begin_ns, uint64_t end_ns) {
  uint64_t& until_ns = covered_ns_[static_cast<size_t>(measure)];
  const uint64_t at_ns = std::max(begin_ns, until_ns);
  end_ns = std::min(end_ns, kTimeMaxNs);
  if (at_ns >= end_ns) return;
  until_ns = end_ns;
  DigestRunSum& sum = bins_[static_cast<size_t>(measure)];
  const uint64_t first = at_ns / bin_ns_;
  const uint64_t last = end_ns / bin_ns_;
  if (first == last) return sum.Add({first, 1, end_ns - at_ns});
  sum.Add({first, 1, (first + 1) * bin_ns_ - at_ns});
  if (last > first + 1) sum.Add({first + 1, last - first - 1, bin_ns_});
  sum.Add({last, 1, end_ns - last * bin_ns_});
}

// As NameSummary does with the single events.
void DigestSummer::CountSelf(const Event& event) {
  if (event.row >= open_.size()) open_.resize(event.row + 1);
  std::vector<OpenSpan>& open = open_[event.row];
  while (!open.empty() && open.back().end_ns <= event.start_ns) open.pop_back();
  NameAt(event.name).self_ns += static_cast<int64_t>(event.end_ns - event.start_ns);
  if (!open.empty()) {
    NameAt(open.back().name).self_ns -=
        static_cast<int64_t>(std::min(event.end_ns, open.back().end_ns) - event.start_ns);
  }
  if (open.size() < limits::kViewDepthMax) open.push_back({event.end_ns, event.name});
}

void DigestSummer::Add(const Event& event) {
  DigestNameSums& name = NameAt(event.name);
  begun_[event.name].Add({event.start_ns / (bin_ns_ * kDigestSlotBins), 1, 1});
  bins_[static_cast<size_t>(DigestMeasure::kBegun)].Add({event.start_ns / bin_ns_, 1, 1});
  if (!event.is_span) {
    ++name.instants;
    return;
  }
  if (event.is_cover) {
    Cover(event.is_hardware ? DigestMeasure::kHardware : DigestMeasure::kOther, event.start_ns,
          event.end_ns);
    if (event.is_wait) Cover(DigestMeasure::kWait, event.start_ns, event.end_ns);
  }
  if (!event.has_length) {
    ++name.without_length;
    return;
  }
  name.durations.Add(event.end_ns - event.start_ns);
  CountSelf(event);
}

DigestSums DigestSummer::Take(const std::vector<DigestName>& names) {
  DigestSumsJoiner joiner(bin_ns_);
  DigestSums sums;
  for (size_t i = 0; i < kDigestMeasures; ++i) sums.bins[i] = bins_[i].Take();
  for (size_t i = 0; i < names_.size(); ++i) {
    names_[i].name = names[i];
    names_[i].begun = begun_[i].Take();
    // Names of inherited spans alone matter, too: their own time shrinks.
    if (names_[i].events() > 0 || names_[i].self_ns != 0)
      sums.names.push_back(std::move(names_[i]));
  }
  joiner.Add(sums, bin_ns_);
  return joiner.Take();
}

}  // namespace neurontrace
