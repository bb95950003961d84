// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/tap_session.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// A connection that never stops sending leaves the sequence after this many messages.
constexpr int kMessagesPerTurn = 64;
// A token bucket. Reports come with changes of state and answers, a handful a second at most.
constexpr uint32_t kReportBurst = 200;
constexpr uint64_t kReportPeriodNs = 20'000'000;

// Returns the header of a message that is `length` bytes long with its header.
TapMessageHeader MakeHeader(TapMessageType type, size_t length) {
  return {kTapMessageMagic, kTapProtocolVersion, static_cast<uint16_t>(type),
          static_cast<uint32_t>(length), 0};
}

// Returns the bytes of a message, which is a plain struct without padding.
template <typename Message>
std::string Encode(const Message& message) {
  return {reinterpret_cast<const char*>(&message), sizeof message};
}

// Any 16 bytes are an id, so this cannot fail.
CaptureId ToCaptureId(const uint8_t (&bytes)[kTapCaptureIdBytes]) {
  return *CaptureId::FromBytes({reinterpret_cast<const char*>(bytes), sizeof bytes});
}

// Returns whether the descriptor is the kind of socket that a tap makes for wake-ups. For others,
// such as a file of FUSE, it is not known what reading does.
bool IsPacketSocket(int fd) {
  const auto is = [fd](int option, int wanted) {
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
  };
  return is(SO_DOMAIN, AF_UNIX) && is(SO_TYPE, SOCK_SEQPACKET);
}

// Returns who connected, as the kernel recorded it at connect(2); nothing if it cannot be read.
std::optional<ucred> ReadPeer(int socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

}  // namespace

std::optional<uid_t> TapSession::ReadPeerUser(int socket) {
  const std::optional<ucred> peer = ReadPeer(socket);
  return peer ? std::optional(peer->uid) : std::nullopt;
}

TapSession::TapSession(PeerFd socket, PeerCloser& closer, TaskRunner& runner, const Clock& clock,
                       Listener& listener)
    : socket_(std::move(socket)),
      closer_(closer),
      runner_(runner),
      clock_(clock),
      listener_(listener),
      connected_ns_(clock.MonotonicNs()),
      tokens_(kReportBurst),
      tokens_ns_(connected_ns_) {
  peer_ = ReadPeer(socket_.get()).value_or(ucred{});
  runner_.AddReadableWatch(socket_.get(), [this] { OnReadable(); });
}

TapSession::~TapSession() { runner_.RemoveReadableWatch(socket_.get()); }

// OnClosed is the last statement on every path, as the listener may destroy this session in it.
void TapSession::OnReadable() {
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    const absl::StatusOr<bool> more = ReadMessage();
    if (!more.ok()) {
      const bool hung_up = absl::IsUnavailable(more.status());
      listener_.OnClosed(*this, hung_up ? absl::OkStatus() : more.status());
      return;
    }
    if (!*more) return;
  }
}

