// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/make_certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "aggregator/certificate/event_account.h"
#include "aggregator/certificate/host_certificates.h"
#include "aggregator/certificate/job_ranks.h"
#include "aggregator/certificate/verdict.h"
#include "aggregator/certificate/worker_certificates.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/trace/rank_evidence.h"

namespace neurontrace {
namespace {

// Returns how far an agent's part has arrived, by the flags of the record.
AgentCertificate MakeAgent(const CaptureRecord& record, const CaptureAgentPart& part) {
  AgentCertificate agent;
  agent.agent_id = part.agent_id;
  agent.instance_id = part.instance_id;
  agent.connected = part.away_since_realtime_ns == 0;
  agent.away_since_realtime_ns = part.away_since_realtime_ns;
  // The order matters: an agent that was given up and came back all the same has finished.
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

// Streams tell when a core had events, so that only simultaneous claims are a dispute. A worker
// that had nothing to record claims its ranks without a time, which disputes nothing.
std::vector<JobRanks> CompareRanksOf(const CertificateEvidence& evidence) {
  JobRankCensus census;
  std::set<WorkerIdentity> participants;
  std::map<WorkerIdentity, const WorkerInfo*> infos;
  // Framework sources have no cores and take no part in ranks.
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
    const std::string& job = stream.job.empty() ? evidence.record.spec.selection.job : stream.job;
    census.AddAccount(worker, job, AccountOf(stream));
    // A stream without an event was recorded at no time: an empty interval.
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
        census.AddNonParticipant(worker, core.rank_evidence);
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

// Only the first few are named, as there may be thousands.
constexpr size_t kArtifactsNamed = 3;

// Returns a note; requires at least one file.
std::string DescribeForgoneArtifacts(std::span<const ArtifactForgone> forgone) {
  std::string text =
      fmt::format("{} file{} of the vendor's profiler {} not stored: ", forgone.size(),
                  forgone.size() == 1 ? "" : "s", forgone.size() == 1 ? "is" : "are");
  const size_t named = std::min(forgone.size(), kArtifactsNamed);
  for (size_t i = 0; i < named; ++i) {
    text +=
        fmt::format("{}{} ({})", i == 0 ? "" : ", ", forgone[i].place.path(), forgone[i].reason);
  }
  if (named < forgone.size()) text += fmt::format(" and {} more", forgone.size() - named);
  return text;
}

// Files that a remark's detail names; the others are counted.
constexpr size_t kFilesNamed = 4;

// A framework file and the rank that it claims.
struct FileClaim {
  const StreamRecord* stream = nullptr;
  const RankEvidence* evidence = nullptr;
};

// A file with a time of its own may overlap with any other, since nobody knows when it was
// recorded.
uint64_t BeginNs(const FileClaim& claim) {
  return claim.stream->clock_domain == ClockDomain::kOwn ? 0 : claim.stream->first_timestamp_ns;
}
uint64_t EndNs(const FileClaim& claim) {
  return claim.stream->clock_domain == ClockDomain::kOwn ? UINT64_MAX
                                                         : claim.stream->last_timestamp_ns;
}

// Returns the files that claim a rank, in the order of their begin. Files without an event claim
// nothing.
std::vector<FileClaim> ClaimsOf(std::span<const StreamRecord> streams) {
  std::vector<FileClaim> claims;
  for (const StreamRecord& stream : streams) {
    if (stream.identity.kind != StreamKind::kFramework || stream.events == 0) continue;
    const auto claim =
        std::find_if(stream.evidence.begin(), stream.evidence.end(), [](const RankEvidence& one) {
          return one.source == RankSource::kFrameworkFile && one.worker_gid >= 0;
        });
    if (claim != stream.evidence.end()) claims.push_back({&stream, &*claim});
  }
  std::sort(claims.begin(), claims.end(), [](const FileClaim& a, const FileClaim& b) {
    return std::pair(BeginNs(a), a.stream->number) < std::pair(BeginNs(b), b.stream->number);
  });
  return claims;
}

// Returns those of `claims`, which are in the order of their begin, that overlap in time with
// another one. One pass: it suffices to compare with the claim that ends last so far.
std::vector<FileClaim> Overlapping(const std::vector<FileClaim>& claims) {
  std::vector<FileClaim> overlapping;
  FileClaim latest;  // of those so far the one that ends last
  bool is_listed = false;
  for (const FileClaim& claim : claims) {
    if (latest.stream != nullptr && BeginNs(claim) <= EndNs(latest)) {
      if (!is_listed) overlapping.push_back(latest);
      overlapping.push_back(claim);
      is_listed = true;
    } else {
      is_listed = false;
    }
    if (latest.stream == nullptr || EndNs(claim) > EndNs(latest)) {
      // If it overlaps with an earlier claim, it was listed above.
      latest = claim;
    }
  }
  return overlapping;
}

// Returns the names of at most kFilesNamed files.
std::string Names(const std::vector<FileClaim>& claims, bool with_world_size) {
  std::string names;
  for (size_t i = 0; i < std::min(claims.size(), kFilesNamed); ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", ToString(claims[i].stream->identity));
    if (with_world_size) names += fmt::format(" ({})", claims[i].evidence->world_size);
  }
  if (claims.size() > kFilesNamed)
    names += fmt::format(" and {} more", claims.size() - kFilesNamed);
  return names;
}

// Adds a remark to the framework entry of the first file's instance.
void AddContradiction(const FileClaim& first, const std::string& detail,
                      std::vector<WorkerCertificate>& workers) {
  const std::string& instance = first.stream->identity.worker.instance_id;
  const auto worker =
      std::find_if(workers.begin(), workers.end(), [&](const WorkerCertificate& one) {
        return one.framework && one.worker.instance_id == instance;
      });
  // Only if the caller's list lacks the instance: MakeWorkerCertificates makes an entry for each
  // stream.
  if (worker == workers.end()) return;
  AddRemark(RemarkKind::kRankContradiction, 1, detail, worker->remarks);
}

// Adds one remark if files that overlap in time claim different world sizes.
void CompareWorldSizes(const std::vector<FileClaim>& claims,
                       std::vector<WorkerCertificate>& workers) {
  std::vector<FileClaim> with_size;
  for (const FileClaim& claim : claims) {
    if (claim.evidence->world_size > 0) with_size.push_back(claim);
  }
  std::map<int64_t, FileClaim> by_size;  // the first file of each
  for (const FileClaim& claim : Overlapping(with_size)) {
    by_size.try_emplace(claim.evidence->world_size, claim);
  }
  if (by_size.size() < 2) return;
  std::vector<FileClaim> different;
  for (const auto& [size, claim] : by_size) different.push_back(claim);
  AddContradiction(different.front(),
                   "files report different world sizes: " + Names(different, true), workers);
}

}  // namespace

// The order is that of the dependencies: workers, then sums over them, then ranks, then the verdict
// on all of it.
Certificate MakeCertificate(const CertificateEvidence& evidence) {
  Certificate certificate;
  certificate.capture_id = evidence.record.id;
  certificate.workers = MakeWorkerCertificates(evidence);
  // Before accounts are summed up and judged: it adds remarks, which findings are made from.
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
    certificate.notes.push_back(DescribeForgoneArtifacts(evidence.artifacts_forgone));
  }
  FinalizeCertificate(evidence.record, certificate);
  return certificate;
}

void CompareFileRanks(std::span<const StreamRecord> streams,
                      std::vector<WorkerCertificate>& workers) {
  const std::vector<FileClaim> claims = ClaimsOf(streams);
  std::map<int64_t, std::vector<FileClaim>> by_rank;
  for (const FileClaim& claim : claims) by_rank[claim.evidence->worker_gid].push_back(claim);
  for (const auto& [rank, of_rank] : by_rank) {
    const std::vector<FileClaim> overlapping = Overlapping(of_rank);
    if (overlapping.empty()) continue;
    AddContradiction(overlapping.front(),
                     fmt::format("rank {} is claimed by {} files at the same time: {}", rank,
                                 overlapping.size(), Names(overlapping, false)),
                     workers);
  }
  CompareWorldSizes(claims, workers);
}

// Reads the streams of this moment.
absl::StatusOr<Certificate> ReadCertificate(const Store& store, const CaptureRecord& record) {
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams, store.OpenCapture(record.id).Streams());
  return ReadCertificate(store, record, streams);
}

// Reads the inventory for the workers that the record names, and the artifacts that were not
// stored.
absl::StatusOr<Certificate> ReadCertificate(const Store& store, const CaptureRecord& record,
                                            std::span<const StreamRecord> streams) {
  std::set<WorkerIdentity> named;
  for (const CaptureWorkerStatus& status : record.workers) {
    if (!status.framework) named.insert(status.worker);
  }
  for (const NonParticipant& non_participant : record.non_participants)
    named.insert(non_participant.worker);
  std::vector<WorkerInfo> infos;
  for (const WorkerIdentity& identity : named) {
    auto worker = store.inventory().Worker(identity);
    // The inventory forgets workers some time after their end; the certificate then does without.
    if (absl::IsNotFound(worker.status())) continue;
    RETURN_IF_ERROR(worker.status());
    infos.push_back(std::move(worker->info));
  }
  ASSIGN_OR_RETURN(const std::vector<ArtifactForgone> forgone,
                   store.artifacts().Forgone(record.id));
  return MakeCertificate(
      {.record = record, .streams = streams, .workers = infos, .artifacts_forgone = forgone});
}

}  // namespace neurontrace
