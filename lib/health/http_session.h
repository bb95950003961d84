// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "lib/base/mutex.h"
#include "lib/health/http_server.h"
#include "lib/trace/daemon_limits.h"

namespace neurontrace {

class Session;

// The existing sessions, oldest first. Any thread.
class Sessions {
 public:
  using Place = std::list<std::weak_ptr<Session>>::iterator;

  // Adds a session. Sets `too_many` to the session that must be closed for it, if any.
  Place Add(const std::shared_ptr<Session>& session, std::shared_ptr<Session>& too_many);
  void Remove(Place place);

 private:
  Mutex mutex_;
  std::list<std::weak_ptr<Session>> sessions_ NT_GUARDED_BY(mutex_);
};

// One connection from its first byte to its end: head, body, answer, linger. All of it runs on the
// socket's strand; the pending operation owns the session.
class Session : public std::enable_shared_from_this<Session> {
 public:
  // `options` and `sessions` must outlive it.
  Session(boost::asio::ip::tcp::socket socket, const HttpServer::Options& options,
          Sessions& sessions)
      : options_(options),
        sessions_(sessions),
        socket_(std::move(socket)),
        timer_(socket_.get_executor()) {}
  ~Session();

  boost::asio::ip::tcp::socket::executor_type executor() { return socket_.get_executor(); }

  void Begin();

 private:
  // Begins a step: its pending operation is aborted after this time.
  void EndWithin(std::chrono::milliseconds time);
  void CancelAfter(std::chrono::milliseconds time);

  void TakeHead(boost::system::error_code error);
  void TakeBody(boost::system::error_code error);
  void Reply();
  void Answer(HttpAnswer answer);

  // Called when the answer is written. Unread input would make the kernel discard the answer with
  // the connection, so it is read and dropped for a moment.
  void Finish(boost::system::error_code error);
  void Linger();
  void Close();

  const HttpServer::Options& options_;
  Sessions& sessions_;
  std::optional<Sessions::Place> place_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  uint64_t step_ = 0;       // the step that the timer belongs to
  uint64_t step_over_ = 0;  // the last step whose time is over
  boost::beast::flat_buffer buffer_{limits::kHealthHeadBytesMax + limits::kHealthBodyBytesMax};
  boost::beast::http::request_parser<boost::beast::http::string_body> parser_;
  HttpServerRequest request_;
  boost::beast::http::response<boost::beast::http::string_body> reply_;
  std::optional<boost::beast::http::response_serializer<boost::beast::http::string_body>>
      serializer_;
  std::array<char, 1'024> unwanted_;
};

}  // namespace neurontrace
