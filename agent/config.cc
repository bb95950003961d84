// SPDX-License-Identifier: Apache-2.0
#include "agent/config.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <map>

#include "agent/spool/spool_format.h"
#include "lib/base/address.h"
#include "lib/base/build_facts.h"
#include "lib/base/clean_text.h"
#include "lib/base/quantity.h"
#include "lib/base/status.h"
#include "lib/daemon/config_options.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/chunk_format.h"
#include "lib/wire/effective_options_check.h"
#include "tap/buffer_format.h"

// Each option of the agent's own is described here and nowhere else: --help and the man page are
// made from it.
namespace neurontrace {
namespace {

// The exit code for wrong options, which the header promises.
constexpr int kExitUsage = 2;
constexpr char kProgram[] = "neurontrace-agent";
// Texts of --help and of the man page.
constexpr char kAbout[] =
    "The neurontrace agent, one per instance: collects the events that taps record in worker "
    "processes and sends them to the aggregator.";
constexpr char kFooter[] =
    "Examples:\n"
    "  neurontrace-agent --aggregator aggregator.example:9400\n"
    "  neurontrace-agent --aggregator 10.0.0.5:9400 --socket /tmp/agent.sock \\\n"
    "      --tls-ca ca.pem --tls-cert agent.pem --tls-key agent.key \\\n"
    "      --framework-dir /data/profiles --worker-start-id 32 --worker-count 64\n"
    "  neurontrace-agent --config /etc/neurontrace/agent.toml --validate-config\n\n"
    "SIGTERM and SIGINT stop the agent; the exit code is 0 after a clean stop. Workers keep "
    "running, and an\n"
    "agent that starts with the same spool resumes where this one stopped. SIGHUP reloads "
    "--config.";
// Well below the 255 bytes of a file name, in which an id may appear.
constexpr size_t kIdentifierBytesMax = 200;
// As EnvironmentReader::kNumberMax, so that options and environment variables have one range.
constexpr int64_t kRankMax = (int64_t{1} << 31) - 1;

// Returns why the path cannot be bound, or nothing. The limit is that of sockaddr_un (unix(7)).
std::string CheckSocketPath(const std::string& path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) {
    return fmt::format("a Unix socket path must have 1 to {} bytes",
                       sizeof(sockaddr_un::sun_path) - 1);
  }
  return "";
}

std::string CheckAbsolutePath(const std::string& path) {
  return path.starts_with('/') ? "" : fmt::format("'{}': must be an absolute path", path);
}

// Checks owner, group and others as chmod(1) writes them. The owner must keep access, as the agent
// itself has to get in.
std::string CheckSocketMode(const std::string& text) {
  uint32_t mode = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || mode > 0777) {
    return fmt::format("'{}': a socket mode must be an octal number up to 0777, such as 0660",
                       text);
  }
  if ((mode & 0600) != 0600) {
    return fmt::format("'{}': the owner must be able to read and write, as in 0660", text);
  }
  return "";
}

// Returns why the directory cannot be --kineto-dir, or nothing. Its path is in orders of one line
// each, and workers have another working directory.
std::string CheckKinetoDirectory(const std::string& path) {
  if (!path.starts_with('/') || path.ends_with('/')) {
    return fmt::format("'{}': must be an absolute path without a slash at its end", path);
  }
  return CheckSocketPath(path + "/dynolog");
}

// The options of one area each. `app` keeps references to `config`, which therefore must not move
// before app.parse has returned.
void AddIdentityOptions(CLI::App& app, AgentConfig& config) {
  app.add_option("--aggregator", config.aggregator, "Address of the aggregator, HOST:PORT")
      ->envname("NEURONTRACE_AGGREGATOR")
      ->check(CheckPeerAddress);
  app.add_option("--socket", config.socket, "Unix socket that taps connect to")
      ->envname("NEURONTRACE_AGENT_SOCKET")
      ->check(CheckSocketPath)
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--socket-mode",
         [&config](const std::string& text) {
           std::from_chars(text.data(), text.data() + text.size(), config.socket_mode, 8);
         },
         "Permissions of the socket, as an octal mode: 0660 for the agent's user and group, 0666 "
         "for all users")
      ->envname("NEURONTRACE_AGENT_SOCKET_MODE")
      ->check(CheckSocketMode)
      ->default_str("0660");
  app.add_option(
         "--instance-id", config.instance_id,
         "Name of this instance. Default: the EC2 instance id, or the host name outside EC2")
      ->envname("NEURONTRACE_INSTANCE_ID")
      ->check(CheckIdentifier);
  app.add_option("--agent-id", config.agent_id,
                 "Name of this agent, which must stay the same across restarts. Default: derived "
                 "from the instance, the machine and the socket")
      ->check(CheckIdentifier);
}

