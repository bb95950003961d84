// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>
#include <vector>

#include "aggregator/certificate/event_account.h"
#include "aggregator/certificate/host_certificates.h"
#include "aggregator/certificate/job_ranks.h"
#include "aggregator/certificate/worker_certificates.h"
#include "base/time_units.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// Stretches told of one worker.
constexpr size_t kGaveWayNamedMax = 4;

std::string TimeText(uint64_t realtime_ns) {
  const auto seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%SZ", &parts);
  return text;
}

std::string Count(size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// "5 of 20 events lost", "5 of 20 events and an unknown number more lost".
std::string LostWords(const EventAccount& account) {
  if (account.lost == 0) return "an unknown number of events lost";
  return fmt::format("{} of {} events{} lost", account.lost, account.expected,
                     account.lost_unknown ? " and an unknown number more" : "");
}

// Lines of which only so many are kept.
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

std::string WithDetail(std::string text, const std::string& detail) {
  return detail.empty() ? text : fmt::format("{}: {}", text, detail);
}

std::string NeverWords(const WorkerCertificate& worker) {
  switch (worker.absence) {
    case WorkerAbsence::kBusyOtherProfiler:
      return "never took part (another profiler)";
    case WorkerAbsence::kNoRuntime:
      return "never took part (no runtime to record)";
    case WorkerAbsence::kNotSelected:
      return "was left out";
    case WorkerAbsence::kAgentAway:
      return "was not asked, its agent was away";
    case WorkerAbsence::kNotReported:
      return "never took part (its agent did not say why)";
    default:
      return "never took part (refused)";
  }
}

std::string FindingOf(const WorkerCertificate& worker) {
  const EventAccount& account = worker.account;
  std::string text = NameOf(worker);
  switch (worker.part) {
    case WorkerPart::kNever:
      return WithDetail(text + " " + NeverWords(worker), worker.detail);
    case WorkerPart::kVanished:
      text = WithDetail(text + " vanished before all of it was here", worker.detail);
      text += fmt::format("; {} events are stored", account.stored);
      break;
    case WorkerPart::kDataLost:
      text += " took part, and nothing of what it recorded is stored";
      break;
    default:
      break;
  }
  if (account.lost > 0 || account.lost_unknown) {
    text += worker.part == WorkerPart::kRecorded ? ": " : "; ";
    text += LostWords(account) + ": " + DescribeLosses(account.losses);
  }
  if (worker.events_read_differs) {
    text += fmt::format("; its agent says that it read {} events, {} arrived", worker.events_read,
                        account.captured);
  }
  if (account.conserved == Conservation::kNo) {
    text += fmt::format("; its sums do not agree ({} captured), which is a defect of neurontrace",
                        account.captured);
  }
  return text;
}

// "expired: 5 events before 2026-11-22 01:02:03Z", by their host's clock; empty where none has.
std::string ExpiredWords(const EventAccount& account) {
  if (account.expired == 0) return "";
  return fmt::format("expired: {} before {}", Count(account.expired, "event"),
                     TimeText(account.expired_last_ns));
}

// "from … to … without allocation events, as the budget of 2 % of a processor was spent".
std::string LeftOutWords(const WorkerCertificate& worker) {
  return fmt::format(
      "{} recorded from {} to {} {}", NameOf(worker), TimeText(worker.left_out->first_timestamp_ns),
      TimeText(worker.left_out->last_timestamp_ns),
      worker.left_out->detail.empty() ? "less than was asked for" : worker.left_out->detail);
}

// Of a capture by executions that has ended: the worker took part, and came to none of them.
bool ReachedNoExecution(const CaptureRecord& record, const WorkerCertificate& worker) {
  return worker.part == WorkerPart::kIdle && !worker.framework && record.begin.has_value() &&
         record.spec.by_execution() && HasEnded(record.state);
}

std::string NotReachedWords(const CaptureRecord& record, const WorkerCertificate& worker) {
  const uint64_t first = record.begin->first_execution;
  return fmt::format("{} recorded nothing: {}", NameOf(worker),
                     first == 0 ? "no execution to begin at was found"
                                : fmt::format("it did not reach execution {}", first));
}

uint64_t LengthNs(const Loss& gap) { return gap.last_timestamp_ns - gap.first_timestamp_ns; }

// "did not record from … to … (8.0 s): capture … had the worker", in the order of time.
std::string GaveWayWords(const WorkerCertificate& worker) {
  std::string text = NameOf(worker) + " did not record";
  size_t named = 0;
  for (const Loss& gap : worker.gave_way) {
    if (++named > kGaveWayNamedMax) {
      return text + fmt::format("; and {} more times", worker.gave_way.size() - kGaveWayNamedMax);
    }
    text += fmt::format("{} from {} to {} ({:.1f} s): {}", named == 1 ? "" : ";",
                        TimeText(gap.first_timestamp_ns), TimeText(gap.last_timestamp_ns),
                        static_cast<double>(LengthNs(gap)) * 1e-9, gap.detail);
  }
  return text;
}

// "but for the time that other captures had 2 workers (up to 8.0 s)"; empty where none had.
std::string ButForWords(const Certificate& certificate) {
  size_t workers = 0;
  uint64_t longest_ns = 0;
  for (const WorkerCertificate& worker : certificate.workers) {
    uint64_t sum_ns = 0;
    for (const Loss& gap : worker.gave_way) sum_ns = AddSaturating(sum_ns, LengthNs(gap));
    workers += !worker.gave_way.empty();
    longest_ns = std::max(longest_ns, sum_ns);
  }
  if (workers == 0) return "";
  return fmt::format("but for the time that other captures had {} (up to {:.1f} s)",
                     Count(workers, "worker"), static_cast<double>(longest_ns) * 1e-9);
}

// What left workers out of a capture that matched none.
std::string WhyNone(const Certificate& certificate) {
  if (certificate.agents.empty() && certificate.workers.empty()) {
    return "no worker matched: no agent was connected";
  }
  if (certificate.workers.empty()) return "no worker matched: no other worker is visible";
  std::vector<std::pair<std::string, size_t>> reasons;
  for (const WorkerCertificate& worker : certificate.workers) {
    const std::string why = worker.detail.empty() ? NeverWords(worker) : worker.detail;
    const auto known = std::find_if(reasons.begin(), reasons.end(),
                                    [&](const auto& reason) { return reason.first == why; });
    if (known == reasons.end()) {
      reasons.emplace_back(why, 1);
    } else {
      ++known->second;
    }
  }
  std::string text = "no worker matched of " + Count(certificate.workers.size(), "worker");
  size_t named = 0;
  for (const auto& [why, count] : reasons) {
    if (++named > 8) return text + "; …";
    text += fmt::format("; {}: {}", count, why);
  }
  return text;
}

bool MatchedNone(const Certificate& certificate) {
  return std::all_of(
      certificate.workers.begin(), certificate.workers.end(), [](const WorkerCertificate& worker) {
        return worker.part == WorkerPart::kNever && !IsWanting(worker) && !worker.framework;
      });
}

void JudgeAgents(const Certificate& certificate, Lines& findings) {
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

void JudgeWorkers(const CaptureRecord& record, const Certificate& certificate, bool matched_none,
                  Lines& findings, Lines& notes) {
  for (const WorkerCertificate& worker : certificate.workers) {
    if (IsWanting(worker)) {
      findings.Add(FindingOf(worker));
    } else if (ReachedNoExecution(record, worker)) {
      findings.Add(NotReachedWords(record, worker));
    } else if (worker.part == WorkerPart::kIdle) {
      notes.Add(NameOf(worker) + (record.state != CaptureState::kNotBegun
                                      ? " took part and had nothing to record"
                                      : " was armed"));
    } else if (worker.part == WorkerPart::kNever && !matched_none) {
      notes.Add(WithDetail(NameOf(worker) + " " + NeverWords(worker), worker.detail));
    }
    if (worker.left_out) notes.Add(LeftOutWords(worker));
    if (!worker.gave_way.empty()) notes.Add(GaveWayWords(worker));
  }
}

// What has to be said of events that are stored, or of files that have none.
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

// Whether a remark tells of events that are not there, though no loss may count them.
bool LackEvents(const Certificate& certificate) {
  const auto lacks = [](const Remark& remark) {
    switch (remark.kind) {
      case RemarkKind::kDamagedElement:
      case RemarkKind::kNoTime:
      case RemarkKind::kFileChanged:
      case RemarkKind::kFilePassedOver:
      case RemarkKind::kTooManyFiles:
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

// Whether others of a job were to be recorded nobody here can know, so this is no finding.
void JudgeRanks(const Certificate& certificate, Lines& notes) {
  for (const JobRanks& job : certificate.jobs) {
    if (job.cores_forgotten == 0 || !job.is_contradictory()) continue;
    notes.Add(fmt::format(
        "the ranks of {} are not compared: their workers ended so long ago that their jobs are not "
        "known any more",
        Count(job.cores_forgotten, "core")));
  }
  for (const MissingRanks& ranks : certificate.ranks) {
    const bool is_all = ranks.never_seen.size() < limits::kCertificateRankRangesMax;
    notes.Add(fmt::format(
        "{}{} of {} ranks were never seen: {}{}{}",
        ranks.job.empty() ? "" : fmt::format("job {}: ", ranks.job), ranks.never_seen_count,
        ranks.world_size, ToString(ranks.never_seen), is_all ? "" : ", …",
        ranks.disputed ? " (workers name different world sizes, this is the largest)" : ""));
  }
}

// "; 4 of 16 ranks never seen", of the first job that surely has more.
std::string NeverSeen(const Certificate& certificate) {
  for (const MissingRanks& ranks : certificate.ranks) {
    if (ranks.disputed) continue;
    return fmt::format("; {} of {} ranks never seen", ranks.never_seen_count, ranks.world_size);
  }
  return "";
}

std::string Summary(const CaptureRecord& record, const Certificate& certificate) {
  size_t never = 0, vanished = 0, lost = 0, not_reached = 0;
  for (const WorkerCertificate& worker : certificate.workers) {
    not_reached += ReachedNoExecution(record, worker);
    never += worker.part == WorkerPart::kNever && IsWanting(worker);
    vanished += worker.part == WorkerPart::kVanished;
    lost += worker.part == WorkerPart::kDataLost;
  }
  std::vector<std::string> parts;
  const EventAccount& account = certificate.account;
  if (account.lost > 0 || account.lost_unknown) {
    parts.push_back(LostWords(account));
  }
  if (lost > 0) parts.push_back(fmt::format("all data of {} lost", Count(lost, "worker")));
  if (vanished > 0) parts.push_back(Count(vanished, "worker") + " vanished");
  if (never > 0) parts.push_back(Count(never, "worker") + " never took part");
  if (not_reached > 0) {
    parts.push_back(Count(not_reached, "worker") + " reached none of the executions");
  }
  size_t awaited = 0;
  for (const AgentCertificate& agent : certificate.agents) {
    awaited += agent.part == AgentPart::kAwaited;
  }
  if (awaited > 0) parts.push_back("waiting for " + Count(awaited, "agent"));
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text.empty() ? certificate.findings.front() : text;
}

}  // namespace

std::string NameOf(const WorkerCertificate& worker) {
  if (worker.framework) return fmt::format("framework files of {}", worker.worker.instance_id);
  std::string name = worker.worker.instance_id;
  if (worker.worker.pid != 0) name += fmt::format(" pid {}", worker.worker.pid);
  if (!worker.worker_gids.empty()) {
    name += fmt::format(" (ranks {})", ToString(RangesOf(worker.worker_gids)));
  }
  return name;
}

void PassVerdict(const CaptureRecord& record, Certificate& certificate) {
  certificate.provisional = !HasEnded(record.state);
  const EventAccount& account = certificate.account;
  const bool matched_none = MatchedNone(certificate);
  const bool has_begun = record.state != CaptureState::kNotBegun;
  bool every_event_stored = false;
  {
    Lines findings(certificate.findings);
    Lines notes(certificate.notes);
    if (matched_none) findings.Add(WhyNone(certificate));
    JudgeAgents(certificate, findings);
    JudgeRanks(certificate, notes);
    if (account.expired > 0) notes.Add(ExpiredWords(account));
    JudgeWorkers(record, certificate, matched_none, findings, notes);
    for (const HostCertificate& host : certificate.hosts) {
      if (std::string finding = FindingOf(host); !finding.empty()) findings.Add(std::move(finding));
      if (std::string note = NoteOf(host); !note.empty()) notes.Add(std::move(note));
    }
    every_event_stored = certificate.findings.empty() && !LackEvents(certificate);
    AddRemarks(certificate, findings, notes);
    for (const JobRanks& job : certificate.jobs) {
      for (std::string& conflict : DescribeConflicts(job)) findings.Add(std::move(conflict));
    }
  }
  const std::string but_for = ButForWords(certificate);
  if (certificate.provisional) {
    certificate.verdict =
        fmt::format("provisional: {} events stored so far, {} lost{}", account.stored, account.lost,
                    account.lost_unknown ? " and an unknown number more" : "");
    if (account.expired > 0) certificate.verdict += "; " + ExpiredWords(account);
    if (!but_for.empty()) certificate.verdict += "; " + but_for;
    return;
  }
  certificate.complete = certificate.findings.empty() && has_begun;
  const std::string what = has_begun ? "incomplete: " : "not begun: ";
  if (certificate.findings.empty() && !has_begun) {
    certificate.verdict = what + "fewer workers were armed than it requires";
  } else if (certificate.complete) {
    const auto left_out =
        std::count_if(certificate.workers.begin(), certificate.workers.end(),
                      [](const WorkerCertificate& worker) { return worker.left_out.has_value(); });
    const bool all = left_out == 0 && but_for.empty();
    certificate.verdict =
        fmt::format("complete{}{}: every event {} is stored{}", but_for.empty() ? "" : " ", but_for,
                    all ? "the runtime produced" : "that was recorded",
                    account.expired == 0 ? "" : " or has expired as it was to");
    if (left_out > 0) {
      certificate.verdict += fmt::format("; {} left some out to keep to the budget",
                                         Count(static_cast<size_t>(left_out), "worker"));
    }
  } else if (every_event_stored) {
    const size_t more = certificate.findings.size() - 1;
    certificate.verdict = "every event is stored, but " + certificate.findings.front();
    if (more > 0) certificate.verdict += fmt::format(" (and {})", Count(more, "more finding"));
  } else if (matched_none) {
    certificate.verdict = what + certificate.findings.front();
  } else {
    certificate.verdict = what + Summary(record, certificate);
    if (!but_for.empty()) certificate.verdict += "; " + but_for;
  }
  if (account.expired > 0) certificate.verdict += "; " + ExpiredWords(account);
  certificate.verdict += NeverSeen(certificate);
}

void AddFinding(Certificate& certificate, std::string finding) {
  if (certificate.complete) {
    certificate.complete = false;
    certificate.verdict = "incomplete: " + finding;
  }
  Lines(certificate.findings).Add(std::move(finding));
}

}  // namespace neurontrace
