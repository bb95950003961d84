// SPDX-License-Identifier: Apache-2.0
#include "cli/certificate_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "cli/folded_lines.h"
#include "cli/outcome_view.h"
#include "cli/text.h"
#include "cli/worker_ranks.h"
#include "lib/trace/limits.h"
#include "lib/trace/loss.h"

namespace neurontrace::cli {
namespace {

// Limits of the tables without --wide. The certificate lists the worst workers first, so the rest
// is no worse.
constexpr size_t kWorkersShown = 64;
constexpr int kGapsShown = 8;

// Returns a worker's part in the capture, with the reason if it never took part.
std::string PartName(const v1::WorkerCertificate& worker) {
  switch (worker.part()) {
    case v1::WORKER_PART_RECORDED:
      return "recorded";
    case v1::WORKER_PART_IDLE:
      return "idle";
    case v1::WORKER_PART_DATA_LOST:
      return "data lost";
    case v1::WORKER_PART_VANISHED:
      return "vanished";
    case v1::WORKER_PART_NEVER:
      break;
    default:
      return "unknown";
  }
  switch (worker.absence()) {
    case v1::WORKER_ABSENCE_BUSY_OTHER_PROFILER:
      return "never: other profiler";
    case v1::WORKER_ABSENCE_NO_RUNTIME:
      return "never: no runtime";
    case v1::WORKER_ABSENCE_NOT_SELECTED:
      return "left out";
    case v1::WORKER_ABSENCE_AGENT_AWAY:
      return "never: agent away";
    case v1::WORKER_ABSENCE_NOT_REPORTED:
      return "never: not reported";
    default:
      return "never: refused";
  }
}

// Returns where events were lost, and why: "runtime ring: overwritten 12, tap buffer: full 3". A
// "+" follows a count that is a lower limit, "?" replaces an unknown one.
std::string FormatPlaces(const v1::EventAccount& account) {
  std::string text;
  for (const v1::Loss& loss : account.losses()) {
    if (!text.empty()) text += ", ";
    text += loss.place() == v1::LOSS_PLACE_UNSPECIFIED
                ? "somewhere"
                : fmt::format("{}: {}", ToString(static_cast<LossPlace>(loss.place())),
                              ToString(static_cast<LossReason>(loss.reason())));
    text += loss.events_unknown() && loss.events() == 0 ? " ?" : " " + FormatCount(loss.events());
    if (loss.events_unknown() && loss.events() > 0) text += "+";
  }
  return text.empty() ? "-" : text;
}

// Returns whether the counts of the stages add up, for the column ADDS UP.
std::string FormatConserved(v1::Conservation conserved) {
  switch (conserved) {
    case v1::CONSERVATION_YES:
      return "yes";
    case v1::CONSERVATION_NO:
      return "NO";
    default:
      return "cannot say";
  }
}

// Returns whether the user's selection excluded the worker, which is no fault.
bool WasNotSelected(const v1::WorkerCertificate& worker) {
  return worker.part() == v1::WORKER_PART_NEVER &&
         worker.absence() == v1::WORKER_ABSENCE_NOT_SELECTED;
}

// The workers of a certificate, divided by how they are shown.
struct ShownWorkers {
  std::vector<const v1::WorkerCertificate*> workers;   // of many the worst, by job and rank
  size_t further = 0;                                  // that are not worse
  std::vector<const v1::WorkerCertificate*> left_out;  // that share a line
  bool of_several_jobs = false;
};

// Selects the workers to show. The limit is applied in the certificate's order, worst first; only
// then are the rest sorted by job and rank.
ShownWorkers ShownOf(const v1::Certificate& certificate, const CertificateView& view) {
  ShownWorkers shown;
  std::set<std::string> jobs;
  for (const v1::WorkerCertificate& worker : certificate.workers()) {
    if (!PartName(worker).starts_with(view.state)) continue;
    if (!worker.job().empty()) jobs.insert(worker.job());
    if (WasNotSelected(worker) && !view.wide && view.state.empty()) {
      shown.left_out.push_back(&worker);
    } else if (!view.wide && shown.workers.size() == kWorkersShown) {
      ++shown.further;
    } else {
      shown.workers.push_back(&worker);
    }
  }
  shown.of_several_jobs = jobs.size() > 1;
  // A single worker needs as much room as the line that would summarise it.
  if (shown.left_out.size() == 1) {
    shown.workers.push_back(shown.left_out.front());
    shown.left_out.clear();
  }
  const auto key = [](const v1::WorkerCertificate* worker) {
    return std::tuple(worker->framework(), worker->job(),
                      worker->worker_gids().empty() ? INT64_MAX : worker->worker_gids(0),
                      worker->worker().instance_id(), worker->worker().pid());
  };
  std::stable_sort(shown.workers.begin(), shown.workers.end(),
                   [&key](const auto* a, const auto* b) { return key(a) < key(b); });
  return shown;
}

// Returns the row that summarises workers outside the selection: "30 workers", their ranks, "left
// out". `cells` is the width of the table before a column for jobs is added.
std::vector<std::string> RowOfLeftOut(const std::vector<const v1::WorkerCertificate*>& workers,
                                      size_t cells) {
  std::set<int64_t> ranks;
  for (const v1::WorkerCertificate* const worker : workers) {
    ranks.insert(worker->worker_gids().begin(), worker->worker_gids().end());
  }
  std::vector<std::string> row(cells, "-");
  row[0] = FormatCounted(workers.size(), "worker");
  row[2] = FormatRanks(ranks);
  row[3] = PartName(*workers.front());
  return row;
}

// Returns the table of workers with a line of sums, and a line that counts those that are not
// shown.
std::string FormatWorkers(const v1::Certificate& certificate, const CertificateView& view) {
  std::vector<std::vector<std::string>> rows;
  const ShownWorkers those = ShownOf(certificate, view);
  for (const v1::WorkerCertificate* const shown : those.workers) {
    const v1::WorkerCertificate& worker = *shown;
    const v1::EventAccount& account = worker.account();
    // A worker that never took part has no account, and zeros would look like one.
    const bool has_account = worker.part() != v1::WORKER_PART_NEVER;
    const auto count = [&](uint64_t events) { return has_account ? FormatCount(events) : "-"; };
    rows.push_back(
        {worker.worker().instance_id(),
         worker.framework()           ? "framework"
         : worker.worker().pid() == 0 ? "-"
                                      : std::to_string(worker.worker().pid()),
         FormatRanks({worker.worker_gids().begin(), worker.worker_gids().end()}), PartName(worker),
         count(account.expected()), count(account.captured()), count(account.stored()),
         has_account ? FormatLost(account.lost(), account.lost_unknown()) : "-",
         has_account ? FormatConserved(account.conserved()) : "-",
         has_account ? worker.clock().words() : "-",
         worker.gaps() == 0
             ? "-"
             : fmt::format("{}, {}", worker.gaps(), FormatDuration(worker.gaps_sum_ns())),
         FormatPlaces(account)});
  }
  std::vector<std::string> header = {"INSTANCE", "PID",      "RANKS",  "PART",
                                     "EXPECTED", "CAPTURED", "STORED", "LOST",
                                     "ADDS UP",  "CLOCK",    "GAPS",   "WHERE LOST"};
  // The summarising rows follow the workers: those outside the selection, then the sums.
  if (!those.left_out.empty()) rows.push_back(RowOfLeftOut(those.left_out, header.size()));
  const v1::EventAccount& total = certificate.account();
  rows.push_back({"all", "", "", FormatParticipants(certificate.workers()),
                  FormatCount(total.expected()), FormatCount(total.captured()),
                  FormatCount(total.stored()), FormatLost(total.lost(), total.lost_unknown()),
                  FormatConserved(total.conserved()), "", "", ""});
  // The column for jobs is inserted last because it applies to the summarising rows as well.
  if (those.of_several_jobs) {
    header.insert(header.begin() + 2, "JOB");
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::string job = i < those.workers.size() ? those.workers[i]->job() : "";
      const bool is_sum = i + 1 == rows.size();
      rows[i].insert(rows[i].begin() + 2, job.empty() && !is_sum ? "-" : job);
    }
  }
  std::string out = FormatTable(header, rows, view.columns);
  if (those.further == 0) return out;
  return out +
         fmt::format("({} not worse than these; --wide shows all)\n",
                     FormatCounted(those.further, "further worker is", "further workers are"));
}

// Returns the longest gaps of all workers, one line each, longest first.
std::string FormatGaps(const v1::Certificate& certificate) {
  std::vector<const v1::Gap*> gaps;
  for (const v1::WorkerCertificate& worker : certificate.workers()) {
    for (const v1::Gap& gap : worker.longest_gaps()) gaps.push_back(&gap);
  }
  const auto length = [](const v1::Gap* gap) {
    return gap->loss().last_timestamp_ns() - gap->loss().first_timestamp_ns();
  };
  std::stable_sort(gaps.begin(), gaps.end(),
                   [&](const v1::Gap* a, const v1::Gap* b) { return length(a) > length(b); });
  if (gaps.size() > kGapsShown) gaps.resize(kGapsShown);
  std::string out;
  for (const v1::Gap* gap : gaps) {
    const v1::StreamIdentity& stream = gap->stream();
    out += fmt::format(
        "gap         {} pid {} {}: {} from {}, {} events in the {}\n",
        stream.worker().instance_id(), stream.worker().pid(), CoreName(stream),
        FormatDuration(length(gap)), gap->loss().first_timestamp_ns(),
        gap->loss().events_unknown() ? "an unknown number of" : FormatCount(gap->loss().events()),
        ToString(static_cast<LossPlace>(gap->loss().place())));
  }
  return out;
}

// Returns one line for all hosts. Problems of a single host are among the findings.
std::string FormatHosts(const v1::Certificate& certificate) {
  if (certificate.hosts().empty()) return "";
  uint64_t stored = 0;
  for (const v1::HostCertificate& host : certificate.hosts()) stored += host.account().stored();
  return fmt::format("hosts       {} sampled (processors and memory), {} events\n",
                     certificate.hosts_size(), FormatCount(stored));
}

// Returns all names of a job: launchers and the communicator may name it differently. Contains at
// least `job`.
std::set<std::string> NamesOfJob(const v1::Certificate& certificate, const std::string& job) {
  std::set<std::string> names = {job};
  for (const v1::JobRanks& each : certificate.jobs()) {
    const auto& others = each.other_names();
    const bool is_it =
        each.job() == job || std::find(others.begin(), others.end(), job) != others.end();
    if (!is_it) continue;
    if (!each.job().empty()) names.insert(each.job());
    names.insert(others.begin(), others.end());
  }
  return names;
}

// Returns whether the line contains the text as a whole name: "job a" is not in "job ab" or "job
// a-1".
bool ContainsName(const std::string& line, const std::string& words) {
  const auto is_name = [&line](size_t at) {
    return at < line.size() && (std::isalnum(static_cast<unsigned char>(line[at])) != 0 ||
                                line[at] == '-' || line[at] == '_');
  };
  for (size_t at = line.find(words); at != std::string::npos; at = line.find(words, at + 1)) {
    if ((at == 0 || !is_name(at - 1)) && !is_name(at + words.size())) return true;
  }
  return false;
}

}  // namespace

