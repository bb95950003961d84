// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lib/health/http_server.h"
#include "lib/health/sessions.h"
#include "lib/trace/daemon_limits.h"

namespace neurontrace {

// One connection from its first byte to its end. A session passes these states:
//
//   head -> body (if a handler wants it) -> answer -> linger -> closed
//
// Every state has a time limit except the making of the answer. Errors lead to an answer with 4xx,
// or to closed if the client is gone or too slow. All functions run on the socket's strand, so that
// no lock is needed. The pending operation owns the session, which is destroyed when none is
// pending.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // `options` and `sessions` must outlive it. The socket's executor is a strand.
  Session(boost::asio::ip::tcp::socket socket, const HttpServer::Options& options,
          Sessions& sessions)
      : options_(options),
        sessions_(sessions),
        socket_(std::move(socket)),
        timer_(socket_.get_executor()) {}
  // Removes its entry.
  ~Session();

  // Returns the strand.
  boost::asio::ip::tcp::socket::executor_type executor() { return socket_.get_executor(); }

  // Starts to read the head. Called once, on the strand.
  void Begin();

 private:
  // Begins a step: its pending operation is aborted after this time.
  void EndWithin(std::chrono::milliseconds time);
  // Cancels the pending operation after this time, and repeatedly until the step changes.
  void CancelAfter(std::chrono::milliseconds time);

  // Reads on until the head, or the body if `reads_body_`, is complete.
  void ReadSome();
  // Called when the head was read, or could not be.
  void OnHead(boost::system::error_code error);
  // Called when the body was read, or its time is over.
  void OnBody(boost::system::error_code error);
  // Makes the answer on this thread, which the handler may block.
  void Reply();
  // Writes an answer. No further request is read from this connection.
  void Answer(HttpAnswer answer);

  // Called when the answer is written. Unread input would make the kernel discard the answer with
  // the connection, so it is read and dropped for a moment.
  void Finish(boost::system::error_code error);
  // Reads and drops bytes until the client closes or the time is over.
  void Linger();
  // Closes the socket; pending operations end with an error.
  void Close();

  const HttpServer::Options& options_;
  Sessions& sessions_;
  // Empty until Begin has added the session.
  std::optional<Sessions::Place> place_;
  boost::asio::ip::tcp::socket socket_;
  // Ends the current step, see CancelAfter.
  boost::asio::steady_timer timer_;
  // Compared by the timer's handler, because a handler that is already queued cannot be cancelled.
  uint64_t step_ = 0;       // the step that the timer belongs to
  uint64_t step_over_ = 0;  // the last step whose time is over
  // Head and body; bounded, so that a client cannot make it grow.
  boost::beast::flat_buffer buffer_{limits::kHealthHeadBytesMax + limits::kHealthBodyBytesMax};
  // Parses into its own memory; the body moves to `request_`.
  boost::beast::http::request_parser<boost::beast::http::string_body> parser_;
  HttpServerRequest request_;
  bool reads_body_ = false;
  // The answer; both live until it is written.
  std::string head_;
  std::string body_;
  // Holds bytes that nobody reads, see Linger.
  std::array<char, 1'024> unwanted_;
};

}  // namespace neurontrace
