// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/on_demand/kineto_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <variant>

#include "agent/source/framework/on_demand/kineto_messages.h"
#include "lib/base/status.h"
#include "lib/trace/framework_limits.h"

namespace neurontrace {
namespace {

// A flood of datagrams leaves the sequence after this many; the watch fires again.
constexpr int kDatagramsPerTurn = 64;
// How names of the sockets of Kineto's clients begin.
constexpr std::string_view kClientPrefix = "dynoconfigclient";

// Returns the address of a path. Requires that it fits.
sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Makes the directory, or checks the one that is there: whoever else may write to it could take the
// agent's name in it. Fails with FAILED_PRECONDITION.
absl::Status PrepareDirectory(const KinetoSocket::Options& options) {
  const std::string& path = options.directory;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return FailedPrecondition("cannot create the directory {}: {}", path, std::strerror(errno));
  }
  const UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat about = {};
  if (!directory.valid() || fstat(directory.get(), &about) != 0) {
    return FailedPrecondition("cannot open the directory {}: {}", path, std::strerror(errno));
  }
  if (about.st_uid != geteuid()) {
    return FailedPrecondition(
        "the directory {} belongs to user {}, and not to the agent's user {}; remove it, so that "
        "the agent can make it",
        path, about.st_uid, geteuid());
  }
  if (options.group >= 0 &&
      fchown(directory.get(), static_cast<uid_t>(-1), static_cast<gid_t>(options.group)) != 0) {
    return FailedPrecondition("cannot change the group of {} to {}: {}", path, options.group,
                              std::strerror(errno));
  }
  if (fchmod(directory.get(), KinetoSocket::kDirectoryMode) != 0) {
    return FailedPrecondition("cannot change the mode of {}: {}", path, std::strerror(errno));
  }
  return absl::OkStatus();
}

// Returns the locked file, or FAILED_PRECONDITION if another process has the lock.
absl::StatusOr<UniqueFd> LockDirectory(const std::string& directory) {
  const std::string path = directory + "/.neurontrace.lock";
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return FailedPrecondition("cannot open {}: {}", path, std::strerror(errno));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return FailedPrecondition("another agent uses {}; give this one a different --kineto-dir",
                              directory);
  }
  return lock;
}

// Replaces what an earlier agent left. Requires the lock, and a path that fits.
absl::StatusOr<UniqueFd> BindSocket(const KinetoSocket::Options& options, const std::string& path) {
  struct stat about = {};
  if (lstat(path.c_str(), &about) == 0 && unlink(path.c_str()) != 0) {
    return FailedPrecondition("cannot replace {}: {}", path, std::strerror(errno));
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Internal("socket: {}", std::strerror(errno));
  const int on = 1;
  // Before bind, so that no datagram arrives without credentials.
  if (setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      fchmod(fd.get(), KinetoSocket::kSocketMode) != 0) {
    return Internal("cannot prepare the socket {}: {}", path, std::strerror(errno));
  }
  const sockaddr_un address = AddressOf(path);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return FailedPrecondition("cannot bind {}: {}", path, std::strerror(errno));
  }
  if (options.group >= 0 &&
      lchown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(options.group)) != 0) {
    return FailedPrecondition("cannot change the group of {} to {}: {}", path, options.group,
                              std::strerror(errno));
  }
  if (chmod(path.c_str(), KinetoSocket::kSocketMode) != 0) {
    return FailedPrecondition("cannot change the mode of {}: {}", path, std::strerror(errno));
  }
  return fd;
}

// Returns whether the path is a socket that no process has open any more. False if the kernel does
// not say.
bool IsDeadSocket(const std::string& path) {
  struct stat about = {};
  if (path.size() >= sizeof(sockaddr_un::sun_path) || lstat(path.c_str(), &about) != 0 ||
      !S_ISSOCK(about.st_mode)) {
    return false;
  }
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = AddressOf(path);
  return fd.valid() &&
         connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

// Returns the credentials that the kernel added to a datagram; false if there are none.
bool FindCredentials(msghdr& message, ucred& credentials) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS ||
        part->cmsg_len != CMSG_LEN(sizeof credentials)) {
      continue;
    }
    std::memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
    return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KinetoSocket>> KinetoSocket::Listen(const Options& options,
                                                                   TaskRunner& runner,
                                                                   KinetoOrders& orders,
                                                                   AgentSourceMetrics& metrics) {
  const std::string path = options.directory + "/" + kName;
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return InvalidArgument("the path {} must have at most {} bytes", path,
                           sizeof(sockaddr_un::sun_path) - 1);
  }
  RETURN_IF_ERROR(PrepareDirectory(options));
  ASSIGN_OR_RETURN(UniqueFd lock, LockDirectory(options.directory));
  ASSIGN_OR_RETURN(UniqueFd socket, BindSocket(options, path));
  return std::unique_ptr<KinetoSocket>(new KinetoSocket(
      options.directory, std::move(lock), std::move(socket), runner, orders, metrics));
}

