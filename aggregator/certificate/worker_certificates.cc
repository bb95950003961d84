// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/worker_certificates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "aggregator/certificate/event_account.h"
#include "lib/base/time_units.h"
#include "lib/trace/execution_coverage.h"
#include "lib/trace/fidelity.h"
#include "lib/trace/limits.h"
#include "lib/trace/suspension.h"

namespace neurontrace {
namespace {

// One worker while its parts are collected from streams, status and inventory.
struct Draft {
  WorkerCertificate certificate;
  const CaptureWorkerStatus* status = nullptr;
  const CaptureAgentPart* agent = nullptr;
  // Events that its agent must have read, by the accounts that arrived.
  uint64_t read = 0;
  bool streams_ended = true;
};

// Returns the length of a gap in ns. Requires both ends.
uint64_t LengthNs(const Gap& gap) {
  return gap.loss.last_timestamp_ns - gap.loss.first_timestamp_ns;
}

// All streams of a worker report the same stretch, except for what each had already delivered: the
// union is the worker's, and the longest text is the most complete one.
void AddLeftOut(const std::vector<Loss>& losses, std::optional<Loss>& left_out) {
  for (const Loss& loss : losses) {
    if (!IsLeftOut(loss) || loss.last_timestamp_ns == 0) continue;
    if (!left_out) left_out = loss;
    left_out->first_timestamp_ns = std::min(left_out->first_timestamp_ns, loss.first_timestamp_ns);
    left_out->last_timestamp_ns = std::max(left_out->last_timestamp_ns, loss.last_timestamp_ns);
    if (loss.detail.size() > left_out->detail.size()) left_out->detail = loss.detail;
  }
}

// Collects the evidence by worker. The order of the four loops matters: a non-participant is one
// only if neither a status nor a stream mentions it.
class Drafts {
 public:
  explicit Drafts(const CertificateEvidence& evidence) : evidence_(evidence) {
    for (const CaptureWorkerStatus& status : evidence.record.workers) {
      Draft& draft = At(status.worker, status.framework);
      draft.status = &status;
      draft.certificate.detail = status.detail;
      draft.certificate.obstacle = status.obstacle;
      draft.certificate.events_read = status.events_read;
      AddRemarks(status.remarks, draft.certificate.remarks);
      AddExecutions(status, draft.certificate);
    }
    for (const StreamRecord& stream : evidence.streams) {
      if (stream.identity.kind != StreamKind::kHost) AddStream(stream);
    }
    for (const NonParticipant& non_participant : evidence.record.non_participants)
      AddNonParticipant(non_participant);
    for (const WorkerInfo& info : evidence.workers) AddRanks(info);
  }

  // Judges every draft. Called once, as it moves the certificates out.
  std::vector<WorkerCertificate> Take() {
    std::vector<WorkerCertificate> workers;
    for (auto& [key, draft] : drafts_) workers.push_back(Judge(draft));
    return workers;
  }

 private:
  // A worker that was lost or refused is a finding already.
  void AddExecutions(const CaptureWorkerStatus& status, WorkerCertificate& worker) const {
    const CaptureRecord& record = evidence_.record;
    const bool is_by_execution = record.begin && record.spec.conditions.by_execution();
    if (!is_by_execution || !HasEnded(record.state)) return;
    if (status.state != CaptureWorkerState::kComplete) return;
    worker.late_cores = DescribeLateCores(*record.begin, status);
    worker.early_end = DescribeEarlyEnd(*record.begin, status);
  }

  // The framework files of an instance form one entry, whichever process wrote them.
  Draft& At(WorkerIdentity worker, bool framework) {
    if (framework) worker = {.instance_id = worker.instance_id, .boot_id = worker.boot_id};
    const auto [it, is_new] = drafts_.try_emplace({worker, framework});
    Draft& draft = it->second;
    if (!is_new) return draft;
    draft.certificate.worker = worker;
    draft.certificate.framework = framework;
    for (const CaptureAgentPart& part : evidence_.record.agents) {
      if (part.instance_id == worker.instance_id) draft.agent = &part;
    }
    if (draft.agent != nullptr) draft.certificate.agent_id = draft.agent->agent_id;
    return draft;
  }

