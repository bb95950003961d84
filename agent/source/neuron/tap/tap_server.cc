// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/tap_server.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Connections that the kernel keeps until they are accepted (listen(2)).
constexpr int kBacklog = 128;
// A flood of connections leaves the sequence after this many; the watch fires again.
constexpr int kAcceptsPerTurn = 64;
constexpr uint64_t kPauseNs = 1'000'000'000;

// Creates the last directory of the path if it does not exist. Fails with FAILED_PRECONDITION.
absl::Status MakeDirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return absl::OkStatus();
  const std::string directory = path.substr(0, slash);
  if (mkdir(directory.c_str(), 0755) == 0 || errno == EEXIST) return absl::OkStatus();
  return FailedPrecondition("cannot create the directory {}: {}", directory, std::strerror(errno));
}

// Returns the locked file. Fails with FAILED_PRECONDITION if another process has the lock. flock(2)
// ends with the process, however it dies, so a stale lock file does not matter.
absl::StatusOr<UniqueFd> TakeLock(const std::string& path) {
  UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return FailedPrecondition("cannot open {}: {}", path, std::strerror(errno));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return FailedPrecondition(
        "another agent uses {}; stop it, or give this agent a different --socket", path);
  }
  return lock;
}

// Called with the lock held. An agent that listened would hold it, so the socket is stale.
absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat about = {};
  if (lstat(path.c_str(), &about) != 0) return absl::OkStatus();
  if (!S_ISSOCK(about.st_mode)) {
    return InvalidArgument("{} exists and is not a socket; remove it, or choose a different path",
                           path);
  }
  if (unlink(path.c_str()) == 0) return absl::OkStatus();
  return FailedPrecondition("cannot replace the socket {}: {}", path, std::strerror(errno));
}

// Returns a listening socket at the path, with the mode and group of the options. Fails with
// FAILED_PRECONDITION, or with INTERNAL if there is no socket. Requires that the path fits into
// sun_path.
absl::StatusOr<UniqueFd> Bind(const TapServer::Options& options) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, options.path.data(), options.path.size());
  // SEQPACKET keeps message boundaries, and one packet carries a message with its descriptors.
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Internal("socket: {}", std::strerror(errno));
  // bind(2) gives the file the socket's mode less the umask, so it is never more open than
  // requested, not even for a moment.
  fchmod(fd.get(), options.mode);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return FailedPrecondition("cannot bind {}: {}", options.path, std::strerror(errno));
  }
  if (options.group >= 0 && lchown(options.path.c_str(), static_cast<uid_t>(-1),
                                   static_cast<gid_t>(options.group)) != 0) {
    return FailedPrecondition("cannot change the group of {} to {}: {}", options.path,
                              options.group, std::strerror(errno));
  }
  if (chmod(options.path.c_str(), options.mode) != 0 || listen(fd.get(), kBacklog) != 0) {
    return FailedPrecondition("cannot listen on {}: {}", options.path, std::strerror(errno));
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TapServer>> TapServer::Listen(const Options& options,
                                                             TaskRunner& runner,
                                                             Listener& listener) {
  if (options.path.empty() || options.path.size() >= sizeof(sockaddr_un::sun_path)) {
    return InvalidArgument("the socket path \"{}\" must have 1 to {} bytes", options.path,
                           sizeof(sockaddr_un::sun_path) - 1);
  }
  RETURN_IF_ERROR(MakeDirectoryOf(options.path));
  ASSIGN_OR_RETURN(UniqueFd lock, TakeLock(options.path + ".lock"));
  RETURN_IF_ERROR(RemoveStaleSocket(options.path));
  ASSIGN_OR_RETURN(UniqueFd socket, Bind(options));
  return std::unique_ptr<TapServer>(
      new TapServer(options.path, std::move(lock), std::move(socket), runner, listener));
}

TapServer::TapServer(std::string path, UniqueFd lock, UniqueFd socket, TaskRunner& runner,
                     Listener& listener)
    : path_(std::move(path)),
      lock_(std::move(lock)),
      socket_(std::move(socket)),
      runner_(runner),
      listener_(listener) {
  Watch();
}

TapServer::~TapServer() {
  runner_.RemoveReadableWatch(socket_.get());
  unlink(path_.c_str());
}

void TapServer::AcceptAll() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (!listener_.CanAccept()) return Pause();
    UniqueFd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid()) {
      // accept(2) would fail at once again until something is closed.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) Pause();
      return;
    }
    listener_.OnAccepted(std::move(connection));
  }
}

void TapServer::Pause() {
  // The connection stays in the backlog; without a pause the watch would fire continuously.
  runner_.RemoveReadableWatch(socket_.get());
  runner_.PostDelayedTask(weak_tasks_.Wrap([this] { Watch(); }), kPauseNs);
}

void TapServer::Watch() {
  runner_.AddReadableWatch(socket_.get(), [this] { AcceptAll(); });
}

}  // namespace neurontrace
