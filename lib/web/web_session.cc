// SPDX-License-Identifier: Apache-2.0
#include "lib/web/web_session.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cassert>
#include <utility>

namespace neurontrace {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// How much of a refused request is read and dropped at a time.
constexpr size_t kDiscardBytes = 16u << 10;
// gzip instead of zlib's own frame.
constexpr int kGzipWindowBits = 15 + 16;
// Level 1: an answer of 700 kB takes 4 ms, and level 6 saves a tenth more in four times as long.
constexpr int kGzipLevel = 1;

// Joins the values of all headers of a name: a second one must not hide what the first one says.
std::string Joined(const http::request<http::string_body>& head, http::field name) {
  std::string joined;
  const auto [first, last] = head.equal_range(name);
  for (auto it = first; it != last; ++it) {
    joined += (joined.empty() ? "" : ",") + std::string(it->value());
  }
  return joined;
}

// Returns the text as gzip, or nullopt if zlib has no memory.
std::optional<std::string> Gzip(const std::string& text) {
  z_stream zlib{};
  if (deflateInit2(&zlib, kGzipLevel, Z_DEFLATED, kGzipWindowBits, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return std::nullopt;
  }
  std::string out(deflateBound(&zlib, text.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&zlib, Z_FINISH);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  return result == Z_STREAM_END ? std::optional(std::move(out)) : std::nullopt;
}

bool HasHeader(const WebReply& reply, std::string_view name) {
  for (const auto& [key, value] : reply.headers) {
    if (key == name) return true;
  }
  return false;
}

// Compresses the body where that is worth it and accepted. Runs on a thread of the pool.
void Compress(const WebRequest& request, WebReply& reply) {
  if (reply.stream != nullptr || reply.body.size() < limits::kWebCompressBytesMin) return;
  if (request.accept_encoding.find("gzip") == std::string::npos) return;
  if (HasHeader(reply, "Content-Encoding")) return;
  if (auto gzip = Gzip(reply.body)) {
    reply.body = *std::move(gzip);
    reply.headers.emplace_back("Content-Encoding", "gzip");
  }
}

// Returns the client's address as gRPC writes peers, so that the audit log has one form.
std::string PeerText(const asio::ip::tcp::endpoint& peer) {
  const auto address = peer.address();
  const std::string port = std::to_string(peer.port());
  if (address.is_v4()) return "ipv4:" + address.to_string() + ":" + port;
  return "ipv6:[" + address.to_string() + "]:" + port;
}

// Returns the status line and the headers of an answer, up to its body.
std::string HeadOf(const WebReply& reply, bool keeps_alive) {
  const auto reason =
      http::obsolete_reason(http::int_to_status(static_cast<unsigned>(reply.status)));
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", reply.status,
                  std::string_view(reason.data(), reason.size()), reply.content_type);
  for (const auto& [name, value] : reply.headers) {
    assert(value.find_first_of("\r\n") == std::string::npos);
    head += fmt::format("{}: {}\r\n", name, value);
  }
  if (!keeps_alive) head += "Connection: close\r\n";
  if (reply.stream != nullptr) return head + "Transfer-Encoding: chunked\r\n\r\n";
  return head + fmt::format("Content-Length: {}\r\n\r\n", reply.body.size());
}

}  // namespace

WebSession::WebSession(asio::ip::tcp::socket socket, const asio::ip::tcp::endpoint& peer,
                       std::shared_ptr<const WebTls> tls, Shared& shared)
    : shared_(shared),
      address_(peer.address().to_string()),
      peer_(PeerText(peer)),
      stream_(std::move(socket), std::move(tls)),
      body_timer_(stream_.get_executor()) {
  ++shared_.counters.open;
}

WebSession::~WebSession() {
  --shared_.counters.open;
  shared_.connections.Remove(address_);
}

void WebSession::Begin() {
  asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
    if (self->stream_.has_tls()) return self->ShakeHands();
    self->ReadHead();
  });
}

