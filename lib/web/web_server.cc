// SPDX-License-Identifier: Apache-2.0
#include "lib/web/web_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <thread>

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
  explicit Impl(WebHandler& handler) : shared_{.handler = handler, .pool = pool_} {}
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
                             // The socket's destructor closes a connection beyond the limit.
                             if (shared_.sessions < limits::kWebConnectionsMax) {
                               std::make_shared<WebSession>(std::move(socket), shared_)->Begin();
                             }
                             Accept();
                           });
  }
  // Without descriptors the connection stays in the backlog, and accept would fail in a loop.
  void AcceptLater() {
    pause_.expires_after(kPauseWithoutDescriptors);
    pause_.async_wait([this](error_code error) {
      if (!error) Accept();
    });
  }

  asio::thread_pool pool_{limits::kWebThreads};
  WebSession::Shared shared_;
  // Destroyed before the members above, with pending operations and their sessions.
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer pause_{context_};
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::Start(const std::string& address,
                                                            WebHandler& handler) {
  auto impl = std::make_unique<Impl>(handler);
  RETURN_IF_ERROR(impl->Listen(address));
  return std::unique_ptr<WebServer>(new WebServer(std::move(impl)));
}

WebServer::WebServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WebServer::~WebServer() = default;
int WebServer::port() const { return impl_->port(); }

}  // namespace neurontrace
