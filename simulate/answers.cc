// SPDX-License-Identifier: Apache-2.0
#include "simulate/answers.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>
#include <utility>

#include "neurontrace/v1/insight.pb.h"
#include "simulate/fleet_plan.h"

namespace neurontrace {
namespace {

void SortRanks(std::vector<uint32_t>& ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
}

// A core without a known rank cannot be compared with the truth.
absl::StatusOr<std::vector<uint32_t>> RanksOf(
    const google::protobuf::RepeatedPtrField<v1::InsightCore>& cores) {
  std::vector<uint32_t> ranks;
  for (const v1::InsightCore& core : cores) {
    if (core.worker_gid() < 0 || core.worker_gid() >= FleetPlan::kRanksMax) {
      return absl::InvalidArgumentError(
          fmt::format("answers: worker_gid {} of {} pid {} is no rank of a simulated fleet",
                      core.worker_gid(), core.instance_id(), core.pid()));
    }
    ranks.push_back(static_cast<uint32_t>(core.worker_gid()));
  }
  SortRanks(ranks);
  return ranks;
}

absl::StatusOr<Answers> ParseReport(std::string_view text) {
  v1::InsightReport report;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // of newer versions
  const auto status =
      google::protobuf::util::JsonStringToMessage({text.data(), text.size()}, &report, options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("answers: no JSON of neurontrace.v1.InsightReport: {}", status.ToString()));
  }
  Answers answers;
  for (const v1::Verdict& verdict : report.verdicts()) {
    auto ranks = RanksOf(verdict.suspects());
    if (!ranks.ok()) return ranks.status();
    const auto left_out = static_cast<uint64_t>(verdict.suspects_size());
    if (verdict.suspects_total() > left_out)
      answers.ranks_left_out += verdict.suspects_total() - left_out;
    const bool is_known = verdict.kind() > v1::VERDICT_KIND_UNSPECIFIED &&
                          verdict.kind() <= v1::VERDICT_KIND_DEVICE_ERROR;
    // A kind of a newer version is an answer that fits no fault.
    const char* const kind =
        is_known ? VerdictKindName(static_cast<VerdictKind>(verdict.kind())) : "unknown";
    answers.answers.push_back({.kind = kind,
                               .ranks = *std::move(ranks),
                               .phase = verdict.phase(),
                               .role = verdict.role()});
  }
  for (const v1::InsightRefusal& refusal : report.refusals()) {
    auto ranks = RanksOf(refusal.cores());
    if (!ranks.ok()) return ranks.status();
    answers.answers.push_back(
        {.is_refusal = true, .kind = refusal.reason(), .ranks = *std::move(ranks)});
  }
  return answers;
}

absl::StatusOr<Answers> ParseCsv(std::string_view text) {
  std::map<std::pair<std::string, std::string>, Answer> by_kind;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#' || line == "kind,rank,phase") continue;
    const absl::Status wrong = absl::InvalidArgumentError(fmt::format(
        "answers, line {}: expected kind,rank,phase, such as slow-core,417,device", number));
    const size_t first = line.find(',');
    const size_t second = first == line.npos ? first : line.find(',', first + 1);
    if (second == line.npos || line.find(',', second + 1) != line.npos) return wrong;
    const std::string kind(line.substr(0, first));
    const std::string_view rank_text = line.substr(first + 1, second - first - 1);
    const std::string phase(line.substr(second + 1));
    Answer& answer = by_kind[{kind, phase}];
    answer.is_refusal = kind == "refused";
    answer.kind = answer.is_refusal ? phase : kind;
    if (!answer.is_refusal) answer.phase = phase;
    if (by_kind.size() > Answers::kAnswersMax) {
      return absl::InvalidArgumentError(
          fmt::format("answers: more than {} answers", Answers::kAnswersMax));
    }
    if (rank_text.empty()) continue;
    uint32_t rank = 0;
    const char* const rank_end = rank_text.data() + rank_text.size();
    const auto read = std::from_chars(rank_text.data(), rank_end, rank);
    if (read.ec != std::errc() || read.ptr != rank_end || rank >= FleetPlan::kRanksMax)
      return wrong;
    answer.ranks.push_back(rank);
  }
  Answers answers;
  for (auto& [key, answer] : by_kind) {
    SortRanks(answer.ranks);
    answers.answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace

Answers AnswersOf(const InsightReport& report, std::span<const uint32_t> rank_of) {
  const auto ranks_of = [&](const std::vector<uint32_t>& cores) {
    std::vector<uint32_t> ranks;
    for (const uint32_t core : cores) ranks.push_back(rank_of[core]);
    SortRanks(ranks);
    return ranks;
  };
  Answers answers;
  for (const Verdict& verdict : report.verdicts) {
    answers.answers.push_back({.kind = VerdictKindName(verdict.kind),
                               .ranks = ranks_of(verdict.suspects),
                               .phase = InsightPhaseName(verdict.phase),
                               .role = verdict.role,
                               .group = verdict.group});
  }
  for (const Refusal& refusal : report.refusals) {
    answers.answers.push_back({.is_refusal = true,
                               .kind = RefusalReasonName(refusal.reason),
                               .ranks = ranks_of(refusal.cores)});
  }
  return answers;
}

absl::StatusOr<Answers> ParseAnswers(std::string_view text) {
  if (text.size() > Answers::kBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("answers: {} bytes; the most is {}", text.size(), Answers::kBytesMax));
  }
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '{') return ParseReport(text);
  return ParseCsv(text);
}

}  // namespace neurontrace
