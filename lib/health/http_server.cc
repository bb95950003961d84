// SPDX-License-Identifier: Apache-2.0
#include "lib/health/http_server.h"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/health/http_session.h"
#include "lib/health/sessions.h"
#include "lib/trace/daemon_limits.h"

namespace neurontrace {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// How long accepting pauses if the process has no descriptor left.
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};

}  // namespace

// An io_context with a pool of threads: any thread may run any session's handler.
class HttpServer::Impl {
 public:
  explicit Impl(Options options) : options_(std::move(options)), acceptor_(context_) {}
  ~Impl() {
    // Answers in progress are completed by join; pending operations are destroyed with the context.
    context_.stop();
    for (std::thread& thread : threads_) thread.join();
  }

  // Resolves the address, listens, and starts the threads. Fails with UNAVAILABLE.
  absl::Status Listen() {
    const size_t colon = options_.address.rfind(':');
    std::string host = options_.address.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    error_code error;
    const auto found = tcp::resolver(context_).resolve(
        host, options_.address.substr(colon + 1),
        tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error) return Unavailable("{}", error.message());
    // The first address that works: a name may resolve to both families.
    for (const auto& entry : found) {
      error = ListenOn(entry.endpoint());
      if (!error) break;
    }
    if (error) return Unavailable("{}", error.message());
    Accept();
    for (int i = 0; i < limits::kHealthThreads; ++i) {
      threads_.emplace_back([this] { context_.run(); });
    }
    return absl::OkStatus();
  }

  int port() const { return acceptor_.local_endpoint().port(); }

 private:
  // Tries one address. Returns the error of the first step that failed.
  error_code ListenOn(const tcp::endpoint& endpoint) {
    error_code error;
    acceptor_.close(error);
    acceptor_.open(endpoint.protocol(), error);
    // A restarted daemon must not wait until connections of the former one have left TIME_WAIT.
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && endpoint.protocol() == tcp::v6()) {
      // An IPv6 wildcard accepts IPv4 too, whatever the system's default.
      acceptor_.set_option(asio::ip::v6_only(false), error);
    }
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    return error;
  }

  // Each session has a strand, so that its handlers never run at the same time.
  void Accept() {
    acceptor_.async_accept(
        asio::make_strand(context_), [this](error_code error, tcp::socket socket) {
          if (error) return AcceptLater();
          const auto session = std::make_shared<Session>(std::move(socket), options_, sessions_);
          // The session starts on its own strand, not on the acceptor's handler.
          asio::dispatch(session->executor(), [session] { session->Begin(); });
          Accept();
        });
  }
  // Without descriptors the connection stays in the backlog, and accept would fail in a loop.
  void AcceptLater() {
    pause_.expires_after(kPauseWithoutDescriptors);
    pause_.async_wait([this](error_code) { Accept(); });
  }

  const Options options_;
  Sessions sessions_;
  asio::io_context
      context_;  // destroyed before the members above, with pending operations and their sessions
  tcp::acceptor acceptor_;
  asio::steady_timer pause_{context_};
  std::vector<std::thread> threads_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  RETURN_IF_ERROR(impl->Listen());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;
int HttpServer::port() const { return impl_->port(); }

}  // namespace neurontrace
