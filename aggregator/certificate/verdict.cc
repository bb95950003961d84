// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <utility>
#include <vector>

#include "aggregator/certificate/event_account.h"
#include "aggregator/certificate/host_certificates.h"
#include "aggregator/certificate/job_ranks.h"
#include "aggregator/certificate/worker_certificates.h"
#include "lib/base/time_units.h"
#include "lib/trace/limits.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {
namespace {

// Findings are what keeps a capture from being complete, and notes are what a reader should know
// besides. FinalizeCertificate collects both part by part, then chooses the verdict: provisional,
// complete, every event stored with a reservation, nobody matched, or incomplete with a summary of
// the findings. The texts are read by people and compared by make_certificate_test.cc and
// absences_test.cc.

// Suspensions that the note on one worker names.
constexpr size_t kSuspensionsNamedMax = 4;
// Jobs that a verdict names.
constexpr size_t kJobsNamedMax = 3;

// Returns a time by UTC, to the second.
std::string TimeText(uint64_t realtime_ns) {
  const auto seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%SZ", &parts);
  return text;
}

// Returns "1 worker" or "3 workers".
std::string Count(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// "5 of 20 events lost", "5 of 20 events and an unknown number more lost".
std::string DescribeLost(const EventAccount& account) {
  if (account.lost == 0) return "an unknown number of events lost";
  return fmt::format("{} of {} events{} lost", account.lost, account.expected,
                     account.lost_unknown ? " and an unknown number more" : "");
}

// Appends lines up to a limit and, when it is destroyed, the number of those beyond it. The last
// place is reserved for that number.
class Lines {
 public:
  explicit Lines(std::vector<std::string>& lines) : lines_(lines) {}
  ~Lines() {
    if (more_ > 0) lines_.push_back(fmt::format("and {} more", more_));
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void Add(std::string line) {
    if (lines_.size() + 1 >= limits::kCaptureWarningsMax) {
      ++more_;
    } else {
      lines_.push_back(std::move(line));
    }
  }

 private:
  std::vector<std::string>& lines_;
  size_t more_ = 0;
};

// Returns the text, followed by a detail if there is one.
std::string WithDetail(std::string text, const std::string& detail) {
  return detail.empty() ? text : fmt::format("{}: {}", text, detail);
}

// The agent's own reason, if it reports one, is more exact than the state of its worker.
std::string DescribeAbsence(const WorkerCertificate& worker) {
  if (worker.obstacle != CaptureObstacle::kNone) {
    return fmt::format("never took part ({})", ToString(worker.obstacle));
  }
  switch (worker.absence) {
    case WorkerAbsence::kBusyOtherProfiler:
      return "never took part (another profiler)";
    case WorkerAbsence::kNoRuntime:
      return "never took part (no runtime to record)";
    case WorkerAbsence::kNotSelected:
      return "was excluded";
    case WorkerAbsence::kAgentAway:
      return "was not asked because its agent was disconnected";
    case WorkerAbsence::kNotReported:
      return "never took part (its agent gave no reason)";
    default:
      return "never took part (refused)";
  }
}

// Returns the sentence about a worker for which IsUnderfilled holds.
std::string FindingOf(const WorkerCertificate& worker) {
  const EventAccount& account = worker.account;
  std::string text = NameOf(worker);
  switch (worker.part) {
    case WorkerPart::kNever:
      return WithDetail(text + " " + DescribeAbsence(worker), worker.detail);
    case WorkerPart::kVanished:
      text = WithDetail(text + " vanished before all of its data arrived", worker.detail);
      text += fmt::format("; {} events are stored", account.stored);
      break;
    case WorkerPart::kDataLost:
      text += " took part, but none of its data is stored";
      break;
    default:
      break;
  }
  if (account.lost > 0 || account.lost_unknown) {
    text += worker.part == WorkerPart::kRecorded ? ": " : "; ";
    text += DescribeLost(account) + ": " + DescribeLosses(account.losses);
  }
  if (worker.events_read_differs) {
    text +=
        fmt::format("; its agent read {} events, {} arrived", worker.events_read, account.captured);
  }
  if (account.conserved == Conservation::kNo) {
    text += fmt::format("; its totals disagree ({} captured), which is a defect of neurontrace",
                        account.captured);
  }
  return text;
}

// "expired: 5 events before 2026-11-22 01:02:03Z", by their host's clock; empty where none has.
std::string DescribeExpired(const EventAccount& account) {
  if (account.expired == 0) return "";
  return fmt::format("expired: {} before {}", Count(account.expired, "event"),
                     TimeText(account.expired_last_ns));
}

// "from … to … without allocation events because the budget of 2 % of a processor is used up".
std::string DescribeOmitted(const WorkerCertificate& worker) {
  return fmt::format(
      "{} recorded from {} to {} {}", NameOf(worker), TimeText(worker.left_out->first_timestamp_ns),
      TimeText(worker.left_out->last_timestamp_ns),
      worker.left_out->detail.empty() ? "less than requested" : worker.left_out->detail);
}

// Applies to an ended capture by executions: the worker took part, and reached none of them.
bool ReachedNoExecution(const CaptureRecord& record, const WorkerCertificate& worker) {
  return worker.part == WorkerPart::kIdle && !worker.framework && record.begin.has_value() &&
         record.spec.conditions.by_execution() && HasEnded(record.state);
}

// Requires a record with a begin.
std::string DescribeNotReached(const CaptureRecord& record, const WorkerCertificate& worker) {
  const uint64_t first = record.begin->first_execution;
  return fmt::format("{} recorded nothing: {}", NameOf(worker),
                     first == 0 ? "no execution to start at was found"
                                : fmt::format("it did not reach execution {}", first));
}

// "did not record from … to … (8.0 s): capture … had the worker", in the order of time.
std::string DescribeSuspensions(const WorkerCertificate& worker) {
  std::string text = NameOf(worker) + " did not record";
  size_t named = 0;
  for (const Suspension& suspension : worker.suspensions) {
    if (++named > kSuspensionsNamedMax) {
      return text +
             fmt::format("; and {} more times", worker.suspensions.size() - kSuspensionsNamedMax);
    }
    text += fmt::format("{} from {} to {} ({:.1f} s): {}", named == 1 ? "" : ";",
                        TimeText(suspension.begin_ns), TimeText(suspension.end_ns),
                        static_cast<double>(suspension.length_ns()) * 1e-9, Describe(suspension));
  }
  return text;
}

// "but for the time that other captures had 2 workers (up to 8.0 s)"; empty where none had.
std::string DescribeExceptions(const Certificate& certificate) {
  size_t workers = 0;
  uint64_t longest_ns = 0;
  for (const WorkerCertificate& worker : certificate.workers) {
    uint64_t sum_ns = 0;
    for (const Suspension& suspension : worker.suspensions) {
      sum_ns = AddSaturating(sum_ns, suspension.length_ns());
    }
    workers += !worker.suspensions.empty();
    longest_ns = std::max(longest_ns, sum_ns);
  }
  if (workers == 0) return "";
  return fmt::format("except while other captures used {} (up to {:.1f} s)",
                     Count(workers, "worker"), static_cast<double>(longest_ns) * 1e-9);
}

// Returns whether the stamps of a capture do not show how long it was recorded: they were lost, or
// the clock was set back while the aggregator's machine was off.
bool IsLengthUnknown(const CaptureRecord& record) {
  if (!HasEnded(record.state) || record.state == CaptureState::kNotBegun) return false;
  return record.started_realtime_ns == 0 || record.stopped_realtime_ns < record.started_realtime_ns;
}

// Returns why no worker took part in a capture, with a count for each distinct reason.
std::string NoWorkerReason(const Certificate& certificate) {
  if (certificate.agents.empty() && certificate.workers.empty()) {
    return "no worker matched: no agent was connected";
  }
  size_t workers = 0;
  std::vector<std::pair<std::string, size_t>> reasons;
  for (const WorkerCertificate& worker : certificate.workers) {
    if (worker.framework) continue;
    ++workers;
    // Equal reasons are counted together: of a thousand workers most have the same one.
    const std::string why = worker.detail.empty() ? DescribeAbsence(worker) : worker.detail;
    const auto known = std::find_if(reasons.begin(), reasons.end(),
                                    [&](const auto& reason) { return reason.first == why; });
    if (known == reasons.end()) {
      reasons.emplace_back(why, 1);
    } else {
      ++known->second;
    }
  }
  if (workers == 0) return "no worker matched: no other worker is visible";
  std::string text = "no worker matched of " + Count(workers, "worker");
  size_t named = 0;
  for (const auto& [why, count] : reasons) {
    if (++named > 8) return text + "; …";
    text += fmt::format("; {}: {}", count, why);
  }
  return text;
}

// In a capture that has not begun, armed framework sources do not count as somebody it could
// record.
bool MatchedNone(const CaptureRecord& record, const Certificate& certificate) {
  return std::all_of(certificate.workers.begin(), certificate.workers.end(),
                     [&record](const WorkerCertificate& worker) {
                       if (worker.framework) return record.state == CaptureState::kNotBegun;
                       return worker.part == WorkerPart::kNever && !IsUnderfilled(worker);
                     });
}

// Adds a finding for each agent whose part has not arrived.
void AddAgentFindings(const Certificate& certificate, Lines& findings) {
  for (const AgentCertificate& agent : certificate.agents) {
    if (agent.part != AgentPart::kAwaited && agent.part != AgentPart::kGivenUp) continue;
    const std::string who = fmt::format("{} (agent {})", agent.instance_id, agent.agent_id);
    const std::string away =
        agent.connected ? ", connected but not finished"
                        : fmt::format(", away since {}", TimeText(agent.away_since_realtime_ns));
    findings.Add(agent.part == AgentPart::kAwaited
                     ? fmt::format("waiting for {}{}, until {}", who, away,
                                   TimeText(agent.awaited_until_realtime_ns))
                     : fmt::format("no longer waiting for {}{}", who, away));
  }
}

// With `matched_none` a note for each worker would only repeat the finding, which has all reasons.
void AddWorkerFindings(const CaptureRecord& record, const Certificate& certificate,
                       bool matched_none, Lines& findings, Lines& notes) {
  for (const WorkerCertificate& worker : certificate.workers) {
    if (IsUnderfilled(worker)) {
      findings.Add(FindingOf(worker));
    } else if (ReachedNoExecution(record, worker)) {
      findings.Add(DescribeNotReached(record, worker));
    } else if (worker.part == WorkerPart::kIdle) {
      notes.Add(NameOf(worker) + (record.state != CaptureState::kNotBegun
                                      ? " took part and had nothing to record"
                                      : (worker.framework ? " were armed" : " was armed")));
    } else if (worker.part == WorkerPart::kNever && !matched_none) {
      notes.Add(WithDetail(NameOf(worker) + " " + DescribeAbsence(worker), worker.detail));
    }
    if (!worker.late_cores.empty()) {
      findings.Add(fmt::format("{}: {}", NameOf(worker), worker.late_cores));
    }
    if (!worker.early_end.empty()) {
      notes.Add(fmt::format("{}: {}", NameOf(worker), worker.early_end));
    }
    if (worker.left_out) notes.Add(DescribeOmitted(worker));
    if (!worker.suspensions.empty()) notes.Add(DescribeSuspensions(worker));
  }
}

// Adds what must be said about stored events, or about files that have none. A kind that this
// version does not know, sent by a newer agent, is taken for a finding to be on the safe side.
void AddRemarks(const Certificate& certificate, Lines& findings, Lines& notes) {
  const auto add = [&](const std::string& name, const std::vector<Remark>& remarks) {
    for (const Remark& remark : remarks) {
      const RemarkKindRow* const kind = FindRemarkKind(remark.kind);
      Lines& lines = kind == nullptr || kind->is_finding ? findings : notes;
      lines.Add(fmt::format("{}: {}", name, Describe(remark)));
    }
  };
  for (const WorkerCertificate& worker : certificate.workers) add(NameOf(worker), worker.remarks);
  for (const HostCertificate& host : certificate.hosts) {
    add(fmt::format("host samples of {}", host.stream.worker.instance_id), host.remarks);
  }
}

// Returns whether a remark reports events that are missing although no loss may count them. Unknown
// kinds are taken to do so.
bool LacksEvents(const Certificate& certificate) {
  const auto lacks = [](const Remark& remark) {
    switch (remark.kind) {
      case RemarkKind::kDamagedElement:
      case RemarkKind::kNoTime:
      case RemarkKind::kFileChanged:
      case RemarkKind::kFilePassedOver:
      case RemarkKind::kTooManyFiles:
      case RemarkKind::kNoFrameworkTrace:
      case RemarkKind::kChunkUnreadable:
      case RemarkKind::kStoreFault:
        return true;
      default:
        return FindRemarkKind(remark.kind) == nullptr;
    }
  };
  const auto any_lacks = [&](const auto& part) {
    return std::any_of(part.remarks.begin(), part.remarks.end(), lacks);
  };
  return std::any_of(certificate.workers.begin(), certificate.workers.end(), any_lacks) ||
         std::any_of(certificate.hosts.begin(), certificate.hosts.end(), any_lacks);
}

// Missing ranks are notes rather than findings: nobody here can know whether the rest of a job was
// to be recorded.
void AddRankFindings(const Certificate& certificate, Lines& notes) {
  for (const JobRanks& job : certificate.jobs) {
    if (job.cores_forgotten == 0 || !job.is_contradictory()) continue;
    notes.Add(
        fmt::format("the ranks of {} are not compared: their workers ended so long ago that their "
                    "jobs are no longer known",
                    Count(job.cores_forgotten, "core")));
  }
  for (const MissingRanks& ranks : certificate.ranks) {
    const bool is_all = ranks.never_seen.size() < limits::kCertificateRankRangesMax;
    notes.Add(fmt::format(
        "{}{} of {} ranks were never seen: {}{}{}",
        ranks.job.empty() ? "" : fmt::format("job {}: ", ranks.job), ranks.never_seen_count,
        ranks.world_size, FormatRanges(ranks.never_seen), is_all ? "" : ", …",
        ranks.disputed ? " (workers report different world sizes; this is the largest)" : ""));
  }
}

// Returns "; 4 of 16 ranks of job a, 6 of 8 ranks of job b never seen". Jobs with disputed world
// sizes are left aside: they need not have more ranks.
std::string DescribeNeverSeen(const Certificate& certificate) {
  std::vector<const MissingRanks*> jobs;
  for (const MissingRanks& ranks : certificate.ranks) {
    if (!ranks.disputed) jobs.push_back(&ranks);
  }
  std::string text;
  for (size_t i = 0; i < std::min(jobs.size(), kJobsNamedMax); ++i) {
    const bool is_named = jobs.size() > 1 && !jobs[i]->job.empty();
    text += fmt::format("{}{} of {} ranks{}", i == 0 ? "; " : ", ", jobs[i]->never_seen_count,
                        jobs[i]->world_size, is_named ? " of job " + jobs[i]->job : "");
  }
  if (jobs.size() > kJobsNamedMax) {
    text += fmt::format(" and some of {}", Count(jobs.size() - kJobsNamedMax, "more job"));
  }
  return text.empty() ? text : text + " never seen";
}

// Adds a part such as "2 workers and 1 framework source vanished" to `parts`, with `format` around
// the participants for which `counts` holds; nothing if there are none.
void AddParticipants(const Certificate& certificate,
                     const std::function<bool(const WorkerCertificate&)>& counts,
                     std::string_view format, std::vector<std::string>& parts) {
  size_t workers = 0;
  size_t sources = 0;
  for (const WorkerCertificate& worker : certificate.workers) {
    if (counts(worker)) ++(worker.framework ? sources : workers);
  }
  if (workers + sources == 0) return;
  std::string who = workers > 0 ? Count(workers, "worker") : "";
  if (sources > 0) {
    who += fmt::format("{}{}", workers > 0 ? " and " : "", Count(sources, "framework source"));
  }
  parts.push_back(fmt::format(fmt::runtime(format), who));
}

// Adds the numbers of disputed ranks, of jobs with several world sizes, and of impossible ranks.
void AddRankConflicts(const Certificate& certificate, std::vector<std::string>& parts) {
  size_t claimed_twice = 0;
  size_t beyond_world = 0;
  size_t jobs_of_sizes = 0;
  for (const JobRanks& job : certificate.jobs) {
    if (!job.has_conflict()) continue;
    claimed_twice += job.disputes_count;
    beyond_world += static_cast<size_t>(job.ranks_beyond_world);
    jobs_of_sizes += job.world_sizes.size() > 1 ? 1 : 0;
  }
  if (claimed_twice > 0) {
    parts.push_back(Count(claimed_twice, "rank") + " claimed by several cores at once");
  }
  if (jobs_of_sizes > 0) {
    parts.push_back(fmt::format("different world sizes in {}", Count(jobs_of_sizes, "job")));
  }
  if (beyond_world > 0) parts.push_back(Count(beyond_world, "rank") + " beyond the world size");
}

// Adds the sums over all workers and hosts of remarks that are findings: "3 damaged places; 2 ranks
// are contradicted".
void AddRemarkCounts(const Certificate& certificate, std::vector<std::string>& parts) {
  std::vector<Remark> sums;
  const auto add = [&sums](const auto& part) {
    for (const Remark& remark : part.remarks) AddRemark(remark.kind, remark.count, "", sums);
  };
  std::for_each(certificate.workers.begin(), certificate.workers.end(), add);
  std::for_each(certificate.hosts.begin(), certificate.hosts.end(), add);
  for (const Remark& sum : sums) {
    const RemarkKindRow* const kind = FindRemarkKind(sum.kind);
    if (kind == nullptr || kind->is_finding) parts.push_back(Describe(sum));
  }
}

// Counts the findings by kind. A single finding that is neither a loss nor an absence is quoted in
// full. Requires at least one finding.
std::string Summary(const CaptureRecord& record, const Certificate& certificate) {
  std::vector<std::string> parts;
  const EventAccount& account = certificate.account;
  if (account.lost > 0 || account.lost_unknown) parts.push_back(DescribeLost(account));
  const auto is = [](WorkerPart part) {
    return [part](const WorkerCertificate& worker) {
      return worker.part == part && (part != WorkerPart::kNever || IsUnderfilled(worker));
    };
  };
  AddParticipants(certificate, is(WorkerPart::kDataLost), "all data of {} lost", parts);
  AddParticipants(certificate, is(WorkerPart::kVanished), "{} vanished", parts);
  AddParticipants(certificate, is(WorkerPart::kNever), "{} never took part", parts);
  AddParticipants(
      certificate, [&record](const auto& worker) { return ReachedNoExecution(record, worker); },
      "{} reached none of the executions", parts);
  AddParticipants(
      certificate, [](const auto& worker) { return !worker.late_cores.empty(); },
      "{} did not record the first execution on every core", parts);
  AddParticipants(
      certificate,
      [](const auto& worker) {
        return worker.account.conserved == Conservation::kNo ||
               (worker.events_read_differs && worker.part != WorkerPart::kVanished);
      },
      "the totals of {} disagree", parts);
  for (const auto& [part, words] : {std::pair(AgentPart::kAwaited, "waiting for "),
                                    std::pair(AgentPart::kGivenUp, "no longer waiting for ")}) {
    const auto agents = std::count_if(
        certificate.agents.begin(), certificate.agents.end(),
        [wanted = part](const AgentCertificate& agent) { return agent.part == wanted; });
    if (agents > 0) parts.push_back(words + Count(static_cast<size_t>(agents), "agent"));
  }
  if (IsLengthUnknown(record)) parts.push_back("the recorded duration is unknown");
  if (parts.empty() && certificate.findings.size() == 1) return certificate.findings.front();
  const auto hosts = std::count_if(certificate.hosts.begin(), certificate.hosts.end(),
                                   [](const auto& host) { return !FindingOf(host).empty(); });
  if (hosts > 0) {
    parts.push_back("samples of " + Count(static_cast<size_t>(hosts), "host") + " incomplete");
  }
  AddRemarkCounts(certificate, parts);
  AddRankConflicts(certificate, parts);
  return parts.empty() ? fmt::format("{} (and {})", certificate.findings.front(),
                                     Count(certificate.findings.size() - 1, "more finding"))
                       : fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

// A worker is named by instance and process, and by the ranks that people know it by.
std::string NameOf(const WorkerCertificate& worker) {
  if (worker.framework) return fmt::format("framework files of {}", worker.worker.instance_id);
  std::string name = worker.worker.instance_id;
  if (worker.worker.pid != 0) name += fmt::format(" pid {}", worker.worker.pid);
  if (!worker.worker_gids.empty()) {
    name += fmt::format(" (rank{} {})", worker.worker_gids.size() == 1 ? "" : "s",
                        FormatRanges(FindRanges(worker.worker_gids)));
  }
  return name;
}

// The findings must be complete before the verdict is chosen, as most verdicts count or quote them.
void FinalizeCertificate(const CaptureRecord& record, Certificate& certificate) {
  certificate.provisional = !HasEnded(record.state);
  const EventAccount& account = certificate.account;
  const bool matched_none = MatchedNone(record, certificate);
  const bool has_begun = record.state != CaptureState::kNotBegun;
  bool every_event_stored = false;
  {
    // The scope ends them before the verdict reads the findings: their destructors append the last
    // line.
    Lines findings(certificate.findings);
    Lines notes(certificate.notes);
    if (matched_none) findings.Add(NoWorkerReason(certificate));
    AddAgentFindings(certificate, findings);
    AddRankFindings(certificate, notes);
    if (account.expired > 0) notes.Add(DescribeExpired(account));
    if (IsLengthUnknown(record)) findings.Add("the recorded duration is unknown");
    AddWorkerFindings(record, certificate, matched_none, findings, notes);
    for (const HostCertificate& host : certificate.hosts) {
      if (std::string finding = FindingOf(host); !finding.empty()) findings.Add(std::move(finding));
      if (std::string note = NoteOf(host); !note.empty()) notes.Add(std::move(note));
    }
    // Taken before remarks and rank conflicts are added: those doubt the meaning of stored events,
    // not that they are stored.
    every_event_stored = certificate.findings.empty() && !LacksEvents(certificate);
    AddRemarks(certificate, findings, notes);
    for (const JobRanks& job : certificate.jobs) {
      for (std::string& conflict : DescribeConflicts(job)) findings.Add(std::move(conflict));
    }
  }
  const std::string but_for = DescribeExceptions(certificate);
  if (certificate.provisional) {
    certificate.verdict =
        fmt::format("provisional: {} events stored so far, {} lost{}", account.stored, account.lost,
                    account.lost_unknown ? " and an unknown number more" : "");
    if (account.expired > 0) certificate.verdict += "; " + DescribeExpired(account);
    if (!but_for.empty()) certificate.verdict += "; " + but_for;
    return;
  }
  // A capture that never began holds nothing, however little speaks against it.
  certificate.complete = certificate.findings.empty() && has_begun;
  const std::string what = has_begun ? "incomplete: " : "not begun: ";
  if (certificate.findings.empty() && !has_begun) {
    certificate.verdict = what + "fewer workers were armed than required";
  } else if (certificate.complete) {
    const auto left_out =
        std::count_if(certificate.workers.begin(), certificate.workers.end(),
                      [](const WorkerCertificate& worker) { return worker.left_out.has_value(); });
    const bool all = left_out == 0 && but_for.empty();
    certificate.verdict =
        fmt::format("complete{}{}: every event {} is stored{}", but_for.empty() ? "" : " ", but_for,
                    all ? "the runtime produced" : "that was recorded",
                    account.expired == 0 ? "" : " or has expired as intended");
    if (left_out > 0) {
      certificate.verdict += fmt::format("; {} omitted some to stay within the budget",
                                         Count(static_cast<size_t>(left_out), "worker"));
    }
  } else if (every_event_stored) {
    certificate.verdict = "every event is stored, but " + Summary(record, certificate);
  } else if (matched_none) {
    certificate.verdict = what + certificate.findings.front();
  } else {
    certificate.verdict = what + Summary(record, certificate);
    if (!but_for.empty()) certificate.verdict += "; " + but_for;
  }
  if (account.expired > 0) certificate.verdict += "; " + DescribeExpired(account);
  certificate.verdict += DescribeNeverSeen(certificate);
}

// The limit of findings applies here as well.
void AddFinding(Certificate& certificate, std::string finding) {
  // An incomplete or provisional verdict stays: it counts what was found first.
  if (certificate.complete) {
    certificate.complete = false;
    certificate.verdict = "incomplete: " + finding;
  }
  Lines(certificate.findings).Add(std::move(finding));
}

bool IsAwaitingData(const CaptureRecord& record) {
  return !HasEnded(record.state) ||
         std::any_of(record.agents.begin(), record.agents.end(),
                     [](const auto& part) { return !part.finished && !part.given_up; });
}

void AddStoreFinding(const CaptureRecord& record, std::string_view problem,
                     Certificate& certificate) {
  if (problem.empty() || !IsAwaitingData(record)) return;
  AddFinding(certificate,
             fmt::format("the store takes no data, which agents keep and send again: {}", problem));
}

}  // namespace neurontrace
