// SPDX-License-Identifier: Apache-2.0
#include "aggregator/reference/probe_responder.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/status.h"
#include "lib/clock/receive_stamps.h"
#include "lib/health/metric_builders.h"

namespace neurontrace {
namespace {

// Returns the counter of packets refused for one reason.
prometheus::Counter& MakeRefused(prometheus::Registry& registry, const std::string& reason) {
  return MakeCounter(registry, "neurontrace_aggregator_probes_refused_total",
                     "Probe packets dropped without an answer", {{"reason", reason}});
}

// Packets per system call.
constexpr size_t kAtOnceMax = 64;
// How often the loop looks at the clocks while no packet comes.
constexpr int kPollIntervalMs = 1'000;
// One more than a valid packet, so that a longer one is noticed.
constexpr size_t kPacketBytesMax = kProbePacketBytes + 1;
// Agents ask twice a second at different times, but all of them at once when this starts.
constexpr int kReceiveBufferBytes = 4 << 20;

// Everything of one received packet that recvmmsg fills.
struct Slot {
  char packet[kPacketBytesMax];
  sockaddr_storage from;
  iovec buffer;
  alignas(cmsghdr) char control[256];
};

// Copies the address that the packet was sent to as control data for the answer; returns its
// length. Without it, a host with several addresses may answer from another one than was asked.
size_t CopyDestination(const msghdr& message, char (&to)[64]) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(const_cast<msghdr*>(&message), control)) {
    const bool is_v4 = control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO;
    const bool is_v6 = control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO;
    if (!is_v4 && !is_v6) continue;
    const size_t bytes = CMSG_ALIGN(control->cmsg_len);
    if (bytes > sizeof(to)) return 0;
    memcpy(to, control, control->cmsg_len);
    // The interface is left to the routing table.
    if (is_v4) {
      auto* const info = reinterpret_cast<in_pktinfo*>(CMSG_DATA(reinterpret_cast<cmsghdr*>(to)));
      info->ipi_ifindex = 0;
    } else {
      auto* const info = reinterpret_cast<in6_pktinfo*>(CMSG_DATA(reinterpret_cast<cmsghdr*>(to)));
      if (IN6_IS_ADDR_V4MAPPED(&info->ipi6_addr)) info->ipi6_ifindex = 0;
    }
    return bytes;
  }
  return 0;
}

// Receives and answers packets on the responder's thread. The buffers are allocated once; nothing
// is allocated for a packet.
class Receiver {
 public:
  Receiver(int socket, const ProbeResponder::Deps& deps)
      : socket_(socket), deps_(deps), stamps_(deps.clocks) {
    Poll();
  }

  // Keeps the comparison between kernel stamps and raw recent for the next packet.
  void Poll() { stamps_.Poll(); }

  // Receives what is available and answers it.
  void Work() {
    // The kernel changes lengths in these headers, so all are set again before each call.
    for (size_t i = 0; i < kAtOnceMax; ++i) {
      slots_[i].buffer = {.iov_base = slots_[i].packet, .iov_len = kPacketBytesMax};
      messages_[i] = {};
      messages_[i].msg_hdr = {.msg_name = &slots_[i].from,
                              .msg_namelen = sizeof(slots_[i].from),
                              .msg_iov = &slots_[i].buffer,
                              .msg_iovlen = 1,
                              .msg_control = slots_[i].control,
                              .msg_controllen = sizeof(slots_[i].control)};
    }
    const int received = recvmmsg(socket_, messages_.data(), kAtOnceMax, MSG_DONTWAIT, nullptr);
    if (received <= 0) return;
    // The look comes after the receipt, so that the kernel's stamps lie between two looks.
    stamps_.Poll();
    now_ns_ = deps_.clocks.RawNs();
    for (int i = 0; i < received; ++i) {
      Answer(messages_[static_cast<size_t>(i)], slots_[static_cast<size_t>(i)]);
    }
  }

