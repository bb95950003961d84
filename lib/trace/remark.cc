// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/remark.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/clean_text.h"
#include "lib/base/time_units.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Names are in JSON and in labels of metrics, so they never change. The texts follow a count.
constexpr RemarkKindRow kRemarkKinds[] = {
    {RemarkKind::kDamagedElement, "damaged_element", "damaged place", "damaged places", true},
    {RemarkKind::kNoTime, "no_time", "event has no usable time", "events have no usable time",
     true},
    {RemarkKind::kInvalidDuration, "odd_duration", "event has an impossible duration, shown as 0",
     "events have impossible durations, shown as 0", true},
    {RemarkKind::kOpenSpan, "open_span", "span begins and does not end",
     "spans begin and do not end", false},
    {RemarkKind::kEndWithoutBegin, "end_without_begin", "span ends and does not begin",
     "spans end and do not begin", false},
    {RemarkKind::kUnknownOrigin, "unknown_origin",
     "file has times from an unknown origin, which cannot be aligned",
     "files have times from an unknown origin, which cannot be aligned", true},
    {RemarkKind::kFileChanged, "file_changed", "file changed before it was read completely",
     "files changed before they were read completely", true},
    {RemarkKind::kFilePassedOver, "file_passed_over", "file could not be read",
     "files could not be read", true},
    {RemarkKind::kTooManyFiles, "too_many_files", "file is beyond the limit and was not read",
     "files are beyond the limit and were not read", true},
    {RemarkKind::kSameContent, "same_content", "file has the same content as another",
     "files have the same content as others", false},
    {RemarkKind::kRankUnreadable, "rank_unreadable", "file has a rank that cannot be read",
     "files have ranks that cannot be read", true},
    {RemarkKind::kCounterText, "counter_text", "counter value is not a number and not on a track",
     "counter values are not numbers and not on a track", false},
    {RemarkKind::kNoFrameworkTrace, "no_framework_trace", "requested framework trace is missing",
     "requested framework traces are missing", true},
    {RemarkKind::kNoTrace, "no_trace", "file is not a trace and was skipped",
     "files are not traces and were skipped", false},
    {RemarkKind::kFileRewritten, "file_rewritten",
     "file was rewritten after it was read: both contents are kept",
     "files were rewritten after they were read: all contents are kept", false},
    {RemarkKind::kRankContradiction, "rank_contradiction", "rank is contradicted",
     "ranks are contradicted", true},
    {RemarkKind::kRankGuessed, "rank_guessed", "rank is a guess", "ranks are guesses", false},
    {RemarkKind::kRankRefused, "rank_refused",
     "rank is unknown because the available evidence was rejected",
     "ranks are unknown because the available evidence was rejected", false},
    {RemarkKind::kChunkUnreadable, "chunk_unreadable",
     "stored chunk cannot be read and is omitted from exports",
     "stored chunks cannot be read and are omitted from exports", true},
    {RemarkKind::kStoreFault, "store_fault", "fault was found by a check of the store",
     "faults were found by a check of the store", true},
};

// Details that Describe quotes; the certificate has the others.
constexpr size_t kDetailsNamed = 3;

// Returns the remark of that kind, adding it if there is none. Few kinds exist, so a linear search
// is enough.
Remark& RemarkOf(RemarkKind kind, std::vector<Remark>& remarks) {
  const auto same = std::find_if(remarks.begin(), remarks.end(),
                                 [kind](const Remark& remark) { return remark.kind == kind; });
  if (same != remarks.end()) return *same;
  return remarks.emplace_back(Remark{.kind = kind, .count = 0, .details = {}});
}

// Details are cleaned here, whatever their origin: they end in terminals and JSON.
void AddDetail(std::string_view detail, Remark& remark) {
  if (detail.empty() || remark.details.size() >= limits::kRemarkDetailsMax) return;
  std::string clean = CleanText(detail, limits::kRemarkDetailBytesMax);
  const auto& known = remark.details;
  if (std::find(known.begin(), known.end(), clean) == known.end()) {
    remark.details.push_back(std::move(clean));
  }
}

}  // namespace

void AddRemark(RemarkKind kind, uint64_t count, std::string_view detail,
               std::vector<Remark>& remarks) {
  Remark& remark = RemarkOf(kind, remarks);
  remark.count = AddSaturating(remark.count, count);
  AddDetail(detail, remark);
}

void AddRemarks(std::span<const Remark> more, std::vector<Remark>& sums) {
  for (const Remark& remark : more) {
    Remark& sum = RemarkOf(remark.kind, sums);
    sum.count = AddSaturating(sum.count, remark.count);
    for (const std::string& detail : remark.details) AddDetail(detail, sum);
  }
}

void MergeFound(const Remark& found, std::vector<Remark>& remarks) {
  Remark& remark = RemarkOf(found.kind, remarks);
  // A check of the store counts everything it finds, so the greater count includes the smaller one.
  remark.count = std::max(remark.count, found.count);
  for (const std::string& detail : found.details) AddDetail(detail, remark);
}

void ReplaceRemarks(std::span<const Remark> newer, std::vector<Remark>& remarks) {
  for (const Remark& remark : newer) {
    if (remark.count > 0) {
      RemarkOf(remark.kind, remarks) = remark;
    } else {
      std::erase_if(remarks, [&](const Remark& known) { return known.kind == remark.kind; });
    }
  }
}

std::span<const RemarkKindRow> RemarkKinds() { return kRemarkKinds; }

const RemarkKindRow* FindRemarkKind(RemarkKind kind) {
  const auto* row = std::find_if(std::begin(kRemarkKinds), std::end(kRemarkKinds),
                                 [kind](const RemarkKindRow& one) { return one.kind == kind; });
  return row == std::end(kRemarkKinds) ? nullptr : row;
}

std::string Describe(const Remark& remark) {
  const RemarkKindRow* const row = FindRemarkKind(remark.kind);
  std::string text =
      row == nullptr ? fmt::format("{} remarks of kind {}, which this version does not know",
                                   remark.count, static_cast<int>(remark.kind))
                     : fmt::format("{} {}", remark.count, remark.count == 1 ? row->one : row->many);
  const size_t named = std::min(remark.details.size(), kDetailsNamed);
  for (size_t i = 0; i < named; ++i) text += (i == 0 ? " (" : "; ") + remark.details[i];
  if (named > 0) text += remark.count > named ? "; …)" : ")";
  return text;
}

}  // namespace neurontrace
