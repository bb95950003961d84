// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/certificate_message.h"

#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>

#include "aggregator/certificate/job_ranks.h"
#include "lib/wire/conversions.h"
#include "lib/wire/suspension_codec.h"

namespace neurontrace {
namespace {

// Enums are cast; these check the last value of each.
static_assert(static_cast<int>(Conservation::kUndetermined) == v1::CONSERVATION_CANNOT_SAY);
static_assert(static_cast<int>(WorkerPart::kVanished) == v1::WORKER_PART_VANISHED);
static_assert(static_cast<int>(WorkerAbsence::kNotReported) == v1::WORKER_ABSENCE_NOT_REPORTED);
static_assert(static_cast<int>(AgentPart::kGivenUp) == v1::AGENT_PART_GIVEN_UP);

// The functions below copy one part of a certificate each, field by field. They must be extended
// together with the messages.
void ToMessage(const EventAccount& account, v1::EventAccount& message) {
  message.set_expected(account.expected);
  message.set_captured(account.captured);
  message.set_stored(account.stored);
  message.set_lost(account.lost);
  message.set_lost_unknown(account.lost_unknown);
  for (const Loss& loss : account.losses) ToProto(loss, message.add_losses());
  message.set_conserved(static_cast<v1::Conservation>(account.conserved));
}

void ToMessage(const StreamCertificate& stream, v1::StreamCertificate& message) {
  ToProto(stream.identity, message.mutable_identity());
  message.set_number(stream.number);
  message.set_worker_gid(stream.worker_gid);
  for (const RankEvidence& claim : stream.evidence) ToProto(claim, message.add_rank_evidence());
  ToMessage(stream.account, *message.mutable_account());
  message.set_ended(stream.ended);
  message.set_gaps(stream.gaps);
  message.set_gaps_sum_ns(stream.gaps_sum_ns);
  message.set_own_time(stream.own_time);
  for (const Remark& remark : stream.remarks) ToProto(remark, message.add_remarks());
}

void ToMessage(const WorkerCertificate& worker, v1::WorkerCertificate& message) {
  ToProto(worker.worker, message.mutable_worker());
  message.set_framework(worker.framework);
  message.set_agent_id(worker.agent_id);
  message.set_job(worker.job);
  message.set_part(static_cast<v1::WorkerPart>(worker.part));
  message.set_absence(static_cast<v1::WorkerAbsence>(worker.absence));
  message.set_detail(worker.detail);
  for (const int64_t gid : worker.worker_gids) message.add_worker_gids(gid);
  ToMessage(worker.account, *message.mutable_account());
  message.set_events_read(worker.events_read);
  message.set_events_read_differs(worker.events_read_differs);
  message.mutable_clock()->set_aligned(worker.clock.aligned);
  message.mutable_clock()->set_bound_ns(worker.clock.bound_ns);
  message.mutable_clock()->set_likely_bound_ns(worker.clock.likely_bound_ns);
  message.mutable_clock()->set_words(worker.clock.words);
  // Only the longest gaps are listed; `gaps` counts all of them.
  for (const Gap& gap : worker.longest_gaps) {
    v1::Gap& told = *message.add_longest_gaps();
    ToProto(gap.stream, told.mutable_stream());
    ToProto(gap.loss, told.mutable_loss());
  }
  message.set_gaps(worker.gaps);
  message.set_gaps_sum_ns(worker.gaps_sum_ns);
  for (const Remark& remark : worker.remarks) ToProto(remark, message.add_remarks());
  for (const Suspension& suspension : worker.suspensions) {
    ToProto(suspension, message.add_suspensions());
  }
  for (const StreamCertificate& stream : worker.streams) ToMessage(stream, *message.add_streams());
}

void ToMessage(const HostCertificate& host, v1::HostCertificate& message) {
  ToProto(host.stream, message.mutable_stream());
  message.set_number(host.number);
  ToMessage(host.account, *message.mutable_account());
  message.set_ended(host.ended);
  message.set_cut_short(host.cut_short);
  message.set_gaps(host.gaps);
  message.set_gaps_sum_ns(host.gaps_sum_ns);
}

void ToMessage(const AgentCertificate& agent, v1::AgentCertificate& message) {
  message.set_agent_id(agent.agent_id);
  message.set_instance_id(agent.instance_id);
  message.set_part(static_cast<v1::AgentPart>(agent.part));
  message.set_connected(agent.connected);
  message.set_away_since_realtime_ns(agent.away_since_realtime_ns);
  message.set_awaited_until_realtime_ns(agent.awaited_until_realtime_ns);
}

// Lists some of the claimants; claimants_count counts all.
void ToMessage(const RankDispute& dispute, v1::RankDispute& message) {
  message.set_worker_gid(dispute.worker_gid);
  message.set_claimants_count(dispute.claimants_count);
  for (const RankClaimant& claimant : dispute.claimants) {
    v1::RankClaimant& told = *message.add_claimants();
    ToProto(claimant.worker, told.mutable_worker());
    told.set_nc_idx(claimant.nc_idx);
    told.set_job(claimant.job);
    ToProto(claimant.evidence, told.mutable_evidence());
  }
}

void ToMessage(const MissingRanks& ranks, v1::MissingRanks& message) {
  message.set_job(ranks.job);
  message.set_world_size(ranks.world_size);
  message.set_seen(ranks.seen);
  for (const NumberRange& range : ranks.never_seen) {
    v1::RankRange& told = *message.add_never_seen();
    told.set_first(range.first);
    told.set_last(range.last);
  }
  message.set_never_seen_count(ranks.never_seen_count);
  message.set_disputed(ranks.disputed);
}

}  // namespace

// Also used by ListWorkers, which has no certificate.
void ToMessage(const JobRanks& job, v1::JobRanks& message) {
  message.set_job(job.job);
  for (const std::string& name : job.other_names) message.add_other_names(name);
  message.set_workers(job.workers);
  message.set_cores(job.cores);
  message.set_world_size(job.world_size);
  for (const WorldSizeClaim& claim : job.world_sizes) {
    v1::WorldSizeClaim& told = *message.add_world_sizes();
    told.set_world_size(claim.world_size);
    told.set_cores(claim.cores);
  }
  message.set_ranks_seen(job.ranks_seen);
  message.set_ranks_beyond_world(job.ranks_beyond_world);
  message.set_cores_without_rank(job.cores_without_rank);
  message.set_cores_guessed(job.cores_guessed);
  message.set_cores_contradicted(job.cores_contradicted);
  for (const NumberRange& range : job.never_seen) {
    v1::RankRange& told = *message.add_never_seen();
    told.set_first(range.first);
    told.set_last(range.last);
  }
  message.set_never_seen_count(job.never_seen_count);
  for (const RankDispute& dispute : job.disputes) ToMessage(dispute, *message.add_disputes());
  message.set_disputes_count(job.disputes_count);
  message.set_cores_forgotten(job.cores_forgotten);
  // Derived values are sent as well, so that clients need not repeat the rules.
  message.set_has_conflict(job.has_conflict());
  for (const std::string& conflict : DescribeConflicts(job)) message.add_conflicts(conflict);
  ToMessage(job.account, *message.mutable_account());
}

// The full message starts from this one, so the two never disagree.
v1::Certificate ToBriefMessage(const Certificate& certificate) {
  v1::Certificate message;
  message.set_capture_id(certificate.capture_id.ToString());
  message.set_provisional(certificate.provisional);
  message.set_complete(certificate.complete);
  message.set_verdict(certificate.verdict);
  ToMessage(certificate.account, *message.mutable_account());
  for (const std::string& finding : certificate.findings) message.add_findings(finding);
  for (const std::string& note : certificate.notes) message.add_notes(note);
  return message;
}

v1::Certificate ToMessage(const Certificate& certificate) {
  v1::Certificate message = ToBriefMessage(certificate);
  for (const WorkerCertificate& worker : certificate.workers) {
    ToMessage(worker, *message.add_workers());
  }
  for (const HostCertificate& host : certificate.hosts) ToMessage(host, *message.add_hosts());
  for (const AgentCertificate& agent : certificate.agents) ToMessage(agent, *message.add_agents());
  for (const JobRanks& job : certificate.jobs) ToMessage(job, *message.add_jobs());
  for (const MissingRanks& ranks : certificate.ranks) ToMessage(ranks, *message.add_ranks());
  return message;
}

std::string ToJson(const v1::Certificate& message) {
  google::protobuf::util::JsonPrintOptions options;
  // Readers of the JSON can rely on every number, also if it is 0, and on the names in the .proto
  // file.
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  // Happens only for text that is not UTF-8, which ToProto repairs and no other field contains.
  if (!status.ok()) return "{}";
  return text;
}

}  // namespace neurontrace