  // Adds a stream to its worker: its account, its rank, its gaps, suspensions and remarks.
  void AddStream(const StreamRecord& stream) {
    Draft& draft = At(stream.identity.worker, stream.identity.kind == StreamKind::kFramework);
    WorkerCertificate& worker = draft.certificate;
    worker.agent_id = stream.identity.agent_id;
    if (worker.job.empty()) worker.job = stream.job;
    StreamCertificate& part = worker.streams.emplace_back();
    part.identity = stream.identity;
    part.number = stream.number;
    if (const RankEvidence* best = BestEvidence(stream.evidence)) {
      part.worker_gid = best->worker_gid;
      worker.worker_gids.push_back(best->worker_gid);
    }
    part.evidence = stream.evidence;
    part.account = AccountOf(stream);
    part.ended = stream.ended;
    part.own_time = stream.clock_domain == ClockDomain::kOwn;
    part.gaps = stream.gaps_count;
    part.gaps_sum_ns = stream.gaps_sum_ns;
    part.remarks = stream.remarks;
    AddRemarks(stream.remarks, worker.remarks);
    worker.account.Add(part.account);
    AddLeftOut(stream.losses, worker.left_out);
    worker.gaps = AddSaturating(worker.gaps, stream.gaps_count);
    // The maximum rather than the sum, because gaps of a worker's streams usually coincide.
    worker.gaps_sum_ns = std::max(worker.gaps_sum_ns, stream.gaps_sum_ns);
    for (const Suspension& suspension : stream.suspensions) {
      if (suspension.length_ns() > 0) worker.suspensions.push_back(suspension);
    }
    for (const Loss& gap : stream.gaps) {
      if (gap.last_timestamp_ns > gap.first_timestamp_ns) {
        worker.longest_gaps.push_back({stream.identity, gap});
      }
    }
    // A worker's agent reports how many events of its runtime it read; annotations are not among
    // them.
    if (stream.identity.kind != StreamKind::kAnnotation) {
      draft.read = AddSaturating(draft.read, EventsReadBy(stream));
    }
    draft.streams_ended = draft.streams_ended && stream.ended;
  }

  // Marks the worker as absent, with the reason.
  void AddNonParticipant(const NonParticipant& non_participant) {
    Draft& draft = At(non_participant.worker, false);
    // It took part after all: for instance, its agent reconnected after the list was made.
    if (draft.status != nullptr || !draft.certificate.streams.empty()) return;
    draft.certificate.agent_id = non_participant.agent_id;
    draft.certificate.part = WorkerPart::kNever;
    draft.certificate.detail = non_participant.detail;
    switch (non_participant.reason) {
      case NonParticipantReason::kNotSelected:
        draft.certificate.absence = WorkerAbsence::kNotSelected;
        break;
      case NonParticipantReason::kAgentAway:
        draft.certificate.absence = WorkerAbsence::kAgentAway;
        break;
      default:
        draft.certificate.absence = WorkerAbsence::kNotReported;
    }
  }

  // Adds the ranks of cores without a stream, and the job if no stream names it.
  void AddRanks(const WorkerInfo& info) {
    const auto it = drafts_.find({info.identity, false});
    if (it == drafts_.end()) return;
    if (it->second.certificate.job.empty()) it->second.certificate.job = info.job;
    const auto& streams = it->second.certificate.streams;
    for (const CoreInfo& core : info.cores) {
      // The evidence for a core with a stream is bound to the stream already, and may be newer
      // there.
      const bool has_stream =
          std::any_of(streams.begin(), streams.end(), [&core](const StreamCertificate& stream) {
            return stream.identity.nc_idx == core.nc_idx;
          });
      if (has_stream) continue;
      if (const RankEvidence* best = BestEvidence(core.rank_evidence)) {
        it->second.certificate.worker_gids.push_back(best->worker_gid);
      }
    }
  }

  // Sorts and limits what was collected, then judges the worker's part.
  WorkerCertificate Judge(Draft& draft) const {
    WorkerCertificate& worker = draft.certificate;
    auto& gids = worker.worker_gids;
    std::sort(gids.begin(), gids.end());
    gids.erase(std::unique(gids.begin(), gids.end()), gids.end());
    // Everything before that time has expired anyway, so that it does not matter who had the
    // worker.
    std::erase_if(worker.suspensions, [&worker](const Suspension& suspension) {
      return suspension.end_ns <= worker.account.expired_last_ns;
    });
    auto& gaps = worker.longest_gaps;
    std::stable_sort(gaps.begin(), gaps.end(),
                     [](const Gap& a, const Gap& b) { return LengthNs(a) > LengthNs(b); });
    if (gaps.size() > limits::kCertificateGapsMax) gaps.resize(limits::kCertificateGapsMax);
    if (worker.part != WorkerPart::kNever) DeterminePart(draft);
    return std::move(worker);
  }

  // Decides the outcome by the state that the agent reported and by what arrived. The order of the
  // cases matters: refused, never begun, vanished, idle, data lost, recorded.
  void DeterminePart(Draft& draft) const {
    WorkerCertificate& worker = draft.certificate;
    const CaptureWorkerState state =
        draft.status == nullptr ? CaptureWorkerState::kUnspecified : draft.status->state;
    const bool has_ended = HasEnded(evidence_.record.state);
    const bool has_traces = worker.account.expected > 0 || worker.account.lost_unknown;
    // More read than arrived is always wrong. Fewer is wrong only if the agent declared the number
    // final: otherwise it may simply have reported before it read on.
    worker.events_read_differs =
        has_ended && (worker.events_read > draft.read ||
                      (state == CaptureWorkerState::kComplete && worker.events_read < draft.read));
    if (state == CaptureWorkerState::kRefused && !has_traces) {
      worker.part = WorkerPart::kNever;
      worker.absence = AbsenceOf(draft.status->worker_state);
    } else if (evidence_.record.state == CaptureState::kNotBegun && !has_traces) {
      // The capture was called off before it began: the worker was armed and released.
      worker.part = WorkerPart::kIdle;
    } else if (has_ended ? HasVanished(draft, state) : state == CaptureWorkerState::kLost) {
      worker.part = WorkerPart::kVanished;
      if (state == CaptureWorkerState::kComplete && worker.detail.empty()) {
        worker.detail = DescribeGivenUp(draft);
      }
      RecordUnknown(worker);
    } else if (!has_traces) {
      worker.part = WorkerPart::kIdle;
    } else {
      const bool was_stored = worker.account.stored > 0 || worker.account.expired > 0;
      worker.part = was_stored ? WorkerPart::kRecorded : WorkerPart::kDataLost;
    }
  }