void WebSession::ShakeHands() {
  ExpireAfter(shared_.session_limits.request_ms);
  stream_.async_handshake([self = shared_from_this()](error_code error) {
    if (error) {
      ++self->shared_.counters.failed_handshakes;
      return self->Close();
    }
    self->certificate_ = self->stream_.PeerCertificate();
    self->ReadHead();
  });
}

void WebSession::ReadHead() {
  parser_.emplace();
  parser_->header_limit(limits::kWebHeadBytesMax);
  parser_->body_limit(limits::kWebBodyBytesMax);
  request_ = {};
  ExpireAfter(requests_ == 0 ? shared_.session_limits.request_ms : shared_.session_limits.idle_ms);
  ReadSome();
}

// Beast's async_read_header and async_read are this loop. As one they compile TCP and TLS once.
void WebSession::ReadSome() {
  parser_->eager(reads_body_);
  http::async_read_some(stream_, buffer_, *parser_,
                        [self = shared_from_this()](error_code error, size_t bytes) {
                          self->shared_.counters.received_bytes += bytes;
                          if (self->reads_body_) return self->HandleBody(error);
                          if (!error && !self->parser_->is_header_done()) return self->ReadSome();
                          self->HandleHead(error);
                        });
}

void WebSession::HandleHead(error_code error) {
  if (error == http::error::header_limit) return Refuse(431, "the request's head is too long\n");
  if (error == http::error::body_limit) return Refuse(413, "the request's body is too long\n");
  // The client left, or sent nothing for too long.
  if (error == http::error::end_of_stream || error == boost::beast::error::timeout ||
      error == asio::error::operation_aborted || error == asio::error::connection_reset ||
      error == asio::ssl::error::stream_truncated || error == asio::error::eof) {
    return Close();
  }
  if (error) return Refuse(400, "this is not an HTTP request\n");
  ReadBody();
}

void WebSession::ReadBody() {
  stream_.tcp().expires_never();
  reads_body_ = true;
  body_timer_.expires_after(std::chrono::milliseconds(shared_.session_limits.request_ms));
  body_timer_.async_wait([self = shared_from_this()](error_code error) {
    // It may expire while the end of the body is on its way to HandleRequest.
    if (error || !self->reads_body_) return;
    self->is_late_ = true;
    self->stream_.tcp().cancel();
  });
  HandleBody({});
}

void WebSession::HandleBody(error_code error) {
  if (!error && !parser_->is_done()) return ReadSome();
  HandleRequest(error);
}

void WebSession::HandleRequest(error_code error) {
  reads_body_ = false;
  body_timer_.cancel();
  if (is_late_) return Refuse(408, "the body did not arrive in time\n");
  if (error == http::error::body_limit) return Refuse(413, "the request's body is too long\n");
  if (error) return Close();
  auto& message = parser_->get();
  const std::string target(message.target());
  const size_t question = std::min(target.find('?'), target.size());
  request_.method = std::string(message.method_string());
  request_.path = target.substr(0, question);
  request_.query = target.substr(std::min(question + 1, target.size()));
  request_.host = Joined(message, http::field::host);
  request_.cookie = Joined(message, http::field::cookie);
  request_.accept_encoding = Joined(message, http::field::accept_encoding);
  request_.content_type = Joined(message, http::field::content_type);
  request_.fetch_site = std::string(message["Sec-Fetch-Site"]);
  request_.authorization = Joined(message, http::field::authorization);
  request_.peer = peer_;
  request_.certificate = certificate_;
  request_.body = std::move(message.body());
  keeps_alive_ = message.keep_alive() && ++requests_ < shared_.session_limits.requests;
  stream_.tcp().expires_never();
  asio::post(shared_.pool, [self = shared_from_this()]() mutable {
    const auto began = std::chrono::steady_clock::now();
    auto reply = std::make_shared<WebReply>(self->shared_.handler.Handle(self->request_));
    Compress(self->request_, *reply);
    self->CountAnswer(std::chrono::steady_clock::now() - began);
    auto* const session = self.get();
    asio::post(session->stream_.get_executor(), [self = std::move(self), reply = std::move(reply)] {
      self->WriteReply(std::move(*reply));
    });
  });
}

