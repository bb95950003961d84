// SPDX-License-Identifier: Apache-2.0
#include "agent/instance_identity.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <fstream>
#include <string_view>

namespace neurontrace {
namespace {

// Returns the file's first line without its end; empty if the file cannot be read.
std::string FirstLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// FNV-1a, 64 bits (Fowler, Noll and Vo; the constants are theirs). std::hash may differ between
// builds, but this value names the agent across versions.
uint64_t Fingerprint(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Sets the id, its source and, from EC2, the instance type. Tries each source in turn and never
// fails.
void FindInstanceId(const AgentConfig& config, const IdentityPlaces& places, AgentInfo& info) {
  if (!config.instance_id.empty()) {
    // The configuration does not record where a value came from, so it is compared with the
    // variable.
    const char* const environment = std::getenv("NEURONTRACE_INSTANCE_ID");
    info.instance_id = config.instance_id;
    info.instance_id_source =
        environment != nullptr && info.instance_id == environment ? "environment" : "flag";
    return;
  }
  ImdsClient imds(places.imds);
  const auto id = imds.Get("instance-id");
  if (id.ok() && CheckIdentifier(*id).empty()) {
    info.instance_id = *id;
    info.instance_id_source = "imds";
    if (const auto type = imds.Get("instance-type"); type.ok()) info.instance_type = *type;
    return;
  }
  spdlog::info(
      "the EC2 metadata service does not provide the instance id: {}",
      id.ok() ? "the answer is not a valid identifier" : std::string(id.status().message()));
  info.instance_id_source = "hostname";
  // A host name may hold characters that an identifier must not; the start does not fail for that.
  info.instance_id = CheckIdentifier(info.host_name).empty() ? info.host_name : "unnamed-host";
}

}  // namespace

AgentInfo ResolveIdentity(const AgentConfig& config, const IdentityPlaces& places) {
  AgentInfo info;
  info.protocol_version = kProtocolVersion;
  info.agent_version = NEURONTRACE_VERSION;
  info.host_name = FirstLineOf(places.host_name_file);
  info.boot_id = FirstLineOf(places.boot_id_file);
  FindInstanceId(config, places, info);
  info.agent_id = config.agent_id;
  // The id must survive restarts, as the spool's segments and the aggregator's cursors carry it.
  if (info.agent_id.empty()) {
    const std::string machine = FirstLineOf(places.machine_id_file) + "\n" + config.socket;
    info.agent_id = fmt::format("{}-{:08x}", info.instance_id, Fingerprint(machine) >> 32);
  }
  return info;
}

}  // namespace neurontrace
