// SPDX-License-Identifier: Apache-2.0
#include "cli/workers_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "cli/capture_view.h"
#include "cli/folded_lines.h"
#include "cli/terminal_region.h"
#include "cli/text.h"
#include "cli/worker_ranks.h"
#include "lib/trace/ids.h"

namespace neurontrace::cli {
namespace {

// Longer cells are cut, unless the view is wide or FormatTable knows the terminal's width.
constexpr size_t kCellColumnsMax = 40;

// The best known ranks of a worker's cores, and the evidence for the first one.
struct WorkerRankSummary {
  std::set<int64_t> gids;
  std::string evidence;
};

// Returns the summary; evidence is sorted, the best first.
WorkerRankSummary RanksOf(const v1::WorkerInventory& worker) {
  WorkerRankSummary ranks;
  for (const v1::CoreInventory& core : worker.cores()) {
    if (core.rank_evidence().empty()) continue;
    if (ranks.evidence.empty()) {
      const v1::RankEvidence& best = core.rank_evidence(0);
      ranks.evidence = (best.guessed() ? "guess: " : "") + best.detail();
    }
    ranks.gids.insert(core.rank_evidence(0).worker_gid());
  }
  return ranks;
}

// Cuts a cell for output that is not a terminal.
std::string Cut(std::string text, const WorkersView& view) {
  return view.wide || view.columns != 0 ? text : CutToColumns(text, kCellColumnsMax);
}

// Returns the cell for a text that may be empty.
std::string DashIfNone(std::string text) { return text.empty() ? "-" : text; }

// Returns the state, and the id of the capture that the worker's tap records.
std::string StateText(const v1::WorkerInventory& worker) {
  std::string text = WorkerStateName(worker.state());
  const auto id = CaptureId::FromBytes(worker.tap_capture_id());
  if (!worker.tap_capture_id().empty() && id.ok()) text += " " + id->ToString();
  return text;
}

// Returns the facts by which --job and similar options select the worker: "slurm=4711 pod=llama-0".
std::string FactsText(const v1::WorkerInventory& worker) {
  std::string text;
  for (const v1::KeyValue& fact : worker.job_facts()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", fact.key(), fact.value());
  }
  return text;
}

// Returns the command line, unless the view is wide without the directory of its program.
std::string CommandText(const v1::WorkerInventory& worker, const WorkersView& view) {
  const std::string& command = worker.command();
  if (view.wide) return command;
  const size_t end = std::min(command.find(' '), command.size());
  const size_t slash = command.rfind('/', end);
  return command.substr(slash == std::string::npos ? 0 : slash + 1);
}

// Returns pointers into `reply`, by job, lowest rank, instance and pid. Workers without a rank are
// last in their job.
std::vector<const v1::WorkerInventory*> InOrderOfRanks(const v1::ListWorkersReply& reply) {
  using Key = std::tuple<std::string, int64_t, std::string, uint32_t>;
  std::vector<std::pair<Key, const v1::WorkerInventory*>> keyed;
  for (const v1::WorkerInventory& worker : reply.workers()) {
    const std::set<int64_t> gids = RanksOf(worker).gids;
    keyed.push_back({Key(worker.job(), gids.empty() ? INT64_MAX : *gids.begin(),
                         worker.identity().instance_id(), worker.identity().pid()),
                     &worker});
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const v1::WorkerInventory*> workers;
  for (const auto& [key, worker] : keyed) workers.push_back(worker);
  return workers;
}

// Returns the table with one row for each worker. Facts replace evidence, job and command.
std::string FormatTableOf(const std::vector<const v1::WorkerInventory*>& workers,
                          const WorkersView& view) {
  std::vector<std::string> header = {"INSTANCE", "PID", "STATE", "CORES", "WORKER GIDS"};
  for (const char* name : {"EVIDENCE", "JOB", "COMMAND"}) {
    if (!view.facts) header.push_back(name);
  }
  if (view.facts) header.push_back("FACTS");
  std::vector<std::vector<std::string>> rows;
  for (const v1::WorkerInventory* const worker : workers) {
    const WorkerRankSummary ranks = RanksOf(*worker);
    std::vector<std::string>& row = rows.emplace_back(std::vector<std::string>{
        worker->identity().instance_id(), std::to_string(worker->identity().pid()),
        StateText(*worker), std::to_string(worker->cores_size()),
        ranks.gids.empty() ? "unknown" : Cut(FormatRanks(ranks.gids), view)});
    if (view.facts) {
      row.push_back(DashIfNone(FactsText(*worker)));
    } else {
      row.push_back(DashIfNone(Cut(ranks.evidence, view)));
      row.push_back(DashIfNone(Cut(worker->job(), view)));
      row.push_back(DashIfNone(Cut(CommandText(*worker, view), view)));
    }
  }
  return FormatTable(header, rows, view.wide ? 0 : view.columns);
}

// Returns the number of workers in each state: "32 workers: 31 ready, 1 no tap".
std::string FormatStates(const v1::ListWorkersReply& reply) {
  std::map<std::string, size_t> states;
  for (const v1::WorkerInventory& worker : reply.workers()) {
    ++states[WorkerStateName(worker.state())];
  }
  std::string text;
  for (const auto& [state, count] : states) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  }
  return fmt::format("{}: {}\n", FormatCounted(reply.workers_size(), "worker"), text);
}

// Returns conflicts of ranks, then details and warnings of each worker, similar lines folded.
std::string FormatNotes(const v1::ListWorkersReply& reply,
                        const std::vector<const v1::WorkerInventory*>& workers,
                        const WorkersView& view) {
  std::set<std::string> names;
  for (const v1::WorkerInventory* const worker : workers) {
    names.insert(worker->identity().instance_id());
    names.insert(worker->job());
  }
  FoldedLines lines(std::move(names), !view.wide);
  for (const v1::JobRanks& job : reply.jobs()) {
    for (const std::string& conflict : job.conflicts()) lines.Add("conflict: " + conflict);
  }
  for (const v1::WorkerInventory* const worker : workers) {
    const std::string who =
        fmt::format("{} pid {}", worker->identity().instance_id(), worker->identity().pid());
    if (!worker->detail().empty()) {
      lines.Add(fmt::format("{}: {}: {}", who, WorkerStateName(worker->state()), worker->detail()));
    }
    for (const std::string& warning : worker->warnings()) {
      lines.Add(fmt::format("warning: {}: {}", who, warning));
    }
  }
  return lines.Format();
}

}  // namespace

bool IsInState(const v1::WorkerInventory& worker, const std::string& state) {
  return WorkerStateName(worker.state()).starts_with(state);
}

std::string FormatWorkers(const v1::ListWorkersReply& reply, const WorkersView& view) {
  const std::vector<const v1::WorkerInventory*> workers = InOrderOfRanks(reply);
  std::string out =
      FormatJobRanks(reply.jobs(), /*with_events=*/false, view.wide ? 0 : view.columns);
  out +=
      view.brief ? FormatStates(reply) : (out.empty() ? "" : "\n") + FormatTableOf(workers, view);
  return out + FormatNotes(reply, workers, view);
}

}  // namespace neurontrace::cli
