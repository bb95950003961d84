// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/make_certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "aggregator/certificate/file_ranks.h"
#include "aggregator/certificate/host_certificates.h"
#include "aggregator/certificate/missing_ranks.h"
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

std::vector<MissingRanks> FindMissingRanks(const CertificateEvidence& evidence) {
  RankCensus census;
  for (const StreamRecord& stream : evidence.streams) {
    if (stream.identity.kind != StreamKind::kNeuronCore) continue;
    census.AddParticipant(stream.job, stream.evidence);
  }
  std::set<WorkerIdentity> participants;
  for (const CaptureWorkerStatus& status : evidence.record.workers) {
    participants.insert(status.worker);
  }
  for (const WorkerInfo& worker : evidence.workers) {
    for (const CoreInfo& core : worker.cores) {
      if (participants.contains(worker.identity)) {
        census.AddParticipant(worker.job, core.rank_evidence);
      } else {
        census.AddBystander(worker.job, core.rank_evidence);
      }
    }
  }
  return census.Missing();
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
  certificate.ranks = FindMissingRanks(evidence);
  if (!evidence.artifacts_forgone.empty()) {
    certificate.notes.push_back(ForgoneArtifactWords(evidence.artifacts_forgone));
  }
  PassVerdict(evidence.record, certificate);
  return certificate;
}

}  // namespace neurontrace