 private:
  // Answers one packet or counts why not. An attacker gets no answer, not even an error.
  void Answer(const mmsghdr& message, Slot& slot) {
    ProbeQuestion question;
    const auto verdict = deps_.keys.Check({slot.packet, message.msg_len}, now_ns_, question);
    if (verdict != ProbeKeys::Verdict::kGenuine) return CountRefused(verdict);
    const uint64_t without_kernel = stamps_.without_kernel();
    const uint64_t receive_raw_ns = stamps_.OnRaw(ReceiveStampNs(message.msg_hdr));
    if (stamps_.without_kernel() != without_kernel) deps_.metrics.without_kernel_stamp.Increment();
    // The time of sending is read as late as possible, right before the answer is sealed.
    const auto packet =
        deps_.keys.Encode({.key_id = question.key_id,
                           .sequence = question.sequence,
                           .reference_receive_ns = deps_.timescale.FromRaw(receive_raw_ns),
                           .reference_send_ns = deps_.timescale.NowNs(),
                           .reference_epoch = deps_.timescale.epoch()});
    // The key was taken back in between.
    if (!packet) return;
    Send(message.msg_hdr, slot, *packet);
  }

  // Sends to the address that the question came from. Never blocks: a full buffer loses the answer,
  // and the agent asks again.
  void Send(const msghdr& question, Slot& slot, const ProbePacket& packet) {
    alignas(cmsghdr) char control[64] = {};
    iovec buffer{.iov_base = const_cast<uint8_t*>(packet.data()), .iov_len = packet.size()};
    msghdr answer{.msg_name = &slot.from,
                  .msg_namelen = question.msg_namelen,
                  .msg_iov = &buffer,
                  .msg_iovlen = 1};
    answer.msg_controllen = CopyDestination(question, control);
    if (answer.msg_controllen != 0) answer.msg_control = control;
    if (sendmsg(socket_, &answer, MSG_DONTWAIT | MSG_NOSIGNAL) ==
        static_cast<ssize_t>(packet.size())) {
      deps_.metrics.answered.Increment();
    } else {
      deps_.metrics.send_errors.Increment();
    }
  }

  // Counts a packet that gets no answer.
  void CountRefused(ProbeKeys::Verdict verdict) {
    switch (verdict) {
      case ProbeKeys::Verdict::kMalformed:
        return deps_.metrics.refused_malformed.Increment();
      case ProbeKeys::Verdict::kUnknownKey:
        return deps_.metrics.refused_unknown_key.Increment();
      case ProbeKeys::Verdict::kForged:
        return deps_.metrics.refused_forged.Increment();
      case ProbeKeys::Verdict::kReplayed:
        return deps_.metrics.refused_replayed.Increment();
      case ProbeKeys::Verdict::kTooMany:
        return deps_.metrics.refused_too_many.Increment();
      case ProbeKeys::Verdict::kGenuine:
        return;
    }
  }

  const int socket_;
  const ProbeResponder::Deps& deps_;
  ReceiveStamps stamps_;
  uint64_t now_ns_ = 0;  // raw time of the current packets
  std::array<Slot, kAtOnceMax> slots_;
  std::array<mmsghdr, kAtOnceMax> messages_;
};

// Returns a bound, non-blocking socket that stamps what it receives. Fails with UNAVAILABLE and the
// system's error.
absl::StatusOr<UniqueFd> Bind(const addrinfo& address) {
  UniqueFd fd(socket(address.ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Unavailable("socket: {}", strerror(errno));
  const int on = 1;
  const int off = 0;
  if (address.ai_family == AF_INET6) {
    // Makes one socket serve both families, if the system allows it.
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
  } else {
    setsockopt(fd.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
  }
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBufferBytes, sizeof(kReceiveBufferBytes));
  if (bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    return Unavailable("bind: {}", strerror(errno));
  }
  // Without the kernel's stamps probes are answered with wider bounds.
  EnableReceiveStamps(fd.get()).IgnoreError();
  return fd;
}

// Fails with NOT_FOUND if `name` is not an address of this machine. Uses the first address that the
// name resolves to.
absl::StatusOr<UniqueFd> BindTo(const std::string& name, uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0 || found == nullptr) return NotFound("{}", gai_strerror(error));
  absl::StatusOr<UniqueFd> socket = Bind(*found);
  freeaddrinfo(found);
  return socket;
}

// Returns the port of a bound socket, in host byte order; 0 if the system does not tell.
uint16_t PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  const in_port_t port = address.ss_family == AF_INET6
                             ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                             : reinterpret_cast<sockaddr_in&>(address).sin_port;
  return ntohs(port);
}

}  // namespace

