// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/clocks/order_classes.h"
#include "aggregator/deliver/export_roots.h"
#include "aggregator/deliver/s3_client.h"
#include "aggregator/session/capture_quota.h"
#include "aggregator/store/durability.h"
#include "lib/daemon/effective_options.h"
#include "lib/daemon/program_log.h"
#include "lib/trace/access_limits.h"
#include "lib/trace/artifact_limits.h"
#include "lib/wire/channel_security.h"
#include "lib/wire/trigger_posts.h"

namespace neurontrace {

// What the command line of neurontrace-aggregator says.
struct AggregatorConfig {
  std::string listen = "127.0.0.1:9400";          // gRPC, HOST:PORT; port 0 picks a free one
  std::string health_address = "127.0.0.1:9402";  // HTTP, also
  std::vector<std::string> health_names;          // by which it may be asked; see HealthServer
  std::string store = "/var/lib/neurontrace/aggregator";
  // UDP, for clock probes; nullopt: the number of the gRPC port, or, where that is taken, none.
  std::optional<uint16_t> probe_port;
  bool udp_probes = true;
  uint32_t clock_evidence_hours = 24;  // how long it is kept where no capture needs it
  OrderClasses order_checks;           // of exports and certificates
  Durability durability = Durability::kSynced;
  CaptureQuotas quotas;
  uint64_t artifact_bytes = limits::kArtifactStoreBytesDefault;  // of all contents together
  std::string triggers;                                          // file of rules; empty: none
  TriggerPosts trigger_posts = TriggerPosts::kThisMachine;
  ChannelSecurity security;
  std::string access;  // file of who may do what; empty: it is in certificates
  uint32_t calls_per_second = limits::kCallsPerSecondDefault;  // of each caller but agents
  bool kubernetes_tokens = false;                              // taken, beside those of `access`
  std::string kubernetes_token_audience = "neurontrace";
  std::string audit_log;                      // empty: in the store's directory
  std::vector<ExportRoot> export_roots;       // where exports may be written; empty: nowhere
  S3Service s3;                               // for roots in buckets
  std::vector<std::string> standing_exports;  // rules, see docs/operator/export_to_volumes.md
  bool store_check = false;                   // verify the store and end
  bool json = false;                          // what store_check prints
  std::string log_level = "info";
  LogFormat log_format = LogFormat::kText;
  std::string config_file;       // where options stand that may change; empty: nowhere
  bool validate_config = false;  // say whether all of this is good, and end
  EffectiveOptions options;      // all of this, as texts
};

// Options that an aggregator takes from a changed file without a restart.
std::set<std::string> AggregatorOptionsAtOnce();

// Reads the command line. Nothing when the program is to end at once, with `exit_code`: help and
// version were printed (0), or what is wrong (2).
std::optional<AggregatorConfig> ParseAggregatorConfig(int argc, char** argv, int& exit_code);

// The same command line, with the environment and the file as they are now: INVALID_ARGUMENT says
// what is wrong.
absl::StatusOr<AggregatorConfig> ReadAggregatorConfig(int argc, char** argv);

// Whether what the configuration names is there and fits together, as far as can be seen without
// opening the store or listening: certificates, rules, who may do what, standing exports.
// INVALID_ARGUMENT, NOT_FOUND or FAILED_PRECONDITION name the place, and what to do.
absl::Status CheckAggregatorConfig(const AggregatorConfig& config);

}  // namespace neurontrace