// Options of what is recorded, and of ranks.
void AddSourceOptions(CLI::App& app, AgentConfig& config) {
  app.add_option(
      "--framework-file", config.framework_files,
      "Trace file of PyTorch's or JAX's profiler (*.trace.json[.gz]) or mapping file of PyTorch "
      "for Neuron (framework_mapping_*.json[.gz]) to add to every capture; may be repeated");
  app.add_option("--framework-dir", config.framework_directory,
                 "Directory to watch for trace files during captures: *.json, *.json.gz and *.pb, "
                 "recognised by content. Symbolic links below it are not followed")
      ->check(CLI::ExistingDirectory);
  app.add_option("--kineto-dir", config.kineto_directory,
                 "Directory in which PyTorch's workers ask this agent for orders to record: "
                 "KINETO_IPC_SOCKET_DIR of the jobs. Made with the mode 1770. The traces are "
                 "written to --framework-dir. Default: no framework is asked")
      ->check(CheckKinetoDirectory);
  app.add_option("--kineto-group", config.kineto_group,
                 "Group, by name or number, whose processes may use --kineto-dir, and with it have "
                 "each other traced. Default: the agent's own");
  app.add_option("--inspect-dir", config.inspect_directories,
                 "Output directory of the vendor's profiler (NEURON_RT_INSPECT_OUTPUT_DIR of the "
                 "jobs), whose NEFF, NTFF and .pb files are added to captures; may be repeated");
  app.add_flag(
      "--host-samples,!--no-host-samples", config.samples_host,
      "Sample this host's processors and memory once a second during captures; on by default");
  app.add_flag("--process-scan,!--no-process-scan", config.scans_processes,
               "Scan /proc every few seconds for processes that use the Neuron Runtime without a "
               "connected tap; on by default");
  app.add_flag("--command-arguments,!--no-command-arguments", config.command_arguments,
               "Report the full command lines of workers, whose arguments may contain secrets. "
               "Default: only the program's name");
  app.add_option("--stacks-program", config.stacks_program,
                 "Absolute path of py-spy, which reads the Python stacks of workers that hang, or "
                 "that an operator asks for. Needs CAP_SYS_PTRACE. Default: only what the kernel "
                 "shows of their threads is read")
      ->envname("NEURONTRACE_STACKS_PROGRAM")
      ->check(CheckAbsolutePath);
  app.add_option("--pod-resources", config.pod_resources,
                 "The kubelet's pod-resources socket, such as "
                 "/var/lib/kubelet/pod-resources/kubelet.sock. The pod that it reports for a "
                 "worker overrides the pod that the worker reports. Default: not used")
      ->envname("NEURONTRACE_POD_RESOURCES")
      ->check(CheckSocketPath);
  // CheckWholeNumber refuses a leading 0, which CLI11 may take for octal.
  const CLI::Range rank(int64_t{0}, kRankMax);
  const CLI::Range count(int64_t{1}, kRankMax);
  app.add_option("--worker-start-id", config.ranks.worker_start_id,
                 "Rank of the first core of this node, used when no better evidence exists")
      ->check(CheckWholeNumber)
      ->check(rank);
  app.add_option("--workers-per-node", config.ranks.workers_per_node,
                 "Number of cores of this node in the job")
      ->check(CheckWholeNumber)
      ->check(count);
  app.add_option("--worker-count", config.ranks.worker_count, "Number of cores in the whole job")
      ->check(CheckWholeNumber)
      ->check(count);
}

// Options of the spool that are typed as words and stored as booleans.
struct SpoolOptionTexts {
  std::string when_full = "drop-oldest";
  std::string durability = "synced";
  std::string output = "text";
};