void WebSession::CountAnswer(std::chrono::nanoseconds took) {
  ++shared_.counters.requests;
  shared_.counters.answer_ns += static_cast<uint64_t>(took.count());
}

void WebSession::Refuse(int status, std::string why) {
  ++shared_.counters.malformed_requests;
  keeps_alive_ = false;
  is_refused_ = true;
  WriteReply({.status = status, .body = std::move(why)});
}

void WebSession::WriteReply(WebReply reply) {
  head_ = HeadOf(reply, keeps_alive_);
  pieces_ = std::move(reply.stream);
  if (pieces_ != nullptr) return WritePiece(WebStream::Next::kMore, std::move(reply.body));
  // An answer to HEAD has the length of the body, but not the body.
  piece_ = request_.method == "HEAD" ? "" : std::move(reply.body);
  Write("");
}

void WebSession::Write(std::string_view tail) {
  ExpireAfter(shared_.session_limits.unread_ms);
  asio::async_write(stream_,
                    std::array{asio::const_buffer(head_.data(), head_.size()),
                               asio::const_buffer(piece_.data(), piece_.size()),
                               asio::const_buffer(tail.data(), tail.size())},
                    [self = shared_from_this()](error_code error, size_t bytes) {
                      self->HandleWritten(error, bytes);
                    });
}

void WebSession::HandleWritten(error_code error, size_t bytes) {
  shared_.counters.sent_bytes += bytes;
  if (error) return Close();
  head_.clear();
  if (pieces_ == nullptr) return FinishReply();
  stream_.tcp().expires_never();
  ReadPiece();
}

void WebSession::ReadPiece() {
  asio::post(shared_.pool, [self = shared_from_this()]() mutable {
    std::string piece;
    const WebStream::Next next = self->pieces_->Read(piece);
    auto* const session = self.get();
    asio::post(session->stream_.get_executor(),
               [self = std::move(self), next, piece = std::move(piece)]() mutable {
                 self->WritePiece(next, std::move(piece));
               });
  });
}

void WebSession::WritePiece(WebStream::Next next, std::string piece) {
  // Without the last chunk the client knows that something is missing.
  if (next == WebStream::Next::kFailed) return Close();
  piece_ = std::move(piece);
  if (next == WebStream::Next::kEnd) {
    pieces_.reset();
    piece_.clear();
  } else if (piece_.empty()) {
    // An empty chunk would end the answer.
    return head_.empty() ? ReadPiece() : Write("");
  }
  head_ += fmt::format("{:x}\r\n", piece_.size());
  Write("\r\n");
}

void WebSession::FinishReply() {
  if (is_refused_) return Linger();
  if (!keeps_alive_) return End();
  ReadHead();
}

// The client may still be sending what was refused. Closing now would reset the connection, and the
// reset could overtake the answer (RFC 9112, 9.6).
void WebSession::Linger() {
  error_code ignored;
  stream_.tcp().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  ExpireAfter(shared_.session_limits.request_ms);
  piece_.resize(kDiscardBytes);
  discards_ = limits::kWebLingerBytesMax;
  Discard();
}

void WebSession::Discard() {
  stream_.tcp().async_read_some(asio::buffer(piece_),
                                [self = shared_from_this()](error_code error, size_t bytes) {
                                  if (error || bytes > self->discards_) return self->Close();
                                  self->discards_ -= bytes;
                                  self->Discard();
                                });
}

void WebSession::End() {
  if (!stream_.has_tls()) return Close();
  ExpireAfter(shared_.session_limits.request_ms);
  stream_.async_shutdown([self = shared_from_this()](error_code) { self->Close(); });
}

void WebSession::Close() {
  pieces_.reset();
  error_code ignored;
  stream_.tcp().socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.tcp().close();
}

}  // namespace neurontrace
