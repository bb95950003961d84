// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/doctor_finding.h"
#include "lib/wire/channel_security.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// The aggregator's answers to the calls of `doctor`: GetStatus, then ListWorkers. A plain value;
// the functions below are called on the main thread.
struct AggregatorAnswer {
  std::string error;  // of the call; empty: it answered
  v1::GetStatusReply status;
  v1::ListWorkersReply workers;  // of this machine's instances: see InstancesOf
  // Duration of the GetStatus call in ns, including the connection if there was none.
  uint64_t took_ns = 0;
};

// Returns the instances whose agents report that they run on this host.
std::vector<std::string> InstancesOf(const v1::GetStatusReply& status,
                                     const std::string& host_name);

// Checks the aggregator. `ask` is called twice, as the first call also makes the connection.
// `version` is this command's; `host_name` is this machine's, to find its agent among the
// aggregator's. The last finding is about the runtimes on this machine, as their taps reported
// them; it is absent if there are none. A further one says why the
// aggregator's store takes no data, if it takes none.
std::vector<Finding> CheckAggregator(const std::string& address, const std::string& version,
                                     const std::string& host_name,
                                     const std::function<AggregatorAnswer()>& ask);

// Checks whether others can read the traffic with `address`. Reads the files of TLS, and reports
// unusable ones, and keys that other users can read.
Finding CheckTransport(const std::string& address, const ChannelSecurity& security);

}  // namespace neurontrace::cli
