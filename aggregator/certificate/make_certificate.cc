// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/make_certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "aggregator/certificate/event_account.h"
#include "aggregator/certificate/file_ranks.h"
#include "aggregator/certificate/host_certificates.h"
#include "aggregator/certificate/job_ranks.h"
#include "aggregator/certificate/verdict.h"
#include "aggregator/certificate/worker_certificates.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

AgentCertificate MakeAgent(const CaptureRecord& record, const CaptureAgentPart& part) {
  AgentCertificate agent;
  agent.agent_id = part.agent_id;
  agent.instance_id = part.instance_id;
  agent.connected = part.away_since_realtime_ns == 0;
  agent.away_since_realtime_ns = part.away_since_realtime_ns;
  if (part.finished) {
    agent.part = AgentPart::kFinished;
  } else if (part.given_up) {
    agent.part = AgentPart::kGivenUp;
  } else if (part.vanished) {
    agent.part = AgentPart::kAwaited;
    agent.awaited_until_realtime_ns = record.ended_realtime_ns + limits::kLateAgentMaxNs;
  } else {
    agent.part = AgentPart::kRecording;
  }
  return agent;
}

// Streams tell when a core had events, so that only claims of the same time are a dispute. A worker
// that had nothing to record claims its ranks without a time.
std::vector<JobRanks> CompareRanksOf(const CertificateEvidence& evidence) {
  JobRankCensus census;
  std::set<WorkerIdentity> participants;
  std::map<WorkerIdentity, const WorkerInfo*> infos;
  for (const CaptureWorkerStatus& status : evidence.record.workers) {
    if (!status.framework) participants.insert(status.worker);
  }
  for (const WorkerInfo& worker : evidence.workers) infos[worker.identity] = &worker;
  std::set<std::pair<WorkerIdentity, uint32_t>> with_stream;
  for (const StreamRecord& stream : evidence.streams) {
    if (stream.identity.kind != StreamKind::kNeuronCore) continue;
    const WorkerIdentity& worker = stream.identity.worker;
    const auto info = infos.find(worker);
    if (info != infos.end()) census.AddWorker(*info->second);
    with_stream.emplace(worker, stream.identity.nc_idx);
    const std::string& job = stream.job.empty() ? evidence.record.spec.job : stream.job;
    census.AddAccount(worker, job, AccountOf(stream));
    // Without an event it was at no time.
    const bool has_events = stream.first_timestamp_ns != 0;
    census.AddCore(job, {.stream = stream.identity,
                         .evidence = stream.evidence,
                         .first_ns = has_events ? stream.first_timestamp_ns : UINT64_MAX,
                         .last_ns = has_events ? stream.last_timestamp_ns : 0,
                         .is_forgotten = info == infos.end() && job.empty()});
  }
  for (const WorkerInfo& worker : evidence.workers) {
    for (const CoreInfo& core : worker.cores) {
      if (with_stream.contains({worker.identity, core.nc_idx})) continue;
      if (!participants.contains(worker.identity)) {
        census.AddBystander(worker, core.rank_evidence);
        continue;
      }
      census.AddWorker(worker);
      census.AddCore(worker.job, {.stream = {.worker = worker.identity,
                                             .kind = StreamKind::kNeuronCore,
                                             .nc_idx = core.nc_idx},
                                  .evidence = core.rank_evidence,
                                  .first_ns = UINT64_MAX,
                                  .last_ns = 0});
    }
  }
  return census.Jobs();
}

// The first few, as there may be thousands.
constexpr size_t kArtifactsNamed = 3;

std::string ForgoneArtifactWords(std::span<const ArtifactForgone> forgone) {
  std::string text =
      fmt::format("{} file{} of the vendor's profiler {} not kept: ", forgone.size(),
                  forgone.size() == 1 ? "" : "s", forgone.size() == 1 ? "is" : "are");
  const size_t named = std::min(forgone.size(), kArtifactsNamed);
  for (size_t i = 0; i < named; ++i) {
    text +=
        fmt::format("{}{} ({})", i == 0 ? "" : ", ", forgone[i].place.path(), forgone[i].reason);
  }
  if (named < forgone.size()) text += fmt::format(" and {} more", forgone.size() - named);
  return text;
}

}  // namespace

Certificate MakeCertificate(const CertificateEvidence& evidence) {
  Certificate certificate;
  certificate.capture_id = evidence.record.id;
  certificate.workers = MakeWorkerCertificates(evidence);
  CompareFileRanks(evidence.streams, certificate.workers);
  for (const WorkerCertificate& worker : certificate.workers) {
    certificate.account.Add(worker.account);
  }
  certificate.hosts = MakeHostCertificates(evidence);
  for (const CaptureAgentPart& part : evidence.record.agents) {
    certificate.agents.push_back(MakeAgent(evidence.record, part));
  }
  certificate.jobs = CompareRanksOf(evidence);
  certificate.ranks = MissingOf(certificate.jobs);
  if (!evidence.artifacts_forgone.empty()) {
    certificate.notes.push_back(ForgoneArtifactWords(evidence.artifacts_forgone));
  }
  PassVerdict(evidence.record, certificate);
  return certificate;
}

}  // namespace neurontrace
