// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/trace/web_limits.h"
#include "lib/web/web_connection.h"
#include "lib/web/web_connection_counts.h"
#include "lib/web/web_server.h"

namespace neurontrace {

// One connection of a browser. After the handshake of TLS it passes these states, once for each
// request:
//
//   idle -> head -> body -> answer (on a thread of the pool) -> write -> idle
//                                        ^                        |
//                                        +---- next piece --------+   while the answer has a stream
//
// Every state but the making of an answer has a time limit. A malformed request, and one whose body
// is late, is answered and ends the connection; a client that is gone or otherwise too slow just
// ends it. All functions run on the stream's executor, a strand, unless they say otherwise. The
// pending operation owns the session.
class WebSession : public std::enable_shared_from_this<WebSession> {
 public:
  // What all sessions share; must outlive them.
  struct Shared {
    Shared(WebHandler& answers, boost::asio::thread_pool& threads, const WebSessionLimits& most)
        : handler(answers), pool(threads), session_limits(most) {}
    WebHandler& handler;
    boost::asio::thread_pool& pool;
    const WebSessionLimits session_limits;
    WebConnectionCounts connections;
    WebCounters counters;
  };
  // `shared.connections` has counted the connection with the address of `peer`. `tls` null: plain
  // text.
  WebSession(boost::asio::ip::tcp::socket socket, const boost::asio::ip::tcp::endpoint& peer,
             std::shared_ptr<const WebTls> tls, Shared& shared);
  ~WebSession();
  WebSession(const WebSession&) = delete;
  WebSession& operator=(const WebSession&) = delete;

  // Waits for the handshake, if there is one, and for a request. Called once.
  void Begin();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  // Does the handshake of TLS.
  void ShakeHands();
  void ReadHead();
  // Reads on until the head, or the body if `reads_body_`, is complete.
  void ReadSome();
  // Called when the head was read, or could not be.
  void HandleHead(boost::system::error_code error);
  void ReadBody();
  // Called when the body, or a part of it, was read, or could not be.
  void HandleBody(boost::system::error_code error);
  // Called when the whole request was read, or could not be.
  void HandleRequest(boost::system::error_code error);
  // Answers without the handler and ends the connection.
  void Refuse(int status, std::string why);
  // Starts to write an answer of the handler.
  void WriteReply(WebReply reply);
  // Writes `head_`, `piece_` and `tail`, which is a constant.
  void Write(std::string_view tail);
  // Called when that is written, or could not be.
  void HandleWritten(boost::system::error_code error, size_t bytes);
  // Lets a thread of the pool make the next piece.
  void ReadPiece();
  void WritePiece(WebStream::Next next, std::string piece);
  // Called when an answer is written: waits for the next request, or ends.
  void FinishReply();
  // Ends the connection after a whole answer, which TLS says to the client.
  void End();
  // Ends the connection after a refusal: reads what the client still sends, and drops it.
  void Linger();
  void Discard();
  // Closes the connection at once: over TLS the client sees that something is missing.
  void Close();
  // Limits the next operation.
  void ExpireAfter(int ms) { stream_.tcp().expires_after(std::chrono::milliseconds(ms)); }
  // Counts a request that the handler has answered. Any thread.
  void CountAnswer(std::chrono::nanoseconds took);

  Shared& shared_;
  const std::string address_;  // of the client, without its port
  const std::string peer_;     // as in WebRequest
  std::string certificate_;    // as in WebRequest, after the handshake
  WebConnection stream_;
  // Limits the time of a body, because the time limit of `stream_` leaves nothing to answer on.
  boost::asio::steady_timer body_timer_;
  bool reads_body_ = false;
  bool is_late_ = false;  // the body
  boost::beast::flat_buffer buffer_{limits::kWebHeadBytesMax + limits::kWebBodyBytesMax};
  std::optional<Parser> parser_;
  WebRequest request_;
  // What is being written: the head of an answer, or of a chunk or both, and its body or a piece.
  std::string head_;
  std::string piece_;
  std::unique_ptr<WebStream> pieces_;  // the rest of an answer that is streamed
  bool keeps_alive_ = false;
  bool is_refused_ = false;
  size_t discards_ = 0;  // bytes that Discard may still read
  int requests_ = 0;
};

}  // namespace neurontrace
