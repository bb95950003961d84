// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "tests/sim/sim_world.h"

namespace neurontrace {

// The way between one host and the aggregator.
struct SimLink {
  bool blocked = false;  // what is sent waits, as TCP does it
  uint64_t latency_ns = 200'000;
  uint64_t jitter_ns = 0;
};

// One call over a link, both directions in order, each message with a delay of its own. It can
// break at any moment, and either side then learns of it at its own time. All callbacks come from
// tasks of the world, never from within what is called here.
template <typename Up, typename Down>
class SimCall final : public std::enable_shared_from_this<SimCall<Up, Down>> {
 public:
  struct Client {
    std::function<void(const Down&)> on_message;
    std::function<void()> on_written;
    std::function<void(const absl::Status&)> on_closed;
  };
  struct Server {
    std::function<void(bool)> on_read_done;
    std::function<void(bool)> on_write_done;
    std::function<void()> on_cancel;
    std::function<void()> on_done;
  };

  SimCall(SimWorld& world, SimLink& link, Client client)
      : world_(world), link_(link), client_(std::move(client)), client_open_(true) {}

  // --- The client's end ---
  void Write(std::shared_ptr<const Up> message) {
    if (broken_) return;
    up_.push_back({Arrival(up_last_ns_), std::move(message)});
    written_due_ = true;
    Schedule(up_last_ns_);
    AcknowledgeWritten();
  }
  // The client lets go. `silent`: its machine went with it, and the server finds out late.
  void CloseClient(bool silent = false) {
    if (!client_open_) return;
    client_open_ = false;
    client_ = {};
    down_.clear();
    CancelServer(silent ? 20 * kSimSecond : link_.latency_ns);
  }

  // --- The server's end ---
  void Accept(Server server) {
    server_ = std::move(server);
    server_open_ = true;
  }
  void Read(Up* into) {
    reading_ = into;
    Schedule(world_.clock.MonotonicNs());
  }
  void WriteDown(const Down& message) {
    if (!broken_) {
      down_.push_back({Arrival(down_last_ns_), std::make_shared<Down>(message)});
      Schedule(down_last_ns_);
    }
    OnServer([](Server& server) { server.on_write_done(true); });
  }
  void Finish(const absl::Status& status) {
    OnServer([this](Server& server) {
      server_open_ = false;
      server_ = {};
      server.on_done();
    });
    finished_ = true;
    ReportClosed(status, link_.latency_ns);
  }
  // The server's process is gone, and never hears of anything again.
  void DropServer(uint64_t reported_after_ns) {
    server_open_ = false;
    server_ = {};
    reading_ = nullptr;
    ReportClosed(absl::UnavailableError("connection reset"), reported_after_ns);
  }

  // --- The network ---
  // Some of what is under way may still arrive.
  void Break(uint64_t client_after_ns, uint64_t server_after_ns, size_t up_kept, size_t down_kept) {
    if (broken_) return;
    broken_ = true;
    up_.resize(std::min(up_.size(), up_kept));
    down_.resize(std::min(down_.size(), down_kept));
    ReportClosed(absl::UnavailableError("connection lost"), client_after_ns);
    CancelServer(server_after_ns);
  }
  void Pump() {
    const uint64_t now_ns = world_.clock.MonotonicNs();
    if (link_.blocked) return;
    while (client_open_ && !down_.empty() && down_.front().arrives_ns <= now_ns) {
      const auto message = std::move(down_.front().message);
      down_.pop_front();
      const auto on_message = client_.on_message;  // the client may go in its callback
      on_message(*message);
    }
    if (reading_ == nullptr || !server_open_ || up_.empty() || up_.front().arrives_ns > now_ns) {
      return;
    }
    *std::exchange(reading_, nullptr) = *up_.front().message;
    up_.pop_front();
    OnServer([](Server& server) { server.on_read_done(true); });
    AcknowledgeWritten();
  }
  bool client_open() const { return client_open_; }
  bool broken() const { return broken_; }
  bool open() const { return client_open_ || (server_open_ && !finished_); }
  SimLink& link() { return link_; }

 private:
  template <typename Message>
  struct Underway {
    uint64_t arrives_ns = 0;
    std::shared_ptr<const Message> message;
  };
  // As many messages as fit between the two before a writer has to wait.
  static constexpr size_t kUnderwayMax = 8;

  uint64_t Arrival(uint64_t& last_ns) {
    const uint64_t jitter = link_.jitter_ns == 0 ? 0 : world_.random.Between(0, link_.jitter_ns);
    last_ns = std::max(last_ns, world_.clock.MonotonicNs() + link_.latency_ns + jitter);
    return last_ns;
  }
  void Schedule(uint64_t at_ns) {
    const uint64_t now_ns = world_.clock.MonotonicNs();
    world_.runner.PostDelayedTask([self = this->shared_from_this()] { self->Pump(); },
                                  at_ns > now_ns ? at_ns - now_ns : 0);
  }
  void AcknowledgeWritten() {
    if (!written_due_ || up_.size() >= kUnderwayMax || broken_) return;
    written_due_ = false;
    world_.runner.PostTask([self = this->shared_from_this()] {
      if (!self->client_open_) return;
      const auto on_written = self->client_.on_written;
      on_written();
    });
  }
  void OnServer(std::function<void(Server&)> report) {
    world_.runner.PostTask([self = this->shared_from_this(), report = std::move(report)] {
      if (!self->server_open_) return;
      Server server = self->server_;  // it may go in its callback
      report(server);
    });
  }
  void ReportClosed(const absl::Status& status, uint64_t after_ns) {
    world_.runner.PostDelayedTask(
        [self = this->shared_from_this(), status] {
          if (!self->client_open_) return;
          self->Pump();  // what was said before
          if (!self->client_open_) return;
          self->client_open_ = false;
          const Client client = std::exchange(self->client_, {});
          client.on_closed(status);
        },
        after_ns);
  }
  void CancelServer(uint64_t after_ns) {
    world_.runner.PostDelayedTask(
        [self = this->shared_from_this()] {
          if (!self->server_open_ || self->finished_ || std::exchange(self->cancelled_, true))
            return;
          if (std::exchange(self->reading_, nullptr) != nullptr) {
            self->OnServer([](Server& server) { server.on_read_done(false); });
          }
          self->OnServer([](Server& server) { server.on_cancel(); });
        },
        after_ns);
  }

  SimWorld& world_;
  SimLink& link_;
  Client client_;
  Server server_;
  bool client_open_ = false;
  bool server_open_ = false;
  bool finished_ = false;
  bool broken_ = false;
  bool cancelled_ = false;
  bool written_due_ = false;
  Up* reading_ = nullptr;
  std::deque<Underway<Up>> up_;
  std::deque<Underway<Down>> down_;
  uint64_t up_last_ns_ = 0;
  uint64_t down_last_ns_ = 0;
};

}  // namespace neurontrace