// Losses with an unknown count make the known sum a lower limit.
std::string FormatLost(const v1::EventAccount& account) {
  if (!account.lost_unknown()) return FormatCount(account.lost());
  return account.lost() == 0 ? "unknown" : FormatCount(account.lost()) + " or more";
}

std::string CoreName(const v1::StreamIdentity& stream) {
  if (!stream.name().empty()) return stream.name();
  if (stream.kind() == v1::STREAM_KIND_HOST) return "host";
  return stream.nc_idx() < 0 ? "worker" : fmt::format("nc {}", stream.nc_idx());
}

std::string FormatCertificate(const v1::Certificate& certificate, const CertificateView& view) {
  const std::string table = view.brief ? "" : FormatWorkers(certificate, view);
  return table + FormatHosts(certificate) + (view.brief ? "" : FormatGaps(certificate)) +
         FormatVerdict(certificate, view.wide);
}

std::string CheckPart(const std::string& state) {
  // Collects every name that PartName can return, so that the message is complete without a second
  // list.
  std::set<std::string> names;
  v1::WorkerCertificate worker;
  for (int part = v1::WorkerPart_MIN + 1; part <= v1::WorkerPart_MAX; ++part) {
    for (int absence = v1::WorkerAbsence_MIN + 1; absence <= v1::WorkerAbsence_MAX; ++absence) {
      worker.set_part(static_cast<v1::WorkerPart>(part));
      worker.set_absence(static_cast<v1::WorkerAbsence>(absence));
      names.insert(PartName(worker));
    }
  }
  const bool is_one =
      !state.empty() && std::any_of(names.begin(), names.end(),
                                    [&](const auto& name) { return name.starts_with(state); });
  if (is_one) return "";
  return fmt::format("no state starts with '{}'; the states are {}", state, fmt::join(names, ", "));
}

