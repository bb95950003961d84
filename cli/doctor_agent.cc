// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_agent.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/process_tree.h"
#include "cli/text.h"
#include "lib/base/quantity.h"
#include "lib/trace/limits.h"

namespace neurontrace::cli {
namespace {

// A command line that is longer is truncated.
constexpr size_t kCommandBytesMax = 64u << 10;
constexpr char kAgentName[] = "neurontrace-agent";

// Returns the arguments in /proc/PID/cmdline, which end in a zero byte each.
std::vector<std::string> CommandOf(HostView& host, const std::string& proc, uint32_t pid) {
  const std::string text =
      ReadProcFile(host, fmt::format("{}/{}/cmdline", proc, pid), kCommandBytesMax);
  std::vector<std::string> words;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\0', from), text.size());
    words.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return words;
}

// Returns the value of an option written "--name value" or "--name=value"; "" if it is not given.
std::string OptionOf(const std::vector<std::string>& words, const std::string& name) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(name + "=")) return words[i].substr(name.size() + 1);
  }
  return "";
}

// Returns the directory that contains a path; "." for a bare name.
std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

LocalAgent FindLocalAgent(HostView& host, const std::string& proc) {
  LocalAgent agent{.spool_bytes = limits::kSpoolBytesDefault};
  for (const uint32_t pid : ListProcesses(host, proc)) {
    const std::vector<std::string> words = CommandOf(host, proc, pid);
    // The base name is compared, because the command line may have any path.
    if (words.empty() || words[0].substr(words[0].rfind('/') + 1) != kAgentName) continue;
    agent.pid = pid;
    if (const auto value = OptionOf(words, "--socket"); !value.empty()) agent.socket = value;
    if (const auto value = OptionOf(words, "--spool"); !value.empty()) agent.spool = value;
    agent.kineto_directory = OptionOf(words, "--kineto-dir");
    agent.framework_directory = OptionOf(words, "--framework-dir");
    // A running agent has accepted its options, so a failure means that the option is not given.
    const auto bytes = ParseByteSize(OptionOf(words, "--spool-bytes"));
    if (bytes.ok()) agent.spool_bytes = *bytes;
    break;
  }
  return agent;
}

Finding CheckAgentSocket(HostView& host, const std::string& path, bool is_expected) {
  Finding finding{.check = "agent socket"};
  const auto about = host.Examine(path);
  if (!about) {
    finding.severity = is_expected ? Severity::kBroken : Severity::kNote;
    finding.what = fmt::format("{} does not exist: no agent listens there", path);
    if (is_expected) {
      finding.fix = "start neurontrace-agent here, or pass its socket with --agent-socket PATH";
    }
    return finding;
  }
  finding.severity = Severity::kBroken;
  if (about->kind != PathFacts::Kind::kSocket) {
    finding.what = fmt::format("{} is not a socket", path);
    finding.fix = "remove it and restart neurontrace-agent";
    return finding;
  }
  // The socket's state is not visible in the file system; only a connection shows whether a process
  // listens.
  const absl::Status connected = host.TryToConnect(path);
  if (connected.code() == absl::StatusCode::kFailedPrecondition) {
    finding.what = fmt::format(
        "user {} may not connect to {}, which belongs to user {} and group {}, mode {:o}",
        host.user(), path, about->uid, about->gid, about->mode);
    finding.fix = fmt::format(
        "run workers as a user in group {}, or run the agent with a group that workers belong to",
        about->gid);
    return finding;
  }
  if (!connected.ok()) {
    finding.what =
        fmt::format("nothing listens on {}, which was left by an agent that has ended", path);
    finding.fix = "start neurontrace-agent again; it replaces the socket";
    return finding;
  }
  // A socket that every user may write to accepts events from every user.
  if ((about->mode & 0002) != 0) {
    finding.severity = Severity::kWarning;
    finding.what = fmt::format("an agent answers at {}, which is writable for every user", path);
    finding.fix =
        "start neurontrace-agent with --socket-mode 0660, unless jobs of every user must be "
        "recorded";
    return finding;
  }
  finding.severity = Severity::kGood;
  finding.what = fmt::format("an agent answers at {}", path);
  return finding;
}

Finding CheckSpool(HostView& host, const LocalAgent& agent) {
  Finding finding{.check = "spool"};
  if (agent.spool == "none") {
    finding.severity = Severity::kWarning;
    finding.what =
        "the agent has no spool: data that the aggregator does not have yet stays in memory";
    finding.fix = "start neurontrace-agent with --spool DIRECTORY on a disk of this node";
    return finding;
  }
  std::string place = agent.spool;
  // The agent makes missing directories, so the nearest existing one decides.
  while (!host.Examine(place) && place.size() > 1 && place != ".") place = ParentOf(place);
  if (!agent.pid && place != agent.spool) {
    finding.severity = Severity::kNote;
    finding.what = fmt::format("{} does not exist, and no agent runs", agent.spool);
    return finding;
  }
  // A running agent may belong to another user, who may write where this one may not.
  if (!agent.pid && !host.CanWrite(place)) {
    finding.severity = Severity::kWarning;
    finding.what = fmt::format("{} is not writable for user {}", place, host.user());
    finding.fix = fmt::format("give it to the agent's user: chown USER {}", agent.spool);
    return finding;
  }
  const auto free = host.FreeBytes(place);
  if (!free.ok()) {
    finding.severity = Severity::kWarning;
    finding.what = std::string(free.status().message());
    finding.fix = "check that its disk is mounted";
    return finding;
  }
  const std::string room = fmt::format("{} free at {}", FormatBytes(*free), agent.spool);
  // The spool may fill up to its limit, so there should be room for all of it.
  if (*free >= agent.spool_bytes) {
    finding.what = fmt::format("{}, enough for {}", room, FormatBytes(agent.spool_bytes));
    return finding;
  }
  finding.severity = *free < limits::kSpoolBytesMin ? Severity::kBroken : Severity::kWarning;
  finding.what =
      fmt::format("{}, but the spool may grow to {}", room, FormatBytes(agent.spool_bytes));
  finding.fix = "free disk space, or start neurontrace-agent with a smaller --spool-bytes";
  return finding;
}

Finding CheckKinetoDirectory(HostView& host, const LocalAgent& agent) {
  Finding finding{.check = "framework traces"};
  const std::string& path = agent.kineto_directory;
  const auto about = host.Examine(path);
  if (!about || about->kind != PathFacts::Kind::kDirectory ||
      !host.Examine(path + "/dynolog").has_value()) {
    finding.severity = Severity::kBroken;
    finding.what = fmt::format("no agent listens in {}, where workers ask it for orders", path);
    finding.fix = "start neurontrace-agent again; it makes the directory and the socket dynolog";
  } else if ((about->mode & 0007) != 0) {
    finding.severity = Severity::kBroken;
    finding.what = fmt::format("{} has the mode {:04o}: every user can give orders to its workers",
                               path, about->mode & 07777);
    finding.fix = fmt::format("start neurontrace-agent again, or chmod 1770 {}", path);
  } else {
    finding.severity = Severity::kGood;
    finding.what =
        fmt::format("workers of the group {} can ask the agent for orders in {}", about->gid, path);
  }
  return finding;
}

}  // namespace neurontrace::cli
