// SPDX-License-Identifier: Apache-2.0
#include "aggregator/certificate/host_certificates.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "aggregator/certificate/event_account.h"

namespace neurontrace {
namespace {

// Only if its agent has finished: an agent that is still to bring the rest, or that was given up,
// has a finding of its own already.
bool IsCutShort(const CertificateEvidence& evidence, const StreamRecord& stream) {
  if (stream.ended || !HasEnded(evidence.record.state)) return false;
  const auto& agents = evidence.record.agents;
  return std::any_of(agents.begin(), agents.end(), [&stream](const CaptureAgentPart& part) {
    return part.agent_id == stream.identity.agent_id && part.finished;
  });
}

// An agent that continues without its aggregator reports such a gap, because the capture may have
// been stopped meanwhile: its begin is known, its end is not.
bool HasNoEnd(const Loss& gap) {
  return gap.events == 0 && !gap.events_unknown &&
         gap.first_timestamp_ns == gap.last_timestamp_ns;
}

}  // namespace

// Makes one entry for each stream of samples.
std::vector<HostCertificate> MakeHostCertificates(const CertificateEvidence& evidence) {
  std::vector<HostCertificate> hosts;
  for (const StreamRecord& stream : evidence.streams) {
    if (stream.identity.kind != StreamKind::kHost) continue;
    HostCertificate& host = hosts.emplace_back();
    host.stream = stream.identity;
    host.number = stream.number;
    host.account = AccountOf(stream);
    host.ended = stream.ended;
    host.remarks = stream.remarks;
    host.cut_short = IsCutShort(evidence, stream);
    host.gaps = stream.gaps_count;
    host.gaps_sum_ns = stream.gaps_sum_ns;
    host.gaps_without_end =
        static_cast<uint64_t>(std::count_if(stream.gaps.begin(), stream.gaps.end(), HasNoEnd));
  }
  // Streams come in the order of their arrival, which differs from capture to capture.
  std::stable_sort(hosts.begin(), hosts.end(), [](const auto& a, const auto& b) {
    return a.stream.worker.instance_id < b.stream.worker.instance_id;
  });
  return hosts;
}

// A stream that was cut short, losses, and totals that disagree are findings, in this order.
std::string FindingOf(const HostCertificate& host) {
  const EventAccount& account = host.account;
  if (account.whole() && !host.cut_short) return "";
  std::string text = fmt::format("host samples of {}", host.stream.worker.instance_id);
  if (host.cut_short) {
    text += fmt::format(" did not arrive completely; {} events are stored", account.stored);
  }
  if (account.lost > 0 || account.lost_unknown) {
    text += host.cut_short ? "; " : ": ";
    text += account.lost == 0 ? "an unknown number of events lost"
                              : fmt::format("{} of {} events lost", account.lost, account.expected);
    text += ": " + DescribeLosses(account.losses);
  } else if (account.conserved == Conservation::kNo) {
    text += fmt::format("; their totals disagree ({} captured)", account.captured);
  }
  return text;
}

// Gaps with an end have a length; the others are only counted.
std::string NoteOf(const HostCertificate& host) {
  if (host.gaps == 0 && host.gaps_without_end == 0) return "";
  std::string text =
      fmt::format("the host {} was not sampled continuously: ", host.stream.worker.instance_id);
  if (host.gaps > 0) {
    text += fmt::format("{} gap{}, {:.1f} s in total", host.gaps, host.gaps == 1 ? "" : "s",
                        static_cast<double>(host.gaps_sum_ns) * 1e-9);
  }
  if (host.gaps_without_end > 0) {
    text += fmt::format("{}{} gap{} with an unknown end", host.gaps > 0 ? ", and " : "",
                        host.gaps_without_end, host.gaps_without_end == 1 ? "" : "s");
  }
  return text;
}

}  // namespace neurontrace