KinetoSocket::KinetoSocket(std::string directory, UniqueFd lock, UniqueFd socket,
                           TaskRunner& runner, KinetoOrders& orders, AgentSourceMetrics& metrics)
    : directory_(std::move(directory)),
      lock_(std::move(lock)),
      socket_(std::move(socket)),
      runner_(runner),
      orders_(orders),
      metrics_(metrics) {
  runner_.AddReadableWatch(socket_.get(), [this] { ReceiveAll(); });
  ScheduleSweep();
}

KinetoSocket::~KinetoSocket() {
  runner_.RemoveReadableWatch(socket_.get());
  unlink((directory_ + "/" + kName).c_str());
}

void KinetoSocket::ScheduleSweep() {
  runner_.PostDelayedTask(weak_tasks_.Wrap([this] {
    RemoveDeadSockets();
    ScheduleSweep();
  }),
                          kSweepPeriodNs);
}

void KinetoSocket::RemoveDeadSockets() {
  std::set<std::string> dead;
  std::error_code error;
  size_t entries = 0;
  std::filesystem::directory_iterator it(directory_, error);
  for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
    if (++entries > limits::kKinetoSocketsExaminedMax) break;
    const std::string path = it->path().string();
    if (!it->path().filename().string().starts_with(kClientPrefix) || !IsDeadSocket(path)) continue;
    if (!dead_.contains(path)) {
      dead.insert(path);
    } else if (unlink(path.c_str()) == 0) {
      AgentSourceMetrics::Add(metrics_.kineto_sockets_removed);
    }
  }
  dead_ = std::move(dead);
}

void KinetoSocket::ReceiveAll() {
  for (int i = 0; i < kDatagramsPerTurn; ++i) {
    if (!ReceiveOne()) return;
  }
}

bool KinetoSocket::ReceiveOne() {
  std::array<char, limits::kKinetoDatagramBytesMax> data;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
  sockaddr_un sender = {};
  iovec piece{data.data(), data.size()};
  msghdr message = {};
  message.msg_name = &sender;
  message.msg_namelen = sizeof sender;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  // Descriptors that somebody sends find no room in `control`, so the kernel drops them.
  const ssize_t size = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return errno == EINTR;
  AgentSourceMetrics::Add(metrics_.kineto_datagrams);
  ucred credentials = {};
  const size_t path_bytes = message.msg_namelen > offsetof(sockaddr_un, sun_path)
                                ? message.msg_namelen - offsetof(sockaddr_un, sun_path)
                                : 0;
  KinetoClient client;
  client.address.assign(sender.sun_path, strnlen(sender.sun_path, path_bytes));
  if ((message.msg_flags & MSG_TRUNC) != 0 || !FindCredentials(message, credentials)) {
    AgentSourceMetrics::Add(metrics_.kineto_datagrams_refused);
    return true;
  }
  client.pid = credentials.pid > 0 ? static_cast<uint32_t>(credentials.pid) : 0;
  client.uid = credentials.uid;
  Handle(client, std::string_view(data.data(), static_cast<size_t>(size)));
  return true;
}

void KinetoSocket::Handle(const KinetoClient& client, std::string_view datagram) {
  const auto parsed = ParseKinetoDatagram(datagram);
  if (!parsed.ok() || !IsOwnSocket(client)) {
    return AgentSourceMetrics::Add(metrics_.kineto_datagrams_refused);
  }
  const auto* const request = std::get_if<KinetoRequest>(&*parsed);
  if (request == nullptr) {
    // Without an answer the worker only logs.
    Send(client, KinetoContextAnswer());
    return;
  }
  const std::string config = orders_.OnRequest(client, request->takes_activities);
  const bool delivered = Send(client, KinetoAnswer(config));
  if (config.empty()) return;
  if (delivered) return AgentSourceMetrics::Add(metrics_.kineto_orders);
  orders_.OnNotDelivered(client);
}

// The sender bound the address, but may have replaced it since, for instance by a link to a socket
// of another service that would take an answer for a message of this agent.
bool KinetoSocket::IsOwnSocket(const KinetoClient& client) const {
  const std::string& path = client.address;
  if (path.size() <= directory_.size() + 1 || !path.starts_with(directory_) ||
      path[directory_.size()] != '/' || path.find('/', directory_.size() + 1) != path.npos) {
    return false;
  }
  struct stat about = {};
  return lstat(path.c_str(), &about) == 0 && S_ISSOCK(about.st_mode) && about.st_uid == client.uid;
}

bool KinetoSocket::Send(const KinetoClient& client, const std::string& datagram) {
  const sockaddr_un address = AddressOf(client.address);
  const ssize_t sent =
      sendto(socket_.get(), datagram.data(), datagram.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (sent == static_cast<ssize_t>(datagram.size())) return true;
  AgentSourceMetrics::Add(metrics_.kineto_answers_failed);
  return false;
}

}  // namespace neurontrace
