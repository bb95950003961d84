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

constexpr int kExitUsage = 2;
constexpr char kProgram[] = "neurontrace-aggregator";
constexpr char kAbout[] =
    "The aggregator of neurontrace: agents send it what they record, operators start captures and "
    "export them.";
constexpr char kFooter[] =
    "Examples:\n"
    "  neurontrace-aggregator --listen 127.0.0.1:9400 --store /data/neurontrace\n"
    "  neurontrace-aggregator --listen 0.0.0.0:9400 --tls-ca ca.pem --tls-cert aggregator.pem "
    "\\\n"
    "      --tls-key aggregator.key --access /etc/neurontrace/access\n"
    "  neurontrace-aggregator --config /etc/neurontrace/aggregator.toml --validate-config\n"
    "  neurontrace-aggregator --store-check --store /data/neurontrace\n\n"
    "Prints 'listening on HOST:PORT' once it serves. SIGTERM and SIGINT end it; what was "
    "acknowledged stays. SIGHUP\nreads the files of configuration again.";

void AddClockOptions(CLI::App& app, AggregatorConfig& config,
                     std::vector<std::string>& order_checks) {
  app.add_option("--probe-port", config.probe_port,
                 "UDP port at which the clock probes of agents are answered, at the host of "
                 "--listen; 0: any free one. Default: the number of --listen's port")
      ->check(
          [](const std::string& text) { return std::string(ParsePort(text).status().message()); });
  app.add_flag("!--no-udp-probes", config.udp_probes,
               "Answer no probes over UDP; agents then ask in gRPC calls, with wider bounds");
  app.add_option("--clock-evidence-hours", config.clock_evidence_hours,
                 "How long what agents measured of their clocks is kept where no capture needs it; "
                 "about 0.7 MB an hour of an agent")
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

void AddQuotaOptions(CLI::App& app, CaptureQuotas& quotas) {
  const auto add = [&app](const std::string& name, uint64_t& bytes, const std::string& what) {
    app.add_option(name, bytes, what + "; default: no limit")->transform(ByteSize());
  };
  add("--quota-capture-bytes", quotas.capture_bytes,
      "How much one capture may store, as 5GiB, before it is stopped");
  add("--quota-job-bytes", quotas.job_bytes,
      "How much all captures together may hold of one job: beyond, further ones are refused");
  add("--quota-store-bytes", quotas.store_bytes,
      "How large the store may be: beyond, captures are refused, and those that run stop");
}

void AddArtifactOptions(CLI::App& app, AggregatorConfig& config) {
  app.add_option("--artifact-bytes", config.artifact_bytes,
                 "How much the artifacts of all captures together may take, beside the store, as "
                 "64GiB: beyond, further ones are refused")
      ->transform(ByteSize())
      ->capture_default_str();
}

void AddTriggerOptions(CLI::App& app, AggregatorConfig& config) {
  app.add_option(
         "--triggers", config.triggers,
         "File of rules that begin captures by themselves, see docs/user/triggers.md; read again "
         "when it changes, and on SIGHUP")
      ->envname("NEURONTRACE_TRIGGERS");
  AddTriggerPostsOption(app, config.trigger_posts);
}

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
      "Directory, or s3://BUCKET/PREFIX, below which exports may be written with `neurontrace "
      "export --to`; may be "
      "repeated. Default: none");
  add("--export-root-without-rename", false,
      "The same, on a volume that cannot rename files: the manifest says which files are complete");
  app.add_option("--s3-endpoint", config.s3.endpoint,
                 "Of s3:// roots: HOST[:PORT], with TLS unless http:// stands before it. Default: "
                 "AWS's of the region")
      ->check(CLI::Validator(CheckS3Endpoint, ""));
  app.add_option("--s3-region", config.s3.region,
                 "Of s3:// roots. Default: AWS_REGION, AWS_DEFAULT_REGION, us-east-1");
  app.add_option(
      "--s3-ca", config.s3.authorities,
      "Of s3:// roots: PEM file of who may have signed the service's certificate. Default: "
      "AWS_CA_BUNDLE, or those that this machine trusts");
  app.add_option(
         "--standing-export", config.standing_exports,
         "Export captures by themselves when they end: '{name = \"NAME\", to = \"/DIRECTORY\"}', "
         "with formats, job, capture and incomplete as in "
         "docs/operator/export_to_volumes.md; may be repeated. In the file of --config: a section "
         "[[standing-export]]")
      ->type_name("TABLE")
      ->allow_extra_args(false);
}

void AddAccessOptions(CLI::App& app, AggregatorConfig& config) {
  AddSecurityOptions(app, config.security, ChannelSide::kServer);
  app.add_option(
         "--access", config.access,
         "File of who may do what, see docs/operator/security.md; read again when it changes, and "
         "on SIGHUP. Default: a certificate's role stands in it, as a URI neurontrace:ROLE")
      ->envname("NEURONTRACE_ACCESS");
  app.add_option("--audit-log", config.audit_log,
                 "File to which every capture, export, deletion and refusal is written, a JSON "
                 "object a line. Default: audit.log in --store")
      ->envname("NEURONTRACE_AUDIT_LOG");
  auto* const tokens = app.add_flag(
      "--kubernetes-tokens", config.kubernetes_tokens,
      "In a pod: take tokens of Kubernetes service accounts, which the API server is asked about, "
      "for callers with `service-account` in --access");
  app.add_option("--kubernetes-token-audience", config.kubernetes_token_audience,
                 "For which audience such a token has to be")
      ->check(CLI::Validator(
          [](const std::string& name) { return name.empty() ? "name an audience" : ""; }, ""))
      ->needs(tokens)
      ->capture_default_str();
  app.add_option("--calls-per-second", config.calls_per_second,
                 "With TLS: how many calls a second each caller may make, agents apart; twice as "
                 "many at once. Further ones are refused")
      ->check(CheckWholeNumber)
      ->check(CLI::Range(1u, limits::kCallsPerSecondMax))
      ->capture_default_str();
}

