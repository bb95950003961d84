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

// The options of neurontrace-aggregator, as parsed from command line, environment and file. A plain
// value. ParseAggregatorConfig has checked each option alone; CheckAggregatorConfig checks them
// together. docs/operator/configuration.md describes each.
struct AggregatorConfig {
  std::string listen = "127.0.0.1:9400";          // gRPC, HOST:PORT; port 0 picks a free one
  std::string health_address = "127.0.0.1:9402";  // HTTP, HOST:PORT
  std::vector<std::string> health_names;          // accepted host names; see HealthServer
  // The page: HOST:PORT; empty: not served. Accepted host names, and its address for people.
  std::string view_address;
  std::vector<std::string> view_hosts;
  std::string view_url;
  std::string store = "/var/lib/neurontrace/aggregator";
  // UDP port of clock probes; nullopt: the number of the gRPC port, or none if that is taken.
  std::optional<uint16_t> probe_port;
  bool udp_probes = true;
  uint32_t clock_evidence_hours = 24;  // how long to keep evidence that no capture needs
  OrderClasses order_checks;           // of exports and certificates
  // When chunks are acknowledged; see Durability.
  Durability durability = Durability::kSynced;
  // Can change without a restart, like `artifact_bytes` and the two options of the log.
  CaptureQuotas quotas;
  uint64_t artifact_bytes = limits::kArtifactStoreBytesDefault;  // of all contents together
  std::string triggers;                                          // rule file; empty: none
  // From where POST requests may fire a trigger rule.
  TriggerPosts trigger_posts = TriggerPosts::kThisMachine;
  // Certificates and keys; empty: no TLS, which is only accepted on the loopback interface or on
  // request.
  ChannelSecurity security;
  std::string access;  // access policy file; empty: roles are in certificates
  uint32_t calls_per_second = limits::kCallsPerSecondDefault;  // of each caller except agents
  bool kubernetes_tokens = false;                              // accepted in addition to `access`
  std::string kubernetes_token_audience = "neurontrace";
  std::string audit_log;  // empty: in the store's directory
  // Exports that the aggregator itself writes.
  std::vector<ExportRoot> export_roots;       // where exports may be written; empty: nowhere
  S3Service s3;                               // for roots in buckets
  std::vector<std::string> standing_exports;  // rules, see docs/operator/export_to_volumes.md
  bool store_check = false;                   // verify the store and exit
  bool json = false;                          // what store_check prints
  std::string log_level = "info";
  LogFormat log_format = LogFormat::kText;
  std::string config_file;       // file with options that may change; empty: none
  bool validate_config = false;  // check all of this and exit
  EffectiveOptions options;      // all of this, as texts
};

// Returns the options that take effect from a changed file without a restart. Must agree with the
// function passed to MakeReloadHooks in aggregator.cc.
std::set<std::string> AggregatorOptionsAtOnce();

// Parses the command line. Returns nullopt if the program is to exit with `exit_code`: 0 after
// printing help or version to stdout, 2 after printing an error to stderr.
std::optional<AggregatorConfig> ParseAggregatorConfig(int argc, char** argv, int& exit_code);

// Parses the same command line with the current environment and file. Fails with INVALID_ARGUMENT
// and the problem.
absl::StatusOr<AggregatorConfig> ReadAggregatorConfig(int argc, char** argv);

// Checks that what the configuration names exists and fits together, as far as possible without
// opening the store or listening: certificates, rules, access policy, standing exports. Fails with
// INVALID_ARGUMENT, NOT_FOUND or FAILED_PRECONDITION; the message names the place and what to do.
absl::Status CheckAggregatorConfig(const AggregatorConfig& config);

}  // namespace neurontrace