// One packet is one message; of one that is longer than the protocol allows, only the beginning
// arrives.
absl::StatusOr<bool> TapSession::ReadMessage() {
  alignas(TapHello) char data[kTapMessageBytesMax];
  PeerMessage message = ReceivePeerMessage(socket_.get(), data, closer_);
  if (message.size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (message.size <= 0) return Unavailable("the tap disconnected");
  // A truncated packet has lost its end, or descriptors that the kernel then closed.
  if ((message.flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return InvalidArgument("the tap sent a message that is too long");
  }
  RETURN_IF_ERROR(
      HandleMessage(data, static_cast<size_t>(message.size), std::move(message.descriptors)));
  return true;
}

absl::Status TapSession::HandleMessage(const char* data, size_t size,
                                       std::vector<PeerFd> descriptors) {
  TapMessageHeader header;
  if (size < sizeof header) return InvalidArgument("the tap sent a message of only {} bytes", size);
  std::memcpy(&header, data, sizeof header);
  if (header.magic != kTapMessageMagic || header.length != size) {
    return InvalidArgument("the tap sent an invalid message");
  }
  if (header.version != kTapProtocolVersion) {
    return InvalidArgument(
        "the tap uses protocol {} and this agent {}; use a tap and an agent of the same release",
        header.version, kTapProtocolVersion);
  }
  // After the form is checked, so that the reason for a malformed message is reported as such.
  if (!TakeToken()) return InvalidArgument("the tap sends too many messages");
  switch (static_cast<TapMessageType>(header.type)) {
    case TapMessageType::kHello:
    case TapMessageType::kAnnotateHello:
      return HandleGreeting(static_cast<TapMessageType>(header.type), data, size,
                            std::move(descriptors));
    case TapMessageType::kStatus:
      if (!descriptors.empty()) return InvalidArgument("the tap sent descriptors with its status");
      return HandleReport(data, size);
    default:
      return InvalidArgument("the tap sent a message of unknown type {}", header.type);
  }
}

// Everything is checked before the listener sees it. A greeting that is refused has its descriptors
// closed by their PeerFd.
absl::Status TapSession::HandleGreeting(TapMessageType type, const char* data, size_t size,
                                        std::vector<PeerFd> descriptors) {
  TapHello hello;
  if (greeted_) return InvalidArgument("the tap sent a second HELLO");
  if (size != sizeof hello)
    return InvalidArgument("the tap's HELLO has an invalid size of {} bytes", size);
  if (descriptors.size() != 2) {
    return InvalidArgument("the tap's HELLO came with {} descriptors, not 2", descriptors.size());
  }
  // The buffer's descriptor is checked by TapBufferReader::Open.
  if (!IsPacketSocket(descriptors[1].get())) {
    return InvalidArgument("the tap's wake descriptor is not an AF_UNIX packet socket");
  }
  std::memcpy(&hello, data, sizeof hello);
  TapGreeting greeting;
  greeting.annotates = type == TapMessageType::kAnnotateHello;
  greeting.claimed_pid = hello.claimed_pid;
  greeting.process_start_ticks = hello.process_start_ticks;
  greeting.state = static_cast<TapState>(hello.state);
  greeting.capture_id = ToCaptureId(hello.capture_id);
  greeting.tap_version =
      CleanText({hello.tap_version, strnlen(hello.tap_version, sizeof hello.tap_version)},
                sizeof hello.tap_version);
  greeting.buffer = std::move(descriptors[0]);
  greeting.wake = std::move(descriptors[1]);
  // Before the call: the listener may send commands from within it.
  greeted_ = true;
  return listener_.OnGreeting(*this, std::move(greeting));
}

// The text is cleaned, since it reaches logs and people.
absl::Status TapSession::HandleReport(const char* data, size_t size) {
  TapStatus status;
  if (!greeted_) return InvalidArgument("the tap sent its status before HELLO");
  if (size < sizeof status)
    return InvalidArgument("the tap's STATUS has an invalid size of {} bytes", size);
  std::memcpy(&status, data, sizeof status);
  if (status.detail_bytes != size - sizeof status ||
      status.detail_bytes > kTapStatusDetailBytesMax) {
    return InvalidArgument("the tap's STATUS has a text of an invalid size of {} bytes",
                           status.detail_bytes);
  }
  // Values that this agent does not know are passed on; the listener treats them as such.
  TapReport report;
  report.state = static_cast<TapState>(status.state);
  report.result = static_cast<TapResult>(status.result);
  if (status.command != 0) report.command = static_cast<TapMessageType>(status.command);
  report.nrt_status = status.nrt_status;
  report.capture_id = ToCaptureId(status.capture_id);
  report.detail = CleanText({data + sizeof status, status.detail_bytes}, kTapStatusDetailBytesMax);
  listener_.OnReport(*this, report);
  return absl::OkStatus();
}

// Whole periods are granted and the rest of the time is kept, so the rate is exact in the long run.
bool TapSession::TakeToken() {
  const uint64_t now_ns = clock_.MonotonicNs();
  const uint64_t earned = (now_ns - tokens_ns_) / kReportPeriodNs;
  tokens_ns_ += earned * kReportPeriodNs;
  tokens_ = static_cast<uint32_t>(std::min<uint64_t>(kReportBurst, tokens_ + earned));
  if (tokens_ == 0) return false;
  --tokens_;
  return true;
}

// Never blocks. A tap whose queue is full does not read, and must not stop the agent for that.
absl::Status TapSession::Send(const std::string& message) {
  const ssize_t sent =
      send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return Unavailable("the tap does not accept commands: {}", std::strerror(errno));
  return absl::OkStatus();
}

absl::Status TapSession::SendStart(const TapStartOrder& order) {
  std::string names;
  for (const std::string& name : order.names) {
    names += name;
    names += '\0';
  }
  // A START has the fixed part and then the names, each with its NUL.
  TapStart start = {};
  const size_t size = sizeof start + names.size();
  // MakeStartOrder avoids this by leaving the filtering to the agent.
  if (order.names.size() > kTapEventNamesMax || size > kTapMessageBytesMax) {
    return InvalidArgument("{} event types of {} bytes do not fit into a START message",
                           order.names.size(), names.size());
  }
  start.header = MakeHeader(TapMessageType::kStart, size);
  std::memcpy(start.capture_id, order.capture_id.bytes().data(), sizeof start.capture_id);
  start.max_events_per_nc = order.events_per_core;
  std::memcpy(start.nc_bitmap, order.core_bitmap, sizeof start.nc_bitmap);
  start.event_rule = static_cast<uint32_t>(order.rule);
  start.name_count = static_cast<uint32_t>(order.names.size());
  start.flags = order.holds ? kTapStartFlagHold : 0;
  start.names_bytes = static_cast<uint32_t>(names.size());
  start.begin_at_monotonic_ns = order.begin_at_monotonic_ns;
  return Send(Encode(start) + names);
}

absl::Status TapSession::SendStop(const CaptureId& capture_id, uint64_t stop_at_monotonic_ns) {
  TapStop stop = {};
  stop.header = MakeHeader(TapMessageType::kStop, sizeof stop);
  std::memcpy(stop.capture_id, capture_id.bytes().data(), sizeof stop.capture_id);
  stop.stop_at_monotonic_ns = stop_at_monotonic_ns;
  return Send(Encode(stop));
}

absl::Status TapSession::SendAnnotate(bool recording) {
  TapAnnotate annotate = {};
  annotate.header = MakeHeader(TapMessageType::kAnnotate, sizeof annotate);
  annotate.recording = recording ? 1 : 0;
  return Send(Encode(annotate));
}

absl::Status TapSession::SendCollect(const CaptureId& capture_id, const CaptureId& recorder_id,
                                     uint64_t at_monotonic_ns) {
  TapCollect collect = {};
  collect.header = MakeHeader(TapMessageType::kCollect, sizeof collect);
  std::memcpy(collect.capture_id, capture_id.bytes().data(), sizeof collect.capture_id);
  std::memcpy(collect.recorder_id, recorder_id.bytes().data(), sizeof collect.recorder_id);
  collect.at_monotonic_ns = at_monotonic_ns;
  return Send(Encode(collect));
}

}  // namespace neurontrace