SelectOtherJobs::SelectOtherJobs(const v1::Certificate& certificate, const std::string& job) {
  const std::set<std::string> names = NamesOfJob(certificate, job);
  for (const v1::WorkerCertificate& worker : certificate.workers()) {
    if (worker.framework()) continue;
    names_.push_back(
        {fmt::format("{} pid {}", worker.worker().instance_id(), worker.worker().pid()),
         !names.contains(worker.job())});
  }
  for (const v1::JobRanks& each : certificate.jobs()) {
    if (!each.job().empty()) names_.push_back({"job " + each.job(), !names.contains(each.job())});
  }
}

bool SelectOtherJobs::Own(const std::string& line) const {
  bool is_others = false;
  for (const Name& name : names_) {
    if (!ContainsName(line, name.words)) continue;
    if (!name.is_other) return false;
    is_others = true;
  }
  return is_others;
}

v1::Certificate ForJob(const v1::Certificate& certificate, const std::string& job) {
  const std::set<std::string> names = NamesOfJob(certificate, job);
  v1::Certificate part;
  for (const v1::WorkerCertificate& worker : certificate.workers()) {
    if (names.contains(worker.job())) *part.add_workers() = worker;
  }
  for (const v1::JobRanks& each : certificate.jobs()) {
    if (!names.contains(each.job())) continue;
    *part.add_jobs() = each;
    *part.mutable_account() = each.account();
  }
  // A finding that names both this job and others concerns this one as well.
  const SelectOtherJobs others(certificate, job);
  for (const std::string& finding : certificate.findings()) {
    if (!others.Own(finding)) part.add_findings(finding);
  }
  for (const std::string& note : certificate.notes()) {
    if (!others.Own(note)) part.add_notes(note);
  }
  // The prefix shows that the verdict is not about the job.
  part.set_verdict("all jobs: " + certificate.verdict());
  return part;
}

