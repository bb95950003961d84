// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/windowed_judge.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <map>
#include <string>

#include "aggregator/insight/report_merger.h"

namespace neurontrace {

static_assert(WindowedJudge::kWindowExecutions <= insight_rule::kExecutionsKept,
              "no execution is replaced before it is judged");

// One job: its cores meet nobody else's, and have their own pace.
class WindowedJudge::Job {
 public:
  // `numbers`: of the cores among all, ascending.
  Job(std::vector<InsightCore> cores, std::vector<std::vector<CoreLoss>> losses,
      std::vector<uint32_t> numbers)
      : numbers_(std::move(numbers)), engine_(std::move(cores)), merger_(engine_.cores()) {
    for (std::vector<CoreLoss>& of_core : losses) {
      std::vector<Loss>& known = losses_.emplace_back();
      uint64_t& last_end_ns = last_loss_ns_.emplace_back(0);
      for (const CoreLoss& loss : of_core) {
        known.push_back({loss});
        last_end_ns = std::max(last_end_ns, loss.end_ns);
      }
    }
  }

  void NameModel(uint64_t model, std::string_view name) { engine_.NameModel(model, name); }
  void Take(uint32_t core, const InsightEvent& event);
  InsightReport Finish(std::span<const CoreCondition> conditions);

  const std::vector<uint32_t>& numbers() const { return numbers_; }
  uint64_t windows() const { return merger_.windows(); }
  size_t memory_bytes() const {
    return engine_.memory_bytes() + merger_.kept() * (sizeof(Verdict) + sizeof(Refusal));
  }

 private:
  struct Loss {
    CoreLoss loss;
    bool is_counted = false;  // in an earlier window
  };

  // Judges what came since the last window.
  void JudgeWindow(uint64_t end_ns, bool is_last, std::vector<CoreCondition> conditions);
  // Adds the losses that touch the window. Returns whether there are any.
  bool AddLosses(uint32_t core, const JudgedWindow& touched, CoreCondition& condition);

