// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_aggregator.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cli/capture_view.h"
#include "cli/text.h"
#include "lib/base/address.h"
#include "lib/trace/agent_info.h"

namespace neurontrace::cli {
namespace {

// An answer that takes longer, in ns, delays the begin of captures noticeably.
constexpr uint64_t kSlowNs = 100'000'000;

// Reports versions and connections of all agents. Only the most serious problem has a fix:
// protocol, version, missing connections, no agent.
Finding CheckAgents(const v1::GetStatusReply& status, const std::string& version,
                    const std::string& host_name) {
  Finding finding{.check = "agents"};
  finding.what =
      fmt::format("{} of {} connected", status.agents_connected(), status.agents_known());
  std::string other_versions, other_protocols;
  bool is_here = false;
  for (const v1::Agent& agent : status.agents()) {
    // The version of an agent that is away may have changed since.
    if (!agent.connected()) continue;
    const v1::AgentHello& hello = agent.hello();
    is_here |= hello.host_name() == host_name;
    const std::string name = " " + hello.instance_id();
    if (hello.protocol_version() < kProtocolVersion) other_protocols += name;
    if (hello.agent_version() != version)
      other_versions += name + " (" + hello.agent_version() + ")";
  }
  if (!other_protocols.empty()) {
    finding.severity = Severity::kWarning;
    finding.what += fmt::format("; with an older protocol:{}", other_protocols);
    finding.fix = "install this release's neurontrace-agent there";
  } else if (!other_versions.empty()) {
    finding.severity = Severity::kWarning;
    finding.what += fmt::format("; not {}:{}", version, other_versions);
    finding.fix = "install agents of the same release";
  } else if (status.agents_connected() < status.agents_known()) {
    finding.severity = Severity::kWarning;
    finding.fix = "`neurontrace status` lists the agents that are not connected";
  } else if (status.agents_connected() == 0) {
    finding.severity = Severity::kWarning;
    finding.what = "no agent is connected, so nothing can be captured";
    finding.fix = "start neurontrace-agent --aggregator HOST:PORT on each instance";
  }
  if (is_here) finding.what += "; this machine's is among them";
  return finding;
}

// Reports the versions that nrt_get_version returned inside the workers of this machine. A file on
// the disk does not show them, as a worker may have loaded another one. Returns no finding without
// workers.
std::vector<Finding> CheckRuntimeVersions(const v1::ListWorkersReply& reply) {
  std::map<std::string, size_t> counts;
  size_t too_old = 0;
  for (const v1::WorkerInventory& worker : reply.workers()) {
    // Workers whose runtime is not initialised have reported none.
    if (worker.runtime_version().empty()) continue;
    ++counts[worker.runtime_version()];
    if (worker.state() == v1::WORKER_STATE_RUNTIME_TOO_OLD) ++too_old;
  }
  if (counts.empty()) return {};
  Finding finding{.check = "runtime version"};
  for (const auto& [version, count] : counts) {
    finding.what += fmt::format("{}{} in {} {}", finding.what.empty() ? "" : ", ", version, count,
                                count == 1 ? "worker" : "workers");
  }
  if (counts.size() > 1) finding.severity = Severity::kNote;
  if (too_old > 0) {
    finding.severity = Severity::kBroken;
    finding.what += fmt::format("; {} of them cannot be recorded: `runtime too old`", too_old);
    finding.fix = "use a Neuron SDK whose runtime has the nrt_sys_trace functions (2.22 or later)";
  }
  return {finding};
}

// Reports a store that takes no data. Returns no finding for one that does.
std::vector<Finding> CheckStore(const v1::GetStatusReply& status) {
  if (!status.has_store_problem()) return {};
  return {{.check = "store",
           .severity = Severity::kBroken,
           .what = DescribeStoreProblem(status.store_problem()),
           .fix = status.store_problem().lacks_room()
                      ? "enlarge the disk of the aggregator's store, delete other files there, or "
                        "delete captures (neurontrace captures delete ID)"
                      : "see the aggregator's log and docs/operator/runbooks.md"}};
}

}  // namespace

std::vector<std::string> InstancesOf(const v1::GetStatusReply& status,
                                     const std::string& host_name) {
  std::vector<std::string> instances;
  for (const v1::Agent& agent : status.agents()) {
    if (agent.hello().host_name() == host_name) instances.push_back(agent.hello().instance_id());
  }
  return instances;
}

std::vector<Finding> CheckAggregator(const std::string& address, const std::string& version,
                                     const std::string& host_name,
                                     const std::function<AggregatorAnswer()>& ask) {
  Finding finding{.check = "aggregator"};
  // The first call includes name resolution, connection and TLS, so the second one measures the
  // answer.
  const AggregatorAnswer first = ask();
  if (!first.error.empty()) {
    finding.severity = Severity::kBroken;
    finding.what = fmt::format("no answer from {}: {}", address, first.error);
    finding.fix =
        "start neurontrace-aggregator there, open the port in the firewall, or set another address "
        "with --aggregator HOST:PORT or NEURONTRACE_AGGREGATOR";
    return {finding};
  }
  const AggregatorAnswer second = ask();
  const AggregatorAnswer& answer = second.error.empty() ? second : first;
  finding.what = fmt::format("{} answers in {}, version {}", address,
                             FormatDuration(answer.took_ns), answer.status.version());
  if (answer.status.version() != version) {
    finding.severity = Severity::kWarning;
    finding.what += fmt::format(", but this command is {}", version);
    finding.fix = "install programs of the same release";
  } else if (answer.took_ns > kSlowNs) {
    finding.severity = Severity::kWarning;
    finding.fix = "check the load of its machine and of the network; captures start late";
  }
  std::vector<Finding> findings = {finding, CheckAgents(answer.status, version, host_name)};
  for (Finding& runtime : CheckRuntimeVersions(answer.workers)) {
    findings.push_back(std::move(runtime));
  }
  for (Finding& store : CheckStore(answer.status)) findings.push_back(std::move(store));
  return findings;
}

Finding CheckTransport(const std::string& address, const ChannelSecurity& security) {
  Finding finding{.check = "encryption"};
  const absl::Status usable = CheckSecurity(security, address, ChannelSide::kClient);
  if (security.has_tls() && usable.ok()) {
    finding.what = "TLS";
    for (const std::string& sentence : DescribeOpenSecrets(security)) {
      finding.severity = Severity::kWarning;
      finding.what += "; " + sentence;
      finding.fix =
          "restrict the file's permissions, and replace its key or token if others use this "
          "machine";
    }
    return finding;
  }
  // Loopback needs no encryption, so it is tested before missing security is an error.
  if (IsLoopback(address) && usable.ok()) {
    finding.what = "none needed: the aggregator is on this machine";
    return finding;
  }
  if (!usable.ok()) {
    finding.severity = Severity::kBroken;
    finding.what = std::string(usable.message());
    finding.fix = "see docs/operator/security.md for how to issue and install certificates";
    return finding;
  }
  finding.severity = Severity::kWarning;
  finding.what = fmt::format(
      "none (--insecure): anyone on the network between here and {} can read traces and start "
      "captures",
      address);
  finding.fix =
      "install certificates for the aggregator, agents and this command: docs/operator/security.md";
  return finding;
}

}  // namespace neurontrace::cli