// Throws where `none` does not stand alone.
OrderClasses OrderClassesOf(const std::vector<std::string>& names) {
  const auto has = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (has("none") && names.size() > 1) {
    throw CLI::ValidationError("--order-checks", "none stands alone");
  }
  return {.collectives = has("collectives"), .barriers = has("barriers")};
}

// Throws CLI::ParseError.
AggregatorConfig Parse(CLI::App& app, int argc, char** argv) {
  AggregatorConfig config;
  app.set_version_flag("--version",
                       BuildFacts("neurontrace-aggregator", {{"protocol", kProtocolVersion},
                                                             {"chunk", chunk_format::kVersion},
                                                             {"store", kStoreFormatVersion}}));
  app.add_option("--listen", config.listen,
                 "Address for agents and operators; port 0: any free one")
      ->check(CheckAddress)
      ->capture_default_str();
  app.add_option("--store", config.store, "Directory of the database; made where it is not there")
      ->capture_default_str();
  std::string durability = "synced";
  app.add_option("--durability", durability,
                 "When a chunk is acknowledged. synced: it is on the disk. "
                 "page-cache: the kernel has it; a killed aggregator loses nothing, but a machine "
                 "that loses power or panics loses what was not yet written (up to 30 s), though "
                 "agents were told that it is kept and have let it go")
      ->check(CLI::IsMember({"synced", "page-cache"}))
      ->capture_default_str();
  app.add_option("--health-address", config.health_address,
                 "Address of /metrics, /healthz and /readyz")
      ->check(CheckAddress)
      ->capture_default_str();
  app.add_option("--health-names", config.health_names,
                 "Names by which that port may be asked, with commas between; addresses, localhost "
                 "and names that nobody can register are accepted anyway")
      ->envname("NEURONTRACE_HEALTH_NAMES")
      ->delimiter(',');
  std::vector<std::string> order_checks = {"collectives", "barriers"};
  AddClockOptions(app, config, order_checks);
  AddQuotaOptions(app, config.quotas);
  AddArtifactOptions(app, config);
  AddTriggerOptions(app, config);
  AddAccessOptions(app, config);
  AddDeliveryOptions(app, config);
  AddLogOptions(app, config.log_level, config.log_format);
  AddConfigOptions(app, config.validate_config,
                   "File with options, as TOML: listen = \"0.0.0.0:9400\"");
  std::string output = "text";
  auto* const check = app.add_flag("--store-check", config.store_check,
                                   "Verify all of the store without changing it, say what is wrong "
                                   "with it, and end: 0 when it "
                                   "is sound, 1 when it is damaged")
                          ->configurable(false);
  app.add_option("--output", output, "How --store-check says it: text or json")
      ->configurable(false)
      ->check(CLI::IsMember({"text", "json"}))
      ->needs(check)
      ->capture_default_str();
  app.footer(kFooter);
  app.parse(argc, argv);
  if (const absl::Status texts = CheckEffectiveOptions(app, {}); !texts.ok()) {
    throw CLI::ParseError(std::string(texts.message()), kExitUsage);
  }
  config.order_checks = OrderClassesOf(order_checks);
  if (durability == "page-cache") config.durability = Durability::kPageCache;
  if (config.store.empty()) throw CLI::ValidationError("--store", "name a directory");
  config.json = output == "json";
  config.config_file = ConfigFileOf(app);
  config.options = TextsOf(app);
  return config;
}

}  // namespace

std::set<std::string> AggregatorOptionsAtOnce() {
  return {"log-level",       "log-format",        "quota-capture-bytes",
          "quota-job-bytes", "quota-store-bytes", "artifact-bytes"};
}

std::optional<AggregatorConfig> ParseAggregatorConfig(int argc, char** argv, int& exit_code) {
  CLI::App app(kAbout, kProgram);
  try {
    return Parse(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : kExitUsage;
    return std::nullopt;
  }
}

absl::StatusOr<AggregatorConfig> ReadAggregatorConfig(int argc, char** argv) {
  CLI::App app(kAbout, kProgram);
  try {
    return Parse(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return InvalidArgument("{}", WordsOf(error));
  }
}

absl::Status CheckAggregatorConfig(const AggregatorConfig& config) {
  RETURN_IF_ERROR(CheckSecurity(config.security, config.listen, ChannelSide::kServer));
  RETURN_IF_ERROR(CheckTriggerPosts(config.trigger_posts, config.health_address));
  if (!config.access.empty()) {
    if (!config.security.has_tls()) {
      return FailedPrecondition(
          "--access: in plain text nobody shows who they are: give --tls-ca, --tls-cert and "
          "--tls-key with it");
    }
    RETURN_IF_ERROR(ReadAccessFile(config.access).status());
  }
  if (config.kubernetes_tokens && (!config.security.has_tls() || config.access.empty())) {
    return FailedPrecondition(
        "--kubernetes-tokens: what service accounts may do stands in the file of --access, and "
        "tokens come over TLS alone: give both");
  }
  if (!config.triggers.empty()) RETURN_IF_ERROR(ReadTriggerFile(config.triggers).status());
  if (const std::string& file = config.s3.authorities; !file.empty()) {
    const absl::Status status = AuthorityEnd(file).status();
    if (!status.ok()) return FailedPrecondition("--s3-ca: {}", std::string(status.message()));
  }
  return StandingExports::ReadRules(config.standing_exports,
                                    ExportRoots(config.export_roots, config.s3))
      .status();
}

}  // namespace neurontrace