ProbeMetrics::ProbeMetrics(prometheus::Registry& registry)
    : answered(MakeCounter(registry, "neurontrace_aggregator_probes_answered_total",
                           "Clock probes answered over UDP")),
      without_kernel_stamp(
          MakeCounter(registry, "neurontrace_aggregator_probes_without_kernel_stamp_total",
                      "Clock probes answered over UDP without the kernel's time of receipt")),
      refused_malformed(MakeRefused(registry, "malformed")),
      refused_unknown_key(MakeRefused(registry, "unknown_key")),
      refused_forged(MakeRefused(registry, "forged")),
      refused_replayed(MakeRefused(registry, "replayed")),
      refused_too_many(MakeRefused(registry, "too_many")),
      send_errors(MakeCounter(registry, "neurontrace_aggregator_probe_send_errors_total",
                              "Answers to clock probes that could not be sent")) {}

absl::StatusOr<std::unique_ptr<ProbeResponder>> ProbeResponder::Start(const std::string& host,
                                                                      uint16_t port,
                                                                      const Deps& deps) {
  std::string name = host;
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  // gRPC listens on both families when it listens on every address, and agents use either.
  absl::StatusOr<UniqueFd> socket = absl::UnavailableError("no IPv6");
  // IPv6 is tried first; without it the next line binds IPv4 alone.
  if (name == "0.0.0.0") socket = BindTo("::", port);
  if (!socket.ok()) socket = BindTo(name, port);
  if (absl::IsNotFound(socket.status())) {
    return FailedPrecondition("{} is not an address of this machine: {}", host,
                              std::string(socket.status().message()));
  }
  UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!socket.ok() || !stop.valid()) {
    return FailedPrecondition(
        "cannot answer clock probes at {} port {} (UDP): {}; if another program uses the port, "
        "choose another one with --probe-port",
        host, port,
        socket.ok() ? "no file descriptors are left" : std::string(socket.status().message()));
  }
  const uint16_t bound = PortOf(socket->get());
  std::unique_ptr<ProbeResponder> responder(
      new ProbeResponder(deps, *std::move(socket), std::move(stop), bound));
  responder->thread_ = std::thread([self = responder.get()] { self->Run(); });
  return responder;
}

// The thread is started by Start, once the object exists.
ProbeResponder::ProbeResponder(const Deps& deps, UniqueFd socket, UniqueFd stop, uint16_t port)
    : deps_(deps), socket_(std::move(socket)), stop_(std::move(stop)), port_(port) {}

// Wakes the thread through the eventfd and waits for it.
ProbeResponder::~ProbeResponder() {
  const uint64_t one = 1;
  // A full eventfd is readable, too, which suffices.
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
}

// The timeout keeps the comparison of clocks recent; the eventfd ends the loop at once.
void ProbeResponder::Run() {
  const auto receiver = std::make_unique<Receiver>(socket_.get(), deps_);
  for (;;) {
    pollfd ready[] = {{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                      {.fd = stop_.get(), .events = POLLIN, .revents = 0}};
    const int count = poll(ready, 2, kPollIntervalMs);
    if (count < 0 && errno != EINTR) {
      SPDLOG_ERROR("clock probes are no longer answered: poll: {}; restart the aggregator",
                   strerror(errno));
      return;
    }
    if (count <= 0) {
      receiver->Poll();
      continue;
    }
    if (ready[1].revents != 0) return;
    if (ready[0].revents != 0) receiver->Work();
  }
}

}  // namespace neurontrace