std::string ExplainNoneShown(const v1::Certificate& certificate, const CertificateView& view) {
  std::set<std::string> jobs;
  std::map<std::string, uint64_t> parts;
  const std::set<std::string> names = NamesOfJob(certificate, view.job);
  bool has_job = view.job.empty();
  for (const v1::WorkerCertificate& worker : certificate.workers()) {
    if (!worker.job().empty()) jobs.insert(worker.job());
    if (!view.job.empty() && !names.contains(worker.job())) continue;
    has_job = true;
    ++parts[PartName(worker)];
  }
  if (!has_job) {
    return fmt::format("No worker of job {} is in this capture{}{}.\n", view.job,
                       jobs.empty() ? "" : "; its jobs are ", fmt::join(jobs, ", "));
  }
  const bool has_state =
      view.state.empty() || std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
        return part.first.starts_with(view.state);
      });
  if (has_state) return "";
  std::string counts;
  for (const auto& [name, count] : parts) {
    counts += fmt::format("{}{} {}", counts.empty() ? "; there are " : ", ", count, name);
  }
  return fmt::format("No worker of this capture is '{}'{}.\n", view.state, counts);
}

std::set<std::string> NamesIn(const v1::Certificate& certificate) {
  std::set<std::string> names;
  for (const v1::WorkerCertificate& worker : certificate.workers()) {
    names.insert(worker.worker().instance_id());
    names.insert(worker.agent_id());
    names.insert(worker.job());
  }
  return names;
}

std::string FormatVerdict(const v1::Certificate& certificate, bool wide) {
  FoldedLines lines(NamesIn(certificate), !wide);
  for (const std::string& finding : certificate.findings()) lines.Add("missing     " + finding);
  for (const std::string& note : certificate.notes()) lines.Add("note        " + note);
  return lines.Format() + certificate.verdict() + "\n";
}

}  // namespace neurontrace::cli
