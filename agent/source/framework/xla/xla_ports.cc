// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xla/xla_ports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "agent/source/neuron/tap/peer_identity.h"
#include "agent/source/neuron/tap/runtime_processes.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/framework_trace.h"

namespace neurontrace {
namespace {

constexpr size_t kPortsShownMax = 8;
constexpr size_t kVariableShownMax = 32;
constexpr std::string_view kListening = "0A";  // TCP_LISTEN
// As the kernel prints addresses: numbers of the machine's byte order, in groups of four bytes.
constexpr std::string_view kAny4 = "00000000";
constexpr std::string_view kLoopback4 = "0100007F";
constexpr std::string_view kAny6 = "00000000000000000000000000000000";
constexpr std::string_view kLoopback6 = "00000000000000000000000001000000";

struct ListeningSocket {
  uint16_t port = 0;
  bool on_all_addresses = false;
  std::string_view host;  // by which it is reached from this machine; empty: by neither loopback
};

// Returns a number of any base that is the whole of `text`.
template <typename Number>
std::optional<Number> ParseWhole(std::string_view text, int base = 10) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Removes and returns the text before the next `separator`, and all separators there.
std::string_view TakeWord(std::string_view& text, char separator) {
  text.remove_prefix(std::min(text.find_first_not_of(separator), text.size()));
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

// Returns the inodes of the sockets that the process has open. Fails with FAILED_PRECONDITION if
// they cannot be listed, or are too many.
absl::StatusOr<std::set<uint64_t>> SocketsOf(const std::string& directory) {
  constexpr std::string_view kPrefix = "socket:[";
  std::set<uint64_t> inodes;
  std::error_code error;
  size_t entries = 0;
  std::filesystem::directory_iterator it(directory, error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    if (++entries > limits::kXlaDescriptorsMax) {
      return FailedPrecondition(
          "the process has more than {} open files; the agent does not "
          "search them for the port of its profiler",
          limits::kXlaDescriptorsMax);
    }
    // One that was closed meanwhile has no target.
    std::error_code closed;
    const std::string target = std::filesystem::read_symlink(it->path(), closed).string();
    if (closed || !target.starts_with(kPrefix) || !target.ends_with(']')) continue;
    const std::string_view digits =
        std::string_view(target).substr(kPrefix.size(), target.size() - kPrefix.size() - 1);
    if (const auto inode = ParseWhole<uint64_t>(digits)) inodes.insert(*inode);
  }
  if (error) {
    return FailedPrecondition(
        "the agent cannot look into the process ({}); it needs its user, or CAP_SYS_PTRACE",
        error.message());
  }
  return inodes;
}

// Adds the listening sockets of one of the kernel's tables that are among `inodes`; a table that
// does not exist has none. Lines: "sl local rem st tx:rx tr:tm retrnsmt uid timeout inode …", an
// address as "HEX:PORT". Fails with FAILED_PRECONDITION if there are too many.
absl::Status AddListening(const std::string& path, const std::set<uint64_t>& inodes,
                          std::vector<ListeningSocket>& sockets) {
  std::ifstream table(path);
  std::string text;
  std::getline(table, text);  // the names of the columns
  for (size_t lines = 0; std::getline(table, text); ++lines) {
    if (lines >= limits::kXlaSocketsMax) {
      return FailedPrecondition(
          "more than {} sockets listen on this machine; the agent does not "
          "search them for the port of XLA's profiler",
          limits::kXlaSocketsMax);
    }
    std::string_view line = text;
    TakeWord(line, ' ');
    std::string_view local = TakeWord(line, ' ');
    TakeWord(line, ' ');
    // The kernel lists connections, often very many, behind all listening sockets.
    if (TakeWord(line, ' ') != kListening) break;
    for (int i = 0; i < 5; ++i) TakeWord(line, ' ');
    const auto inode = ParseWhole<uint64_t>(TakeWord(line, ' '));
    const std::string_view address = TakeWord(local, ':');
    const auto port = ParseWhole<uint16_t>(TakeWord(local, ':'), 16);
    if (!inode || !port || !inodes.contains(*inode)) continue;
    // gRPC's socket for all addresses takes calls of both families.
    const bool is_any = address == kAny4 || address == kAny6;
    sockets.push_back({.port = *port,
                       .on_all_addresses = is_any,
                       .host = is_any || address == kLoopback4 ? "ipv4:127.0.0.1"
                               : address == kLoopback6         ? "ipv6:%5B::1%5D"
                                                               : ""});
  }
  return absl::OkStatus();
}

std::string AddressOf(const ListeningSocket& socket) {
  return fmt::format("{}:{}", socket.host, socket.port);
}

absl::StatusOr<std::string> NamedPort(const std::string& text,
                                      const std::vector<ListeningSocket>& sockets) {
  const auto port = ParseWhole<uint16_t>(text);
  if (!port || *port == 0) {
    return NotFound("{}={} of the process is no port", kXlaPortVariable,
                    CleanText(text, kVariableShownMax));
  }
  for (const ListeningSocket& socket : sockets) {
    if (socket.port == *port && !socket.host.empty()) return AddressOf(socket);
  }
  return NotFound(
      "the process does not listen on port {} of {}; it has to call "
      "jax.profiler.start_server({}), or that of torch_xla.debug.profiler",
      *port, kXlaPortVariable, *port);
}

absl::StatusOr<std::string> OnlyPort(std::vector<ListeningSocket> sockets, bool has_xla) {
  std::erase_if(sockets, [](const ListeningSocket& one) { return !one.on_all_addresses; });
  std::set<uint16_t> ports;
  for (const ListeningSocket& socket : sockets) ports.insert(socket.port);
  const std::string fix = fmt::format(
      "call jax.profiler.start_server(PORT), or that of torch_xla.debug.profiler, and start the "
      "process with {}=PORT",
      kXlaPortVariable);
  if (!has_xla) return NotFound("the process has neither jaxlib nor torch_xla loaded; {}", fix);
  if (ports.empty()) return NotFound("the process listens on no port; {}", fix);
  if (ports.size() == 1) return AddressOf(sockets.front());
  const std::vector<uint16_t> shown(
      ports.begin(), std::next(ports.begin(), std::min(ports.size(), kPortsShownMax)));
  return NotFound("the process listens on {} ports ({}{}), and only it knows which is XLA's; {}",
                  ports.size(), fmt::join(shown, ", "), ports.size() > shown.size() ? ", …" : "",
                  fix);
}

}  // namespace

absl::StatusOr<std::string> XlaPorts::Find(uint32_t pid) const {
  const std::string process = fmt::format("{}/{}", root_, pid);
  ASSIGN_OR_RETURN(const std::set<uint64_t> inodes, SocketsOf(process + "/fd"));
  std::error_code error;
  const auto own = std::filesystem::read_symlink(root_ + "/self/ns/net", error);
  const auto theirs = std::filesystem::read_symlink(process + "/ns/net", error);
  if (error || own != theirs) {
    return FailedPrecondition(
        "the process has a network of its own, where the agent cannot call it; a pod needs "
        "hostNetwork");
  }
  std::vector<ListeningSocket> sockets;
  RETURN_IF_ERROR(AddListening(process + "/net/tcp", inodes, sockets));
  RETURN_IF_ERROR(AddListening(process + "/net/tcp6", inodes, sockets));

  const ProcessDescription described = ReadProcessDescription(
      root_, pid, [](std::string_view name) { return name == kXlaPortVariable; });
  const auto named = described.environment.find(kXlaPortVariable);
  if (named != described.environment.end()) return NamedPort(named->second, sockets);
  ASSIGN_OR_RETURN(const std::string mappings, ProcFiles(root_).Mappings(pid));
  return OnlyPort(std::move(sockets), HasXla(mappings));
}

}  // namespace neurontrace
