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

// What an aggregator said when it was asked how it is.
struct AggregatorAnswer {
  std::string error;  // of the call; empty: it answered
  v1::GetStatusReply status;
  v1::ListWorkersReply workers;  // of this machine's instances: see InstancesOf
  uint64_t took_ns = 0;
};

// The instances whose agents say that they run on this host.
std::vector<std::string> InstancesOf(const v1::GetStatusReply& status,
                                     const std::string& host_name);

// `ask` is called twice: a first call makes the connection, too. `version`: of this command;
// `host_name`: this machine's, to find its agent among the aggregator's. The last finding is of
// the runtimes here, as they told their taps; none where no worker has said.
std::vector<Finding> CheckAggregator(const std::string& address, const std::string& version,
                                     const std::string& host_name,
                                     const std::function<AggregatorAnswer()>& ask);

// Whether what goes over the wire to `address` can be read by others. Reads the files of TLS.
Finding CheckTransport(const std::string& address, const ChannelSecurity& security);

}  // namespace neurontrace::cli