// `words` receives options that Parse translates afterwards.
void AddSpoolOptions(CLI::App& app, AgentConfig& config, SpoolOptionTexts& words) {
  const CLI::Range size_range(limits::kSpoolBytesMin, uint64_t{1} << 50);
  app.add_option("--spool", config.spool,
                 "Directory that keeps chunks until the aggregator has them; 'none' keeps them in "
                 "memory only")
      ->envname("NEURONTRACE_SPOOL")
      ->capture_default_str();
  app.add_option("--spool-bytes", config.spool_bytes,
                 "Maximum size of the spool, such as 4GiB (of 1024) or 500MB (of 1000)")
      ->transform(ByteSize())
      ->check(size_range)
      ->capture_default_str();
  app.add_option("--spool-capture-bytes", config.spool_capture_bytes,
                 "Maximum share of the spool for one capture. Default: half of --spool-bytes")
      ->transform(ByteSize())
      ->check(size_range);
  app.add_option("--spool-free-percent", config.spool_free_percent,
                 "Percentage of the disk that the spool leaves free. 0: limit the spool only by "
                 "--spool-bytes")
      ->check(CheckWholeNumber)
      ->check(CLI::Range(0, 90))
      ->capture_default_str();
  app.add_option(
         "--spool-when-full", words.when_full,
         "Policy for a full spool. drop-oldest: drop the oldest chunks and count them as lost. "
         "refuse-newest: block the sources, so that the tap's and the runtime's rings overflow")
      ->check(CLI::IsMember({"drop-oldest", "refuse-newest"}))
      ->capture_default_str();
  app.add_option("--spool-durability", words.durability,
                 "When a chunk counts as stored and is sent. synced: after it is on disk. "
                 "page-cache: after it is in the kernel's page cache, which survives a killed "
                 "agent but not a power failure or kernel panic")
      ->check(CLI::IsMember({"synced", "page-cache"}))
      ->capture_default_str();
  app.add_flag("--spool-adopt", config.spool_adopts,
               "If the spool belongs to a different aggregator store, discard the chunks that the "
               "new store does not recognise and continue. By default nothing is sent or deleted")
      ->envname("NEURONTRACE_SPOOL_ADOPT");
  app.add_option("--spool-check", config.spool_check,
                 "Verify the spool in this directory without changing it, print its contents, and "
                 "exit with 0 if it is sound, 1 if it is damaged. An agent may be using it")
      ->configurable(false);
  app.add_option("--output", words.output, "Output format of --spool-check: text or json")
      ->configurable(false)
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
}

// Returns the values of --clock-probes by their words.
std::map<std::string, ProbeMode> ProbeModes() {
  return {{"auto", ProbeMode::kAuto},
          {"udp", ProbeMode::kUdp},
          {"grpc", ProbeMode::kGrpc},
          {"off", ProbeMode::kOff}};
}

// Options that most daemons have: health pages, logs, and how the agent stops.
void AddDaemonOptions(CLI::App& app, AgentConfig& config) {
  AddTriggerPostsOption(app, config.trigger_posts);
  app.add_option_function<std::string>(
         "--clock-probes",
         [&config](const std::string& word) { config.clock_probes = ProbeModes().at(word); },
         "Transport of clock probes to the aggregator: auto (UDP, or gRPC while UDP gets no "
         "answers), udp, grpc, or off, which aligns instances only by the error bounds that their "
         "clocks report")
      ->envname("NEURONTRACE_CLOCK_PROBES")
      ->check(CLI::IsMember({"auto", "udp", "grpc", "off"}))
      ->default_str("auto");
  app.add_option("--health-address", config.health_address,
                 "Address of /metrics, /healthz and /readyz. Port 0: any free port")
      ->check(CheckAddress)
      ->capture_default_str();
  app.add_option("--health-names", config.health_names,
                 "Comma-separated host names accepted in requests to --health-address. IP "
                 "addresses, localhost and unregistrable names are always accepted")
      ->envname("NEURONTRACE_HEALTH_NAMES")
      ->delimiter(',');
  AddLogOptions(app, config.log_level, config.log_format);
  app.add_option("--drain-seconds", config.drain_seconds,
                 "Seconds to wait at shutdown until received data is stored")
      ->check(CheckWholeNumber)
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
}

