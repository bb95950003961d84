// SPDX-License-Identifier: Apache-2.0
#include "aggregator/config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

#include "aggregator/access/access_rules.h"
#include "aggregator/exports/standing_exports.h"
#include "aggregator/store/store_format.h"
#include "lib/base/address.h"
#include "lib/base/build_facts.h"
#include "lib/base/quantity.h"
#include "lib/base/status.h"
#include "lib/daemon/config_options.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/chunk_format.h"
#include "lib/triggers/trigger_file.h"
#include "lib/wire/effective_options_check.h"
#include "lib/wire/pem_files.h"

namespace neurontrace {
namespace {

// The exit code for wrong options, as of other Unix programs.
constexpr int kExitUsage = 2;
constexpr char kProgram[] = "neurontrace-aggregator";
constexpr char kAbout[] =
    "The neurontrace aggregator: stores the events that agents send, and serves operators who "
    "start and export captures.";
constexpr char kFooter[] =
    "Examples:\n"
    "  neurontrace-aggregator --listen 127.0.0.1:9400 --store /data/neurontrace\n"
    "  neurontrace-aggregator --listen 0.0.0.0:9400 --tls-ca ca.pem --tls-cert aggregator.pem \\\n"
    "      --tls-key aggregator.key --access /etc/neurontrace/access\n"
    "  neurontrace-aggregator --config /etc/neurontrace/aggregator.toml --validate-config\n"
    "  neurontrace-aggregator --store-check --store /data/neurontrace\n\n"
    "Prints 'listening on HOST:PORT' once it is ready. SIGTERM and SIGINT stop it without losing "
    "acknowledged data.\n"
    "SIGHUP reloads the configuration files.";

// Each of these functions adds the options of one area. They bind references into `config`, which
// must live until the command line is parsed. Names of order checks are converted after parsing.
void AddClockOptions(CLI::App& app, AggregatorConfig& config,
                     std::vector<std::string>& order_checks) {
  app.add_option("--probe-port", config.probe_port,
                 "UDP port that answers agents' clock probes, on the host of --listen. 0: any free "
                 "port. Default: the port number of --listen")
      ->check(
          [](const std::string& text) { return std::string(ParsePort(text).status().message()); });
  app.add_flag(
      "!--no-udp-probes", config.udp_probes,
      "Do not answer clock probes over UDP; agents then probe over gRPC, with wider error bounds");
  app.add_option("--clock-evidence-hours", config.clock_evidence_hours,
                 "Hours to keep agents' clock measurements that no capture needs; about 0.7 MB per "
                 "agent and hour")
      ->check(CheckWholeNumber)
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--order-checks", order_checks,
                 "Which cross-instance operations to check for impossible ordering: collectives, "
                 "barriers, or none")
      ->check(CLI::IsMember({"collectives", "barriers", "none"}))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("collectives,barriers");
}

// ByteSize accepts units such as GiB. 0, the default, means no limit.
void AddQuotaOptions(CLI::App& app, CaptureQuotas& quotas) {
  const auto add = [&app](const std::string& name, uint64_t& bytes, const std::string& what) {
    app.add_option(name, bytes, what + ". Default: no limit")->transform(ByteSize());
  };
  add("--quota-capture-bytes", quotas.capture_bytes,
      "Maximum size of one capture, such as 5GiB, at which it is stopped");
  add("--quota-job-bytes", quotas.job_bytes,
      "Maximum total size of all captures of one job, beyond which new captures are refused");
  add("--quota-store-bytes", quotas.store_bytes,
      "Maximum size of the store, beyond which new captures are refused and running ones are "
      "stopped");
}

void AddArtifactOptions(CLI::App& app, AggregatorConfig& config) {
  app.add_option("--artifact-bytes", config.artifact_bytes,
                 "Maximum total size of all captures' artifacts, such as 64GiB, in addition to the "
                 "store; further artifacts are refused")
      ->transform(ByteSize())
      ->capture_default_str();
}

// Rules come from a file of their own, because they change more often than options.
void AddTriggerOptions(CLI::App& app, AggregatorConfig& config) {
  app.add_option("--triggers", config.triggers,
                 "File of rules that start captures automatically, see docs/user/triggers.md; "
                 "reloaded when it changes and on SIGHUP")
      ->envname("NEURONTRACE_TRIGGERS");
  AddTriggerPostsOption(app, config.trigger_posts);
}

// Both kinds of roots go into one list, in the order of the command line.
void AddDeliveryOptions(CLI::App& app, AggregatorConfig& config) {
  std::vector<ExportRoot>& roots = config.export_roots;
  const auto add = [&](const std::string& name, bool renames, const std::string& what) {
    app.add_option_function<std::vector<std::string>>(
           name,
           [&roots, renames](const std::vector<std::string>& paths) {
             for (const std::string& path : paths) roots.push_back({path, renames});
           },
           what)
        ->allow_extra_args(false)
        ->check(CLI::Validator(CheckExportRoot, ""));
  };
  add("--export-root", true,
      "Directory or s3://BUCKET/PREFIX below which `neurontrace export --to` may write; may be "
      "repeated. Default: none");
  add("--export-root-without-rename", false,
      "Like --export-root, on a volume that cannot rename files; the manifest lists the complete "
      "files");
  app.add_option("--s3-endpoint", config.s3.endpoint,
                 "Endpoint of s3:// roots: HOST[:PORT], with TLS unless it starts with http://. "
                 "Default: AWS's endpoint of the region")
      ->check(CLI::Validator(CheckS3Endpoint, ""));
  app.add_option("--s3-region", config.s3.region,
                 "Region of s3:// roots. Default: AWS_REGION, AWS_DEFAULT_REGION, us-east-1");
  app.add_option("--s3-ca", config.s3.authorities,
                 "PEM file of the certificate authorities for s3:// roots. Default: AWS_CA_BUNDLE, "
                 "or this machine's trusted authorities");
  app.add_option(
         "--standing-export", config.standing_exports,
         "Export captures automatically when they end: '{name = \"NAME\", to = \"/DIRECTORY\"}'; "
         "docs/operator/export_to_volumes.md describes the keys formats, job, capture and "
         "incomplete. May "
         "be repeated. In the --config file: a section [[standing-export]]")
      ->type_name("TABLE")
      ->allow_extra_args(false);
}

// Returns what is wrong with a host name of addresses, or "". Requests are compared without their
// port and in lower case.
std::string CheckHostName(const std::string& name) {
  const bool is_good =
      !name.empty() &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_[]:") == std::string::npos;
  return is_good ? "" : "write a host name in lower case, without a port: " + name;
}

// Returns what is wrong with the address of the page for people, or "".
std::string CheckPageUrl(const std::string& url) {
  const bool is_good = (url.starts_with("https://") || url.starts_with("http://")) &&
                       url.find_first_of(" ?#\"<>\\") == std::string::npos;
  return is_good ? "" : "write https://HOST[:PORT] without a query: " + url;
}

// Who may call, and what is logged about it.
void AddAccessOptions(CLI::App& app, AggregatorConfig& config) {
  AddSecurityOptions(app, config.security, ChannelSide::kServer);
  app.add_option(
         "--access", config.access,
         "Access policy file, see docs/operator/security.md; reloaded when it changes and on "
         "SIGHUP. Default: the role is the URI neurontrace:ROLE in the caller's certificate")
      ->envname("NEURONTRACE_ACCESS");
  app.add_option("--audit-log", config.audit_log,
                 "Log file of every capture, export, deletion and refusal, with one JSON object "
                 "per line. Default: audit.log in --store")
      ->envname("NEURONTRACE_AUDIT_LOG");
  auto* const tokens =
      app.add_flag("--kubernetes-tokens", config.kubernetes_tokens,
                   "In a pod: accept Kubernetes service account tokens, verified by the API "
                   "server, for callers listed as `service-account` in --access");
  app.add_option("--kubernetes-token-audience", config.kubernetes_token_audience,
                 "Required audience of these tokens")
      ->check(CLI::Validator(
          [](const std::string& name) {
            return name.empty() ? "the audience must not be empty" : "";
          },
          ""))
      ->needs(tokens)
      ->capture_default_str();
  app.add_option("--calls-per-second", config.calls_per_second,
                 "With TLS: maximum calls per second of each caller, except agents, with bursts of "
                 "twice as many. Further calls are refused")
      ->check(CheckWholeNumber)
      ->check(CLI::Range(1u, limits::kCallsPerSecondMax))
      ->capture_default_str();
}

// The page at a port of the aggregator's own.
void AddViewOptions(CLI::App& app, AggregatorConfig& config) {
  app.add_option(
         "--view-address", config.view_address,
         "HOST:PORT of the page (see `neurontrace view --shared`), with the certificates of "
         "--tls-cert. Beyond loopback only with TLS, or with --insecure. Default: the page "
         "is not served")
      ->check(CheckAddress)
      ->envname("NEURONTRACE_VIEW_ADDRESS");
  app.add_option("--view-host", config.view_hosts,
                 "Comma-separated host names accepted in addresses of the page. localhost, "
                 "127.0.0.1 and [::1] are always accepted")
      ->delimiter(',')
      ->check(CLI::Validator(CheckHostName, ""));
  app.add_option(
         "--view-url", config.view_url,
         "Address of the page that `neurontrace view --shared` prints, if a proxy or a load "
         "balancer is in front. Default: the first --view-host and the port")
      ->check(CLI::Validator(CheckPageUrl, ""));
}

// Throws CLI::ValidationError if `none` is combined with other values.
OrderClasses OrderClassesOf(const std::vector<std::string>& names) {
  const auto has = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (has("none") && names.size() > 1) {
    throw CLI::ValidationError("--order-checks", "'none' cannot be combined with other values");
  }
  return {.collectives = has("collectives"), .barriers = has("barriers")};
}

// Throws CLI::ParseError, as CLI11 does; callers turn it into an exit code or a status.
AggregatorConfig Parse(CLI::App& app, int argc, char** argv) {
  AggregatorConfig config;
  app.set_version_flag("--version",
                       BuildFacts("neurontrace-aggregator", {{"protocol", kProtocolVersion},
                                                             {"chunk", chunk_format::kVersion},
                                                             {"store", kStoreFormatVersion}}));
  app.add_option("--listen", config.listen,
                 "Address for agents and operators. Port 0: any free port")
      ->check(CheckAddress)
      ->capture_default_str();
  app.add_option("--store", config.store, "Directory of the database; created if it does not exist")
      ->capture_default_str();
  std::string durability = "synced";
  app.add_option("--durability", durability,
                 "When a chunk is acknowledged. synced: after it is on disk. page-cache: after it "
                 "is in the kernel's page cache; a power failure or kernel panic then loses up to "
                 "30 s of chunks that agents have already deleted")
      ->check(CLI::IsMember({"synced", "page-cache"}))
      ->capture_default_str();
  app.add_option("--health-address", config.health_address,
                 "Address of /metrics, /healthz and /readyz")
      ->check(CheckAddress)
      ->capture_default_str();
  app.add_option("--health-names", config.health_names,
                 "Comma-separated host names accepted in requests to --health-address. IP "
                 "addresses, localhost and unregistrable names are always accepted")
      ->envname("NEURONTRACE_HEALTH_NAMES")
      ->delimiter(',');
  // CLI11 cannot bind to the fields of OrderClasses, so names are parsed first.
  std::vector<std::string> order_checks = {"collectives", "barriers"};
  AddClockOptions(app, config, order_checks);
  AddQuotaOptions(app, config.quotas);
  AddArtifactOptions(app, config);
  AddTriggerOptions(app, config);
  AddAccessOptions(app, config);
  AddDeliveryOptions(app, config);
  AddViewOptions(app, config);
  AddLogOptions(app, config.log_level, config.log_format);
  AddConfigOptions(app, config.validate_config,
                   "Configuration file, in TOML: listen = \"0.0.0.0:9400\"");
  std::string output = "text";
  auto* const check = app.add_flag("--store-check", config.store_check,
                                   "Verify the whole store without changing it, print its errors, "
                                   "and exit with 0 if it is sound, 1 if it is damaged")
                          ->configurable(false);
  app.add_option("--output", output, "Output format of --store-check: text or json")
      ->configurable(false)
      ->check(CLI::IsMember({"text", "json"}))
      ->needs(check)
      ->capture_default_str();
  app.footer(kFooter);
  app.parse(argc, argv);
  // After parsing: from here on values from the command line, the environment and the file are
  // merged.
  if (const absl::Status texts = CheckEffectiveOptions(app, {}); !texts.ok()) {
    throw CLI::ParseError(std::string(texts.message()), kExitUsage);
  }
  config.order_checks = OrderClassesOf(order_checks);
  if (durability == "page-cache") config.durability = Durability::kPageCache;
  if (config.store.empty()) throw CLI::ValidationError("--store", "must be a directory");
  config.json = output == "json";
  config.config_file = ConfigFileOf(app);
  config.options = TextsOf(app);
  return config;
}

}  // namespace

