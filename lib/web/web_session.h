// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/trace/web_limits.h"
#include "lib/web/web_server.h"

namespace neurontrace {

// One connection of a browser. It passes these states, once for each request:
//
//   idle -> head -> body -> answer (on a thread of the pool) -> write -> idle
//                                        ^                        |
//                                        +---- next piece --------+   while the answer has a stream
//
// Every state but the making of an answer has a time limit. A malformed request is answered and
// ends the connection; a client that is gone or too slow just ends it. All functions run on the
// stream's executor, a strand, unless they say otherwise. The pending operation owns the session.
class WebSession : public std::enable_shared_from_this<WebSession> {
 public:
  // What all sessions share; must outlive them.
  struct Shared {
    WebHandler& handler;
    boost::asio::thread_pool& pool;
    std::atomic<size_t> sessions = 0;
  };
  WebSession(boost::asio::ip::tcp::socket socket, Shared& shared);
  ~WebSession();
  WebSession(const WebSession&) = delete;
  WebSession& operator=(const WebSession&) = delete;

  // Waits for a request. Called once.
  void Begin();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
  using Head = boost::beast::http::response<boost::beast::http::string_body>;

  void ReadHead();
  // Called when the head was read, or could not be.
  void HandleHead(boost::system::error_code error);
  // Called when the whole request was read, or could not be.
  void HandleRequest(boost::system::error_code error);
  // Answers without the handler and ends the connection.
  void Refuse(int status, std::string why);
  // Starts to write an answer of the handler.
  void WriteReply(WebReply reply);
  void WriteWhole();
  void WriteStreamHead();
  // Lets a thread of the pool make the next piece.
  void ReadPiece();
  void WritePiece(WebStream::Next next, std::string piece);
  // Called when an answer is written: waits for the next request, or ends.
  void FinishReply(boost::system::error_code error);
  void Close();

  Shared& shared_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_{limits::kWebHeadBytesMax + limits::kWebBodyBytesMax};
  std::optional<Parser> parser_;
  WebRequest request_;
  Head reply_;
  std::optional<boost::beast::http::response_serializer<boost::beast::http::string_body>>
      serializer_;
  // The streamed form of an answer: head, then chunks of `piece_`.
  boost::beast::http::response<boost::beast::http::empty_body> stream_head_;
  std::optional<boost::beast::http::response_serializer<boost::beast::http::empty_body>>
      stream_serializer_;
  std::unique_ptr<WebStream> pieces_;
  std::string piece_;
  bool keeps_alive_ = false;
  int requests_ = 0;
};

}  // namespace neurontrace