// Throws CLI::ParseError for everything that is wrong, the checks after app.parse included, so that
// all errors look alike. No exception leaves this file.
AgentConfig Parse(CLI::App& app, int argc, char** argv) {
  AgentConfig config;
  app.set_version_flag("--version",
                       BuildFacts("neurontrace-agent", {{"protocol", kProtocolVersion},
                                                        {"chunk", chunk_format::kVersion},
                                                        {"spool", kSpoolVersion},
                                                        {"tap buffer", kTapBufferFormatVersion}}));
  AddIdentityOptions(app, config);
  AddSourceOptions(app, config);
  SpoolOptionTexts words;
  AddSpoolOptions(app, config, words);
  AddDaemonOptions(app, config);
  AddSecurityOptions(app, config.security, ChannelSide::kClient);
  AddConfigOptions(app, config.validate_config,
                   "Configuration file, in TOML: aggregator = \"10.0.0.5:9400\"")
      .envname("NEURONTRACE_AGENT_CONFIG");
  // From here on the options are read, and then checked against each other.
  app.footer(kFooter);
  app.parse(argc, argv);
  if (const absl::Status texts = CheckEffectiveOptions(app, {}); !texts.ok()) {
    throw CLI::ParseError(std::string(texts.message()), kExitUsage);
  }
  // Not required by CLI11 itself: --spool-check works without an aggregator.
  if (config.aggregator.empty() && config.spool_check.empty()) {
    throw CLI::RequiredError("--aggregator");
  }
  if (config.spool.empty()) throw CLI::ValidationError("--spool", "must be a directory or 'none'");
  if (config.spool_capture_bytes > config.spool_bytes) {
    throw CLI::ValidationError("--spool-capture-bytes", "must not exceed --spool-bytes");
  }
  if (config.spool_capture_bytes == 0) {
    // Half, so that one capture that nobody collects leaves room for the next.
    config.spool_capture_bytes = std::max(config.spool_bytes / 2, limits::kSpoolBytesMin);
  }
  if (!config.kineto_directory.empty() && !config.framework_directory.starts_with('/')) {
    throw CLI::ValidationError("--kineto-dir",
                               "needs --framework-dir with an absolute path, where workers write");
  }
  if (std::any_of(config.framework_directory.begin(), config.framework_directory.end(),
                  IsControl) &&
      !config.kineto_directory.empty()) {
    throw CLI::ValidationError("--framework-dir", "has a control character");
  }
  // The words were checked by CLI::IsMember, so each comparison has two outcomes.
  config.spool_drops_oldest = words.when_full == "drop-oldest";
  config.spool_syncs = words.durability == "synced";
  config.spool_check_json = words.output == "json";
  config.config_file = ConfigFileOf(app);
  config.options = TextsOf(app);
  return config;
}

}  // namespace

std::string CheckIdentifier(const std::string& id) {
  if (id.empty() || id.size() > kIdentifierBytesMax) {
    return fmt::format("a name must have 1 to {} characters", kIdentifierBytesMax);
  }
  for (const char c : id) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.' || c == ':';
    if (!good) return fmt::format("'{}': a name may contain only letters, digits and - _ . :", id);
  }
  return "";
}

absl::StatusOr<int> FindKinetoGroup(const std::string& group) {
  if (group.empty()) return -1;
  int id = 0;
  const auto [end, error] = std::from_chars(group.data(), group.data() + group.size(), id);
  if (error == std::errc() && end == group.data() + group.size() && id >= 0) return id;
  // Nothing else in the agent asks for groups, so the shared answer cannot change meanwhile.
  const struct group* const known = getgrnam(group.c_str());
  if (known == nullptr) return InvalidArgument("--kineto-group {}: no such group", group);
  return static_cast<int>(known->gr_gid);
}

std::set<std::string> AgentOptionsAtOnce() { return {"log-level", "log-format", "drain-seconds"}; }

// A missing program is no error: it may be installed later, and each worker's outcome says so. One
// that anybody can replace would run with the agent's capabilities.
static absl::Status CheckStacksProgram(const std::string& path) {
  struct stat status {};
  if (path.empty() || stat(path.c_str(), &status) != 0) return absl::OkStatus();
  if (!S_ISREG(status.st_mode) || (status.st_mode & 0111) == 0) {
    return FailedPrecondition("--stacks-program {}: not an executable file", path);
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    return FailedPrecondition("--stacks-program {}: every user may change it; run chmod o-w on it",
                              path);
  }
  return absl::OkStatus();
}

std::optional<AgentConfig> ParseAgentConfig(int argc, char** argv, int& exit_code) {
  CLI::App app(kAbout, kProgram);
  try {
    return Parse(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : kExitUsage;
    return std::nullopt;
  }
}

absl::StatusOr<AgentConfig> ReadAgentConfig(int argc, char** argv) {
  CLI::App app(kAbout, kProgram);
  try {
    return Parse(app, argc, argv);
  } catch (const CLI::ParseError& error) {
    return InvalidArgument("{}", ToString(error));
  }
}

absl::Status CheckAgentConfig(const AgentConfig& config) {
  // Directories may be made later, by the jobs that write to them.
  RETURN_IF_ERROR(CheckTriggerPosts(config.trigger_posts, config.health_address));
  RETURN_IF_ERROR(CheckStacksProgram(config.stacks_program));
  return CheckSecurity(config.security, config.aggregator, ChannelSide::kClient);
}

}  // namespace neurontrace