  const std::vector<uint32_t> numbers_;
  InsightEngine engine_;
  ReportMerger merger_;
  std::vector<std::vector<Loss>> losses_;  // by core: those that can touch a later window
  std::vector<uint64_t> last_loss_ns_;     // by core: end of the last of all; 0: none
  bool has_events_ = false;
  uint64_t window_begin_ns_ = 0;
  uint64_t last_ns_ = 0;  // end of the latest event
};

void WindowedJudge::Job::Take(uint32_t core, const InsightEvent& event) {
  // Its stop may be among what was lost.
  if (event.is_open && last_loss_ns_[core] >= event.start_ns && last_loss_ns_[core] != 0) return;
  if (!has_events_) window_begin_ns_ = event.start_ns;
  has_events_ = true;
  last_ns_ = std::max(last_ns_, event.end_ns);
  InsightEvent own = event;
  own.core = core;
  engine_.Take(own);
  const bool completes = event.kind == InsightClass::kRun || event.kind == InsightClass::kExecute;
  if (!completes || engine_.new_executions(core) < kWindowExecutions) return;
  // All streams are known to be alive until here: this is not the end of any.
  std::vector<CoreCondition> conditions(numbers_.size(), {.alive_at_ns = last_ns_});
  JudgeWindow(last_ns_, /*is_last=*/false, std::move(conditions));
}

bool WindowedJudge::Job::AddLosses(uint32_t core, const JudgedWindow& touched,
                                   CoreCondition& condition) {
  bool has_lost = false;
  for (Loss& known : losses_[core]) {
    const CoreLoss& loss = known.loss;
    if (loss.begin_ns > touched.end_ns || loss.end_ns < touched.begin_ns) continue;
    has_lost = true;
    // A loss of several windows is counted in the first one.
    condition.lost_unknown |= loss.is_unknown || known.is_counted || loss.events == 0;
    if (!std::exchange(known.is_counted, true)) condition.lost_events += loss.events;
  }
  return has_lost;
}

void WindowedJudge::Job::JudgeWindow(uint64_t end_ns, bool is_last,
                                     std::vector<CoreCondition> conditions) {
  const JudgedWindow window{std::min(window_begin_ns_, end_ns), end_ns};
  // What was lost before the first event, or after the last one, belongs to these windows.
  const JudgedWindow touched{windows() == 0 ? 0 : window.begin_ns, is_last ? UINT64_MAX : end_ns};
  std::vector<uint32_t> after_loss;
  for (uint32_t core = 0; core < conditions.size(); ++core) {
    if (AddLosses(core, touched, conditions[core])) after_loss.push_back(core);
  }
  InsightReport report = engine_.Judge(conditions);
  if (!is_last) {
    std::erase_if(report.verdicts, [](const Verdict& verdict) { return IsHang(verdict.kind); });
  }
  merger_.Add(report, window, engine_);
  engine_.ContinueWindow();
  for (const uint32_t core : after_loss) {
    engine_.StartWindowAfterLoss(core);
    std::erase_if(losses_[core], [&](const Loss& known) { return known.loss.end_ns < end_ns; });
  }
  window_begin_ns_ = end_ns;
}

InsightReport WindowedJudge::Job::Finish(std::span<const CoreCondition> conditions) {
  std::vector<CoreCondition> own;
  for (const uint32_t number : numbers_) {
    const CoreCondition& condition = conditions[number];
    own.push_back({.alive_at_ns = condition.alive_at_ns,
                   .has_ended = condition.has_ended,
                   .ended_orderly = condition.ended_orderly,
                   .ended_at_ns = condition.ended_at_ns});
  }
  JudgeWindow(last_ns_, /*is_last=*/true, std::move(own));
  InsightReport report = merger_.Finish();
  for (Verdict& verdict : report.verdicts) {
    for (uint32_t& core : verdict.suspects) core = numbers_[core];
  }
  for (Refusal& refusal : report.refusals) {
    for (uint32_t& core : refusal.cores) core = numbers_[core];
  }
  return report;
}

WindowedJudge::WindowedJudge(std::vector<InsightCore> cores,
                             std::vector<std::vector<CoreLoss>> losses)
    : cores_(cores.size()) {
  assert(losses.size() == cores.size());
  std::map<std::string, std::vector<uint32_t>> jobs;
  for (uint32_t core = 0; core < cores.size(); ++core) jobs[cores[core].job].push_back(core);
  place_of_.resize(cores.size());
  for (auto& [name, numbers] : jobs) {
    std::vector<InsightCore> of_job;
    std::vector<std::vector<CoreLoss>> losses_of_job;
    for (const uint32_t number : numbers) {
      of_job.push_back(std::move(cores[number]));
      losses_of_job.push_back(std::move(losses[number]));
    }
    jobs_.push_back(std::make_unique<Job>(std::move(of_job), std::move(losses_of_job), numbers));
    for (uint32_t i = 0; i < numbers.size(); ++i) place_of_[numbers[i]] = {jobs_.back().get(), i};
  }
}

WindowedJudge::~WindowedJudge() = default;

void WindowedJudge::NameModel(uint64_t model, std::string_view name) {
  for (const auto& job : jobs_) job->NameModel(model, name);
}

void WindowedJudge::Take(const InsightEvent& event) {
  assert(event.core < cores_);
  const auto& [job, core] = place_of_[event.core];
  job->Take(core, event);
}

// Figures of a step are those of the job that waits most.
InsightReport WindowedJudge::Finish(std::span<const CoreCondition> conditions) {
  assert(conditions.size() == cores_);
  InsightReport all;
  all.is_below_cost = true;
  for (const auto& job : jobs_) {
    InsightReport report = job->Finish(conditions);
    std::ranges::move(report.verdicts, std::back_inserter(all.verdicts));
    std::ranges::move(report.refusals, std::back_inserter(all.refusals));
    all.cores += report.cores;
    all.cores_judged += report.cores_judged;
    AddSums(report, all);
  }
  std::ranges::stable_sort(all.verdicts, ComesBefore);
  std::ranges::stable_sort(all.refusals, [](const Refusal& a, const Refusal& b) {
    return a.cores.size() > b.cores.size();
  });
  return all;
}

uint64_t WindowedJudge::windows() const {
  uint64_t windows = 0;
  for (const auto& job : jobs_) windows += job->windows();
  return windows;
}

size_t WindowedJudge::memory_bytes() const {
  size_t bytes = 0;
  for (const auto& job : jobs_) bytes += job->memory_bytes();
  return bytes;
}

}  // namespace neurontrace
