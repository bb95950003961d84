// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/insight_engine.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/insight/collective_judge.h"
#include "aggregator/insight/fleet_finder.h"
#include "aggregator/insight/fleet_judge.h"
#include "aggregator/insight/hang_judge.h"
#include "aggregator/insight/judge_input.h"
#include "aggregator/insight/robust_figures.h"
#include "aggregator/insight/segment_finder.h"

namespace neurontrace {
namespace {

using insight_rule::kModelNameBytesMax;
using insight_rule::kModelNamesMax;

static_assert(sizeof(SegmentFinder) + insight_rule::kOperationsKept * sizeof(CoreOperation) <=
              InsightEngine::kBytesPerCoreMax);

}  // namespace

class InsightEngine::Impl {
 public:
  explicit Impl(std::vector<InsightCore> cores) : cores_(std::move(cores)) {
    for (size_t i = 0; i < cores_.size(); ++i)
      finders_.push_back(std::make_unique<SegmentFinder>());
  }

  uint32_t AddCore(InsightCore core) {
    cores_.push_back(std::move(core));
    finders_.push_back(std::make_unique<SegmentFinder>());
    return static_cast<uint32_t>(cores_.size() - 1);
  }
  void Take(const InsightEvent& event) {
    assert(event.core < finders_.size());
    finders_[event.core]->Take(event);
  }
  void NameModel(uint64_t model, std::string_view name);
  InsightReport Judge(std::span<const CoreCondition> conditions) const;
  void StartWindow() {
    for (const auto& finder : finders_) finder->StartWindow();
  }
  std::span<const InsightCore> cores() const { return cores_; }
  void ContinueWindow() {
    for (const auto& finder : finders_) finder->ContinueWindow();
  }
  SegmentFinder& finder(uint32_t core) const {
    assert(core < finders_.size());
    return *finders_[core];
  }
  size_t memory_bytes() const {
    size_t bytes =
        finders_.size() * (sizeof(finders_[0]) + sizeof(InsightCore)) + model_name_bytes_;
    for (const auto& finder : finders_) bytes += finder->memory_bytes();
    return bytes;
  }

 private:
  void RefuseLimits(const JudgeInput& input, RefusalList& refusals) const;

  std::vector<InsightCore> cores_;
  // One for each core; pointers, because a worker that joins must not move the others' histories.
  std::vector<std::unique_ptr<SegmentFinder>> finders_;
  absl::flat_hash_map<uint32_t, std::string> model_names_;
  size_t model_name_bytes_ = 0;
};

void InsightEngine::Impl::NameModel(uint64_t model, std::string_view name) {
  if (model == 0 || name.empty() || model_names_.size() >= kModelNamesMax) return;
  const auto [at, is_new] =
      model_names_.try_emplace(FoldModel(model), name.substr(0, kModelNameBytesMax));
  if (is_new) model_name_bytes_ += at->second.size() + sizeof(std::string);
}

void InsightEngine::Impl::RefuseLimits(const JudgeInput& input, RefusalList& refusals) const {
  uint64_t operations = 0;
  uint64_t groups = 0;
  uint64_t open = 0;
  for (const CoreHistory* history : input.histories) {
    operations += history->operations_dropped;
    groups += history->groups_dropped;
    open += history->open_dropped;
  }
  if (operations > 0) {
    refusals.AddGeneral(RefusalReason::kLimit,
                        "Events of a core's collectives beyond the first 38: their transfers are "
                        "not judged.",
                        operations);
  }
  if (groups > 0) {
    refusals.AddGeneral(
        RefusalReason::kLimit,
        "Events of a core's groups beyond the first 8: these groups are not judged.", groups);
  }
  if (open > 0) {
    refusals.AddGeneral(RefusalReason::kLimit,
                        "Open spans of a core beyond the first 4: hangs in them are not judged.",
                        open);
  }
}

InsightReport InsightEngine::Impl::Judge(std::span<const CoreCondition> conditions) const {
  assert(conditions.size() == cores_.size());
  std::vector<const CoreHistory*> histories;
  for (const auto& finder : finders_) histories.push_back(&finder->history());
  const JudgeInput input = {.cores = cores_,
                            .histories = histories,
                            .conditions = conditions,
                            .model_names = model_names_};
  InsightReport report;
  report.cores = static_cast<uint32_t>(cores_.size());
  report.is_below_cost = true;
  RefusalList refusals(cores_.size());
  std::vector<double> steps;
  for (const Fleet& fleet : FindFleets(input, refusals)) {
    std::vector<Verdict> hangs = JudgeHangs(input, fleet, refusals);
    // A fleet that hangs has few executions, which is no reason of its own.
    if (!hangs.empty()) refusals.Withdraw(RefusalReason::kTooShort, fleet.cores);
    std::move(hangs.begin(), hangs.end(), std::back_inserter(report.verdicts));
    FleetJudge(input, fleet, refusals).Judge(report);
    std::vector<Verdict> slow = JudgeCollectives(input, fleet);
    std::move(slow.begin(), slow.end(), std::back_inserter(report.verdicts));
    for (const FleetRole& role : fleet.roles) steps.push_back(role.step_ns);
  }
  RefuseLimits(input, refusals);
  report.step_ns = static_cast<uint64_t>(MedianOf(steps));
  if (!report.verdicts.empty()) report.is_below_cost = false;
  std::stable_sort(report.verdicts.begin(), report.verdicts.end(), ComesBefore);
  report.refusals = refusals.Finish();
  return report;
}

InsightEngine::InsightEngine(std::vector<InsightCore> cores)
    : impl_(std::make_unique<Impl>(std::move(cores))) {}

InsightEngine::~InsightEngine() = default;

uint32_t InsightEngine::AddCore(InsightCore core) { return impl_->AddCore(std::move(core)); }

void InsightEngine::Take(const InsightEvent& event) { impl_->Take(event); }

void InsightEngine::Take(std::span<const InsightEvent> events) {
  for (const InsightEvent& event : events) impl_->Take(event);
}

void InsightEngine::NameModel(uint64_t model, std::string_view name) {
  impl_->NameModel(model, name);
}

InsightReport InsightEngine::Judge(std::span<const CoreCondition> conditions) const {
  return impl_->Judge(conditions);
}

void InsightEngine::StartWindow() { impl_->StartWindow(); }

std::span<const InsightCore> InsightEngine::cores() const { return impl_->cores(); }

void InsightEngine::ContinueWindow() { impl_->ContinueWindow(); }

void InsightEngine::StartWindowAfterLoss(uint32_t core) {
  impl_->finder(core).StartWindowAfterLoss();
}

uint64_t InsightEngine::executions(uint32_t core) const {
  return impl_->finder(core).history().executions;
}

uint64_t InsightEngine::new_executions(uint32_t core) const {
  return impl_->finder(core).history().new_executions();
}

size_t InsightEngine::memory_bytes() const { return impl_->memory_bytes(); }

}  // namespace neurontrace
