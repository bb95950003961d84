// SPDX-License-Identifier: Apache-2.0
#include "lib/health/http_session.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>

namespace neurontrace {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

// The interval of repeated cancellations, see CancelAfter. An operation that is not pending at the
// moment of one is caught by the next.
constexpr milliseconds kCancelRetryMs{20};

// Returns whether the client is on this machine, including IPv4 addresses that are mapped into
// IPv6.
bool IsOfThisMachine(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return address.is_loopback();
}

// Returns the status line and the headers of an answer. They end the connection, as each answer
// does.
std::string HeadOf(const HttpAnswer& answer) {
  const auto reason =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(answer.code)));
  // Metrics and states must not come from a cache.
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nCache-Control: no-store\r\n", answer.code,
                  std::string_view(reason.data(), reason.size()), answer.content_type);
  if (!answer.content_security_policy.empty()) {
    head += fmt::format("Content-Security-Policy: {}\r\nX-Content-Type-Options: nosniff\r\n",
                        answer.content_security_policy);
  }
  if (answer.retry_after_seconds != 0) {
    head += fmt::format("Retry-After: {}\r\n", answer.retry_after_seconds);
  }
  return head + fmt::format("Connection: close\r\nContent-Length: {}\r\n\r\n", answer.body.size());
}

}  // namespace

Session::~Session() {
  // A session that was never begun has no entry.
  if (place_) sessions_.Remove(*place_);
}

void Session::Begin() {
  std::shared_ptr<Session> too_many;
  place_ = sessions_.Add(shared_from_this(), too_many);
  if (too_many != nullptr) {
    options_.crowded_out();
    // Closed on its own strand, as its handlers may be running.
    asio::post(too_many->executor(), [too_many] { too_many->Close(); });
  }
  parser_.header_limit(limits::kHealthHeadBytesMax);
  // The limit of the body is decided once the head is known; until then there is none.
  parser_.body_limit(std::numeric_limits<uint64_t>::max());
  EndWithin(milliseconds(limits::kHealthRequestMsMax));
  ReadSome();
}

// Beast's async_read_header and async_read are this loop. As one they are compiled once.
void Session::ReadSome() {
  parser_.eager(reads_body_);
  http::async_read_some(
      socket_, buffer_, parser_, [self = shared_from_this()](error_code error, size_t) {
        const bool is_done =
            self->reads_body_ ? self->parser_.is_done() : self->parser_.is_header_done();
        if (!error && !is_done) return self->ReadSome();
        if (self->reads_body_) return self->OnBody(error);
        self->OnHead(error);
      });
}

void Session::EndWithin(milliseconds time) {
  ++step_;
  CancelAfter(time);
}

void Session::CancelAfter(milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([weak = weak_from_this(), step = step_](error_code error) {
    const auto self = weak.lock();
    // A timer that had expired when it was set again still reports its old expiry without an error.
    if (error || self == nullptr || self->step_ != step) return;
    self->step_over_ = step;
    error_code ignored;
    self->socket_.cancel(ignored);
    // An operation that finds more bytes ready continues in spite of a cancellation: it is
    // cancelled until it ends.
    self->CancelAfter(kCancelRetryMs);
  });
}

void Session::OnHead(error_code error) {
  // A head that is too long and one that is malformed get an answer; a client that left or was too
  // slow gets none.
  if (error == http::error::header_limit)
    return Answer({.code = 431, .body = "the request's header is too long\n"});
  if (error == asio::error::operation_aborted || error == http::error::end_of_stream) {
    return Close();
  }
  if (error) return Answer({.code = 400, .body = "not an HTTP request\n"});
  const auto& head = parser_.get();
  request_.method = std::string(head.method_string());
  const auto target = head.target();
  request_.path = std::string(target.substr(0, target.find('?')));
  error_code unknown;
  const auto peer = socket_.remote_endpoint(unknown);
  // A connection without an address is not local.
  request_.is_local = !unknown && IsOfThisMachine(peer.address());
  // All Host headers are joined, so that a second one cannot hide a foreign name.
  const auto [first_host, last_host] = head.equal_range(http::field::host);
  for (auto host = first_host; host != last_host; ++host) {
    request_.host += (request_.host.empty() ? "" : ",") + std::string(host->value());
  }
  // Browsers set Origin on every POST of a web page, and pages cannot remove it.
  request_.is_of_web_page = head.find(http::field::origin) != head.end();
  const size_t bytes_max = options_.body_bytes_max(request_);
  // A body that no handler wants is left unread.
  if (bytes_max == 0) return Reply();
  // A chunked body has no length to check before it is read.
  if (parser_.chunked()) return Answer({.code = 411, .body = "Content-Length is required\n"});
  if (parser_.content_length().value_or(0) > bytes_max) {
    return Answer({.code = 413,
                   .body = "the body must have at most " + std::to_string(bytes_max) + " bytes\n"});
  }
  EndWithin(milliseconds(limits::kHealthRequestMsMax));
  reads_body_ = true;
  if (parser_.is_done()) return OnBody({});
  ReadSome();
}

void Session::OnBody(error_code error) {
  if (error) return Answer({.code = 408, .body = "the body did not arrive in time\n"});
  request_.body = std::move(parser_.get().body());
  Reply();
}

void Session::Reply() {
  // The time for making the answer is not limited here: the handler has limits of its own.
  ++step_;
  Answer(options_.answer(request_));
}

void Session::Answer(HttpAnswer answer) {
  head_ = HeadOf(answer);
  // An answer to HEAD has the length of the body, but not the body.
  if (request_.method != "HEAD") body_ = std::move(answer.body);
  EndWithin(milliseconds(limits::kHealthAnswerMsMax));
  asio::async_write(socket_,
                    std::array{asio::const_buffer(head_.data(), head_.size()),
                               asio::const_buffer(body_.data(), body_.size())},
                    [self = shared_from_this()](error_code error, size_t) { self->Finish(error); });
}

void Session::Finish(error_code error) {
  if (error) return Close();
  error_code ignored;
  // Closing with unread input would make the kernel send a reset, which can destroy the answer
  // before the client reads it.
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  EndWithin(milliseconds(limits::kHealthLingerMsMax));
  Linger();
}

void Session::Linger() {
  socket_.async_read_some(asio::buffer(unwanted_),
                          [self = shared_from_this()](error_code error, size_t) {
                            // If bytes are always ready, no operation is ever pending that could be
                            // cancelled.
                            if (error || self->step_over_ == self->step_) return self->Close();
                            self->Linger();
                          });
}

void Session::Close() {
  ++step_;
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace neurontrace