// The other options are read only at the start; a change of theirs is reported by a metric.
std::set<std::string> AggregatorOptionsAtOnce() {
  return {"log-level",       "log-format",        "quota-capture-bytes",
          "quota-job-bytes", "quota-store-bytes", "artifact-bytes"};
}

// CLI11 prints help and errors itself and returns 0 for help and version.
std::optional<AggregatorConfig> ParseAggregatorConfig(int argc, char** argv, int& exit_code) {
  CLI::App app(kAbout, kProgram);
  try {
    return Parse(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : kExitUsage;
    return std::nullopt;
  }
}

// Used for reloads, where a mistake in the file must not end the program.
absl::StatusOr<AggregatorConfig> ReadAggregatorConfig(int argc, char** argv) {
  CLI::App app(kAbout, kProgram);
  try {
    return Parse(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return InvalidArgument("{}", ToString(error));
  }
}

// The order follows what depends on what: TLS first, then what needs names of callers, then files
// with rules.
absl::Status CheckAggregatorConfig(const AggregatorConfig& config) {
  RETURN_IF_ERROR(CheckSecurity(config.security, config.listen, ChannelSide::kServer));
  if (!config.view_address.empty()) {
    RETURN_IF_ERROR(WithOption("--view-address", CheckSecurity(config.security, config.view_address,
                                                               ChannelSide::kServer)));
  } else if (!config.view_hosts.empty() || !config.view_url.empty()) {
    return FailedPrecondition(
        "--view-host and --view-url need --view-address, without which no page is served");
  }
  RETURN_IF_ERROR(CheckTriggerPosts(config.trigger_posts, config.health_address));
  if (!config.access.empty()) {
    if (!config.security.has_tls()) {
      return FailedPrecondition(
          "--access needs TLS to identify callers; also pass --tls-ca, --tls-cert and --tls-key");
    }
    RETURN_IF_ERROR(WithOption("--access", ReadAccessFile(config.access).status()));
  }
  if (config.kubernetes_tokens && (!config.security.has_tls() || config.access.empty())) {
    return FailedPrecondition(
        "--kubernetes-tokens needs TLS, and roles for service accounts in the --access file; pass "
        "both");
  }
  if (!config.triggers.empty()) {
    RETURN_IF_ERROR(WithOption("--triggers", ReadTriggerFile(config.triggers).status()));
  }
  if (const std::string& file = config.s3.authorities; !file.empty()) {
    RETURN_IF_ERROR(WithOption("--s3-ca", AuthorityEnd(file).status()));
  }
  return StandingExports::ReadRules(config.standing_exports,
                                    ExportRoots(config.export_roots, config.s3))
      .status();
}

}  // namespace neurontrace
