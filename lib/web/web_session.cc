// SPDX-License-Identifier: Apache-2.0
#include "lib/web/web_session.h"

#include <zlib.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace neurontrace {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// HTTP/1.1 in the form that Beast takes.
constexpr unsigned kHttp11 = 11;
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

template <typename Message>
void SetHead(const WebReply& reply, bool keeps_alive, Message& head) {
  head.version(kHttp11);
  head.result(static_cast<unsigned>(reply.status));
  head.set(http::field::content_type, reply.content_type);
  for (const auto& [name, value] : reply.headers) head.insert(name, value);
  head.keep_alive(keeps_alive);
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
  http::async_read_header(stream_, buffer_, *parser_,
                          [self = shared_from_this()](error_code error, size_t bytes) {
                            self->shared_.counters.received_bytes += bytes;
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
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](error_code read, size_t bytes) {
                     self->shared_.counters.received_bytes += bytes;
                     self->HandleRequest(read);
                   });
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
  if (reply.stream != nullptr) {
    stream_head_ = {};
    SetHead(reply, keeps_alive_, stream_head_);
    stream_head_.chunked(true);
    pieces_ = std::move(reply.stream);
    piece_ = std::move(reply.body);
    return WriteStreamHead();
  }
  reply_ = {};
  SetHead(reply, keeps_alive_, reply_);
  reply_.content_length(reply.body.size());
  if (request_.method != "HEAD") reply_.body() = std::move(reply.body);
  WriteWhole();
}

void WebSession::WriteWhole() {
  ExpireAfter(shared_.session_limits.unread_ms);
  serializer_.emplace(reply_);
  auto done = [self = shared_from_this()](error_code error, size_t bytes) {
    self->CountSent(bytes);
    self->FinishReply(error);
  };
  // An answer to HEAD has the length of the body, but not the body.
  if (request_.method == "HEAD") {
    http::async_write_header(stream_, *serializer_, std::move(done));
  } else {
    http::async_write(stream_, *serializer_, std::move(done));
  }
}

void WebSession::WriteStreamHead() {
  ExpireAfter(shared_.session_limits.unread_ms);
  stream_serializer_.emplace(stream_head_);
  http::async_write_header(stream_, *stream_serializer_,
                           [self = shared_from_this()](error_code error, size_t bytes) {
                             self->CountSent(bytes);
                             if (error) return self->Close();
                             self->WritePiece(WebStream::Next::kMore, std::move(self->piece_));
                           });
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
  ExpireAfter(shared_.session_limits.unread_ms);
  if (next == WebStream::Next::kEnd) {
    asio::async_write(stream_, http::make_chunk_last(),
                      [self = shared_from_this()](error_code error, size_t bytes) {
                        self->CountSent(bytes);
                        self->pieces_.reset();
                        self->FinishReply(error);
                      });
    return;
  }
  // An empty chunk would end the answer.
  if (piece.empty()) return ReadPiece();
  piece_ = std::move(piece);
  asio::async_write(stream_, http::make_chunk(asio::buffer(piece_)),
                    [self = shared_from_this()](error_code error, size_t bytes) {
                      self->CountSent(bytes);
                      if (error) return self->Close();
                      self->stream_.tcp().expires_never();
                      self->ReadPiece();
                    });
}

void WebSession::FinishReply(error_code error) {
  if (error) return Close();
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
