// SPDX-License-Identifier: Apache-2.0
#include "lib/web/web_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cassert>
#include <chrono>
#include <thread>
#include <utility>

#include "lib/base/mutex.h"
#include "lib/base/status.h"
#include "lib/trace/web_limits.h"
#include "lib/web/web_session.h"

namespace neurontrace {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// How long accepting pauses if the process has no descriptor left.
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};

}  // namespace

class WebServer::Impl {
 public:
  Impl(const Options& options, WebHandler& handler)
      : connections_max_(options.connections_max),
        pool_(static_cast<size_t>(options.threads)),
        shared_(handler, pool_, options.session),
        tls_(options.tls) {}
  ~Impl() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
    pool_.join();
  }

  absl::Status Listen(const std::string& address) {
    const size_t colon = address.rfind(':');
    if (colon == std::string::npos) {
      return InvalidArgument("'{}' is not HOST:PORT; write for example 127.0.0.1:9403", address);
    }
    std::string host = address.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    error_code error;
    const auto found = tcp::resolver(context_).resolve(
        host, address.substr(colon + 1), tcp::resolver::passive | tcp::resolver::numeric_service,
        error);
    if (error) return Unavailable("cannot listen on {}: {}", address, error.message());
    for (const auto& entry : found) {
      error = ListenOn(entry.endpoint());
      if (!error) break;
    }
    if (error) return Unavailable("cannot listen on {}: {}", address, error.message());
    Accept();
    thread_ = std::thread([this] { context_.run(); });
    return absl::OkStatus();
  }

  int port() const { return acceptor_.local_endpoint().port(); }
  const WebCounters& counters() const { return shared_.counters; }
  void UseTls(std::shared_ptr<const WebTls> tls) {
    assert(tls != nullptr);
    const MutexLock lock(mutex_);
    tls_ = std::move(tls);
  }

 private:
  error_code ListenOn(const tcp::endpoint& endpoint) {
    error_code error;
    acceptor_.close(error);
    acceptor_.open(endpoint.protocol(), error);
    // A restarted server must not wait until connections of the former one have left TIME_WAIT.
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    return error;
  }

  void Accept() {
    acceptor_.async_accept(asio::make_strand(context_),
                           [this](error_code error, tcp::socket socket) {
                             if (error) return AcceptLater();
                             Admit(std::move(socket));
                             Accept();
                           });
  }
  // The socket's destructor closes a connection beyond the limits.
  void Admit(tcp::socket socket) {
    error_code error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) return;  // the client is gone
    const std::string address = peer.address().to_string();
    if (!shared_.connections.Add(address, connections_max_)) {
      ++shared_.counters.refused_connections;
      return;
    }
    ++shared_.counters.connections;
    std::make_shared<WebSession>(std::move(socket), peer, tls(), shared_)->Begin();
  }
  std::shared_ptr<const WebTls> tls() {
    const MutexLock lock(mutex_);
    return tls_;
  }
  // Without descriptors the connection stays in the backlog, and accept would fail in a loop.
  void AcceptLater() {
    pause_.expires_after(kPauseWithoutDescriptors);
    pause_.async_wait([this](error_code error) {
      if (!error) Accept();
    });
  }

  const size_t connections_max_;
  asio::thread_pool pool_;
  WebSession::Shared shared_;
  Mutex mutex_;
  std::shared_ptr<const WebTls> tls_ NT_GUARDED_BY(mutex_);  // for the next connection
  // Destroyed before the members above, with pending operations and their sessions.
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer pause_{context_};
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::Start(const Options& options,
                                                            WebHandler& handler) {
  auto impl = std::make_unique<Impl>(options, handler);
  RETURN_IF_ERROR(impl->Listen(options.address));
  return std::unique_ptr<WebServer>(new WebServer(std::move(impl)));
}

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::Start(const std::string& address,
                                                            WebHandler& handler) {
  return Start(Options{.address = address}, handler);
}

WebServer::WebServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WebServer::~WebServer() = default;
int WebServer::port() const { return impl_->port(); }
void WebServer::UseTls(std::shared_ptr<const WebTls> tls) { impl_->UseTls(std::move(tls)); }
const WebCounters& WebServer::counters() const { return impl_->counters(); }

}  // namespace neurontrace