  // Returns whether a stream that its agent had opened never arrived.
  static bool LacksStreams(const Draft& draft) {
    return draft.status->streams > draft.certificate.streams.size();
  }

  // Describes an agent's delivery that is incomplete although the agent reports success: a
  // restarted agent does not know what its predecessor gave up.
  static std::string DescribeGivenUp(const Draft& draft) {
    const auto& streams = draft.certificate.streams;
    const auto ended = std::count_if(streams.begin(), streams.end(),
                                     [](const StreamCertificate& stream) { return stream.ended; });
    return fmt::format("only {} of its {} streams arrived completely", ended,
                       std::max<size_t>(streams.size(), draft.status->streams));
  }

  // Returns whether more may have existed than arrived, with nobody left who could report it.
  static bool HasVanished(const Draft& draft, CaptureWorkerState state) {
    const bool has_last_word = draft.agent != nullptr && draft.agent->finished;
    // Without a reported number of streams, others may never have arrived.
    const bool has_all = draft.status != nullptr && draft.status->streams > 0 &&
                         draft.streams_ended && !LacksStreams(draft);
    if (state == CaptureWorkerState::kLost) {
      return !has_all || draft.certificate.account.lost_unknown;
    }
    if (state == CaptureWorkerState::kComplete) {
      // A stream without an end was given up somewhere on the way, whatever its worker reports.
      return !draft.streams_ended || LacksStreams(draft) ||
             (!has_last_word && draft.certificate.events_read_differs);
    }
    if (state == CaptureWorkerState::kRefused) {
      return !draft.streams_ended ||
             (!has_last_word && (draft.certificate.events_read_differs || LacksStreams(draft)));
    }
    return !has_all;
  }

  // A worker that vanished may have produced events that nobody counted: the sums must not look
  // whole.
  static void RecordUnknown(WorkerCertificate& worker) {
    if (worker.account.lost_unknown) return;
    EventAccount unknown;
    unknown.lost_unknown = true;
    unknown.losses = {{.events_unknown = true}};
    unknown.conserved = Conservation::kUndetermined;
    worker.account.Add(unknown);
  }

  // Returns why a worker that was refused took no part, by its state at that time.
  static WorkerAbsence AbsenceOf(WorkerState state) {
    switch (state) {
      case WorkerState::kBusyOtherProfiler:
        return WorkerAbsence::kBusyOtherProfiler;
      case WorkerState::kNotInitialised:
      case WorkerState::kRuntimeTooOld:
      case WorkerState::kClosed:
        return WorkerAbsence::kNoRuntime;
      default:
        return WorkerAbsence::kRefused;
    }
  }

  const CertificateEvidence& evidence_;
  std::map<std::pair<WorkerIdentity, bool>, Draft> drafts_;
};

// Returns the worker's place in the list: the worse its outcome, the smaller.
int Rank(const WorkerCertificate& worker) {
  if (worker.account.conserved == Conservation::kNo) return 0;
  if (worker.part == WorkerPart::kVanished) return 1;
  if (worker.part == WorkerPart::kDataLost) return 2;
  if (worker.part == WorkerPart::kNever) return IsUnderfilled(worker) ? 3 : 7;
  if (IsUnderfilled(worker)) return 4;
  return worker.part == WorkerPart::kRecorded ? 5 : 6;
}

}  // namespace

bool IsUnderfilled(const WorkerCertificate& worker) {
  switch (worker.part) {
    case WorkerPart::kNever:
      return worker.absence != WorkerAbsence::kNotSelected &&
             worker.absence != WorkerAbsence::kAgentAway;
    case WorkerPart::kDataLost:
    case WorkerPart::kVanished:
      return true;
    default:
      return !worker.account.whole() || worker.events_read_differs;
  }
}

// The sort is stable, so that workers with equal outcomes keep the order of their identities.
std::vector<WorkerCertificate> MakeWorkerCertificates(const CertificateEvidence& evidence) {
  std::vector<WorkerCertificate> workers = Drafts(evidence).Take();
  std::stable_sort(workers.begin(), workers.end(), [](const auto& a, const auto& b) {
    return std::tuple(Rank(a), b.account.lost) < std::tuple(Rank(b), a.account.lost);
  });
  return workers;
}

}  // namespace neurontrace
