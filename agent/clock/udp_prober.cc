// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/udp_prober.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Together these bound one wakeup, so that a flood at this port cannot keep the thread from its
// heartbeat.
constexpr int kAtOnceMax = 16;
constexpr int kReadsMax = 8;
constexpr size_t kPacketBytesMax = kProbePacketBytes + 1;  // so that a longer one shows

// Memory for one packet and the kernel's timestamp of its receipt.
struct Slot {
  char packet[kPacketBytesMax];
  iovec buffer;
  alignas(cmsghdr) char control[kReceiveControlBytes];
};

}  // namespace

UdpProber::UdpProber(const HostClocks& clocks, TaskRunner& runner, ExchangeSink& exchanges)
    : clocks_(clocks), runner_(runner), exchanges_(exchanges), stamps_(clocks) {}

UdpProber::~UdpProber() { Disconnect(); }

absl::Status UdpProber::Connect(const ProbeAccess& access) {
  Disconnect();
  UniqueFd fd(
      socket(access.address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // A connected socket: the kernel drops packets from other addresses.
  if (!fd.valid() || connect(fd.get(), reinterpret_cast<const sockaddr*>(&access.address.storage),
                             access.address.length) != 0) {
    return Unavailable("cannot open a socket for clock probes: {}", strerror(errno));
  }
  // Without kernel timestamps the time of the read is used, which is later and so only widens
  // bounds.
  EnableReceiveStamps(fd.get()).IgnoreError();
  socket_ = std::move(fd);
  key_id_ = access.key_id;
  cipher_.emplace(access.key);
  sequence_ = 0;
  questions_ = {};
  runner_.AddReadableWatch(socket_.get(), [this] { OnReadable(); });
  return absl::OkStatus();
}

void UdpProber::Disconnect() {
  if (socket_.valid()) runner_.RemoveReadableWatch(socket_.get());
  socket_.Close();
  cipher_.reset();
}

void UdpProber::Send(int probes) {
  if (!connected()) return;
  stamps_.Poll();  // so that what answers are compared with is not old
  for (int i = 0; i < probes; ++i) {
    const ProbePacket packet = cipher_->Encode(ProbeQuestion{key_id_, ++sequence_});
    Question& question = questions_[sequence_ % kQuestionsMax];
    // Stamped immediately before it is sent: any delay in between widens the bound.
    question = {.sequence = sequence_, .send_raw_ns = clocks_.RawNs()};
    const ssize_t bytes = send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
    if (bytes == static_cast<ssize_t>(packet.size())) {
      ++counters_.sent;
    } else {
      question.sequence = 0;
      ++counters_.send_errors;
    }
  }
}

void UdpProber::OnReadable() {
  Slot slots[kAtOnceMax];
  mmsghdr messages[kAtOnceMax];
  // The callback may disconnect; nothing more is read after that.
  for (int reads = 0; reads < kReadsMax && connected(); ++reads) {
    for (int i = 0; i < kAtOnceMax; ++i) {
      slots[i].buffer = {.iov_base = slots[i].packet, .iov_len = kPacketBytesMax};
      messages[i] = {};
      messages[i].msg_hdr = {.msg_iov = &slots[i].buffer,
                             .msg_iovlen = 1,
                             .msg_control = slots[i].control,
                             .msg_controllen = sizeof(slots[i].control)};
    }
    const int received = recvmmsg(socket_.get(), messages, kAtOnceMax, MSG_DONTWAIT, nullptr);
    if (received <= 0) return;  // the kernel returns an error of the network once
    stamps_.Poll();
    for (int i = 0; i < received && connected(); ++i) {
      OnPacket({slots[i].packet, messages[i].msg_len},
               stamps_.OnRaw(ReceiveStampNs(messages[i].msg_hdr)));
    }
    if (received < kAtOnceMax) return;
  }
}

void UdpProber::OnPacket(std::string_view packet, uint64_t receive_raw_ns) {
  const std::optional<ProbeAnswer> answer = cipher_->DecodeAnswer(packet);
  // An aggregator that held a question for over a second is as useless as a late answer.
  if (!answer || answer->key_id != key_id_ ||
      answer->reference_send_ns < answer->reference_receive_ns ||
      answer->reference_send_ns - answer->reference_receive_ns > kAnswerMaxNs) {
    ++counters_.refused;
    return;
  }
  // Each question is answered once, so a repeated or replayed answer has no effect.
  Question& question = questions_[answer->sequence % kQuestionsMax];
  if (question.sequence != answer->sequence || answer->sequence == 0 ||
      receive_raw_ns < question.send_raw_ns ||
      receive_raw_ns - question.send_raw_ns > kAnswerMaxNs) {
    ++counters_.late;
    return;
  }
  question.sequence = 0;
  ++counters_.answered;
  exchanges_.AddExchange({.send_raw_ns = question.send_raw_ns,
                          .reference_receive_ns = answer->reference_receive_ns,
                          .reference_send_ns = answer->reference_send_ns,
                          .receive_raw_ns = receive_raw_ns,
                          .reference_epoch = answer->reference_epoch,
                          .path = ProbePath::kUdp});
}

}  // namespace neurontrace
